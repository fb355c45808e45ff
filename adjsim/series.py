"""What may vary in time: a constant, one row per step, or a `Signal` over control points.

Row k, from 0, acts in step k, which makes state k + 1. A parameter that may vary has base
shapes, e.g. () or (n_tets,), of which the last is its full shape; a series has one row per
step in front of the full shape, a signal one row per knot in front of any base shape.

Adjoint: `adjoint/series.py`. Tests: `tests/test_series.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks


@dataclass(frozen=True, eq=False)
class Signal:
    """A piecewise linear function of the step number, constant beyond its ends.

    s(k) = (1 - t) values[i] + t values[i + 1],  t = (k - knots[i])/(knots[i + 1] - knots[i])

    Parameters
    ----------
    knots : array
        Step numbers of the control points, (n_knots,), increasing, not necessarily whole.
        From times: t/dt.
    values : array
        Values there, (n_knots, ...), in the unit of the parameter. They are what is
        differentiated.
    """

    knots: Any
    values: Any

    def __post_init__(self) -> None:
        knots = checks.array("knots", self.knots, ("n_knots",))
        if knots.size == 0 or (np.diff(knots) <= 0.0).any():
            raise ValueError(
                f"`knots` must be step numbers that increase, at least one, got {knots.tolist()}."
            )
        values = checks.array("values", self.values)
        if values.ndim == 0 or len(values) != len(knots):
            raise ValueError(
                f"`values` must have one row per knot, {len(knots)}, got shape {values.shape}."
            )
        checks.freeze(self, "knots", knots)
        checks.freeze(self, "values", values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Refuse to be taken for an array: only what may vary in time may be a signal.

        Raises
        ------
        TypeError
            Always.
        """
        del dtype, copy
        raise TypeError("a `Signal` stands only for what may vary in time, and this is constant")

    def weights(self, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the left knot of each step, (n_steps,), and t in [0, 1], (n_steps,)."""
        k = np.arange(n_steps, dtype=np.float64)
        if len(self.knots) == 1:
            return np.zeros(n_steps, np.int64), np.zeros(n_steps)
        left = np.clip(np.searchsorted(self.knots, k, side="right") - 1, 0, len(self.knots) - 2)
        span = self.knots[left + 1] - self.knots[left]
        return left, np.clip((k - self.knots[left]) / span, 0.0, 1.0)

    def sample(self, n_steps: int, values: np.ndarray | None = None) -> np.ndarray:
        """Return the rows of steps 0 to n_steps - 1, (n_steps, ...).

        With `values`, the same linear map is applied to them: a tangent, say.
        """
        rows: np.ndarray = self.values if values is None else values
        left, t = self.weights(n_steps)
        right = np.minimum(left + 1, len(self.knots) - 1)
        t = t.reshape(-1, *[1] * (rows.ndim - 1))
        return (1.0 - t) * rows[left] + t * rows[right]


def check_series(name: str, value: Any, shapes: Sequence[tuple[int, ...]]) -> np.ndarray | Signal:
    """Return a read-only array or a `Signal`, if its shape is one that is allowed.

    Parameters
    ----------
    name : str
        The argument, for the message.
    value : array or Signal
    shapes : sequence of tuple
        Base shapes; the last one is the full shape, which a series has behind its steps.

    Raises
    ------
    ValueError
        If the shape is none of these, or a number is not finite.
    """
    if isinstance(value, Signal):
        if value.values.shape[1:] in shapes:
            return value
        rows, got = "(n_knots, ...) with ... one of ", value.values.shape
    else:
        out = checks.array(name, value)
        full, shape = tuple(shapes[-1]), out.shape
        if shape in shapes or (len(shape) == len(full) + 1 and shape[1:] == full):
            out = out.copy()
            out.setflags(write=False)
            return out
        rows, got = f"{checks.shape_text(('n_steps', *full))}, or one of ", out.shape
    allowed = ", ".join(checks.shape_text(shape) for shape in shapes)
    raise ValueError(f"`{name}` must have shape {rows}{allowed}, got {got}.")


def freeze_series(owner: Any, name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Replace a field of a frozen dataclass by what `check_series` makes of it."""
    object.__setattr__(owner, name, check_series(name, getattr(owner, name), shapes))


def series_values(value: np.ndarray | Signal) -> np.ndarray:
    """Return what is differentiated: the array itself, or a signal's values."""
    return value.values if isinstance(value, Signal) else value


def series_steps(value: np.ndarray | Signal, full_shape: tuple[int, ...]) -> int | None:
    """Return how many steps a series is for; None for a constant or a signal."""
    if isinstance(value, Signal):
        return None
    return len(value) if value.ndim > len(full_shape) else None


def series_rows(
    value: np.ndarray | Signal, full_shape: tuple[int, ...], n_steps: int
) -> np.ndarray:
    """Return the rows of every step, (n_steps, *full_shape), or one row if constant."""
    if isinstance(value, Signal):
        rows = value.sample(n_steps)
    else:
        rows = value if series_steps(value, full_shape) is not None else value[None]
    return spread(rows, full_shape)


def spread(rows: np.ndarray, full_shape: tuple[int, ...]) -> np.ndarray:
    """Return rows of a base shape as rows of the full shape: () to (n,), (3,) to (n, 3)."""
    missing = len(full_shape) + 1 - rows.ndim
    rows = rows.reshape(len(rows), *[1] * missing, *rows.shape[1:])
    return np.broadcast_to(rows, (len(rows), *full_shape))


def with_array(current: Any, value: Any) -> Any:
    """Return a new value of a parameter: in a signal's place, the signal of these values."""
    if isinstance(current, Signal) and not isinstance(value, Signal):
        return Signal(current.knots, value)
    return value
