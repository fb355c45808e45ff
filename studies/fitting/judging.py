"""Judge the answer of a scene: what it leaves unexplained, and its verdict."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from studies.answer.evidence import Evidence
from studies.answer.held_back import Explained, explained
from studies.answer.kinks import margins_by_window
from studies.answer.trial import Trial
from studies.answer.verdict import Verdict, judge, judge_each
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


def judge_answer(
    evidence: Evidence,
    problem: SceneProblem,
    prepared: PreparedProblem,
    *,
    looks: list[np.ndarray],
    predicted: Explained | None,
) -> tuple[Verdict, dict[str, str]]:
    """Return the verdict on an answer, and on each of its numbers.

    `evidence` has what the search and its trial say, all else is found here. `looks` are thetas
    whose looks fit the first frames, the first one as these show cameras and looks, and `predicted`
    says how well frames that were held back were predicted, if there were any.
    """
    theta, parameters = evidence.theta, evidence.parameters
    left, motion = explained_motion(problem, theta, looks=looks)
    if motion is not None and predicted is not None:
        unexplained = predicted.predicted_unexplained
        motion = replace(motion, predicted_unexplained=unexplained, held_back=predicted.held_back)
    by_truth = bent = None
    if prepared.is_twin and prepared.truth is not None:
        truth = parameters.theta(prepared.truth.flat(parameters.paths))
        by_truth = explained_motion(problem, truth, looks=[truth])[1]
    if not moves_first_frame(problem):  # else the first frame does not show the camera
        is_seen = [
            not (free.is_answer or free.is_start_time or free.is_shape_error)
            and sees(problem, free.path)
            for free in parameters.free
        ]
        bent = _furthest(parameters, theta - looks[0], is_seen)
    counts = [
        free.is_camera or free.is_answer or free.is_start_time or free.is_shape_error
        for free in parameters.free
    ]
    evidence = replace(
        evidence,
        gradient=_if_finite(lambda: problem.loss_and_gradient(theta)[1]),
        answers=problem.answers,
        explained=motion,
        unexplained_pictures=unexplained_pictures(problem, theta) if motion is None else None,
        is_of_forces=problem.is_of_forces,
        residual_squares=left,
        still_squares=still_squares(problem),
        needs_intervals=any(
            free.is_answer and not (free.is_view or free.is_shape) for free in parameters.free
        ),
        bent=bent,
        strayed=_furthest(parameters, theta - parameters.prior_mean, counts),
        start=parameters.held_at(prepared.everything.parameters.start).start,
        film_without_seams=_film_without_seams(problem, theta, evidence.trial),
        size_warning=_size_warning(prepared, theta),
        unexplained_by_truth=None if by_truth is None else by_truth.unexplained,
        truth=None if prepared.truth is None else prepared.truth.flat(parameters.paths),
    )
    each = judge_each(evidence) if len(evidence.components) <= MOST_LISTED else {}
    return judge(evidence), each


def loss_at_start(prepared: PreparedProblem) -> float:
    """Return the loss of all observations where the search begins; 0 if it blows up there."""
    loss = loss_where_finite(prepared.everything, prepared.everything.parameters.start)
    return loss if np.isfinite(loss) else 0.0


def loss_where_finite(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return the loss at theta; inf where the motion blows up."""
    loss = _if_finite(lambda: problem.with_steps_for(theta).loss_at(theta))
    return np.inf if loss is None else float(loss)


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
    stepped = problem.with_steps_for(theta)
    images = _if_finite(lambda: stepped.predicted_rows(theta))
    left = None if images is None else _if_finite(lambda: squares_of(stepped, images))
    if images is None or left is None:
        return None, None
    counted = counted_rows(stepped, images)
    is_loose = moves_first_frame(problem)

    def by_looks(at: np.ndarray) -> np.ndarray:
        there = problem.with_steps_for(at)
        mask = counted & agreed_rows(there, there.predicted_rows(at)) if is_loose else counted
        return look_squares(there, at, mask)

    every = [_if_finite(lambda at=at: by_looks(at)) for at in looks]
    finite = [squares for squares in every if squares is not None]
    appearance = np.min(finite, axis=0) if finite else None
    where_counted, still = squares_of(stepped, images, counted), still_squares(stepped, counted)
    return left, explained(where_counted, still, n_fitted=n_fitted, appearance=appearance)


def unexplained_pictures(problem: SceneProblem, theta: np.ndarray) -> float | None:
    """Return the part of the variance of pictures that is left; None without pictures.

    As of films, shadows and light beside the bodies do not count.
    """
    stepped = problem.with_steps_for(theta)
    images = _if_finite(lambda: stepped.predicted_rows(theta))
    if images is None:
        return None
    counted = counted_rows(stepped, images)
    variation = float(variation_squares(stepped, counted).sum())
    return float(squares_of(stepped, images, counted).sum()) / variation if variation else None


def squares_left(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return what is left of every frame; None where the rollout blows up."""
    return _if_finite(lambda: residual_squares(problem.with_steps_for(theta), theta))


def _if_finite(compute: Callable[[], Any]) -> Any:
    """Return what is computed; None where the rollout blows up, or nearly so that squares do."""
    with suppress(*NOT_FINITE):
        value = compute()
        return value if np.isfinite(value).all() else None
    return None


def _furthest(
    parameters: Parameters, off: np.ndarray, counts: list[bool]
) -> tuple[str, float] | None:
    """Return what of the paths that count is furthest off, in deviations of its prior, if any."""
    far = np.where(parameters.each(counts), np.abs(off) / parameters.prior_error, 0.0)
    worst = int(np.argmax(far))
    return (parameters.labels[worst], float(far[worst])) if far[worst] > 0.0 else None


def _film_without_seams(problem: SceneProblem, theta: np.ndarray, trial: Trial | None) -> str:
    """Return a film without soft edges inside outlines, if a trial failed and nothing touches."""
    films = [film.name for film in films_of(problem.observers) if film.rasterizer.seamless]
    if trial is None or not trial.is_rough or not films:
        return ""
    windows = margins_by_window(problem.with_steps_for(theta).motion_at(theta))
    touches = any((each.touch > 0.0).any() for window in windows for each in window.values())
    return "" if touches else films[0]


def _size_warning(prepared: PreparedProblem, theta: np.ndarray) -> str:
    """Return the warning that bodies are drawn too large or small, if the answer changes nothing.

    Where the answer moves or reshapes what the first frame shows, the warning is of the start.
    """
    warning = next((note for note in prepared.notes if isinstance(note, SizeWarning)), "")
    if not warning:
        return ""
    problem = prepared.everything
    start = problem.parameters.start
    answers = np.isin(np.arange(len(start)), problem.answers)
    there = np.where(answers, theta, start)
    return "" if first_frames_differ(problem, start, there) else warning


def sees(problem: SceneProblem, path: str) -> bool:
    """Whether a path is of no camera, or of one that an observation looks through."""
    cameras = {observer.camera_path for observer in problem.observers}
    return not path.startswith("cameras.") or path.rpartition(".")[0] in cameras
