r"""Least squares without derivatives: Gauss-Newton's method with secants in place of the Jacobian.

Where a motion jumps, as by the damping of a contact at touch, the Jacobian is exact between two
jumps and not the slope of the loss over many of them. Differences over a distance h see what the
loss does at that scale:

    J_i = (r(theta + h s_i e_i) - r(theta - h s_i e_i))/(2 h s_i),   s the scale of theta
    (J^T J + lambda D) step = -J^T r,   D = diag(J^T J), for several lambda at once

The best of all points that were evaluated is the next theta; where none is better, h is divided by
`SHRINK`. All points of a round are independent and are evaluated side by side.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from studies.optimizers.jacobian import Jacobian
from studies.optimizers.problem import Result, Status


FIRST, LEAST, SHRINK = 0.05, 1e-4, 3.0  # h at first and at last, and by what it is divided
DAMPING = (1e-6, 1e-2, 1e-1, 1.0, 10.0)  # lambda
FARTHEST = 6.0  # longest step, in h
GAIN = 1e-3  # part of the loss that a round must gain, or h shrinks

Residuals = Callable[[Sequence[np.ndarray]], Iterable[np.ndarray | None]]


def secant_search(
    residuals: Residuals,
    theta: np.ndarray,
    *,
    scale: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    most: int,
    say: Callable[[float, float], None] = lambda _loss, _size: None,
) -> Result:
    """Return the end of a search from theta, (p,), with about `most` evaluations.

    `residuals` of many points are None where there are none, and are looked at one after the other.
    `say` gets the loss and h of every round.
    """
    size, spent = FIRST, 1
    (r,) = residuals([theta])
    if r is None:
        return Result(theta, np.inf, Status.NOT_FINITE, spent)
    best = _Point(theta, r, float(r @ r))

    def watched(points: Sequence[np.ndarray]) -> Iterator[np.ndarray | None]:
        nonlocal best, spent
        spent += len(points)
        for point, r_there in zip(points, residuals(points), strict=True):
            if r_there is not None and (loss := float(r_there @ r_there)) < best.loss:
                best = _Point(point, r_there, loss)
            yield r_there

    while size >= LEAST and spent < most and best.loss > 0.0:
        theta, r, before = best
        say(before, size)
        points = _both_sides(theta, size * scale, bounds)
        J = _secants(theta, r, points, watched(points))
        steps = _steps(J, r, theta, farthest=FARTHEST * size * scale, bounds=bounds)
        deque(watched(steps), maxlen=0)
        if best.loss > (1.0 - GAIN) * before:
            size /= SHRINK
    return Result(best.theta, best.loss, Status.SETTLED, spent)


def secant_jacobian(
    residuals: Residuals,
    theta: np.ndarray,
    distance: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, Jacobian] | None:
    """Return r at theta, (n,), and its secants over the distances (p,) to both sides, (n, p).

    None where a rollout blows up.
    """
    points = _both_sides(theta, distance, bounds)
    seen, is_missing = iter(residuals([theta, *points])), False

    def watched() -> Iterator[np.ndarray | None]:
        nonlocal is_missing
        for r_there in seen:
            is_missing |= r_there is None
            yield r_there

    if (r := next(seen)) is None:
        return None
    J = _secants(theta, r, points, watched())
    return None if is_missing else (r, J)


class _Point(NamedTuple):
    theta: np.ndarray
    residuals: np.ndarray
    loss: float


def _both_sides(
    theta: np.ndarray, distance: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> list[np.ndarray]:
    """Return theta moved to both sides along every axis, within the bounds: 2 i and 2 i + 1."""
    steps = [sign * axis for axis in np.diag(distance) for sign in (1.0, -1.0)]
    return [np.clip(theta + step, *bounds) for step in steps]


def _secants(
    theta: np.ndarray,
    r: np.ndarray,
    points: Sequence[np.ndarray],
    seen: Iterable[np.ndarray | None],
) -> Jacobian:
    """Return the secants of the residuals, (n, p); 0 along an axis where there are none."""
    columns, beside = [], zip(points, seen, strict=True)
    for i in range(len(theta)):
        pairs = [
            (point[i], residuals)
            for point, residuals in islice(beside, 2)
            if residuals is not None and point[i] != theta[i]
        ]
        pairs += [(theta[i], r)] if len(pairs) == 1 else []
        slope = np.zeros_like(r)
        if len(pairs) == 2:
            (first, r_first), (second, r_second) = pairs
            slope = (r_first - r_second) / (first - second)
        columns.append(Jacobian.of(slope[:, None]))
    return Jacobian.beside(columns)


def _steps(
    J: Jacobian,
    r: np.ndarray,
    theta: np.ndarray,
    *,
    farthest: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> list[np.ndarray]:
    """Return where damped Gauss-Newton steps end, within the bounds and `farthest` away."""
    H, g = J.T @ J, J.T @ r
    diagonal = np.diag(H)
    D = np.diag(np.where(diagonal > 0.0, diagonal, 1.0))
    out = []
    for damping in DAMPING:
        step = -np.linalg.lstsq(H + damping * D, g, rcond=None)[0]
        step /= max(1.0, float(np.max(np.abs(step) / farthest)))
        out.append(np.clip(theta + step, *bounds))
    return out
