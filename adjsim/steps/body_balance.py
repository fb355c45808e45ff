r"""The rigid bodies of a model in a step of implicit Euler.

    e(u) = 0,  u = (v', omega') of every body          `adjsim/rigid/implicit_step.py`

With f the forces in the rows of X, K = df/dx and D = df/dv, nodes and bodies together solve with

    A = E - dt W^T (K X + D V)

    X, V    derivatives of the rows' positions and velocities by u
    W       velocities of the rows per velocity of nodes and bodies, at a fixed pose; W^T f adds up
            forces and moments
    E       derivative of e by u at fixed f

Adjoint: `adjoint/steps/implicit.py`. Tests: `tests/steps/test_implicit_bodies.py`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are loaded where they are used: `import adjsim` needs none

from adjsim.engine.stepper import CpuStepper
from adjsim.engine.tangent_packing import PackedVector
from adjsim.jit.backend import loop_kernel
from adjsim.rigid.implicit_step import (
    UNKNOWNS,
    balance_bodies,
    balance_bodies_jvp,
    end_bodies,
    end_bodies_jvp,
)
from adjsim.rigid.mass_properties import from_six
from adjsim.rigid.points import place_all_tangents
from adjsim.rigid.rows import INERTIA, OMEGA, V, W
from adjsim.tiles.loop_arrays import States


if TYPE_CHECKING:
    import scipy.sparse


VELOCITIES = slice(7, 13)  # of a body's state: u
Ends = tuple[np.ndarray, np.ndarray]  # of a step


class BodyBalance:
    """The bodies of a packed model, by rows of P."""

    def __init__(self, stepper: CpuStepper, dt: float) -> None:
        _, self.nodes, self.bodies = stepper.arrays
        self.n_nodes, self.n_bodies, self.dt = stepper.packed.n_nodes, stepper.packed.n_bodies, dt
        sizes = np.diff(self.bodies.point_ptr)
        self.owner = np.repeat(np.arange(self.n_bodies), sizes)  # of each point
        self.reach = np.linalg.norm(self.bodies.arms, axis=1)  # of each point
        params = self.bodies.params
        self.mass, self.moments = 1.0 / params[:, W, None], from_six(params[:, INERTIA])
        self.weight = float(np.abs(self.mass * self.nodes.gravity).max(initial=0.0))
        # What resists a change of each unknown.
        moments = np.diagonal(self.moments, axis1=1, axis2=2)
        self.inertia = np.hstack([np.repeat(self.mass, 3, axis=1), moments]).ravel()

    def end(self, p: np.ndarray, u: np.ndarray, end: States) -> None:
        """Write the state at the end of a step from p, whose velocities are u, (n_bodies, 6)."""
        end.p[:, VELOCITIES] = u
        loop_kernel(end_bodies)(self.dt, self.bodies, p, end)

    def balance(self, f: np.ndarray, p: np.ndarray, p_end: np.ndarray) -> np.ndarray:
        """Return e, (n_bodies, 6), of which the last three are moments."""
        out = np.empty((self.n_bodies, UNKNOWNS))
        loop_kernel(balance_bodies)(self.dt, self.nodes.gravity, self.bodies, f, p, p_end, out)
        return out

    def magnitudes(self, acts: np.ndarray, p: np.ndarray) -> tuple[list[float], list[float]]:
        """Return force and moment on the busiest body, and the largest momenta, linear and angular.

        `acts` are the magnitudes of the forces at the points.
        """
        if not self.n_bodies:
            return [0.0, 0.0], [0.0, 0.0]
        v, omega = p[:, V], p[:, OMEGA]
        spin = np.einsum("bij,bj->bi", self.moments, omega)
        force = np.bincount(self.owner, acts, self.n_bodies).max() + self.weight
        moment = np.bincount(self.owner, self.reach * acts, self.n_bodies)
        moment = (moment + np.linalg.norm(np.cross(omega, spin), axis=1)).max()
        momenta = np.abs(self.mass * v).max(), np.abs(spin).max()
        return [float(force), float(moment)], [float(momentum) for momentum in momenta]

    def end_jvp(
        self, tan_arms: np.ndarray, ends: Ends, tan_p: np.ndarray, tan_u: np.ndarray,
        tan_end: States,
    ) -> None:  # fmt: skip
        """Write the tangent of the state at the end; `ends` are the bodies' states p there."""
        tan_end.p[:, VELOCITIES] = tan_u
        loop_kernel(end_bodies_jvp)(self.dt, self.bodies, tan_arms, *ends, tan_p, tan_end)

    def balance_jvp(
        self, tan: PackedVector, forces: Ends, ends: Ends, tan_ends: Ends
    ) -> np.ndarray:
        """Return the tangent of e; `forces` are f and its tangent."""
        out = np.empty((self.n_bodies, UNKNOWNS))
        loop_kernel(balance_bodies_jvp)(
            self.dt, self.nodes, self.bodies, tan, *forces, *ends, *tan_ends, out
        )
        return out

    def matrix(
        self,
        mass: "scipy.sparse.csc_array",
        slopes: "tuple[scipy.sparse.csc_array, scipy.sparse.csc_array]",
        f: np.ndarray,
        p: np.ndarray,
        end: States,
        still: PackedVector,
    ) -> "scipy.sparse.csc_array":
        """Return A: first the nodes, then the bodies.

        `mass` is E of the nodes, `slopes` are K and D; `still` is a tangent, all 0.
        """
        tan, zero_f, zero_p = States(*map(np.zeros_like, end)), np.zeros_like(f), np.zeros_like(p)
        points = slice(self.n_nodes, None)
        W, X, V = (np.empty((len(self.owner), 3, UNKNOWNS)) for _ in range(3))
        E = np.empty((self.n_bodies, UNKNOWNS, UNKNOWNS))
        for j, unit in enumerate(np.eye(UNKNOWNS)):
            tan.p[:], tan.p[:, VELOCITIES] = 0.0, unit
            loop_kernel(place_all_tangents)(self.bodies, still.arms, end.p, tan)
            W[:, :, j] = tan.v[points]
            self.end_jvp(still.arms, (p, end.p), zero_p, unit, tan)
            X[:, :, j], V[:, :, j] = tan.x[points], tan.v[points]
            E[:, :, j] = self.balance_jvp(still, (f, zero_f), (p, end.p), (zero_p, tan.p))
        eye = scipy.sparse.eye_array(3 * self.n_nodes, format="csc")
        w, x, v = (
            self._of_rows(factor * eye, rows) for factor, rows in ((1.0, W), (self.dt, X), (1.0, V))
        )
        K, D = slopes
        diagonal = scipy.sparse.block_diag([mass, *E], format="csc")
        return (diagonal - self.dt * (w.T @ (K @ x + D @ v))).tocsc()

    def _of_rows(self, of_nodes: Any, of_points: np.ndarray) -> Any:
        """Return the matrix from u of nodes and bodies to the rows of X."""
        ends = np.cumsum(np.bincount(self.owner, minlength=self.n_bodies))[:-1]
        blocks = [block.reshape(-1, UNKNOWNS) for block in np.split(of_points, ends)]
        return scipy.sparse.block_diag([of_nodes, *blocks], format="csc")
