r"""Adjoint of `adjsim/forces/half_space.py`, which has the tangent: read them side by side."""

from adjoint.forces.contact import ContactTwin
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import axpy, neg, scale
from adjsim.forces.half_space import NORMAL, HalfSpaceContact
from adjsim.jit.backend import device_fn


@device_fn
def half_space_gap_vjp(x, v, params, series, adj_n, adj_c, adj_u):
    """Pull cotangents back through `half_space_gap`."""
    n = series[NORMAL]
    # (2) u = v - V
    adj_v, adj_V = adj_u, neg(adj_u)
    # (1) c = h + r - n.x
    adj_height, adj_radius = adj_c, adj_c
    adj_x = scale(-adj_c, n)
    adj_n = axpy(-adj_c, x, adj_n)
    return adj_x, adj_v, (adj_radius,), (*adj_n, adj_height, *adj_V)


register(HalfSpaceContact, ContactTwin(HalfSpaceContact, half_space_gap_vjp))
