r"""Functions of the step number that a parameter may be: a `Signal`, a `Policy`.

Row k, from 0, acts in step k, which makes state k + 1.

Adjoint: `adjoint/courses.py`. Tests: `tests/test_courses.py`.
Source of the policy: gradSim (ICLR 2021) app. E.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Self

import numpy as np

from adjsim import checks


class TimeCourse(ABC):
    """What a parameter is as a function of the step number; `values` are differentiated."""

    values: Any

    @property
    @abstractmethod
    def base_shape(self) -> tuple[int, ...]:
        """Shape of the parameter in one step."""

    @property
    @abstractmethod
    def layout(self) -> str:
        """Shape that the values must have, "..." for the base shape."""

    @abstractmethod
    def sample(self, n_steps: int) -> np.ndarray:
        """Return the rows of steps 0 to n_steps - 1, (n_steps, *base_shape)."""

    @abstractmethod
    def with_values(self, values: Any) -> Self:
        """Return the same course with other values."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Raise a TypeError: no array, since only what may vary in time may be a course."""
        del dtype, copy
        raise TypeError(
            f"a `{type(self).__name__}` stands only for what may vary in time, and this is constant"
        )


@dataclass(frozen=True, eq=False)
class Signal(TimeCourse):
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

    @property
    def base_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return self.values.shape[1:]

    @property
    def layout(self) -> str:
        """One row per knot."""
        return "(n_knots, ...)"

    def weights(self, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the left knot of each step, (n_steps,), and t in [0, 1], (n_steps,)."""
        k = np.arange(n_steps, dtype=np.float64)
        if len(self.knots) == 1:
            return np.zeros(n_steps, np.int64), np.zeros(n_steps)
        left = np.clip(np.searchsorted(self.knots, k, side="right") - 1, 0, len(self.knots) - 2)
        span = self.knots[left + 1] - self.knots[left]
        return left, np.clip((k - self.knots[left]) / span, 0.0, 1.0)

    def sample(self, n_steps: int) -> np.ndarray:
        """Return the rows of steps 0 to n_steps - 1, (n_steps, ...)."""
        return self.interpolate(self.values, n_steps)

    def interpolate(self, values: np.ndarray, n_steps: int) -> np.ndarray:
        """Return the rows of given values at the knots: the linear map that the signal is."""
        left, t = self.weights(n_steps)
        right = np.minimum(left + 1, len(self.knots) - 1)
        t = t.reshape(-1, *[1] * (values.ndim - 1))
        return (1.0 - t) * values[left] + t * values[right]

    def with_values(self, values: Any) -> "Signal":
        """Return the signal of other values at the same knots."""
        return Signal(self.knots, values)


@dataclass(frozen=True, eq=False)
class Policy(TimeCourse):
    r"""A controller in open loop: phase-shifted sinusoids, a linear layer, a bounded output.

        z_e(k) = \sum_j W_{ej} sin(rate k + phases_j)
        a_e(k) = scale tanh(z_e(k))

    The layer has no bias, so that weights of zero are rest.

    Parameters
    ----------
    weights : array
        W, (..., n_sines) [-], with ... the parameter's shape in one step, e.g. (n_tets,).
        They are what is differentiated.
    rate : float
        Angle that the sinusoids advance per step [rad]; from an angular frequency, omega dt.
    scale : float, optional
        Bound of the output, positive, in the unit of the parameter. Default 1.
    phases : array, optional
        (n_sines,) [rad]. Default: 2 pi j / n_sines.
    """

    weights: Any
    rate: float
    scale: float = 1.0
    phases: Any = None

    def __post_init__(self) -> None:
        weights = checks.array("weights", self.weights)
        if weights.ndim == 0 or weights.shape[-1] == 0:
            raise ValueError(
                f"`weights` must have shape (..., n_sines), one or more, got {weights.shape}."
            )
        n_sines = weights.shape[-1]
        phases = 2.0 * np.pi * np.arange(n_sines) / n_sines if self.phases is None else self.phases
        checks.freeze(self, "weights", weights)
        checks.freeze(self, "phases", checks.array("phases", phases, (n_sines,)))
        object.__setattr__(self, "rate", float(checks.number("rate", self.rate)))
        scale = checks.positive("scale", checks.number("scale", self.scale))
        object.__setattr__(self, "scale", float(scale))

    @property
    def values(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The weights."""
        return self.weights

    @property
    def base_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return self.weights.shape[:-1]

    @property
    def layout(self) -> str:
        """One weight per sinusoid."""
        return "(..., n_sines)"

    def sines(self, n_steps: int) -> np.ndarray:
        """Return the sinusoids at every step, (n_steps, n_sines)."""
        return np.sin(self.rate * np.arange(n_steps)[:, None] + self.phases)

    def bounded(self, n_steps: int) -> np.ndarray:
        """Return tanh z, (n_steps, ...).

        By `einsum`, whose sums have a fixed order however many threads there are.
        """
        z = np.einsum("kj,...j->k...", self.sines(n_steps), self.weights)  # (1)
        return np.tanh(z, out=z)  # (2)

    def sample(self, n_steps: int) -> np.ndarray:
        """Return the rows of steps 0 to n_steps - 1, (n_steps, ...)."""
        out = self.bounded(n_steps)
        out *= self.scale  # (3)
        return out

    def with_values(self, values: Any) -> "Policy":
        """Return the policy of other weights."""
        return Policy(values, self.rate, self.scale, self.phases)


@singledispatch
def course_jvp(course: TimeCourse, tangent: np.ndarray, n_steps: int) -> np.ndarray:
    """Push a tangent of a course's values to its rows, (n_steps, *base_shape)."""
    raise TypeError(f"{type(course).__name__} has no tangent: register `course_jvp` for it.")


@course_jvp.register
def _(course: Signal, tangent: np.ndarray, n_steps: int) -> np.ndarray:
    return course.interpolate(tangent, n_steps)


@course_jvp.register
def _(course: Policy, tangent: np.ndarray, n_steps: int) -> np.ndarray:
    tan_z = np.einsum("kj,...j->k...", course.sines(n_steps), tangent)  # (1)
    return course.scale * slope(course, n_steps) * tan_z  # (2), (3)


def slope(course: Policy, n_steps: int) -> np.ndarray:
    """Return 1 - tanh(z)^2, (n_steps, *base_shape)."""
    y = course.bounded(n_steps)
    np.square(y, out=y)
    return np.subtract(1.0, y, out=y)
