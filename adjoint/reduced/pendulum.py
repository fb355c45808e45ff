"""The reverse sweep and the tangent of the pendula, around their compiled loops.

Forward: `adjsim/reduced/pendulum.py`.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from adjoint.reduced.pendulum_loop import PendulumTwinKind, reverse_loop, tangent_loop
from adjoint.series import series_rows_vjp
from adjoint.system import Sweep, SystemTwin, Tangent, frames_of
from adjsim.jit.device_arrays import to_device, to_host
from adjsim.reduced.pendulum import PendulumState, PendulumStepper, PendulumTrajectory
from adjsim.reduced.pendulum_loop import loop_rows
from adjsim.series import series_rows_jvp
from adjsim.system import Fields


STATE = ("state.angle", "state.rate")


class PendulumSweep(Sweep):
    """Cotangents on their way from the last frame to the initial state."""

    def __init__(
        self,
        twin: PendulumTwinKind,
        stepper: PendulumStepper,
        state: PendulumState,
        steps: np.ndarray,
        adj_frames: Fields,
        wanted: Sequence[str],
    ) -> None:
        del state
        xp, n_angles = stepper.xp, twin.kind.n_angles
        self.twin, self.stepper, self.steps, self.wanted = twin, stepper, steps, wanted
        flat = tuple(field.reshape(-1, n_angles) for field in adj_frames)
        self.frames = to_device(flat, stepper.device)
        self.adj = (
            *stepper.allocate(1),
            xp.zeros_like(stepper.params),
            xp.zeros_like(stepper.series),
        )

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps, in compiled code from the last one to the first."""
        s = self.stepper
        frame_of = s.xp.asarray(frames_of(self.steps, start, start + len(rows)))
        steps = s.xp.asarray(loop_rows(start, rows))
        frames = (frame_of, *self.frames)
        args = (s.params, s.series, s.numbers, steps, fields, frames, self.adj)
        reverse_loop(self.twin, s.device)(args)

    def adjoint(self) -> Fields:
        """Return the adjoint of angles and rates."""
        shape = self.stepper.system.SHAPE
        return tuple(to_host(field).reshape(shape) for field in self.adj[:2])

    def finish(self) -> dict[str, np.ndarray]:
        """Add the cotangent of state 0, if it is a frame, and return the wanted gradient."""
        if self.steps[0] == 0:
            self.adj[0][:] += self.frames[0][:1]
            self.adj[1][:] += self.frames[1][:1]
        return self.gradient(self.wanted)

    def gradient(self, wanted: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the gradient of the steps that are undone, of wanted parameters."""
        system = self.stepper.system
        adj_q, adj_u, params, series = (array.astype(np.float64) for array in to_host(self.adj))
        gradient: dict[str, np.ndarray] = dict(zip(STATE, (adj_q, adj_u), strict=True))
        constants = system.constants()
        ends = np.cumsum([value.size for value in constants.values()])
        gradient |= dict(zip(constants, np.split(params[0], ends[:-1]), strict=True))
        shapes = dict.fromkeys(STATE, system.SHAPE) | {k: v.shape for k, v in constants.items()}
        gradient = {path: value.reshape(shapes[path]) for path, value in gradient.items()}
        if system.center_of_mass is None:  # it is at the end of the link
            gradient["length"] = gradient["length"] + gradient["center_of_mass"]
        rows = series.reshape(-1, *system.SHAPE)
        gradient["torque"] = series_rows_vjp(system.torque, system.SHAPE, rows)
        return {path: gradient[path] for path in wanted}


class PendulumTangent(Tangent):
    """Tangents of the states, run beside the states themselves."""

    def __init__(
        self,
        twin: PendulumTwinKind,
        stepper: PendulumStepper,
        state: PendulumState,
        tangents: Mapping[str, np.ndarray],
    ) -> None:
        system = stepper.system
        zeros = {path: np.zeros(v.shape) for path, v in system.state_parameters(state).items()}
        zeros |= {name: np.zeros(value.shape) for name, value in system.parameters().items()}
        given = {**zeros, **tangents}
        self.twin, self.stepper = twin, stepper
        self.initial = [stepper.on_device(np.ravel(given[path])) for path in STATE]
        if system.center_of_mass is None:  # it is at the end of the link
            given["center_of_mass"] = given["length"]
        constants = np.concatenate([np.ravel(given[name]) for name in system.constants()])
        rows = series_rows_jvp(system.torque, system.SHAPE, given["torque"], stepper.n_steps)
        self.packed = (
            stepper.on_device(constants[None]),
            stepper.on_device(rows.reshape(-1, twin.kind.n_angles)),
        )

    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        s = self.stepper
        steps, finite = s.xp.asarray(loop_rows(k0, rows)), s.xp.array([len(rows) - 1])
        states = (*fields, *tan_fields)
        args = (s.params, s.series, *self.packed, s.numbers, steps, states, finite)
        tangent_loop(self.twin, s.device)(args)
        s.check_finite(finite, k0, len(rows) - 1)


class PendulumTwin(SystemTwin[PendulumState, PendulumTrajectory]):
    """The twin of one class of pendula."""

    FIELDS = ("angle", "rate")

    def __init__(self, kind: PendulumTwinKind) -> None:
        self.sweep = partial(PendulumSweep, kind)
        self.tangent = partial(PendulumTangent, kind)
