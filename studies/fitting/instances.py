"""Random instances of a scene: each a run of its own in a folder of the run, then a table of all.

Instance k is `scene.drawing.instance_of(file, seed, k)`; its folder `instances/KKK` has that as
`study.toml`, which can be run alone. Every finished instance leaves its numbers there, so that a
run that was stopped goes on with the next one. An instance that fails, because its rollout diverges
or its search finds no finite loss, leaves the reason, and the others go on: neither median nor
worst contains it. Any other error ends the run: it is a mistake in the settings or in the program.
"""

import csv
import io
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from studies.answer.solution import Solution
from studies.answer.verdict import Kind
from studies.fitting.fit import SceneFit, make_fit
from studies.fitting.pictures import shown
from studies.optimizers.problem import NOT_FINITE
from studies.reports.instances import ERROR, FORMS, MEASURE
from studies.reports.numbers import count as counted
from studies.runs import folder as run_folder
from studies.runs.errors import FailedSearchError, StudyError
from studies.runs.folder import STUDY, RunFolder
from studies.runs.options import RunOptions
from studies.runs.pool import HERE, Pool, run_item
from studies.runs.progress import EvaluationProgress, PointProgress
from studies.scene import declared
from studies.scene.drawing import instance_of
from studies.scene.reading import to_toml


FAILED = "FAILED"
# How an instance may fail: a rollout, a search, or a matrix of its fit left the finite numbers.
FAILURES = (*NOT_FINITE, FailedSearchError)
# How near a control ends to its goal, as its table says it, and of which of these more is better.
MEASURES = {"cover": "cover", "distance": "distance [m]", "gain": "gain [m]"}
GAINS = ("cover", "gain [m]")
Records = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Instances:
    """A `studies.runs.starting.Job`: run every instance, then report the worst one in full."""

    file: declared.SceneFile  # with numbers that are still to be drawn
    options: RunOptions
    title: str  # heading of the report
    spread: Pool = HERE  # where instances are run

    def make(self, k: int) -> SceneFit:
        """Return the fit of instance k."""
        file = instance_of(self.file, self.options.seed, k)
        return make_fit(file, self.options, title=self.title, say=lambda _text: None)

    def search(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        """Return the record of instance k, which leaves its logs and its scene in the folder."""
        fit, subfolder = self.make(k), RunFolder(folder.path / _place(k))
        subfolder.write_text(STUDY, to_toml(fit.file))
        solved = fit.solve(subfolder, progress)
        return {
            "instance": k,
            "status": solved.result.status.name,
            "verdict": str(solved.verdict.kind.value),
            "loss": solved.result.loss,
            "evaluations": solved.evaluations,
            "starts": len(solved.search.basins),
            "errors_are": ERROR if solved.control is None else MEASURE,
            "errors": _errors(fit, solved),
            "spectrum": solved.intervals.to_dict(solved.problem.parameters.theta_labels),
        }

    def sum_up(self, folder: RunFolder, records: Records) -> tuple[list[str], int]:
        """Write tables; return lines on them, and the worst instance."""
        table = _table(records, self.file.published)
        folder.write_text(run_folder.INSTANCES_CSV, _as_csv(records))
        folder.write_json(run_folder.INSTANCES, table)
        kind, ended = table["errors_are"], counted(len(table["records"]), "instance")
        lines = [f"{kind}s over {ended}:"]
        for row in table["parameters"]:
            published = "" if row["published"] is None else f"  published {row['published']:.1e}"
            median, worst = (FORMS[kind].format(row[key]) for key in ("median", "worst"))
            lines.append(
                f"  {row['name']}: median {median}  worst {worst} "
                f"(instance {row['worst_instance']}){published}"
            )
        if kind == MEASURE:
            lines.append(f"  the goal is reached in {table['reached']} of {ended}")
        lines += _failure_lines(table["failed"], table["count"])
        simulated = [observation.simulate for observation in self.file.observations.values()]
        if any(simulate is not None and simulate.noise > 0.0 for simulate in simulated):
            lines += covered(records)
        return lines, table["worst"]

    def run(self, folder: RunFolder) -> str:
        """Run what is not finished; write tables and the report of the worst one."""
        count, budget = self.file.instances, self.file.search.max_evaluations
        self._spread_out(folder)
        with EvaluationProgress(budget) as progress:
            records = [self.record(folder, progress, k) for k in range(count)]
            lines, worst = self.sum_up(folder, records)
            fit, logs_in = self.make(worst), _place(worst)
            progress.prefix = f"instance {worst} once more, from its log"
            progress.begin()
            within = RunFolder(folder.path / logs_in)
            solved = fit.solve(within, progress)  # nothing is evaluated again
            progress.say("instances ended; certifying the worst one and drawing the report")
            report = fit.finish(folder, solved, progress, logs_in=logs_in)
        return "\n".join([*lines, f"the worst, instance {worst}:", *report])

    def record(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        """Return the record of instance k: the one in the folder, or what the search finds."""
        name = _result_name(k)
        if not folder.has(name):
            progress.prefix = f"instance {k} ({k + 1} of {self.file.instances})"
            try:
                record = run_item(partial(self.search, folder, progress), k)
            except FAILURES as error:
                reason = str(error) or type(error).__name__
                record = {"instance": k, "status": FAILED, "reason": reason}
                progress.say(f"{progress.prefix} failed: {reason}")
            except StudyError as error:
                raise StudyError(f"Instance {k}: {error}") from error
            folder.write_json(name, record)
        return folder.read_json(name)

    def _spread_out(self, folder: RunFolder) -> None:
        """Run what is not finished elsewhere, and write what comes back as it comes."""
        count = self.file.instances
        left = [k for k in range(count) if not folder.has(_result_name(k))]
        if not self.spread.is_apart(len(left)):
            return
        with PointProgress(count, count - len(left), what="instance") as progress:
            for k, files in self.spread(partial(_run_apart, replace(self, spread=HERE)), left):
                result = files.pop(_result_name(k))
                for name, data in files.items():
                    folder.write_bytes(name, data)
                folder.write_bytes(_result_name(k), result)  # last: with it k has ended
                progress([{"reason": folder.read_json(_result_name(k)).get("reason")}])


def _run_apart(job: Instances, k: int) -> dict[str, bytes]:
    """Run an instance in a folder of its own, anywhere; return the files it leaves, by name."""
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(Path(path))
        quiet = EvaluationProgress(job.file.search.max_evaluations, Console(quiet=True))
        job.record(folder, quiet, k)
        files = [file for file in folder.path.rglob("*") if file.is_file()]
        return {file.relative_to(folder.path).as_posix(): file.read_bytes() for file in files}


def _place(k: int) -> str:
    """Return where in the run folder instance k keeps its logs and its result."""
    return f"instances/{k:03d}"


def _result_name(k: int) -> str:
    return f"{_place(k)}/{run_folder.RESULT}"


def _errors(fit: SceneFit, solved: Solution) -> dict[str, Any]:
    """Return by path how far an answer is from the truth, or the measures that a study has instead.

    Of many values `mean` is the mean of the errors and `max` the largest; of one value the truth,
    the estimate, and whether its interval for noise holds the truth stand beside the error.
    """
    if solved.control is not None:
        return {MEASURES[name]: {"mean": value} for name, value in solved.control.items()}
    parameters, theta = solved.problem.parameters, solved.result.theta
    if measured := shown(fit.made, fit.file, solved.problem, theta).measures:
        return dict(measured)
    truth = fit.made.truth
    if truth is None:
        return {}
    low, high = solved.intervals.pixel
    out: dict[str, Any] = {}
    first = 0
    for free, value in zip(parameters.free, parameters.values(theta).values(), strict=True):
        k, first = first, first + value.size
        if not free.is_answer:
            continue
        off = truth.errors((free.path,), np.ravel(value))
        out[free.path] = {"mean": float(off.mean())}
        if value.size > 1:
            out[free.path]["max"] = float(off.max())
            continue
        hidden = float(truth.flat((free.path,))[0])
        out[free.path] |= {
            "truth": hidden,
            "estimate": float(value.item()),
            "covered": bool(low[k] <= hidden <= high[k]),
        }
    return out


def _table(records: Records, published: Mapping[str, float]) -> dict[str, Any]:
    """Return median and worst of every parameter, and the worst instance, of those that ended."""
    ended, failed = _parted(records)
    paths = list(ended[0]["errors"])
    errors = np.array([[record["errors"][path]["mean"] for path in paths] for record in ended])
    losses = errors * [-1.0 if path in GAINS else 1.0 for path in paths]  # the largest is the worst
    rows = []
    for path, column, loss in zip(paths, errors.T, losses.T, strict=True):
        worst = int(loss.argmax())
        largest = [record["errors"][path].get("max", np.nan) for record in ended]
        rows.append(
            {
                "name": path,
                "median": float(np.median(column)),
                "worst": float(column[worst]),
                "worst_instance": ended[worst]["instance"],
                "largest_component": max(largest) if np.isfinite(largest).all() else None,
                "published": published.get(path),
            }
        )
    reached = sum(record["verdict"] == Kind.REACHED for record in ended)
    off = losses / (np.abs(np.median(losses, axis=0)) + 1e-300)
    return {
        "count": len(records),
        "parameters": rows,
        "errors_are": ended[0]["errors_are"],
        "worst": ended[int(off.max(axis=1).argmax())]["instance"],
        "records": ended,
        "failed": failed,
        **({"reached": reached} if ended[0]["errors_are"] == MEASURE else {}),
    }


def _parted(records: Records) -> tuple[Records, Records]:
    """Return the records of instances that ended, and of those that failed; raise if all did."""
    failed = [record for record in records if record.get("status") == FAILED]
    if len(failed) == len(records):
        raise StudyError(f"All {len(failed)} instances failed, the first: {failed[0]['reason']}")
    return [record for record in records if record.get("status") != FAILED], failed


def _as_csv(records: Records) -> str:
    """Return one line per instance; one that failed has nothing but its status and the reason."""
    ended = next((record for record in records if record["status"] != FAILED), {})
    columns = [(path, key) for path, errors in ended.get("errors", {}).items() for key in errors]
    kind = ended.get("errors_are", "").replace(MEASURE, "")
    names = {"mean": kind, "max": f"largest {kind}"}
    errors = [f"{path} {names.get(key, key)}".strip() for path, key in columns]
    head = ["instance", "status", "loss", "evaluations", "starts", "condition", *errors, "reason"]
    lines: list[list[Any]] = [head]
    for record in records:
        if record["status"] == FAILED:
            lines.append([record["instance"], FAILED, *[None] * (len(head) - 3), record["reason"]])
            continue
        cells = [record[key] for key in head[:5]] + [record["spectrum"]["condition"]]
        lines.append([*cells, *(record["errors"][path][key] for path, key in columns), None])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _failure_lines(failed: Records, count: int) -> list[str]:
    """Return which of so many instances failed and why, in a few lines, if any did."""
    if not failed:
        return []
    head = f"{len(failed)} of {count} instances failed, and are not in these:"
    return [head, *(f"  instance {record['instance']}: {record['reason']}" for record in failed)]


def covered(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in how many instances the interval for noise held the truth, in lines."""
    held: dict[str, list[bool]] = {}
    for record in records:
        for path, error in record.get("errors", {}).items():
            if "covered" in error:
                held.setdefault(path, []).append(error["covered"])
    return [
        f"  the 95 % interval of {path} for noise held the truth in {sum(flags)} of "
        f"{len(flags)} instances"
        for path, flags in held.items()
    ]
