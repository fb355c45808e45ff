"""What is left of every instant, and what there is to explain: mean squares, (n_frames,)."""

from collections.abc import Callable

import numpy as np

from studies.problem.observers import Observer
from studies.problem.problem import SAME_TIME, SceneProblem


def residual_squares(problem: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return the weighted mean squares of prediction - observation by instant."""
    return squares_of(problem, problem.predicted_rows(theta))


def squares_of(
    problem: SceneProblem, images: np.ndarray, counted: np.ndarray | None = None
) -> np.ndarray:
    """Return those of predictions; with `counted`, of these rows only, (n_rows,) bool."""
    return _squares(problem, images, lambda observer: observer.targets(), counted)


def counted_rows(problem: SceneProblem, images: np.ndarray) -> np.ndarray:
    """Return which rows can tell a right motion from a wrong one, (n_rows,) bool."""
    return np.concatenate(
        [observer.counted(rows) for observer, rows in problem.by_observer(images)]
    )


def agreed_rows(problem: SceneProblem, images: np.ndarray) -> np.ndarray:
    """Return in which rows prediction and film agree on whether a body is there, (n_rows,) bool."""
    return np.concatenate([observer.agreed(rows) for observer, rows in problem.by_observer(images)])


def look_squares(problem: SceneProblem, theta: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return what the looks leave by instant: of the first frame of what is observed then.

    `counted` says which rows of the predictions count. An observation that begins later than the
    motion may be wrong in its first frame because the motion is: its best frame counts.
    """
    moved, samplings, values = problem.run_at(theta)
    out = np.zeros(problem.n_frames)
    rows = np.concatenate(problem.rows_of(moved, samplings, values))
    parts = zip(problem.by_observer(rows), problem.by_observer(counted), strict=True)
    for (observer, predicted), (_, mask) in parts:
        left = _squares_where(observer, predicted, observer.targets(), mask)
        begins_late = observer.instants(values)[0] > SAME_TIME
        out[observer.index] += left.min() if begins_late else left[0]
    return out


def still_squares(problem: SceneProblem, counted: np.ndarray | None = None) -> np.ndarray:
    """Return those of first frame - observation: the motion that is there to explain."""
    return _squares(problem, problem.targets, lambda observer: observer.still(), counted)


def variation_squares(problem: SceneProblem, counted: np.ndarray | None = None) -> np.ndarray:
    """Return those of mean colour or place - observation: what pictures show at all."""
    return _squares(problem, problem.targets, lambda observer: observer.mean(), counted)


def _squares(
    problem: SceneProblem,
    rows: np.ndarray,
    other: Callable[[Observer], np.ndarray],
    counted: np.ndarray | None = None,
) -> np.ndarray:
    out = np.zeros(problem.n_frames)
    masks: list[np.ndarray | None] = [None] * len(problem.observers)
    if counted is not None:
        masks = [mask for _, mask in problem.by_observer(counted)]
    for (observer, predicted), mask in zip(problem.by_observer(rows), masks, strict=True):
        out[observer.index] += _squares_where(observer, predicted, other(observer), mask)
    return out


def _squares_where(
    observer: Observer, rows: np.ndarray, other: np.ndarray, counted: np.ndarray | None
) -> np.ndarray:
    """Return the weighted mean squares of a difference by frame; rows that do not count have 0."""
    if counted is not None:
        rows = np.where(counted[:, None], rows[:, :3], other[:, :3])
    return observer.squares(rows, other)
