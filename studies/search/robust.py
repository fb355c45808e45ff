"""A search that a bad start does not mislead: a coarse set, basins, growing parts of the film.

    coarse set -> losses by frame -> local minima of every stage -> the best few basins
    basin -> local search on the first frames -> on more of them -> on all -> answer

The loss of a whole film has many wrong minima, its first frames have few. A minimum of the coarse
set begins at the first stage where it is one. Branches that arrive at one point are merged, and
hopeless ones are given up. Where one explains all to rounding, the others are not searched. Every
evaluation is in a log and the coarse set is in `coarse.npz`, so a
killed search goes on and ends with the same bits.
"""

from collections.abc import Sequence

import numpy as np

from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.search.branches import LocalSearches
from studies.search.candidates import COARSE, candidates, coarse_losses, stages_for
from studies.search.found import Basin, CoarseLosses, Found, found_basins
from studies.search.robust_settings import RobustProblem, RobustSearch


EXACT = 1e-12  # of the median of the coarse set: only a film without noise is fitted so well


def robust_search(
    problem: RobustProblem,
    how: RobustSearch,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: Sequence[int] = (),
    place: str = "",
) -> Found:
    """Return the best answer and the other basins, or go on where the folder's files end.

    Parameters
    ----------
    problem : RobustProblem
        Of the frames that are not held back.
    how : RobustSearch
    folder : RunFolder
        Gets `coarse.npz` and the logs.
    progress : EvaluationProgress
        Shows evaluations, and says what happens.
    seed : sequence of int
        Of the sample, if there is more than one axis.
    place : str
        Where in the folder the files are.
    """
    name = f"{place}/{COARSE}" if place else COARSE
    by_frame, points = coarse_losses(problem, how, folder, progress, seed=seed, name=name)
    stages, frames = stages_for(how.stages, by_frame, points)
    coarse = CoarseLosses(points, by_frame, frames)
    basins = candidates(coarse, how.basins)
    n_points, n_basins = len(points.points), len(basins)
    progress.say(f"coarse set: {_count(n_points, 'point')}, {_count(n_basins, 'basin')}")
    run = LocalSearches(problem, how, folder, progress, len(stages), place, n_basins)
    spent = n_points
    given_up: list[Basin] = []
    finite = coarse.by_stage[-1][np.isfinite(coarse.by_stage[-1])]
    exact = EXACT * float(np.median(finite)) if finite.size else 0.0
    for number, stage in enumerate(stages):
        staged = problem if stage == 1.0 else problem.at_stage(stage)
        label = f"{number + 1}/{len(stages)}: {problem.name_of_stage(stage)}"
        active = [basin for basin in basins if basin.first_stage <= number]
        waiting = [basin for basin in basins if basin.first_stage > number]
        is_last = number == len(stages) - 1
        if is_last:
            active = sorted(active, key=lambda basin: (basin.loss, basin.number))
        ended: list[Basin] = []
        for basin in active:
            ended.append(run.search(staged, basin, number, label))
            if is_last and ended[-1].loss <= exact:
                if left := len(active) - len(ended):
                    others = _count(left, "other basin")
                    progress.say(f"all is explained to rounding: {others} not searched")
                break
        active = active[: len(ended)]
        spent += sum(b.evaluations - a.evaluations for a, b in zip(active, ended, strict=True))
        ended = run.merged(ended)
        if not is_last:
            ended, hopeless = run.split_hopeless(ended)
            given_up += hopeless
        basins = [*ended, *waiting]
    given_up = [run.evaluated(problem, basin) for basin in given_up]
    return found_basins([*basins, *given_up], spent + len(given_up), coarse)


def _count(number: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
