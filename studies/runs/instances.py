"""Many random instances of a scene: resumable, with median and worst.

Instance k draws its hidden values and its start by the run's seed and k; a scene that is
run once is its instance 0. Every finished instance leaves its numbers in the run folder, so
that a run that was stopped goes on with the next one. An instance that fails, because its
rollout diverges or its search finds no finite loss, leaves the reason, and the others go on: it
is counted apart, and neither median nor worst knows it. Any other error ends the run: it is a
mistake in the settings or in the program.
"""

import csv
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from studies.reports.numbers import count as counted
from studies.runs import folder as run_folder
from studies.runs.errors import FailedSearchError, StudyError
from studies.runs.folder import RunFolder
from studies.runs.pool import Pool, run_item
from studies.runs.progress import EvaluationProgress
from studies.scans.progress import PointProgress
from studies.search.optimizers.problem import NOT_FINITE


FAILED = "FAILED"
Record = Callable[[RunFolder, EvaluationProgress, int], Any]
# How an instance may fail: a rollout, a search, or a matrix of its fit left the finite numbers.
FAILURES = (*NOT_FINITE, FailedSearchError)


@dataclass(frozen=True)
class Bar:
    """What a relative error is held against: ours, and the one published by gradSim."""

    ours: float | None = None
    published: float | None = None


def recorded(
    folder: RunFolder,
    progress: EvaluationProgress,
    search: Callable[[RunFolder, EvaluationProgress, int], dict[str, Any]],
    k: int,
    *,
    count: int,
) -> dict[str, Any]:
    """Return the record of instance k: the one in the folder, or what the search finds.

    Where it fails, its reason is the record and the others go on; a single one raises.
    """
    name = result_name(k)
    if not folder.has(name):
        progress.prefix = counted_instance(k, count)
        try:
            found = run_item(partial(search, folder, progress), k)
        except FAILURES as error:
            if count == 1:
                raise
            found = failure(k, error)
            progress.say(f"{progress.prefix} failed: {found['reason']}")
        except StudyError as error:
            raise StudyError(f"Instance {k}: {error}") from error
        folder.write_json(name, found)
    return folder.read_json(name)


def failure(k: int, error: Exception) -> dict[str, Any]:
    """Return the record of an instance that failed."""
    return {"instance": k, "status": FAILED, "reason": str(error) or type(error).__name__}


def spread_out(
    folder: RunFolder, spread: Pool, record: Record, *, count: int, max_evaluations: int
) -> None:
    """Run what is not finished elsewhere, and write what comes back as it comes.

    Parameters
    ----------
    folder : RunFolder
    spread : Pool
        Nothing is done if it would run all here.
    record : callable
        record(folder, progress, k) leaves logs and result of instance k in a folder; it can be
        pickled.
    count, max_evaluations : int
        Of instances, and of what each search has.
    """
    left = [k for k in range(count) if not folder.has(result_name(k))]
    if not spread.is_apart(len(left)):
        return
    run = partial(run_apart, record, max_evaluations)
    with PointProgress(count, count - len(left), what="instance") as progress:
        for k, files in spread(run, left):
            result = files.pop(result_name(k))
            for name, data in files.items():
                with folder.replacing(name) as part:
                    part.write_bytes(data)
            folder.write_text(result_name(k), result.decode())  # last: with it k has ended
            progress([{"reason": folder.read_json(result_name(k)).get("reason")}])


def run_apart(record: Record, max_evaluations: int, k: int) -> dict[str, bytes]:
    """Run an instance in a folder of its own, anywhere; return the files it leaves, by name."""
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(Path(path))
        record(folder, EvaluationProgress(max_evaluations, Console(quiet=True)), k)
        files = [one for one in folder.path.rglob("*") if one.is_file()]
        return {one.relative_to(folder.path).as_posix(): one.read_bytes() for one in files}


def counted_instance(k: int, count: int) -> str:
    """Return an instance by the number that results and folders call it, and how far it is."""
    return f"instance {k} ({k + 1} of {count})"


def place(k: int) -> str:
    """Return where in the run folder instance k keeps its logs and its result."""
    return f"instances/{k:03d}"


def result_name(k: int) -> str:
    """Return where in the run folder the result of instance k is: with it, it has ended."""
    return f"{place(k)}/{run_folder.RESULT}"


def summed_up(records: list[dict[str, Any]], bars: Mapping[str, Bar]) -> dict[str, Any]:
    """Return median and worst of every parameter, and the worst instance, of those that ended.

    Raises
    ------
    StudyError
        If all failed.
    """
    ended, failed = parted(records)
    paths = list(ended[0]["errors"])
    errors = np.array([[one["errors"][path]["mean"] for path in paths] for one in ended])
    largest = np.array(
        [[one["errors"][path].get("max", np.nan) for path in paths] for one in ended]
    )
    has_many = [bool(np.isfinite(column).all()) for column in largest.T]
    held = np.array([bars[path].ours if path in bars else None for path in paths], float)
    against = np.where(np.isnan(held), np.median(errors, axis=0) + 1e-300, held)
    rows = []
    for i, path in enumerate(paths):
        bar = bars.get(path)
        rows.append(
            {
                "name": path,
                "median": float(np.median(errors[:, i])),
                "worst": float(errors[:, i].max()),
                "worst_instance": ended[int(errors[:, i].argmax())]["instance"],
                "largest_component": float(largest[:, i].max()) if has_many[i] else None,
                "bar": None if bar is None else bar.ours,
                "published": None if bar is None else bar.published,
            }
        )
    return {
        "count": len(records),
        "parameters": rows,
        "errors_are": ended[0]["errors_are"],
        "worst": ended[int((errors / against).max(axis=1).argmax())]["instance"],
        "records": ended,
        "failed": failed,
    }


def parted(records: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Return the records of instances that ended, and of those that failed.

    Raises
    ------
    StudyError
        If all failed.
    """
    failed = [one for one in records if one.get("status") == FAILED]
    if len(failed) == len(records):
        raise StudyError(f"All {len(failed)} instances failed, the first: {failed[0]['reason']}")
    return [one for one in records if one.get("status") != FAILED], failed


def as_csv(records: list[dict[str, Any]]) -> str:
    """Return one line per instance; one that failed has nothing but its status and the reason."""
    head = ["instance", "status", "loss", "evaluations", "starts", "condition"]
    ended = next((one for one in records if one["status"] != FAILED), {})
    columns = [(path, key) for path, own in ended.get("errors", {}).items() for key in own]
    names = {"mean": ended.get("errors_are"), "max": f"largest {ended.get('errors_are')}"}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    own = [f"{path} {names.get(key, key)}".strip() for path, key in columns]
    writer.writerow([*head, *own, "reason"])
    for one in records:
        if one["status"] == FAILED:
            empty = [""] * (len(head) - 2 + len(columns))
            writer.writerow([one["instance"], FAILED, *empty, one["reason"]])
            continue
        cells = [one[key] for key in head[:-1]] + [one["spectrum"]["condition"]]
        writer.writerow([*cells, *(one["errors"][path][key] for path, key in columns), ""])
    return out.getvalue()


def told(table: dict[str, Any]) -> list[str]:
    """Return the table in a few lines for the terminal."""
    what = table["errors_are"] or "measure"
    lines = [f"{what}s over {counted(len(table['records']), 'instance')}:"]
    for row in table["parameters"]:
        bar = "" if row["bar"] is None else f"  aim: below {row['bar']:.0e}"
        published = "" if row["published"] is None else f"  published {row['published']:.1e}"
        lines.append(
            f"  {row['name']}: median {row['median']:.1e}  worst {row['worst']:.1e} "
            f"(instance {row['worst_instance']}){bar}{published}"
        )
    return lines + failures_told(table["failed"], table["count"])


def failures_told(failed: list[dict[str, Any]], count: int) -> list[str]:
    """Return which of so many instances failed and why, in a few lines, if any did."""
    if not failed:
        return []
    head = f"{len(failed)} of {count} instances failed, and are not in these:"
    return [head, *(f"  instance {one['instance']}: {one['reason']}" for one in failed)]
