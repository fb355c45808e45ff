r"""Smoke in 2-D: a velocity that carries itself and a density, kept free of divergence.

    u* = S(u; u)         semi-Lagrangian lookup, `adjsim/reduced/advection.py`        (1)
    u+ = P u*            divergence-free part, `adjsim/reduced/projection.py`         (2)
    d+ = S(d; u+)                                                                     (3)

on a periodic grid: arrays are (N_y, N_x), row = y, column = x, components (u_x, u_y) last.
Velocities are in cells per step, so the step size does not enter: `dt` only says how much time
a step stands for. Kinks: a lookup on the border of a cell, u = 0 for one, takes the right-hand
slope.

The time loop is Python, a few compiled calls per step, since the Fourier transform is SciPy's
or CuPy's.

Adjoint: `adjoint/reduced/smoke.py`. Tests: `tests/reduced/test_smoke.py`.
Source: Stam, Stable Fluids, SIGGRAPH 1999; gradSim (ICLR 2021), its smoke.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.jit.backend import thread_count
from adjsim.jit.device_arrays import constants, to_host
from adjsim.jit.devices import Device, array_module, check_device
from adjsim.reduced.advection import CellRows
from adjsim.reduced.projection import Projection
from adjsim.system import Fields, RolloutError, RunSettings, Stepper, System, make_stepper
from adjsim.values import Parameter, replace_values


MIN_CELLS = 2  # along each axis
PARALLEL_CELLS = 200 * 200  # work on fewer is done before a second thread has woken up


@dataclass(frozen=True, eq=False)
class SmokeState:
    """Velocity and density of the smoke.

    Parameters
    ----------
    velocity : array
        (N_y, N_x, 2), components (u_x, u_y) [cells per step].
    density : array
        (N_y, N_x) [-].

    Raises
    ------
    ValueError
        If the shapes do not fit each other, or a number is not finite.
    """

    velocity: Any
    density: Any

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("velocity", "u", "cells/step", "(N_y, N_x, 2)"),
        Parameter("density", "ρ", "-", "(N_y, N_x)"),
    )

    def __post_init__(self) -> None:
        density = checks.array("density", self.density, ("N_y", "N_x"))
        hint = "One vector (u_x, u_y) for each cell of `density`."
        velocity = checks.array("velocity", self.velocity, (*density.shape, 2), hint=hint)
        checks.freeze(self, "velocity", velocity)
        checks.freeze(self, "density", density)


@dataclass(frozen=True, eq=False)
class SmokeTrajectory:
    """States of the smoke at the requested frames.

    Attributes
    ----------
    steps : ndarray
        Step of each frame, (n_frames,), increasing; state 0 is the initial one.
    dt : float
        Time that a step stands for [s].
    velocity : ndarray
        (n_frames, N_y, N_x, 2) [cells per step].
    density : ndarray
        (n_frames, N_y, N_x) [-].
    """

    steps: np.ndarray
    dt: float
    velocity: np.ndarray
    density: np.ndarray

    @property
    def times(self) -> np.ndarray:
        """Time of each frame, (n_frames,) [s]."""
        return self.steps * self.dt


@dataclass(frozen=True, eq=False)
class Smoke(System[SmokeState, SmokeTrajectory]):
    """Smoke on a periodic grid. It has no parameters but its initial state.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the grid (N_y, N_x), at least 2 each: `density.shape`.

    Raises
    ------
    ValueError
        If there are fewer cells.
    """

    shape: Any

    def __post_init__(self) -> None:
        shape = checks.integers("shape", self.shape, (2,))
        if shape.min() < MIN_CELLS:
            raise ValueError(
                f"`shape` must have at least {MIN_CELLS} cells along each axis, (N_y, N_x), got "
                f"{tuple(shape.tolist())}."
            )
        object.__setattr__(self, "shape", tuple(shape.tolist()))

    def parameters(self) -> dict[str, np.ndarray]:
        """Return nothing: all that is differentiated is in the initial state."""
        return {}

    def state_parameters(self, state: SmokeState) -> dict[str, np.ndarray]:
        """Return the initial velocity and density by path."""
        return {"state.velocity": state.velocity, "state.density": state.density}

    def with_values(
        self, state: SmokeState, values: Mapping[str, Any]
    ) -> tuple["Smoke", SmokeState]:
        """Return the smoke and a state with other values, by path.

        Raises
        ------
        ValueError
            If a path is unknown, or a value does not fit.
        """
        values = checks.mapping("values", values, "{'state.density': ...}")
        known = self.state_parameters(checks.instance("state", state, SmokeState))
        named = {
            checks.known_key("parameter", path, known).removeprefix("state."): value
            for path, value in values.items()
        }
        return self, replace_values(state, named)

    def check_state(self, state: SmokeState) -> None:
        """Raise on a state on another grid."""
        checks.instance("state", state, SmokeState)
        checks.array("state.density", state.density, self.shape, hint="As `Smoke.shape` says.")


class SmokeStepper(Stepper[SmokeState, SmokeTrajectory]):
    """Runs the steps; its fields are velocities (n_rows, N_y, N_x, 2) and densities."""

    step_seconds = 1e-3

    def __init__(self, system: Smoke, run: RunSettings) -> None:
        large = system.shape[0] * system.shape[1] >= PARALLEL_CELLS
        threads, device = thread_count(run.threads, large=large), check_device(run.device)
        self.system, self.device, self.xp = system, device, array_module(device)
        self.dt, self.n_steps, self.dtype = run[:3]
        self.grid = CellRows(system.shape, device, threads)
        self.project = Projection(system.shape, self.dtype, device, threads)
        self.carried = self.xp.empty((*system.shape, 2), self.dtype)

    def allocate(self, n_rows: int) -> Fields:
        """Return room for velocities and densities of so many states."""
        shape = (n_rows, *self.system.shape)
        return self.xp.empty((*shape, 2), self.dtype), self.xp.empty(shape, self.dtype)

    def load(self, state: SmokeState, fields: Fields, row: int) -> None:
        """Write velocity and density to a row."""
        initial = constants((state.velocity, state.density), self.device)
        for field, values in zip(fields, initial, strict=True):
            field[row] = values

    def next_velocity(self, u: Any) -> Any:
        """Return u+ = P S(u; u), (N_y, N_x, 2)."""
        self.grid.advect(flat(u), flat(u), flat(self.carried))  # (1)
        return self.project(self.carried)  # (2)

    def advance(self, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Run from state k0."""
        velocity, density = fields
        finite = self.xp.ones(len(rows), bool)
        with np.errstate(over="ignore", invalid="ignore"):
            for k, (before, after) in enumerate(itertools.pairwise(rows)):
                velocity[after] = self.next_velocity(velocity[before])
                carried, at = flat(density[before]), flat(velocity[after])
                self.grid.advect(carried, at, flat(density[after]))  # (3)
                finite[k] = self.is_finite(velocity[after], density[after])
                if self.device is Device.CPU and not finite[k]:
                    break
        self.check_finite(finite, k0)

    def is_finite(self, velocity: Any, density: Any) -> Any:
        """Whether a state is finite, on its device."""
        return self.xp.isfinite(velocity.sum() + density.sum())

    def check_finite(self, finite: Any, k0: int) -> None:
        """Raise if a step did not stay finite."""
        kept = to_host(finite)
        if not kept.all():
            step = k0 + int(np.argmin(kept))
            raise RolloutError(
                f"The smoke left the finite numbers in step {step} (t = {step * self.dt:.6g} s).",
                "Try a smaller initial velocity: it is in cells per step.",
            )

    def trajectory(
        self, steps: np.ndarray, fields: Fields, *, on_device: bool = False
    ) -> SmokeTrajectory:
        """Return copies of the first rows: the frames."""
        parts = tuple(field[: len(steps)].copy() for field in fields)
        return SmokeTrajectory(steps, self.dt, *(parts if on_device else to_host(parts)))


def flat(field: Any) -> Any:
    """Return a view (n_cells, n_channels) of a field (N_y, N_x) or (N_y, N_x, 2)."""
    return field.reshape(field.shape[0] * field.shape[1], -1)


make_stepper.register(Smoke, SmokeStepper)
