"""What is left of every instant, and what there is to explain: mean squares, (n_frames,)."""

from collections.abc import Callable

import numpy as np

from studies.problem.observers import Observer
from studies.problem.problem import SAME_TIME, SceneProblem


def residual_squares(problem: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return the weighted mean squares of prediction - observation by instant."""
    return _squares(problem, problem.images(theta), lambda one: one.targets())


def look_squares(problem: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return what the looks leave by instant: of the first frame of what is observed then.

    An observation that begins later than the motion may be wrong in its first frame because the
    motion is: its best frame counts.
    """
    moved, samplings, values = problem.run_at(theta)
    out = np.zeros(problem.n_frames)
    rows = problem.rows_of(moved, samplings, values)
    for one, own in zip(problem.observers, rows, strict=True):
        left = one.squares(own, one.targets())
        begins_late = one.instants(values)[0] > SAME_TIME
        out[one.index] += left.min() if begins_late else left[0]
    return out


def still_squares(problem: SceneProblem) -> np.ndarray:
    """Return those of first frame - observation: the motion that is there to explain."""
    return _squares(problem, problem.targets, lambda one: one.still())


def variation_squares(problem: SceneProblem) -> np.ndarray:
    """Return those of mean colour or place - observation: what pictures show at all."""
    return _squares(problem, problem.targets, lambda one: _mean_rows(one.targets()))


def _squares(
    problem: SceneProblem, rows: np.ndarray, other: Callable[[Observer], np.ndarray]
) -> np.ndarray:
    out = np.zeros(problem.n_frames)
    for one, part in problem.by_observer(rows):
        out[one.index] += one.squares(part, other(one))
    return out


def _mean_rows(rows: np.ndarray) -> np.ndarray:
    """Return the mean row, as often as there are rows."""
    return np.broadcast_to(rows.mean(axis=0), rows.shape)
