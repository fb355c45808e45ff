r"""Adjoint of `adjsim/forces/sphere.py`, which has the tangent: read them side by side."""

from adjoint.forces.contact import ContactTwin
from adjoint.forces.gap import direction_vjp, relative_velocity_vjp
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import add, neg, sub
from adjsim.forces.gap import direction
from adjsim.forces.sphere import OMEGA, X_C, SphereContact
from adjsim.jit.backend import device_fn


@device_fn
def sphere_gap_vjp(x, v, params, series, adj_n, adj_c, adj_u):
    """Pull cotangents back through `sphere_gap`, where it touches."""
    center, Omega = series[X_C], series[OMEGA]
    d = sub(x, center)  # (1) replayed
    n, s = direction(d)  # (2) replayed

    # (4) u = v - V - Omega x d
    adj_v, adj_d, adj_V, adj_Omega = relative_velocity_vjp(d, Omega, adj_u)

    # (3) c = R + r - s
    adj_sphere_radius, adj_radius, adj_s = adj_c, adj_c, -adj_c

    # (2) n = d/|d|, s = |d|
    adj_d = add(adj_d, direction_vjp(n, s, adj_n, adj_s))

    # (1) d = x - center
    adj_x, adj_center = adj_d, neg(adj_d)
    return adj_x, adj_v, (adj_radius, adj_sphere_radius), (*adj_center, *adj_V, *adj_Omega)


register(SphereContact, ContactTwin(SphereContact, sphere_gap_vjp))
