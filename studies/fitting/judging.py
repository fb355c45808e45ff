"""Judge the answer of a scene: what it leaves unexplained, its intervals, its verdict."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.answer.budget import Budget
from studies.answer.evidence import Evidence, MissingTerm, Rival
from studies.answer.held_back import Explained, explained
from studies.answer.kinks import margins_by_window
from studies.answer.verdict import Verdict, judge, judge_each
from studies.fitting.trying import Tried
from studies.optimizers.problem import NOT_FINITE
from studies.problem.films import films_of
from studies.problem.first_frames import first_frames_differ, moves_first_frame
from studies.problem.frame_squares import (
    agreed_rows,
    counted_rows,
    look_squares,
    residual_squares,
    squares_of,
    still_squares,
    variation_squares,
)
from studies.problem.making import PreparedProblem
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.reports.preview.advice import SizeWarning


MOST_LISTED = 12  # numbers that have a verdict each


@dataclass(frozen=True, eq=False)
class Candidate:
    """An answer that is still to be judged."""

    problem: SceneProblem  # of all that was observed, with the time step of the answer
    tried: Tried  # the answer with its intervals
    loss_at_start: float  # 0 if unknown
    first_look: np.ndarray  # theta as the first frames show cameras and looks
    looks: list[np.ndarray]  # thetas whose looks fit the first frames
    predicted: Explained | None  # how well held-back frames were predicted
    validation: Mapping[str, float | None]  # as in `Solution`
    rivals: Sequence[Rival]  # what other basins leave
    refinements: Mapping[str, np.ndarray]  # as in `Evidence`
    budget: Budget | None = None
    missing: MissingTerm | None = None


def judge_answer(
    one: Candidate, made: PreparedProblem
) -> tuple[Verdict, dict[str, str], Explained | None]:
    """Return the verdict on an answer, on each of its numbers, and how it explains the motion."""
    result, spread = one.tried.result, one.tried.spread
    problem, theta, parameters = one.problem, result.theta, one.problem.parameters
    left, motion = explained_motion(problem, theta, looks=one.looks)
    if motion is not None and one.predicted is not None:
        motion = replace(
            motion,
            predicted_unexplained=one.predicted.predicted_unexplained,
            held_back=one.predicted.held_back,
        )
    evidence = Evidence(
        parameters=parameters,
        theta=theta,
        status=result.status,
        loss=result.loss,
        gradient=_if_finite(lambda: problem.loss_and_gradient(theta)[1]),
        intervals=spread.intervals,
        answers=problem.answers,
        explained=motion,
        unexplained_pictures=unexplained_pictures(problem, theta) if motion is None else None,
        residual_squares=left,
        still_squares=still_squares(problem),
        basins=one.rivals,
        worst_direction=spread.to_dict(parameters.theta_labels)["worst_direction"],
        needs_intervals=any(
            free.is_answer and not (free.is_view or free.is_shape) for free in parameters.free
        ),
        bent=_bent(problem, one.first_look, theta),
        loss_at_start=one.loss_at_start,
        start=parameters.held_at(made.everything.parameters.start).start,
        trial=one.tried.trial,
        film_without_seams=_film_without_seams(one),
        is_without_gradients=one.tried.is_without_gradients,
        predictions={k: part for k, part in one.validation.items() if part is not None},
        strayed=_strayed(parameters, theta),
        size_warning=_size_warning(made, theta),
        unexplained_by_truth=_unexplained_by_truth(one, made),
        truth=None if made.truth is None else made.truth.flat(parameters.paths),
        refinements=one.refinements,
        budget=one.budget,
        missing=one.missing,
    )
    return (
        judge(evidence),
        judge_each(evidence) if len(evidence.components) <= MOST_LISTED else {},
        motion,
    )


def loss_at_start(made: PreparedProblem) -> float:
    """Return the loss of all observations where the search begins; 0 if it blows up there."""
    loss = loss_where_finite(made.everything, made.everything.parameters.start)
    return loss if np.isfinite(loss) else 0.0


def loss_where_finite(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return the loss at theta; inf where the motion blows up."""
    found = _if_finite(lambda: problem.with_steps_for(theta).loss_at(theta))
    return np.inf if found is None else float(found)


def explained_motion(
    problem: SceneProblem,
    theta: np.ndarray,
    *,
    looks: list[np.ndarray],
    n_fitted: int | None = None,
) -> tuple[np.ndarray | None, Explained | None]:
    """Return what theta leaves of every frame, and of the motion.

    The first is None where the rollout blows up, the second also where nothing moves. What the
    looks leave is that of the best of the thetas in `looks`. Of films, shadows and light beside the
    bodies do not count for the second. Where a free number moves the first frame, a body that is
    elsewhere in it is no matter of looks: they leave only what is left where the two agree on where
    the body is.
    """
    own = problem.with_steps_for(theta)
    images = _if_finite(lambda: own.images(theta))
    left = None if images is None else _if_finite(lambda: squares_of(own, images))
    if images is None or left is None:
        return None, None
    counted = counted_rows(own, images)
    is_loose = moves_first_frame(problem)

    def by_looks(at: np.ndarray) -> np.ndarray:
        stepped = problem.with_steps_for(at)
        shown = stepped.images(at)
        mask = counted & agreed_rows(stepped, shown) if is_loose else counted
        return look_squares(stepped, at, mask)

    every = [_if_finite(lambda at=at: by_looks(at)) for at in looks]
    found = [one for one in every if one is not None]
    appearance = np.min(found, axis=0) if found else None
    part, still = squares_of(own, images, counted), still_squares(own, counted)
    return left, explained(part, still, n_fitted=n_fitted, appearance=appearance)


def unexplained_pictures(problem: SceneProblem, theta: np.ndarray) -> float | None:
    """Return the part of the variance of pictures that is left; None without pictures.

    As of films, shadows and light beside the bodies do not count.
    """
    own = problem.with_steps_for(theta)
    images = _if_finite(lambda: own.images(theta))
    if images is None:
        return None
    counted = counted_rows(own, images)
    variation = float(variation_squares(own, counted).sum())
    return float(squares_of(own, images, counted).sum()) / variation if variation else None


def squares_left(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return what is left of every frame; None where the rollout blows up."""
    return _if_finite(lambda: residual_squares(problem.with_steps_for(theta), theta))


def _if_finite(compute: Callable[[], Any]) -> Any:
    """Return what is computed; None where the rollout blows up, or nearly so that squares do."""
    with suppress(*NOT_FINITE):
        found = compute()
        return found if np.isfinite(found).all() else None
    return None


def _bent(problem: SceneProblem, first: np.ndarray, theta: np.ndarray) -> tuple[str, float] | None:
    """Return the nuisance that moved furthest since the first frame, in deviations of its prior.

    None where a free number moves the first frame, which then does not show the camera.
    """
    if moves_first_frame(problem):
        return None
    parameters = problem.parameters
    is_seen = [
        not (one.is_answer or one.is_start_time) and sees(problem, one.path)
        for one in parameters.free
    ]
    far = np.abs(theta - first) / parameters.prior_error
    far = np.where(parameters.each(is_seen), far, 0.0)
    worst = int(np.argmax(far))
    return (parameters.labels[worst], float(far[worst])) if far[worst] > 0.0 else None


def _strayed(parameters: Parameters, theta: np.ndarray) -> tuple[str, float] | None:
    """Return what ends furthest from its prior, in deviations, of cameras and what has a prior."""
    counts = [
        one.path.startswith("cameras.") or one.is_answer or one.is_start_time
        for one in parameters.free
    ]
    far = np.abs(theta - parameters.prior_mean) / parameters.prior_error
    far = np.where(parameters.each(counts), far, 0.0)
    worst = int(np.argmax(far))
    return (parameters.labels[worst], float(far[worst])) if far[worst] > 0.0 else None


def _film_without_seams(one: Candidate) -> str:
    """Return a film without soft edges inside outlines, if a trial failed and nothing touches."""
    trial, problem, theta = one.tried.trial, one.problem, one.tried.result.theta
    films = [film.name for film in films_of(problem.observers) if film.rasterizer.seamless]
    if trial is None or not trial.is_rough or not films:
        return ""
    windows = margins_by_window(problem.with_steps_for(theta).motion_at(theta))
    touches = any((own.touch > 0.0).any() for window in windows for own in window.values())
    return "" if touches else films[0]


def _size_warning(made: PreparedProblem, theta: np.ndarray) -> str:
    """Return the warning that bodies are drawn too large or small, if the answer changes nothing.

    Where the answer moves or reshapes what the first frame shows, the warning is of the start.
    """
    warning = next((note for note in made.notes if isinstance(note, SizeWarning)), "")
    if not warning:
        return ""
    problem = made.everything
    start = problem.parameters.start
    answers = np.isin(np.arange(len(start)), problem.answers)
    there = np.where(answers, theta, start)
    return "" if first_frames_differ(problem, start, there) else warning


def _unexplained_by_truth(one: Candidate, made: PreparedProblem) -> float | None:
    """Return what the truth of a simulated film leaves of its motion; None where it is unknown."""
    if not made.is_twin or made.truth is None:
        return None
    parameters = one.problem.parameters
    truth = parameters.theta(made.truth.flat(parameters.paths))
    motion = explained_motion(one.problem, truth, looks=[truth])[1]
    return None if motion is None else motion.unexplained


def sees(problem: SceneProblem, path: str) -> bool:
    """Whether a path is of no camera, or of one that an observation looks through."""
    cameras = {one.camera_path for one in problem.observers}
    return not path.startswith("cameras.") or path.rpartition(".")[0] in cameras
