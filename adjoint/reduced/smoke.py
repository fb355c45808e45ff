r"""Adjoint of `adjsim/reduced/smoke.py`: read the two files side by side.

    (3) d+ = S(d; u+)      adj_d, adj_u+ += the adjoint of the lookup
    (2) u+ = P u*          adj_u* = P adj_u+       P is symmetric
    (1) u* = S(u; u)       adj_u gets both parts: what u carries, and where it carries it

The u+ of a step is the velocity of the next state, so it is at hand but for the last one.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjoint.reduced.advection import advect_jvp, advect_vjp
from adjoint.system import Sweep, SystemTwin, Tangent, frames_of
from adjsim.jit.device_arrays import to_device, to_host
from adjsim.jit.devices import Device
from adjsim.reduced.smoke import SmokeState, SmokeStepper, SmokeTrajectory, flat
from adjsim.system import Fields


STATE = ("state.velocity", "state.density")


def step_jvp(
    stepper: SmokeStepper, fields: Fields, tan_fields: Fields, before: int, after: int
) -> None:
    """Advance a state and its tangent by one step, from row `before` to row `after`."""
    velocity, density = fields
    tan_velocity, tan_density = tan_fields
    grid, u, tan_u = stepper.grid, flat(velocity[before]), flat(tan_velocity[before])
    tan_carried = stepper.xp.empty_like(stepper.carried)
    advect_jvp(grid, u, u, tan_u, tan_u, flat(tan_carried))  # (1)
    velocity[after] = stepper.next_velocity(velocity[before])
    tan_velocity[after] = stepper.project(tan_carried)  # (2)
    d, tan_d = flat(density[before]), flat(tan_density[before])
    u, tan_u = flat(velocity[after]), flat(tan_velocity[after])
    grid.advect(d, u, flat(density[after]))  # (3)
    advect_jvp(grid, d, u, tan_d, tan_u, flat(tan_density[after]))


def step_vjp(
    stepper: SmokeStepper, u: Any, d: Any, u_new: Any, adj_u_new: Any, adj_d_new: Any
) -> Fields:
    """Pull the cotangents of the new state back to those of u and d: adj_u, adj_d.

    `adj_u_new` is added to on the way.
    """
    grid, xp = stepper.grid, stepper.xp

    # (3) d+ = S(d; u+)
    adj_d = xp.zeros_like(d)
    advect_vjp(grid, flat(d), flat(u_new), flat(adj_d_new), flat(adj_d), flat(adj_u_new))

    # (2) u+ = P u*
    adj_carried = stepper.project(adj_u_new)

    # (1) u* = S(u; u)
    adj_u = xp.zeros_like(u)
    advect_vjp(grid, flat(u), flat(u), flat(adj_carried), flat(adj_u), flat(adj_u))
    return adj_u, adj_d


class SmokeSweep(Sweep):
    """Cotangents on their way from the last frame to the initial state."""

    def __init__(
        self, stepper: SmokeStepper, state: SmokeState, steps: np.ndarray, adj_frames: Fields,
        wanted: Sequence[str],
    ) -> None:  # fmt: skip
        del state
        self.stepper, self.steps, self.wanted = stepper, steps, wanted
        self.frames = to_device(adj_frames, stepper.device)
        self.adj = tuple(stepper.xp.zeros(field.shape[1:], stepper.dtype) for field in adj_frames)

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps, the last one first."""
        velocity, density = fields
        frame_of = frames_of(self.steps, start, start + len(rows))
        # (1), (2) replayed for the last step; the others find their u+ in the next state
        u_new = self.stepper.next_velocity(velocity[rows[-1]])
        for row, frame in zip(rows[::-1], frame_of[::-1], strict=True):
            if frame >= 0:
                self.add_frame(frame)
            u, d = velocity[row], density[row]
            self.adj = step_vjp(self.stepper, u, d, u_new, *self.adj)
            u_new = u

    def add_frame(self, frame: int) -> None:
        """Add the cotangent of a frame to that of the state it shows."""
        self.adj = tuple(adj + f[frame] for adj, f in zip(self.adj, self.frames, strict=True))

    def adjoint(self) -> Fields:
        """Return the adjoint of velocity and density."""
        return tuple(map(to_host, self.adj))

    def gradient(self, wanted: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the gradient of the steps that are undone, of wanted parameters."""
        gradient: dict[str, Any] = dict(zip(STATE, to_host(self.adj), strict=True))
        return {path: gradient[path].astype(np.float64) for path in wanted}

    def finish(self) -> dict[str, np.ndarray]:
        """Add the cotangent of state 0, if it is a frame, and return the wanted gradient."""
        if self.steps[0] == 0:
            self.add_frame(0)
        return self.gradient(self.wanted)


class SmokeTangent(Tangent):
    """Tangents of the states, run beside the states themselves."""

    def __init__(
        self, stepper: SmokeStepper, state: SmokeState, tangents: Mapping[str, np.ndarray]
    ) -> None:
        values = stepper.system.state_parameters(state)
        self.stepper = stepper
        self.initial = [
            stepper.xp.asarray(tangents.get(path, np.zeros(values[path].shape))) for path in STATE
        ]

    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run from state k0."""
        s = self.stepper
        finite = s.xp.ones(len(rows), bool)
        with np.errstate(over="ignore", invalid="ignore"):
            for k, (before, after) in enumerate(itertools.pairwise(rows)):
                step_jvp(s, fields, tan_fields, before, after)
                finite[k] = s.is_finite(*(field[after] for field in fields))
                if s.device is Device.CPU and not finite[k]:
                    break
        s.check_finite(finite, k0)


class SmokeTwin(SystemTwin[SmokeState, SmokeTrajectory]):
    """The twin of `Smoke`."""

    FIELDS = ("velocity", "density")
    sweep = SmokeSweep
    tangent = SmokeTangent
