r"""Adjoint of `adjsim/forces/capsule.py`, which has the tangent: read them side by side.

Side or cap is frozen; |h| = L counts as side, where t follows h.
"""

from adjoint.forces.contact import ContactTwin
from adjoint.forces.gap import direction_vjp, relative_velocity_vjp
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import add, axpy, dot, neg, scale, sub
from adjsim.forces.capsule import A_C, HALF_LENGTH, OMEGA, X_C, CapsuleContact
from adjsim.forces.gap import direction
from adjsim.jit.backend import device_fn, lit


@device_fn
def capsule_gap_vjp(x, v, params, series, adj_n, adj_c, adj_u):
    """Pull cotangents back through `capsule_gap`, where it touches."""
    half_length = params[HALF_LENGTH]
    center, a, Omega = series[X_C], series[A_C], series[OMEGA]
    zero = lit(0, adj_c)
    d = sub(x, center)  # (1) replayed
    h = dot(a, d)  # (2) replayed
    t = min(max(h, -half_length), half_length)  # (3) replayed
    n, s = direction(axpy(-t, a, d))  # (4), (5) replayed

    # (7) u = v - V - Omega x d
    adj_v, adj_d, adj_V, adj_Omega = relative_velocity_vjp(d, Omega, adj_u)

    # (6) c = R + r - s
    adj_capsule_radius, adj_radius, adj_s = adj_c, adj_c, -adj_c

    # (5) n = e/|e|, s = |e|
    adj_e = direction_vjp(n, s, adj_n, adj_s)

    # (4) e = d - t a
    adj_d = add(adj_d, adj_e)
    adj_a = scale(-t, adj_e)
    adj_t = -dot(a, adj_e)

    # (3) t = h along the side, L or -L at the caps
    adj_h, adj_half_length = adj_t, zero
    if h > half_length:
        adj_h, adj_half_length = zero, adj_t
    elif h < -half_length:
        adj_h, adj_half_length = zero, -adj_t

    # (2) h = a.d
    adj_a = axpy(adj_h, d, adj_a)
    adj_d = axpy(adj_h, a, adj_d)

    # (1) d = x - center
    adj_x, adj_center = adj_d, neg(adj_d)
    adj_params = (adj_radius, adj_half_length, adj_capsule_radius)
    return adj_x, adj_v, adj_params, (*adj_center, *adj_a, *adj_V, *adj_Omega)


register(CapsuleContact, ContactTwin(CapsuleContact, capsule_gap_vjp))
