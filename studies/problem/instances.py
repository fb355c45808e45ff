"""Random instances of a scene: each a run of its own in a folder of the run, then a table of all.

Instance k is `studies.scene.drawing.drawn(file, seed, k)`; its folder `instances/KKK` has that as
`study.toml`, which can be run alone. How instances fail, resume and are spread over workers is in
`studies.runs.instances`.

Tests: `tests/studies/problem/test_instances.py`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from studies.problem.fit import SceneFit, make_fit
from studies.problem.pictures import shown
from studies.problem.solve import Solved
from studies.runs import folder as run_folder
from studies.runs.folder import STUDY, RunFolder
from studies.runs.instances import (
    FAILURES,
    Bar,
    as_csv,
    place,
    recorded,
    result_name,
    spread_out,
    summed_up,
    told,
)
from studies.runs.options import RunOptions
from studies.runs.pool import HERE, Pool
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.scene.drawing import drawn
from studies.scene.reading import to_toml


@dataclass(frozen=True, eq=False)
class SceneInstances:
    """A `studies.runs.starting.Job`: run every instance, then report the worst one in full.

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

    def make(self, k: int) -> SceneFit:
        """Return the fit of instance k."""
        file = drawn(self.file, self.options.seed, k)
        return make_fit(file, self.options, title=self.title, say=lambda _text: None)

    def run(self, folder: RunFolder) -> str:
        """Run what is not finished; write table, CSV and the report of the worst one."""
        count, budget = self.file.instances, self.file.search.max_evaluations
        record = replace(self, spread=HERE)._record
        spread_out(folder, self.spread, record, count=count, max_evaluations=budget)
        with EvaluationProgress(budget) as progress:
            records = [self._record(folder, progress, k) for k in range(count)]
        folder.write_text(run_folder.INSTANCES_CSV, as_csv(records))
        bars = {path: Bar(published=one) for path, one in self.file.published.items()}
        table = summed_up(records, bars)
        folder.write_json(run_folder.INSTANCES, table)
        worst = table["worst"]
        fit, own = self.make(worst), _folder_of(folder, worst)
        with EvaluationProgress(budget) as progress:
            solved = fit.solve(own, progress)  # its logs are whole: nothing is evaluated again
            progress.say("instances ended; certifying the worst one and drawing the report")
            lines = fit.finish(folder, solved, progress, logs_in=place(worst))
        lines = [*covered(records), *lines] if self._has_noise else lines
        return "\n".join([*told(table), f"the worst, instance {worst}:", *lines])

    @property
    def _has_noise(self) -> bool:
        every = self.file.observations.values()
        return any(one.simulate is not None and one.simulate.noise > 0.0 for one in every)

    def _record(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        return recorded(folder, progress, partial(searched, self), k, count=self.file.instances)


def make_instances(
    file: declared.SceneFile, options: RunOptions, *, title: str, spread: Pool = HERE
) -> SceneInstances:
    """Return the job of a scene with several instances.

    Raises
    ------
    ValueError
        If something in the first of them does not fit; the message names its key.
    """
    job = SceneInstances(file, options, title, spread)
    with suppress(*FAILURES):
        job.make(0)
    return job


def searched(
    job: SceneInstances, folder: RunFolder, progress: EvaluationProgress, k: int
) -> dict[str, Any]:
    """Return the record of instance k, which leaves its logs and its scene in the folder."""
    fit, own = job.make(k), _folder_of(folder, k)
    own.write_text(STUDY, to_toml(fit.file))
    solved = fit.solve(own, progress)
    parameters = solved.problem.parameters
    return {
        "instance": k,
        "status": solved.result.status.name,
        "verdict": str(solved.verdict.kind.value),
        "loss": solved.result.loss,
        "evaluations": solved.evaluations,
        "starts": len(solved.found.all),
        "errors_are": "relative error",
        "errors": errors(fit, solved),
        "spectrum": solved.spread.to_dict(parameters.theta_labels),
    }


def errors(fit: SceneFit, solved: Solved) -> dict[str, Any]:
    """Return by path how far an answer is from the truth; without one, the answer itself.

    Of many values `mean` is the mean of the errors and `max` the largest; of one value the truth,
    the estimate, and whether its interval for pixel noise holds the truth stand beside the error.
    """
    parameters, theta = solved.problem.parameters, solved.result.theta
    if measured := shown(fit.made, fit.file, solved.problem, theta).measures:
        return dict(measured)
    truth = fit.made.truth
    low, high = solved.spread.interval
    found: dict[str, Any] = {}
    first = 0
    for one, value in zip(parameters.free, parameters.values(theta).values(), strict=True):
        own = slice(first, first + value.size)
        first = own.stop
        if not one.is_answer or truth is None:
            continue
        off = truth.errors((one.path,), np.ravel(value))
        found[one.path] = {"mean": float(off.mean())}
        if value.size > 1:
            found[one.path]["max"] = float(off.max())
            continue
        hidden = float(truth.flat((one.path,))[0])
        found[one.path] |= {
            "truth": hidden,
            "estimate": float(value.item()),
            "covered": bool(low[own][0] <= hidden <= high[own][0]),
        }
    return found


def covered(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in how many instances the interval for pixel noise held the truth, in lines."""
    held: dict[str, list[bool]] = {}
    for one in records:
        for path, own in one.get("errors", {}).items():
            if "covered" in own:
                held.setdefault(path, []).append(own["covered"])
    return [
        f"  the 95 % interval of {path} for pixel noise held the truth in {sum(flags)} of "
        f"{len(flags)} instances"
        for path, flags in held.items()
    ]


def _folder_of(folder: RunFolder, k: int) -> RunFolder:
    """Return the folder of an instance, in that of the run."""
    return RunFolder(folder.file(result_name(k)).parent)
