r"""Adjoint of `adjsim/forces/gap.py`, which has the tangent: read them side by side.

Derivatives of a direction are asked for only where it has one, s > 0.
"""

from adjsim.algebra.vec3 import axpy, cross, dot, neg, scale
from adjsim.jit.backend import device_fn, lit


@device_fn
def direction_vjp(n, s, adj_n, adj_s):
    """Pull cotangents back through `direction`, at its n and s: adj_d."""
    # (2) n = d/s, (1) s = |d|: what is along n is the length's
    return axpy(adj_s, n, scale(lit(1, s) / s, axpy(-dot(n, adj_n), n, adj_n)))


@device_fn
def relative_velocity_vjp(d, Omega, adj_u):
    """Pull adj_u back through `relative_velocity`: adj_v, adj_d, adj_V, adj_Omega."""
    # (1) u = v - V - Omega x d
    return adj_u, cross(Omega, adj_u), neg(adj_u), cross(adj_u, d)
