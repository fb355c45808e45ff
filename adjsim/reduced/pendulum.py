"""What the pendula share: states, trajectories, checks, and the stepper around their loop.

Tests: `tests/reduced/test_pendulum.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from adjsim import checks
from adjsim.jit.backend import thread_count
from adjsim.jit.device_arrays import to_host
from adjsim.jit.devices import array_module, check_device
from adjsim.reduced.pendulum_loop import PendulumKind, advance_loop, loop_rows
from adjsim.series import check_series, series_rows, series_steps, series_values
from adjsim.system import Fields, RolloutError, RunSettings, Stepper, System, make_stepper
from adjsim.values import Parameter, replace_values


WIDTH = 0.01  # rate below which dry friction is viscous, by default [rad/s]
# What an element function reads, in its order: of every link, and then of all together.
OF_LINKS = ("length", "mass", "center_of_mass", "inertia", "damping", "friction")
OF_ALL = ("friction_width", "gravity")
MAY_BE_ZERO = ("inertia", "damping", "friction")


@dataclass(frozen=True, eq=False)
class PendulumState:
    """Angles from the vertical down, and their rates.

    Parameters
    ----------
    angle : float or array
        () of a simple pendulum, (2,) of a double one [rad].
    rate : float or array, optional
        Angular velocities, of the same shape [rad/s]. None: at rest.

    Raises
    ------
    ValueError
        If the shapes differ, or a number is not finite.
    """

    angle: Any
    rate: Any = None

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("angle", "θ", "rad", "() or (2,)"),
        Parameter("rate", "θ'", "rad/s", "() or (2,)"),
    )

    def __post_init__(self) -> None:
        angle = checks.array("angle", self.angle)
        rate = np.zeros_like(angle)
        if self.rate is not None:
            rate = checks.array("rate", self.rate, angle.shape)
        checks.freeze(self, "angle", angle)
        checks.freeze(self, "rate", rate)


@dataclass(frozen=True, eq=False)
class PendulumTrajectory:
    """States of a pendulum at the requested frames.

    Attributes
    ----------
    steps : ndarray
        Step of each frame, (n_frames,), increasing; state 0 is the initial one.
    dt : float
        Step size [s].
    angle, rate : ndarray
        Angles [rad] and rates [rad/s], (n_frames,) or (n_frames, 2).
    """

    steps: np.ndarray
    dt: float
    angle: np.ndarray
    rate: np.ndarray

    @property
    def times(self) -> np.ndarray:
        """Time of each frame, (n_frames,) [s]."""
        return self.steps * self.dt


class Pendulum(System[PendulumState, PendulumTrajectory]):
    """A pendulum: a frozen dataclass of what its links are, gravity and torque."""

    KIND: ClassVar[PendulumKind]
    SHAPE: ClassVar[tuple[int, ...]]  # of the angles
    PARAMETERS: ClassVar[tuple[Parameter, ...]]

    length: Any
    mass: Any
    damping: Any
    gravity: Any
    torque: Any
    center_of_mass: Any
    inertia: Any
    friction: Any
    friction_width: Any

    def __post_init__(self) -> None:
        for name in OF_LINKS:
            if name == "center_of_mass" and self.center_of_mass is None:
                continue
            value = checks.array(name, getattr(self, name), self.SHAPE)
            check = checks.non_negative if name in MAY_BE_ZERO else checks.positive
            checks.freeze(self, name, check(name, value))
        width = checks.array("friction_width", self.friction_width, ())
        checks.freeze(self, "friction_width", checks.positive("friction_width", width))
        checks.freeze(self, "gravity", checks.array("gravity", self.gravity, ()))
        object.__setattr__(self, "torque", check_series("torque", self.torque, (self.SHAPE,)))

    def parameters(self) -> dict[str, np.ndarray]:
        """Return every differentiable parameter by path, e.g. "length"."""
        values = {p.name: getattr(self, p.name) for p in self.PARAMETERS}
        return {name: series_values(value) for name, value in values.items() if value is not None}

    def constants(self) -> dict[str, np.ndarray]:
        """Return by name what the element function reads, in its order."""
        values = {name: getattr(self, name) for name in (*OF_LINKS, *OF_ALL)}
        if self.center_of_mass is None:
            values["center_of_mass"] = self.length
        return values

    def state_parameters(self, state: PendulumState) -> dict[str, np.ndarray]:
        """Return the initial angles and rates by path."""
        return {"state.angle": state.angle, "state.rate": state.rate}

    def with_values(
        self, state: PendulumState, values: Mapping[str, Any]
    ) -> tuple[Self, PendulumState]:
        """Return pendulum and state with other values of some parameters, by path.

        Raises
        ------
        ValueError
            If a path is unknown, or a value is out of range.
        """
        values = checks.mapping("values", values, "{'length': 1.0}")
        checks.instance("state", state, PendulumState)
        paths = [*self.parameters(), *self.state_parameters(state)]
        parameters, initial = {}, {}
        for path, value in values.items():
            owner, _, name = checks.known_key("parameter", path, paths).rpartition(".")
            (initial if owner else parameters)[name] = value
        return replace_values(self, parameters), replace_values(state, initial)

    def check_state(self, state: PendulumState) -> None:
        """Raise on a state of another pendulum."""
        checks.instance("state", state, PendulumState)
        checks.array("state.angle", state.angle, self.SHAPE, hint=f"As a {self._name} has.")

    @property
    def _name(self) -> str:
        return type(self).__name__

    def pack_params(self) -> np.ndarray:
        """Return the constants that the element function reads, (1, n_params)."""
        return np.concatenate([np.ravel(value) for value in self.constants().values()])[None]

    def pack_series(self, n_steps: int) -> np.ndarray:
        """Return the torques, (1 or n_steps, n_angles).

        Raise a ValueError if there is a row per step, but for another number of steps.
        """
        given = series_steps(self.torque, self.SHAPE)
        if given not in (None, n_steps):
            raise ValueError(
                f"`torque` has a series of {given} rows, but the rollout has {n_steps} steps: "
                "give one row per step, or a constant."
            )
        return series_rows(self.torque, self.SHAPE, n_steps).reshape(-1, self.KIND.n_angles)


class PendulumStepper(Stepper[PendulumState, PendulumTrajectory]):
    """Runs a pendulum's loop; its fields are angles and rates, (n_rows, n_angles)."""

    def __init__(self, system: Pendulum, run: RunSettings) -> None:
        thread_count(run.threads, large=False)  # one angle or two keep one thread busy
        self.dt, self.n_steps, self.dtype, _, device = run
        self.system, self.device = system, check_device(device)
        self.xp = array_module(self.device)
        self.params = self.on_device(system.pack_params())
        self.series = self.on_device(system.pack_series(self.n_steps))
        self.numbers = self.on_device(np.array([self.dt]))

    def on_device(self, array: np.ndarray) -> Any:
        """Return a copy in the stepper's precision, on its device."""
        return self.xp.array(array, self.dtype)

    def allocate(self, n_rows: int) -> Fields:
        """Return room for angles and rates of so many states."""
        shape = (n_rows, self.system.KIND.n_angles)
        return tuple(self.xp.zeros(shape, self.dtype) for _ in range(2))

    def load(self, state: PendulumState, fields: Fields, row: int) -> None:
        """Write angles and rates to a row."""
        for field, values in zip(fields, (state.angle, state.rate), strict=True):
            field[row] = self.on_device(np.ravel(values))

    def advance(self, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        steps, finite = self.xp.asarray(loop_rows(k0, rows)), self.xp.array([len(rows) - 1])
        args = (self.params, self.series, self.numbers, steps, fields, finite)
        advance_loop(self.system.KIND, self.device)(args)
        self.check_finite(finite, k0, len(rows) - 1)

    def check_finite(self, finite: Any, k0: int, n_steps: int) -> None:
        """Raise if fewer steps stayed finite than were to be done."""
        done = int(to_host(finite)[0])
        if done < n_steps:
            step = k0 + done
            raise RolloutError(
                f"The pendulum left the finite numbers in step {step} "
                f"(t = {step * self.dt:.6g} s).",
                f"A step is {self.dt:g} s. Try a smaller {{dt}}, or less `damping`.",
            )

    def trajectory(
        self, steps: np.ndarray, fields: Fields, *, on_device: bool = False
    ) -> PendulumTrajectory:
        """Return copies of the first rows: the frames."""
        shape = (len(steps), *self.system.SHAPE)
        parts = tuple(field[: len(steps)].copy() for field in fields)
        parts = parts if on_device else to_host(parts)
        return PendulumTrajectory(steps, self.dt, *(frames.reshape(shape) for frames in parts))


make_stepper.register(Pendulum, PendulumStepper)
