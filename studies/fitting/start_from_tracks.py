"""A start for the search from where the bodies are in the film, before any picture is fitted.

The places of the bodies (`problem/body_tracks.py`) are fitted first, from a coarse set and in
growing parts of the film, which takes simulations but no pictures. Of a rigid body that touches
obstacles the fit begins at what its free flights say (`problem/free_flights.py`). The search begins
at the result if it explains the tracks. Otherwise it begins there only if the film's loss is lower
than at the declared start. The loss alone would mislead: at a wrong start the fit of looks may have
given a body the colours of what is behind it.
"""

from dataclasses import dataclass, replace

import numpy as np

from studies.fitting.judging import loss_where_finite
from studies.optimizers.problem import NOT_FINITE
from studies.problem.body_tracks import relative_errors, tracked_problem
from studies.problem.first_frames import first_frames_differ
from studies.problem.free_flights import start_of_flights
from studies.problem.making import PreparedProblem
from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from studies.search.robust import robust_search


FOLDER = "tracks"  # of the logs, in the run folder
MOST = 100  # evaluations of a local search
# Standard error of a component relative to its prior's. Above `OPEN` the coarse set varies the
# component; above `UNKNOWN` it is also reset to its declared start, or to what flights say. With
# `search.coarse` = 0 nothing would lead away from there.
OPEN, UNKNOWN = 0.15, 0.5
FOLLOWED = 0.05  # part of the squared motion of the tracks that a good fit leaves


@dataclass(frozen=True, eq=False)
class TrackedStart:
    """What a fit to the places of the bodies says of the search."""

    prepared: PreparedProblem  # its problem starts at the result
    # Components of the answers that the coarse set of the search varies; None: all of them
    axes: tuple[int, ...] | None = None
    others: tuple[np.ndarray, ...] = ()  # results in other basins: theta of the answers
    evaluations: int = 0  # simulations without pictures


def start_from_tracks(
    prepared: PreparedProblem,
    how: Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: int,
    n_fitted: int,
) -> TrackedStart:
    """Return the problem with a start from the places of its bodies, if that is better.

    Only the first `n_fitted` frames are tracked; the others are held back.
    """
    start = prepared.everything.parameters.start
    first = list(prepared.everything.parameters.first_answers)
    tracks = _tracks(prepared, n_fitted)
    if tracks is None:
        return TrackedStart(prepared)
    progress.say("following the bodies through the film")
    flown, unknown = start_of_flights(tracks), start[first]
    if flown is not None:
        progress.say("the fit to their places begins where free flights between touches say")
        tracks, unknown = tracks.at(flown), flown
    short = replace(how, max_evaluations=min(how.max_evaluations, MOST))
    within = RunFolder(folder.path / FOLDER)
    search = robust_search(tracks, short, within, progress, seed=(seed,), is_rough=True)
    best = search.best.theta
    try:
        errors = relative_errors(tracks.with_stable_steps(best), best)
    except NOT_FINITE:
        return TrackedStart(prepared, evaluations=search.evaluations)
    is_reset = (errors > UNKNOWN) & (how.coarse != 0)
    ends = [np.where(is_reset, unknown, basin.theta) for basin in search.basins]
    theta = start.copy()
    theta[first] = ends[0]
    try:
        begun = _started_at(prepared, theta, progress)
    except (*NOT_FINITE, StudyError) as error:  # such as a body that no camera sees there
        progress.say(f"the search begins at the declared start, not where the tracks end: {error}")
        return TrackedStart(prepared, evaluations=search.evaluations)
    still = sum(
        float(observer.squares(observer.still(), observer.targets()).mean())
        for observer in tracks.observers
    )
    left = search.best.loss / max(still, 1e-300)
    if left <= FOLLOWED:
        progress.say(f"the search begins there: {100.0 * left:.2g} % of the motion is unexplained")
        axes = tuple(np.flatnonzero(errors > OPEN).tolist())
        return TrackedStart(begun, axes, tuple(ends[1:]), search.evaluations)
    there = begun.everything.parameters.start
    if loss_where_finite(begun.everything, there) < loss_where_finite(prepared.everything, start):
        progress.say("the search begins there, as the film agrees better than at the start")
        return TrackedStart(begun, evaluations=search.evaluations)
    progress.say("the film agrees better with the declared start")
    return TrackedStart(prepared, evaluations=search.evaluations)


def _tracks(prepared: PreparedProblem, n_fitted: int) -> SceneProblem | None:
    """Return the problem of the tracks; None where there are none, or one number alone is free."""
    parameters = prepared.everything.parameters
    first = parameters.first_answers
    if len(first) < 2 or prepared.is_twin:
        return None
    try:
        problem = prepared.problem.first_frames(n_fitted).at(parameters.start, keep=first)
        return tracked_problem(problem)
    except NOT_FINITE:
        return None


def _started_at(
    prepared: PreparedProblem, theta: np.ndarray, progress: EvaluationProgress
) -> PreparedProblem:
    start = prepared.everything.parameters.start
    begun = prepared.everything.at(theta)
    if first_frames_differ(prepared.everything, start, theta):
        progress.say("the bodies begin elsewhere than declared: fitting looks once more")
        begun = prepared.refitted(begun.with_steps_for(theta))
    return replace(prepared, everything=begun)
