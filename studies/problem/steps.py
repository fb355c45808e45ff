"""The time step, chosen from the estimate of the stable one unless given; instants between."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from adjsim.jit.device_arrays import beside, to_host
from adjsim.model import Model
from adjsim.rollout import WatchedStep
from studies.runs.errors import StudyError


PART_OF_STABLE = 0.6  # of the estimated stable step: 2.8 times the stiffness is still stable
LONG = 1.0  # of it, from which on steps are too long
SPARE = 1.5  # how many times as long they could be, from which on they are too short
LEAST, SMOOTH = 4, 64  # steps between frames; without an estimate, as for a pendulum
ON_A_STEP = 1e-6  # part of a step: a time that is nearer to a step is that of the step
MOST = 100_000_000  # steps of a motion
SHORT = 0.5  # of the usual time between frames: a shorter one is a flaw of time stamps


@dataclass(frozen=True)
class TimeSteps:
    """A time step that divides the time between frames."""

    interval: float  # time between frames [s]
    count: int  # steps in it
    is_given: bool = False  # whether the scene file says how long a step is
    longest: float = np.inf  # in which surfaces that meet do not pass each other [s]
    factor: float = 1.0  # step over the estimated one, as contact needs it (`contact_steps.py`)

    @property
    def dt(self) -> float:
        """The step [s]; a search watches one that nobody gave (`are_long`)."""
        dt = self.interval / self.count
        return dt if self.is_given else WatchedStep(dt)

    def suited_to(self, system: Any) -> "TimeSteps":
        """Return the steps for a system, as many as the estimate asks for."""
        if self.is_given:
            return self
        stable = system.stable_dt() if isinstance(system, Model) else np.inf
        longest = min(self.factor * PART_OF_STABLE * stable, self.longest)
        if not np.isfinite(longest):
            return replace(self, count=SMOOTH)
        count = int(np.ceil(self.interval / longest))
        return replace(self, count=max(count, LEAST))

    def rounded(self) -> "TimeSteps":
        """Return as many steps or more: the next power of two, which many systems share."""
        if self.is_given:
            return self
        return replace(self, count=1 << (self.count - 1).bit_length())

    def are_long(self, system: Any) -> bool:
        """Whether the steps are too long for a system."""
        if self.is_given or not isinstance(system, Model):
            return False
        return self.dt > LONG * self.factor * system.stable_dt()

    def are_short(self, system: Any) -> bool:
        """Whether longer steps would do for a system as well."""
        return SPARE * self.suited_to(system).count <= self.count


def shortest_interval(times: np.ndarray) -> float:
    """Return the shortest time between two or more instants, (n,) [s], to divide into steps.

    Where time stamps jitter, times far below the median do not count: they would ask for many steps
    everywhere, and instants need not lie on a step (`Sampling`).
    """
    gaps = np.diff(times)
    return float(gaps[gaps > SHORT * np.median(gaps)].min())


def first_steps(interval: float, given: float | None, longest: float = np.inf) -> TimeSteps:
    """Return steps between frames: given ones, at most `given` long, or some to begin with.

    `longest` is how long a chosen one may be at most [s]; so is one from frame to frame, where
    `given` is infinite.
    """
    if given is None:
        return TimeSteps(interval, LEAST, longest=longest)
    if np.isinf(given):
        given = longest
    return TimeSteps(interval, max(int(np.ceil(interval / given - 1e-9)), 1), is_given=True)


class Sampling(NamedTuple):
    r"""Where the instants of one observation lie among the rows of a trajectory.

    An observation at time t lies between the steps k and k + 1 with k dt <= t. Its vertices are off
    by O(dt^2) like the rollout itself; before time 0 everything is where it starts:

        V(t) = (1 - w) V_k + w V_{k+1},   w = t/dt - k,   dV/dt = (V_{k+1} - V_k)/dt

    `low` and `high` are rows, (n,); `weight` is that of the high one, (n,); `rate` is its
    derivative with respect to the time of the instant, (n,) [1/s].
    """

    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray
    rate: np.ndarray

    def at(self, rows: Any) -> Any:
        """Return (n_rows, ...) at the instants, (n, ...), where the rows are."""
        low, high = beside(self.low, rows), beside(self.high, rows)
        if not self.weight.any():
            return rows[low]
        weight = beside(_along(self.weight.astype(rows.dtype), rows), rows)
        return (1 - weight) * rows[low] + weight * rows[high]

    def slope(self, rows: np.ndarray) -> np.ndarray:
        """Return the derivative of `at` with respect to time, (n, ...)."""
        return _along(self.rate.astype(rows.dtype), rows) * (rows[self.high] - rows[self.low])

    def slope_vjp(self, rows: Any, adj: np.ndarray) -> float:
        """Return the cotangent of the times, moved together, for one of `at`."""
        return float(np.sum(adj * self.slope(to_host(rows)))) if self.rate.any() else 0.0

    def spread(self, adj: np.ndarray, n_rows: int) -> np.ndarray:
        """Return the cotangent of the rows, (n_rows, ...), for one of `at`."""
        out = np.zeros((n_rows, *adj.shape[1:]), adj.dtype)
        weight = _along(self.weight.astype(adj.dtype), adj)
        np.add.at(out, self.low, (1 - weight) * adj)
        np.add.at(out, self.high, weight * adj)
        return out


def _along(weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return weights (n,) in a shape that multiplies rows (n, ...)."""
    return weight.reshape(-1, *([1] * (rows.ndim - 1)))


def sample_steps(
    times: Sequence[np.ndarray], dt: float, *, moves: Sequence[bool]
) -> tuple[np.ndarray, list[Sampling]]:
    """Return the steps that instants need, increasing, and where each observation's instants lie.

    `times` are those of each observation, (n_k,) [s]; `moves` says which of them are free, so that
    their derivative is asked for.
    """
    last = max(float(instants.max()) for instants in times)
    if last > MOST * dt:
        raise StudyError(
            f"The motion must have at most {MOST:,} steps, got {last / dt:.3g} steps of {dt:.3g} s "
            f"until the last time, {last:.3g} s. Take earlier times, or a longer `world.dt`."
        )
    bounds = [
        _bounds(instants, dt, is_free) for instants, is_free in zip(times, moves, strict=True)
    ]
    steps = np.unique(np.concatenate([np.concatenate([low, high]) for low, high, *_ in bounds]))
    if steps[-1] == 0:
        steps = np.array([0, 1])
    return steps, [
        Sampling(np.searchsorted(steps, low), np.searchsorted(steps, high), weight, rate)
        for low, high, weight, rate in bounds
    ]


def _bounds(
    times: np.ndarray, dt: float, is_free: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the step before and after each time, the weight of the later one, and its slope."""
    place = np.maximum(times, 0.0) / dt
    nearest = np.rint(place)
    place = np.where(np.abs(place - nearest) < ON_A_STEP, nearest, place)
    low = np.floor(place).astype(np.int64)
    weight = place - low
    high = np.where((weight > 0.0) | is_free, low + 1, low)
    rate = np.where((times >= 0.0) & is_free, 1.0 / dt, 0.0)
    return low, high, weight, rate
