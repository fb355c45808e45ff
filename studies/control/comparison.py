"""Controls of many instances: by picture, told of states, and at random, on equal terms.

Instance k of seed s is the single run of seed s + k. All three kinds of supervision begin
with the same bodies, have the same budget, and are measured alike (`studies/control/goal.py`).
Every finished instance leaves its curves in the run folder, and every evaluation a line in a log,
so that a run that was stopped goes on where it was. The curves are raw: an evaluation counts with
its own distance, not with the best before it. What a search returns is its evaluation of the lowest
loss, which it knows; the distance it does not know.

Tests: `tests/studies/control/test_comparison.py`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from studies.answer.reached import bars_of
from studies.control import results
from studies.control.goal import make_target, parts_of
from studies.problem.films import PictureObserver
from studies.problem.fit import SceneFit, make_fit
from studies.problem.solve import Solved
from studies.reports.numbers import count as counted
from studies.runs.errors import FailedSearchError
from studies.runs.folder import CURVES_CSV, INSTANCES_CSV, ITERATIONS, STUDY, RunFolder
from studies.runs.instances import FAILURES, failures_told, parted, place, recorded, spread_out
from studies.runs.options import RunOptions
from studies.runs.pool import HERE, Pool
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.scene.drawing import drawn
from studies.scene.reading import to_toml
from studies.search.optimizers.evaluations import read_log


KINDS = ("picture", "states", "random")


@dataclass(frozen=True, eq=False)
class Comparison:
    """A job: search every instance under each supervision, then compare the ends.

    Attributes
    ----------
    file : SceneFile
        With numbers that are still to be drawn.
    options : RunOptions
    title : str
        Heading of the report.
    spread : Pool
        Where instances are run.
    """

    file: declared.SceneFile
    options: RunOptions
    title: str
    spread: Pool = HERE

    @property
    def kinds(self) -> list[str]:
        """The supervisions; the one that the file names comes first: by it instances are judged."""
        first = self.file.goal.supervision
        return [first, *(kind for kind in KINDS if kind != first)]

    def fits(self, k: int) -> dict[str, SceneFit]:
        """Return the search of instance k under every kind of supervision."""
        options = replace(self.options, seed=self.options.seed + k)
        file = drawn(self.file, options.seed)
        fit = make_fit(file, options, title=self.title, say=lambda _text: None)
        return {
            kind: replace(fit, file=replace(file, goal=replace(file.goal, supervision=kind)))
            for kind in self.kinds
        }

    def run(self, folder: RunFolder) -> str:
        """Run what is not finished; write numbers, curves and the report of the worst one."""
        count, budget = self.file.instances, self.file.search.max_evaluations
        record = replace(self, spread=HERE)._record
        spread_out(folder, self.spread, record, count=count, max_evaluations=budget)
        with EvaluationProgress(budget) as progress:
            found = [self._record(folder, progress, k) for k in range(count)]
            records, failed = parted(found)
            first = self.kinds[0]
            shown = results.worst(records, first)
            fit = self.fits(shown)[first]
            compared = {
                "kinds": self.kinds,
                "instances": count,
                "bars": bars_of(self.file.goal, make_target(fit.made, first)[1].size),
                "shown": shown,
                "table": results.summed_up(records),
                "records": records,
                "failed": failed,
            }
            folder.write_json(results.COMPARISON, compared)
            folder.write_text(INSTANCES_CSV, results.ends_csv(records, failed))
            folder.write_text(CURVES_CSV, results.curves_csv(records))
            where = f"{place(shown)}/{first}"
            progress.prefix = f"instance {shown} once more, from its log"
            progress.begin(first)
            solved = fit.solve(_inside(folder, where), progress)  # its log is whole
            progress.say("searches ended; certifying the worst one and drawing the report")
            lines = fit.finish(folder, solved, progress, logs_in=where)
        return "\n".join([*told(compared), f"the worst, instance {shown}:", *lines])

    def _record(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        ended = partial(searched, self)
        return recorded(folder, progress, ended, k, count=self.file.instances)


def make_comparison(
    file: declared.SceneFile, options: RunOptions, *, title: str, spread: Pool = HERE
) -> Comparison:
    """Return the job of a control with several instances.

    Raises
    ------
    ValueError
        If something in the first of them does not fit; the message names its key.
    """
    job = Comparison(file, options, title, spread)
    with suppress(*FAILURES):
        job.fits(0)
    return job


def searched(
    job: Comparison, folder: RunFolder, progress: EvaluationProgress, k: int
) -> dict[str, Any]:
    """Search under every kind of supervision; leave logs and last pictures, return the record."""
    fits = job.fits(k)
    first = fits[job.kinds[0]]
    folder.write_text(f"{place(k)}/{STUDY}", to_toml(first.file))
    ends, pictures = {}, {}
    for kind, fit in fits.items():
        progress.begin(kind)
        where = f"{place(k)}/{kind}"
        solved = fit.solve(_inside(folder, where), progress)
        log = read_log(folder.file(f"{where}/{ITERATIONS}"))
        if not any(np.isfinite(one.loss) for one in log):
            raise FailedSearchError(f"{kind}: no rollout stayed finite.")
        ends[kind] = results.curve(solved.result.status.name, log)
        ends[kind]["verdict"] = str(solved.verdict.kind)
        pictures |= {f"picture.{kind}": one for one in last_pictures(solved)[:1]}
    name = f"{place(k)}/last-pictures.npz"
    outline = make_target(first.made, "picture")[1].silhouette
    if outline is not None:
        folder.write_npz(name, outline=outline.astype(np.float64), **pictures)
    return {"instance": k, "searches": ends, "pictures": None if outline is None else name}


def last_pictures(solved: Solved) -> Sequence[np.ndarray]:
    """Return the last picture of every film of an answer, (height, width, 4)."""
    problem = solved.problem
    rows = problem.images(solved.result.theta)
    return [
        one.as_images(part)[-1]
        for one, part in zip(problem.observers, parts_of(problem, rows), strict=True)
        if isinstance(one, PictureObserver)
    ]


def told(compared: dict[str, Any]) -> list[str]:
    """Return the table in a few lines for the terminal."""
    count, failed = compared["instances"], compared["failed"]
    ended = count - len(failed)
    lines = [
        "distance of the centre of mass from the goal's, gain on where it begins, and cover of the "
        f"picture (IoU), over {counted(ended, 'instance')}:"
    ]
    for row in compared["table"]:
        parts = [_measure_told(row, name) for name in results.MEASURES if name in row]
        lines.append(
            f"  {row['kind']}: reached {row['reached']} of {ended}; {'; '.join(parts)}; "
            f"{row['seconds']:.2g} s an evaluation"
        )
    return lines + failures_told(failed, count)


def _measure_told(row: dict[str, Any], name: str) -> str:
    """Return mean, median and worst of a measure."""
    return (
        f"{name} mean {_told(row, name, 'mean')}, median {_told(row, name, 'median')}, worst "
        f"{_told(row, name, 'worst')} (instance {row[name]['worst_instance']})"
    )


def _told(row: dict[str, Any], name: str, which: str) -> str:
    """Return a number of a row with its unit."""
    measure, value = results.MEASURES[name], row[name][which]
    return f"{value:.3g} m" if measure.is_length else f"{value:.3f}"


def _inside(folder: RunFolder, name: str) -> RunFolder:
    """Return a folder in that of a run."""
    return RunFolder(folder.file(f"{name}/{ITERATIONS}").parent)
