"""Many random instances of a study: one after the other, resumable, with median and worst.

Instance k draws its hidden values and its start by the run's seed and k; a study that is
run once is its instance 0. Every finished instance leaves its numbers in the run folder, so
that a run that was stopped goes on with the next one. An instance that fails, because its
rollout diverges or its search finds no finite loss, leaves the reason, and the others go on: it
is counted apart, and neither median nor worst knows it. Any other error ends the run: it is a
mistake in the settings or in the program.
"""

import csv
import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from adjsim import checks
from adjsim.system import RolloutError
from studies import run_folder
from studies.distribution import HERE, Local, Spread, alone
from studies.errors import FailedSearchError, StudyError
from studies.image_fit import ImageFit
from studies.optimizers.problem import NotFiniteError
from studies.progress import EvaluationProgress
from studies.registry import Job, RunOptions
from studies.report_parts import counted
from studies.run_folder import RunFolder
from studies.scans.progress import PointProgress
from studies.search import Found
from studies.uncertainty import Uncertainty


KEY, FAILED = "instances", "FAILED"
Make = Callable[[int], ImageFit]
# How an instance may fail: a rollout, a search, or a matrix of its fit left the finite numbers.
FAILURES = (
    RolloutError, NotFiniteError, FailedSearchError, FloatingPointError, np.linalg.LinAlgError,
)  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """What a relative error is held against: ours, and the one published by gradSim."""

    ours: float
    published: float | None = None


@dataclass(frozen=True, eq=False)
class Instances:
    """A `studies.registry.Job`: run every instance, then report the worst one in full.

    Attributes
    ----------
    make : callable
        make(k) is the fit of instance k.
    count : int
    max_evaluations : int
        Budget of a search.
    bars : mapping
        By path, e.g. "mass": the worst instance is the one worst against these.
    spread : Spread
        Where instances are run.
    """

    make: Make
    count: int
    max_evaluations: int
    bars: Mapping[str, Bar] = field(default_factory=dict)
    spread: Spread = HERE

    def run(self, folder: RunFolder) -> str:
        """Run what is not finished; write table, CSV and the report."""
        if not isinstance(self.spread, Local):
            self._run_apart(folder)
        with EvaluationProgress(self.max_evaluations) as progress:
            records = [self._record(folder, progress, k) for k in range(self.count)]
        folder.write_text(run_folder.INSTANCES_CSV, as_csv(records))
        table = summed_up(records, self.bars)
        folder.write_json(run_folder.INSTANCES, table)
        worst = self.make(table["worst"])
        with EvaluationProgress(self.max_evaluations) as progress:
            # Its log is whole: this evaluates nothing but the spectrum.
            found, spread = worst.solve(folder, progress, place(table["worst"]))
        progress.say("instances ended; certifying the worst one and drawing the report")
        lines = worst.finish(folder, found, spread)
        return "\n".join([*told(table), f"the worst, instance {table['worst']}:", *lines])

    def _run_apart(self, folder: RunFolder) -> None:
        """Run what is not finished elsewhere, and write what comes back as it comes."""
        left = [k for k in range(self.count) if not folder.has(f"{place(k)}/{run_folder.RESULT}")]
        run = partial(run_apart, self.make, self.max_evaluations)
        with PointProgress(self.count, self.count - len(left), what="instance") as progress:
            for k, files in self.spread(run, left):
                for name in sorted(files, key=lambda name: name == run_folder.RESULT):
                    folder.write_text(f"{place(k)}/{name}", files[name])  # the result last
                found = folder.read_json(f"{place(k)}/{run_folder.RESULT}")
                progress([{"reason": found.get("reason")}])

    def _record(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        name = f"{place(k)}/{run_folder.RESULT}"
        if not folder.has(name):
            progress.prefix = counted_instance(k, self.count)
            run = partial(ended, self.make, folder=folder, progress=progress, where=place(k))
            found = alone(run, k)
            if found["status"] == FAILED:
                progress.say(f"{progress.prefix} failed: {found['reason']}")
            folder.write_json(name, found)
        return folder.read_json(name)


def ended(
    make: Make, k: int, folder: RunFolder, progress: EvaluationProgress, *, where: str
) -> dict[str, Any]:
    """Return the record of an instance that ended or failed; a mistake ends the run.

    `where` is where in the folder its logs are.
    """
    try:
        fit = make(k)
        return record(k, fit, *fit.solve(folder, progress, where))
    except FAILURES as error:
        reason = str(error) or type(error).__name__
        return {"instance": k, "status": FAILED, "reason": reason}
    except StudyError as error:
        raise StudyError(f"Instance {k}: {error}") from error


def run_apart(make: Make, max_evaluations: int, k: int) -> dict[str, str]:
    """Run an instance in a folder of its own, anywhere; return the files it leaves, by name."""
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(Path(path))
        progress = EvaluationProgress(max_evaluations, Console(quiet=True))
        found = ended(make, k, folder, progress, where="")
        folder.write_json(run_folder.RESULT, found)
        return {one.name: one.read_text(encoding="utf-8") for one in Path(path).iterdir()}


def counted_instance(k: int, count: int) -> str:
    """Return an instance by the number that results and folders call it, and how far it is."""
    return f"instance {k} ({k + 1} of {count})"


def place(k: int) -> str:
    """Return where in the run folder instance k keeps its logs and its result."""
    return f"instances/{k:03d}"


def make_job(
    settings: Mapping[str, Any],
    options: RunOptions,
    make: Make,
    bars: Mapping[str, Bar] | None = None,
) -> Job:
    """Return the job of a study: one fit, or as many as the setting `instances` says."""
    del options
    count = checks.positive(KEY, settings[KEY])
    try:
        first = make(0)  # complains of settings before anything is run
    except FAILURES:
        if count == 1:
            raise
    else:
        if count == 1:
            return first
    return Instances(make, count, settings["optimizer"]["max_evaluations"], bars or {})


def record(k: int, fit: ImageFit, found: Found, spread: Uncertainty) -> dict[str, Any]:
    """Return the numbers that are kept of an instance."""
    return {
        "instance": k,
        "status": found.best.status.name,
        "loss": found.best.loss,
        "evaluations": found.evaluations,
        "starts": len(found.all),
        "errors_are": fit.errors_are,
        "errors": fit.errors(found.best.theta),
        "spectrum": spread.to_dict(fit.problem.parameters.theta_labels),
    }


def summed_up(records: list[dict[str, Any]], bars: Mapping[str, Bar]) -> dict[str, Any]:
    """Return median and worst of every parameter, and the worst instance, of those that ended.

    Raises
    ------
    StudyError
        If all failed.
    """
    ended = [one for one in records if one["status"] != FAILED]
    failed = [one for one in records if one["status"] == FAILED]
    if not ended:
        raise StudyError(f"All {len(failed)} instances failed, the first: {failed[0]['reason']}")
    paths = list(ended[0]["errors"])
    errors = np.array([[one["errors"][path]["mean"] for path in paths] for one in ended])
    largest = np.array(
        [[one["errors"][path].get("max", np.nan) for path in paths] for one in ended]
    )
    has_many = [bool(np.isfinite(column).all()) for column in largest.T]
    held = np.array([bars[path].ours if path in bars else np.nan for path in paths])
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
        bar = "" if row["bar"] is None else f"  bar {row['bar']:.0e}"
        published = "" if row["published"] is None else f"  published {row['published']:.1e}"
        lines.append(
            f"  {row['name']}: median {row['median']:.1e}  worst {row['worst']:.1e} "
            f"(instance {row['worst_instance']}){bar}{published}"
        )
    if failed := table["failed"]:
        lines.append(f"{len(failed)} of {table['count']} instances failed, and are not in these:")
        lines += [f"  instance {one['instance']}: {one['reason']}" for one in failed]
    return lines
