"""A start for the search from where the bodies are in the film, before any picture is fitted.

The places of the bodies (`studies/problem/tracks.py`) are fitted first, from a coarse set and in
growing parts of the film: that takes motions but no pictures. The search begins where this ends if
the bodies are followed there, or else if the film agrees better with that than with the start: at a
wrong start bodies may have been given the colours of what is behind them.
"""

from dataclasses import dataclass, replace

import numpy as np

from studies.optimizers.problem import NOT_FINITE
from studies.problem.first_frames import first_frames_differ
from studies.problem.making import Made
from studies.problem.problem import SceneProblem
from studies.problem.tracks import tracked_problem, undetermined
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from studies.search.robust import robust_search


FOLDER = "tracks"  # of the logs, in the run folder
MOST = 100  # evaluations of a local search
FOLLOWED = 0.05  # part of the motion of the tracks that a good fit leaves


@dataclass(frozen=True, eq=False)
class Tracked:
    """What a fit to the places of the bodies says of the search."""

    made: Made  # whose problem starts where that ends
    # Components of the answers that the coarse set of the search varies; None: all of them
    axes: tuple[int, ...] | None = None
    others: tuple[np.ndarray, ...] = ()  # ends in other basins, of the answers alone


def track(
    made: Made, how: Search, folder: RunFolder, progress: EvaluationProgress, *, seed: int
) -> Tracked:
    """Return the problem with a start from the places of its bodies, if that is better."""
    start = made.everything.parameters.start
    first = list(made.everything.parameters.first_answers)
    problem = made.problem.at(start, keep=tuple(first))
    tracks = tracked_problem(problem) if len(first) > 1 and not made.is_twin else None
    if tracks is None:
        return Tracked(made)
    progress.say("following the bodies through the film")
    short = replace(how, max_evaluations=min(how.max_evaluations, MOST))
    within = RunFolder(folder.path / FOLDER)
    found = robust_search(tracks, short, within, progress, seed=(seed,))
    try:
        is_open = undetermined(tracks.with_steps_for(found.best.theta), found.best.theta)
    except NOT_FINITE:
        return Tracked(made)
    ends = [np.where(is_open, start[first], one.theta) for one in found.basins]
    theta = start.copy()
    theta[first] = ends[0]
    begun = _started_at(made, theta, progress)
    left = found.best.loss / _motion(tracks)
    if left <= FOLLOWED:
        progress.say(f"the search begins there: {100.0 * left:.2g} % of the way is left")
        return Tracked(begun, tuple(np.flatnonzero(is_open).tolist()), tuple(ends[1:]))
    there = begun.everything.parameters.start
    if loss_where_finite(begun.everything, there) < loss_where_finite(made.everything, start):
        progress.say("the search begins there, as the film agrees better than at the start")
        return Tracked(begun)
    progress.say("the film agrees better with the declared start")
    return Tracked(made)


def _started_at(made: Made, theta: np.ndarray, progress: EvaluationProgress) -> Made:
    """Return the problem that starts at theta, with looks for where the bodies are there."""
    start = made.everything.parameters.start
    begun = made.everything.at(theta)
    if first_frames_differ(made.everything, start, theta):
        progress.say("the bodies begin elsewhere than declared: fitting looks once more")
        begun = made.refitted(begun.with_steps_for(theta))
    return replace(made, everything=begun)


def loss_where_finite(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return the loss at theta, infinite where the motion blows up there."""
    try:
        return float(problem.with_steps_for(theta).loss_at(theta))
    except NOT_FINITE:
        return np.inf


def _motion(tracks: SceneProblem) -> float:
    """Return the loss of bodies that stay where they are at first."""
    still = sum(float(one.squares(one.still(), one.targets()).mean()) for one in tracks.observers)
    return max(still, 1e-300)
