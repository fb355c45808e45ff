r"""Adjoint of `adjsim/forces/linear_drag.py`, which has the tangent: read them side by side.

The packed number of a node is c = kappa m, so adj_kappa = m adj_c, and adj_m gets kappa adj_c.
"""

import numpy as np

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjoint.values import unbroadcast
from adjsim.algebra.vec3 import dot, scale
from adjsim.forces.linear_drag import LINEAR_DRAG, LinearDrag
from adjsim.jit.backend import device_fn, lit


@device_fn
def linear_drag_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `linear_drag_force`; adj_x is 0."""
    zero = lit(0, params[0])
    # (1) f = -c v
    adj_v = scale(-params[0], adj_f[0])
    adj_c = -dot(v[0], adj_f[0])
    return ((zero, zero, zero),), (adj_v,), (adj_c,), ()


LINEAR_DRAG_TWIN = TwinKind(LINEAR_DRAG, linear_drag_vjp)


class LinearDragTwin(ForceTwin[LinearDrag]):
    """The twin of `LinearDrag`."""

    def pack_vjp(
        self, force: LinearDrag, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the rate."""
        return {"rate": unbroadcast(force.masses * adj_params[:, 0], force.rate.shape)}

    def with_mass_vjp(self, force: LinearDrag, adj_params: np.ndarray, n_nodes: int) -> np.ndarray:
        """Pull row cotangents back to the node masses."""
        adj = force.rate * adj_params[:, 0]
        return np.bincount(force.rows, adj, minlength=n_nodes)


register(LinearDrag, LinearDragTwin(LINEAR_DRAG_TWIN))
