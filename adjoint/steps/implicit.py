r"""Adjoint and tangent of `adjsim/steps/implicit.py`: read the two files side by side.

    (1) M (v+ - v) = dt (f(x+, v+, theta) + M g),  x+ = x + dt v+,  A = M - dt D - dt^2 K

        A^T lam = adj_v+ + dt adj_x+        adj_x = adj_x+ + dt K^T lam,  adj_v = M lam
                                            adj_theta += dt (df/dtheta)^T lam
                                            adj_m += lam . (dt g - (v+ - v)),  adj_g += dt m lam
    tangent:  A tan_v+ = M tan_v + dt (K tan_x + (df/dtheta) tan_theta + m tan_g)
                         + tan_m (dt g - (v+ - v)),   tan_x+ = tan_x + dt tan_v+

A pinned node has lam = 0, and adj_v = adj_v+ + dt adj_x+ + (dt D + dt^2 K)^T lam; its tan_v goes
through D and K to the others. K and D are taken at the end of the step: that of the last step of a
segment is not stored but solved for again, which has the same bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.engine.sweep import ModelTwin, ReverseSweep
from adjoint.field import pull_at
from adjoint.system import Tangent, frames_of
from adjsim.engine.loop_arrays import States
from adjsim.steps.implicit import ImplicitStepper
from adjsim.system import Fields


class ImplicitSweep(ReverseSweep):
    """Cotangents on their way from the last frame to the initial state."""

    def __init__(
        self,
        stepper: ImplicitStepper,
        state: Any,
        steps: np.ndarray,
        adj_frames: Fields,
        wanted: Sequence[str],
    ) -> None:
        super().__init__(stepper.field.stepper, state, steps, adj_frames, wanted)
        self.implicit = stepper

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps, the last one first."""
        s, adj, (x, v, p) = self.implicit, self.adj, fields
        self.stepper.diverged = s.diverged
        if s.has_diverged:
            return
        frame_of = frames_of(self.steps, start, start + len(rows))
        last, row = start + len(rows) - 1, int(rows[-1])
        end = s.end(last, x[row], v[row])
        for k, row in zip(range(last, start - 1, -1), rows[::-1].tolist(), strict=True):
            frame = int(frame_of[k - start])
            if frame >= 0:
                adj.x[:] += self.frames.x[frame]
                adj.v[:] += self.frames.v[frame]
            self.undo_step(k, v[row], end)
            end = States(np.array(x[row]), np.array(v[row]), p[row])

    def undo_step(self, k: int, v: np.ndarray, end: States) -> None:
        """Undo step k, which began with velocities v."""
        s, adj = self.implicit, self.adj
        dt, m, n = s.dt, s.mass, s.model.n_nodes
        adj_x_end, adj_v_end = adj.x.copy(), adj.v + dt * adj.x
        lam = s.solved(s.matrix(k, end), adj_v_end, "T")
        adj.x[:] = adj.v[:] = 0.0
        pull_at(s.field, self, end, dt * lam, k)  # dt K^T lam, dt D^T lam, parameters
        through_end = adj_v_end + adj.v + dt * adj.x  # of a velocity that is kept
        adj.x[:] += adj_x_end
        adj.v[:] = np.where(s.is_free[:, None], m * lam, through_end)
        adj.gravity[:n] += dt * m * lam
        # w = 1/m: adj_w = -m^2 adj_m
        adj_m = np.sum(lam * (dt * s.model.gravity - (end.v - v)), axis=1)
        adj.w[:] -= np.square(m[:, 0]) * adj_m

    def by_force(self, row: int, fields: Fields) -> dict[str, Fields]:
        """Return nothing: a solve mixes what the forces add."""
        del row, fields
        return {}


class ImplicitTangent(Tangent):
    """Tangents of the states, run beside the states themselves."""

    def __init__(self, stepper: ImplicitStepper, state: Any, tangents: Any) -> None:
        s = self.stepper = stepper
        self.tangent = s.field.tangent(state, tangents)
        tan = self.tangent.tan
        # w = 1/m: tan_m = -m^2 tan_w
        self.tan_m = -np.square(s.mass) * tan.w[:, None]
        self.tan_g = tan.gravity[0]

    def load(self, tan_fields: Fields, row: int) -> None:
        """Write the tangents of positions and velocities to a row."""
        tan_fields[0][row] = self.tangent.tan.x
        tan_fields[1][row] = self.tangent.tan.v

    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run from state k0."""
        s, tan_x, tan_v = self.stepper, tan_fields[0], tan_fields[1]

        def then(k: int, before: int, after: int) -> None:
            v, end = fields[1][before], States(fields[0][after], fields[1][after], fields[2][after])
            tan_v[after] = self.pushed(k, v, end, tan_x[before], tan_v[before])
            tan_x[after] = tan_x[before] + s.dt * tan_v[after]

        s.check_finite(s.run_each(k0, rows, States(*fields), then), k0, rows, fields)

    def pushed(
        self, k: int, v: np.ndarray, end: States, tan_x: np.ndarray, tan_v: np.ndarray
    ) -> np.ndarray:
        """Return the tangent of the velocities at the end of step k."""
        s, dt = self.stepper, self.stepper.dt
        kept = np.where(s.is_free[:, None], 0.0, tan_v)
        tan_f = s.field.pushed(self.tangent, end, (tan_x + dt * kept, kept), k)
        right = s.mass * tan_v + dt * (tan_f + s.mass * self.tan_g)
        right += self.tan_m * (dt * s.model.gravity - (end.v - v))
        return kept + s.solved(s.matrix(k, end), right, "N")


class ImplicitTwin(ModelTwin):
    """The twin of a model that takes implicit steps."""

    def sweep(
        self, stepper: Any, state: Any, steps: np.ndarray, adj_frames: Fields,
        wanted: Sequence[str],
    ) -> ImplicitSweep:  # fmt: skip
        """Begin a reverse sweep."""
        return ImplicitSweep(stepper, state, steps, adj_frames, wanted)

    def tangent(self, stepper: Any, state: Any, tangents: Any) -> ImplicitTangent:
        """Begin a tangent."""
        return ImplicitTangent(stepper, state, tangents)
