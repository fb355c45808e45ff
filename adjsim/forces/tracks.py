"""Poses and velocities of obstacles: what may vary from step to step, and its packed rows.

A track is a parameter of an obstacle that is constant, a series or a `Signal`
(`adjsim/series.py`). Its rows are what a gap function reads: the parameter itself, a unit
vector, or the matrix of a rotation vector that turns an obstacle's nominal axes.

Adjoint: `adjoint/forces/tracks.py`. Tests: `tests/forces/test_tracks.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.rotations import rotation_matrix, rotation_matrix_jvp, rotation_rate


AXES = np.eye(3)  # an obstacle's own, where it has no other orientation
ROUNDING = 8.0 * np.finfo(np.float64).eps  # of the longest vector: a shorter one points anywhere


@dataclass(frozen=True)
class Track:
    """A parameter of an obstacle that may vary in time.

    `rows(values, axes)` turns its values, (k, *shape), to packed rows, (k, n); `axes` (3, 3) are
    the obstacle's own axes in its nominal orientation, as columns, which only rotations read.
    """

    name: str
    shape: tuple[int, ...]
    rows: Callable[[np.ndarray, np.ndarray], np.ndarray]


def as_rows(values: np.ndarray, axes: np.ndarray = AXES) -> np.ndarray:
    """Return values as they are, (k, n)."""
    return values.reshape(len(values), -1)


def as_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents, shaped like the values, to rows."""
    return tan_values.reshape(len(values), -1)


def unit_rows(values: np.ndarray, axes: np.ndarray = AXES) -> np.ndarray:
    """Return vectors m, (k, 3), as unit vectors m/|m|.

    Raise a ValueError if one of them is zero, but for the rounding of the longest, or so small or
    large that its square is.
    """
    with np.errstate(over="ignore"):
        length = np.linalg.norm(values, axis=1, keepdims=True)
    longest = length.max(initial=0.0)
    if (length <= (ROUNDING * longest if np.isfinite(longest) else 0.0)).any():
        row = int(np.argmin(length[:, 0]))
        raise ValueError(
            f"`normal` must not be zero, as in row {row}: it gives the plane's direction. A "
            "signal must not pass through zero between its knots."
        )
    for row in values if len(values) == 1 else values[[length.argmin(), length.argmax()]]:
        checks.length("normal", row, hint="Give a unit vector.")
    return values / length


def unit_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents through n = m/|m|: tangential, and divided by |m|.

    The map is symmetric, so it is its own adjoint.
    """
    length = np.linalg.norm(values, axis=1, keepdims=True)
    n = values / length
    return (tan_values - np.sum(n * tan_values, axis=1, keepdims=True) * n) / length


def matrix_rows(values: np.ndarray, axes: np.ndarray = AXES) -> np.ndarray:
    """Return where rotation vectors, (k, 3) [rad], turn the axes, matrices by columns, (k, 9)."""
    return (rotation_matrix(values) @ axes).swapaxes(1, 2).reshape(-1, 9)


def matrix_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents through `matrix_rows`."""
    return (rotation_matrix_jvp(values, tan_values) @ axes).swapaxes(1, 2).reshape(-1, 9)


def axis_rows(values: np.ndarray, axes: np.ndarray = AXES) -> np.ndarray:
    """Return where rotation vectors, (k, 3) [rad], turn the y axis, (k, 3)."""
    return (rotation_matrix(values) @ axes)[:, :, 1]


def axis_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents through `axis_rows`."""
    return (rotation_matrix_jvp(values, tan_values) @ axes)[:, :, 1]


CENTER = Track("center", (3,), as_rows)
ROTATION = Track("rotation", (3,), matrix_rows)
AXIS = Track("rotation", (3,), axis_rows)
VELOCITY = Track("velocity", (3,), as_rows)
ANGULAR_VELOCITY = Track("angular_velocity", (3,), as_rows)


def stack_rows(blocks: list[np.ndarray], count: int) -> np.ndarray:
    """Return the rows of several tracks side by side, for each contact, (k, count, n).

    A constant block has one row; all others have k.
    """
    k = max(len(block) for block in blocks)
    rows = np.concatenate([np.broadcast_to(b, (k, b.shape[1])) for b in blocks], axis=1)
    return np.broadcast_to(rows[:, None], (k, count, rows.shape[1]))


def path_velocity(positions: Any, dt: float) -> np.ndarray:
    """Return the velocity along a path of points, by central differences.

    Parameters
    ----------
    positions : array
        One row per step, (n_steps, 3) [m], or heights (n_steps,); at least two.
    dt : float
        Step size [s].

    Returns
    -------
    array
        Of the same shape [m/s]; one-sided differences at the ends.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or `dt` is not positive.

    Examples
    --------
    >>> from adjsim.forces import path_velocity
    >>> print(path_velocity([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.2, 0.0, 0.0]], dt=0.1))
    [[1. 0. 0.]
     [1. 0. 0.]
     [1. 0. 0.]]
    """
    path = checks.array("positions", positions)
    if path.ndim == 0 or len(path) < 2:
        raise ValueError(f"`positions` must have at least two rows, got shape {path.shape}.")
    return np.gradient(path, checks.positive("dt", checks.number("dt", dt)), axis=0)


def path_angular_velocity(rotations: Any, dt: float) -> np.ndarray:
    """Return the angular velocity, world axes, along a path of rotation vectors.

    Omega = J(theta) dtheta/dt (`adjsim/rotations.py`), with central differences. The vectors
    must go on continuously, beyond pi rather than back to -pi.

    Parameters
    ----------
    rotations : array
        One row per step, (n_steps, 3) [rad], at least two.
    dt : float
        Step size [s].

    Returns
    -------
    array
        (n_steps, 3) [rad/s].

    Raises
    ------
    ValueError
        If the shape is wrong, or `dt` is not positive.

    Examples
    --------
    >>> from adjsim.forces import path_angular_velocity
    >>> print(path_angular_velocity([[0.0, 0.0, 0.0], [0.0, 0.0, 0.1]], dt=0.1))
    [[0. 0. 1.]
     [0. 0. 1.]]
    """
    theta = checks.array("rotations", rotations, ("n_steps", 3))
    return (rotation_rate(theta) @ path_velocity(theta, dt)[..., None])[..., 0]


ROW_TANGENTS: Mapping[Callable, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    as_rows: as_rows_jvp,
    unit_rows: unit_rows_jvp,
    matrix_rows: matrix_rows_jvp,
    axis_rows: axis_rows_jvp,
}
