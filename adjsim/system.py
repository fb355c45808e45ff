"""What `rollout` can advance: a `System` with its state, and the `Stepper` that advances it.

A model of nodes and forces is a system; so are a pendulum and a patch of smoke. A stepper
holds states as rows of a few *fields*: arrays (n_rows, ...), such as positions and
velocities. Frames, checkpoints and tangents are rows of the same fields, so whatever moves
states about (rollouts, schedules, records) knows no system.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from functools import singledispatch
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from adjsim.jit.devices import Device


Fields: TypeAlias = tuple[Any, ...]
S = TypeVar("S")  # its states
T = TypeVar("T")  # its trajectories


class RolloutError(ArithmeticError):
    """A rollout left the finite numbers.

    Parameters
    ----------
    happened : str
        In which step, and where.
    remedy : str
        What to try, with {dt} where it names the size of a step.
    """

    def __init__(self, happened: str, remedy: str = "") -> None:
        super().__init__(happened, remedy)  # both are its `args`, as pickling needs

    def __str__(self) -> str:
        """Return the message to a caller of `rollout`."""
        return self.message("dt")

    def message(self, dt: str) -> str:
        """Return the message to who knows the size of a step by this name."""
        happened, remedy = self.args
        return f"{happened} {remedy.format(dt=f'`{dt}`')}".rstrip()


class OnDivergence(StrEnum):
    """What a rollout does when a state leaves the finite numbers.

    RAISE: stop, with a `RolloutError`. MARK: go on, and mark the trajectory; what comes after,
    and the gradient, is NaN. Other worlds of a batch are what they are without it.
    """

    RAISE = "raise"
    MARK = "mark"


class System(ABC, Generic[S, T]):
    """What does not change in a rollout, with its parameters by path."""

    CAN_MARK: ClassVar[bool] = False  # whether its rollouts know `OnDivergence.MARK`

    @abstractmethod
    def parameters(self) -> dict[str, np.ndarray]:
        """Return the system's own differentiable parameters by path, e.g. "beam.mu"."""

    @abstractmethod
    def state_parameters(self, state: S) -> dict[str, np.ndarray]:
        """Return those of its initial state by path, e.g. "state.x"."""

    @abstractmethod
    def with_values(self, state: S, values: Mapping[str, Any]) -> tuple[Self, S]:
        """Return system and initial state with other values of some parameters, by path.

        All at once, so that values which are checked together may change together.
        """

    @abstractmethod
    def check_state(self, state: S) -> None:
        """Raise on an initial state that does not fit."""

    def stable_dt(self) -> float:
        """Estimate the largest stable step [s]; inf where there is no estimate."""
        return float("inf")


class Stepper(ABC, Generic[S, T]):
    """A system made ready for one step size, number of steps, precision and device.

    `xp` is the array module of the device: NumPy or CuPy.
    """

    device: Device
    xp: Any
    dtype: np.dtype
    dt: float
    n_steps: int
    on_divergence: OnDivergence = OnDivergence.RAISE
    most_steps: int = 1 << 40  # that one call should make
    # About what a step takes, from sizes alone: checkpoint schedules weigh it and must repeat.
    step_seconds: float = 1e-6
    step: "TimeStep | None" = None  # that it takes; None: that of the system itself
    spare_bytes: int = 0  # that a run may keep beside states, for a sweep back
    places_again: bool = False  # whether states are kept without what `complete` finds again

    @abstractmethod
    def allocate(self, n_rows: int) -> Fields:
        """Return fields with so many rows, on the device."""

    @abstractmethod
    def load(self, state: S, fields: Fields, row: int) -> None:
        """Write an initial state to a row."""

    @abstractmethod
    def advance(self, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Run from state k0; `rows[k]` is the row of the fields that holds state k0 + k.

        Raise a RolloutError if the state leaves the finite numbers and `on_divergence` is RAISE.
        """

    @abstractmethod
    def trajectory(self, steps: np.ndarray, fields: Fields, *, on_device: bool = False) -> T:
        """Return the first rows as the states, or tangents, of the frames: copies on the host.

        `on_device` as in `adjsim.rollout`.
        """

    def require_room(self, n_states: int, remedy: str) -> None:
        """Raise a MemoryError if a GPU has no room for so many states and what sweeps work with."""
        del n_states, remedy

    def allocate_kept(self, n_rows: int) -> Fields:
        """Return fields with so many rows for what is kept of a state."""
        return self.allocate(n_rows)

    def kept(self, fields: Fields) -> Fields:
        """Return views of what is kept of each row."""
        return fields

    def complete(self, rows: np.ndarray, fields: Fields) -> None:
        """Write to some rows what is not kept: the same bits as those that were there."""
        del rows, fields

    def bytes_per_state(self) -> int:
        """Return the size of what is kept of a state."""
        return sum(field.nbytes for field in self.allocate_kept(1))


class RunSettings(NamedTuple):
    """How a system is run: steps of `dt` [s], how many of them, in which precision and where."""

    dt: float
    n_steps: int
    dtype: np.dtype = np.dtype(np.float64)
    threads: int | None = None
    device: Device | str = Device.CPU


class TimeStep(ABC):
    """How a system gets from one state to the next: what `rollout` takes as `step`."""

    IS_STABLE: ClassVar[bool]  # at any step size
    FORCES_AT_END: ClassVar[bool] = False  # whether its forces are those of the state at its end
    IS_FOR_ALL: ClassVar[bool] = True  # systems and devices, and in float32; else models alone

    @abstractmethod
    def stepper(self, system: Any, run: RunSettings) -> Stepper[Any, Any]:
        """Make a system ready to be advanced.

        Raise a TypeError or a ValueError if it cannot be advanced so.
        """


@singledispatch
def make_stepper(system: Any, run: RunSettings) -> Stepper[Any, Any]:
    """Make a system ready to be advanced; each kind of system registers how.

    Raise a TypeError if it is no system; a ValueError if the device is unknown, or a series does
    not fit `n_steps`; a RuntimeError if no GPU can be used, whose message says why and the way out.
    """
    del run
    raise TypeError(
        f"`model` must be something that rollouts can advance, such as a `Model`, got "
        f"{type(system).__name__}."
    )
