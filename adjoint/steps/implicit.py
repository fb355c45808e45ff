r"""Adjoint and tangent of `adjsim/steps/implicit.py`: read the two files side by side.

    (1) M (v+ - v) = dt (f(x+, v+, theta) + M g),  x+ = x + dt v+,  A = M - dt D - dt^2 K

        A^T lam = adj_v+ + dt adj_x+        adj_x = adj_x+ + dt K^T lam,  adj_v = M lam
                                            adj_theta += dt (df/dtheta)^T lam
                                            adj_m += lam . (dt g - (v+ - v)),  adj_g += dt m lam
    tangent:  A tan_v+ = M tan_v + dt (K tan_x + (df/dtheta) tan_theta + m tan_g)
                         + tan_m (dt g - (v+ - v)),   tan_x+ = tan_x + dt tan_v+

Of bodies, e(u) = 0 (`adjsim/rigid/implicit_step.py`): A^T lam = adj_u, and -lam is pulled through e
to all but u. A tangent first goes through e and the forces with u kept as it is.

A pinned node has lam = 0, and adj_v = adj_v+ + dt adj_x+ + (dt D + dt^2 K)^T lam; its tan_v goes
through D and K to the others. One that a grip leads is undone by `adjoint/steps/leads.py`. K and D
are taken at the end of the step: that of the last step of a segment is not stored but solved for
again, which has the same bits.
"""

from typing import Any

import numpy as np

from adjoint.field import pull_at
from adjoint.rigid.implicit_step import balance_bodies_vjp, end_bodies_vjp
from adjoint.steps.field_step import FieldSweep, FieldTangent
from adjoint.steps.leads import undo_leads
from adjsim.jit.backend import loop_kernel
from adjsim.rigid.implicit_step import UNKNOWNS
from adjsim.steps.implicit import ImplicitStepper
from adjsim.tiles.loop_arrays import States


class ImplicitSweep(FieldSweep):
    """Cotangents on their way from the last frame to the initial state."""

    def undo_step(self, k: int, before: States, end: States) -> None:
        """Undo step k, which began at a state."""
        s, adj = self.taker, self.adj
        dt, m, n = s.dt, s.mass, s.model.n_nodes
        at_end = adj.x.copy(), adj.v.copy()
        adj_x_end, adj_v_end, adj_p_end = at_end[0], adj.v + dt * adj.x, adj.p.copy()
        right = np.concatenate([adj_v_end.ravel(), self.undo_ends(before, end, adj_p_end)])
        solved = s.solved(s.matrix(k, before, end), right, "T")
        lam, of_bodies = solved[: 3 * n].reshape(-1, 3), solved[3 * n :].reshape(-1, UNKNOWNS)
        adj.x[:] = adj.v[:] = adj.p[:] = 0.0
        adj_f = np.zeros((s.packed.n_rows, 3))
        adj_f[:n] = dt * lam
        if s.model.n_bodies:
            loop_kernel(balance_bodies_vjp)(
                dt, s.bodies.nodes, s.bodies.bodies, s.field.forces_at(end, k), before.p, end.p,
                -of_bodies, adj_f, adj_p_end, adj,
            )  # fmt: skip
        adj_p_begin = adj.p.copy()
        adj.p[:] = 0.0
        pull_at(s.field, self, end, adj_f, k)  # dt K^T lam, dt D^T lam, parameters
        through_end = adj_v_end + adj.v + dt * adj.x  # of a velocity that is kept
        led_v = adj.v[s.leads.nodes] + at_end[1][s.leads.nodes]
        adj.x[:] += adj_x_end
        adj.v[:] = np.where(s.is_free[:, None], m * lam, through_end)
        adj.v[s.leads.nodes] = led_v
        undo_leads(s.leads, k, dt, adj)
        adj_p_end += adj.p
        adj.p[:] = adj_p_begin
        self.undo_ends(before, end, adj_p_end)
        adj.gravity[:n] += dt * m * lam
        # w = 1/m: adj_w = -m^2 adj_m
        adj_m = np.sum(lam * (dt * s.model.gravity - (end.v[:n] - before.v[:n])), axis=1)
        adj.w[:] -= np.square(m[:, 0]) * adj_m

    def undo_ends(self, before: States, end: States, adj_p_end: np.ndarray) -> np.ndarray:
        """Pull where bodies end back to x and r of `adj.p`; return what is left at u, flat."""
        adj_u = np.empty((len(end.p), UNKNOWNS))
        loop_kernel(end_bodies_vjp)(self.taker.dt, before.p, end.p, adj_p_end, self.adj.p, adj_u)
        return adj_u.ravel()


class ImplicitTangent(FieldTangent):
    """Tangents of the states, run beside the states themselves."""

    def __init__(self, stepper: ImplicitStepper, state: Any, tangents: Any) -> None:
        super().__init__(stepper, state, tangents)
        tan = self.tangent.tan
        # w = 1/m: tan_m = -m^2 tan_w
        self.tan_m = -np.square(stepper.mass) * tan.w[:, None]
        self.tan_g = tan.gravity[0]

    def pushed(self, k: int, before: States, end: States, tan: States) -> States:
        """Return the tangent of the state at the end of step k."""
        s, dt, n = self.stepper, self.stepper.dt, self.stepper.model.n_nodes
        kept = np.zeros(len(s.inertia))  # of the unknowns
        kept[: 3 * n] = np.where(s.is_free[:, None], 0.0, tan.v[:n]).ravel()
        tan_end = self.moved(k, (before, end), tan, kept)
        tan_f = s.field.pushed(self.tangent, end, (tan_end.x, tan_end.v), k)
        right = s.mass * tan.v[:n] + dt * (tan_f[:n] + s.mass * self.tan_g)
        right += self.tan_m * (dt * s.model.gravity - (end.v[:n] - before.v[:n]))
        of_bodies = np.zeros((0, UNKNOWNS))
        if s.model.n_bodies:
            forces = s.field.forces_at(end, k), tan_f
            of_bodies = s.bodies.balance_jvp(
                self.tangent.tan, forces, (before.p, end.p), (tan.p, tan_end.p)
            )
        right = np.concatenate([right.ravel(), -of_bodies.ravel()])
        tan_u = kept + s.solved(s.matrix(k, before, end), right, "N")
        return self.moved(k, (before, end), tan, tan_u)

    def moved(self, k: int, ends: tuple[States, States], tan: States, tan_u: np.ndarray) -> States:
        """Return the tangent of the state at the end of step k, given that of its unknowns, flat.

        `ends`: the states before the step and at its end.
        """
        s, n, (before, end) = self.stepper, self.stepper.model.n_nodes, ends
        out = States(*map(np.empty_like, tan))
        out.v[:n] = tan_u[: 3 * n].reshape(-1, 3)
        out.x[:n] = tan.x[:n] + s.dt * out.v[:n]
        s.leads.put(k, s.dt, self.tangent.tan.series, tan.x, out)
        of_bodies = tan_u[3 * n :].reshape(-1, UNKNOWNS)
        s.bodies.end_jvp(self.tangent.tan.arms, (before.p, end.p), tan.p, of_bodies, out)
        return out
