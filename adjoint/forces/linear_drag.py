r"""Adjoint of `adjsim/forces/linear_drag.py`: read the two files side by side.

The packed number of a node is c = kappa m, so adj_kappa = m adj_c, and adj_m gets kappa adj_c.
"""

import numpy as np

from adjoint.forces.element import ForceTwin, TwinKind, unbroadcast
from adjsim.engine.algebra.vec3 import axpy, dot, scale
from adjsim.engine.jit.backend import device_fn, lit
from adjsim.forces.linear_drag import LINEAR_DRAG, LinearDrag


@device_fn
def linear_drag_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `linear_drag_force`."""
    return (axpy(-params[0], tan_v[0], scale(-tan_params[0], v[0])),)  # (1)


@device_fn
def linear_drag_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `linear_drag_force`; adj_x is 0."""
    zero = lit(0, params[0])
    # (1) f = -c v
    adj_v = scale(-params[0], adj_f[0])
    adj_c = -dot(v[0], adj_f[0])
    return ((zero, zero, zero),), (adj_v,), (adj_c,), ()


LINEAR_DRAG_TWIN = TwinKind(LINEAR_DRAG, linear_drag_jvp, linear_drag_vjp)


class LinearDragTwin(ForceTwin[LinearDrag]):
    """The twin of `LinearDrag`."""

    def pack_vjp(
        self, force: LinearDrag, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the rate."""
        return {"rate": unbroadcast(force.masses * adj_params[:, 0], force.rate.shape)}

    def pack_jvp(
        self, force: LinearDrag, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rate to rows."""
        tan_rate = tangents.get("rate", np.zeros(()))
        return (tan_rate * force.masses)[:, None], force.pack_series(n_steps)

    def with_mass_vjp(self, force: LinearDrag, adj_params: np.ndarray, n_nodes: int) -> np.ndarray:
        """Pull row cotangents back to the node masses."""
        adj = force.rate * adj_params[:, 0]
        return np.bincount(force.rows, adj, minlength=n_nodes)

    def with_mass_jvp(self, force: LinearDrag, tan_mass: np.ndarray) -> np.ndarray:
        """Push a tangent of the node masses to rows."""
        return (force.rate * tan_mass[force.rows])[:, None]
