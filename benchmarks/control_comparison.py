"""Controls found from a picture, from states and at random: how much is a picture worth?

    python -m benchmarks.control_comparison control-fem --count 6 --data docs/data

Instance k is the single run `adjsim run SCENE --seed k`. All three kinds begin with the same bodies
and have the same budget: `picture` and `states` are searches with this `goal.supervision`, `random`
evaluates the picture's loss of as many values that are drawn. A search returns its evaluation of
the lowest loss; the table says how near that ends to the goal, which no search minimises as such.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.publish import in_markdown, record
from studies.control.searching import watched_problem
from studies.fitting.fit import SceneFit, make_fit
from studies.optimizers.evaluations import Evaluator
from studies.runs.evaluations import read_log
from studies.runs.folder import ITERATIONS, RunFolder
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import SceneFile
from studies.scene.drawing import instance_of
from studies.scene.files import find_scene
from studies.scene.reading import read_scene


PICTURE, STATES, RANDOM = KINDS = ("picture", "states", "random")
# Between which values `random` draws; those of other paths have the standard deviation 1 about 0.
BETWEEN = {
    "cloth.velocity": ([3.5, 0.5, -0.5], [5.5, 2.5, 0.5]),
    "root.motor": (0.0, 4.0),
    "elbow.motor": (-4.0, 4.0),
}
Measures = dict[str, float]


def evaluate_draws(fit: SceneFit, log: Path) -> None:
    """Evaluate as many values as a search may, drawn at random, and log them."""
    watched, count = watched_problem(fit.made, PICTURE), fit.file.search.max_evaluations
    parameters, rng = watched.problem.parameters, np.random.default_rng([fit.options.seed, 1])
    evaluator = Evaluator(watched, count, log=log)
    for _ in range(count):
        natural = [
            np.ravel(rng.uniform(*BETWEEN[free.path]))
            if free.path in BETWEEN
            else rng.standard_normal(free.start.size)
            for free in parameters.free
        ]
        evaluator.residual(parameters.theta(np.concatenate(natural)))


def measures_of(file: SceneFile, kind: str, seed: int, path: Path) -> Measures:
    """Return how near the best evaluation of an instance ends; its log is kept below `path`."""
    goal = replace(file.goal, supervision=STATES if kind == STATES else PICTURE)
    file = instance_of(replace(file, goal=goal), seed)
    fit = make_fit(file, RunOptions(seed=seed), title=file.title)
    folder = RunFolder(path / f"{seed:03d}-{kind}")
    log = folder.file(ITERATIONS)
    if kind == RANDOM:
        evaluate_draws(fit, log)
    else:
        with EvaluationProgress(file.search.max_evaluations) as progress:
            fit.solve(folder, progress)
    return min(read_log(log), key=lambda evaluation: evaluation.loss).values


def row_of(kind: str, instances: Sequence[Measures], *, is_gain: bool) -> list[str]:
    """Return mean, median and worst distance or gain [m] of instances, and their median cover."""
    name, worst = ("gain", np.min) if is_gain else ("distance", np.max)
    lengths = [measures[name] for measures in instances]
    texts = [f"{statistic(lengths):.2g} m" for statistic in (np.mean, np.median, worst)]
    return [kind, *texts, f"{np.median([measures['cover'] for measures in instances]):.2f}"]


def compare(
    scene: Annotated[str, typer.Argument(help="A control.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings KEY=VALUE.")] = None,
    *,
    count: Annotated[int, typer.Option(help="Instances: of seeds 0, 1, ...")] = 5,
    out: Annotated[
        Path, typer.Option(help="Folder of the logs, from which a stopped comparison goes on.")
    ] = Path("runs/control-comparison"),
    data: Annotated[Path | None, typer.Option(help="Write SCENE.json into this folder.")] = None,
) -> None:
    """Print how near to the goal the searches of each kind end."""
    settings = overrides or []
    file = read_scene(find_scene(scene), settings)
    is_gain = file.goal.gain is not None
    head = [f"`{scene}`{', gain' * is_gain}", "mean", "median", "worst"]
    table = [[*head, "cover of the target, median"]]
    for kind in KINDS:
        instances = [measures_of(file, kind, k, out / scene) for k in range(count)]
        table.append(row_of(kind, instances, is_gain=is_gain))
    typer.echo(in_markdown(table))
    if data is not None:
        words = ["python -m benchmarks.control_comparison", scene, *settings, f"--count {count}"]
        typer.echo(record(data, scene, {"table": table}, " ".join(words)))


if __name__ == "__main__":
    typer.run(compare)
