r"""Adjoint of `adjsim/forces/springs.py`: read the two files side by side.

Every block undoes the forward line with the same number, last line first; the tangent reads in
forward order. Differentiated with respect to positions, velocities, k, c and l0.

The length and direction of r belong together: tan_l = d.tan_r, tan_d = (tan_r - tan_l d)/l.
"""

from adjoint.forces.element import TwinKind
from adjsim.engine.algebra.vec3 import axpy, dot, norm, scale
from adjsim.engine.jit.backend import device_fn, lit
from adjsim.forces.springs import SPRING


@device_fn
def spring_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `spring_force`."""
    k, c, l0 = params[0], params[1], params[2]
    tan_k, tan_c, tan_l0 = tan_params[0], tan_params[1], tan_params[2]
    r, tan_r = x[0], tan_x[0]
    l = norm(r)  # (1)
    inv_l = lit(1, l) / l
    d = scale(inv_l, r)  # (2)
    tan_l = dot(d, tan_r)  # (1)
    tan_d = scale(inv_l, axpy(-tan_l, d, tan_r))  # (2)
    l_rate = dot(d, v[0])  # (3)
    tan_l_rate = dot(tan_d, v[0]) + dot(d, tan_v[0])
    tension = k * (l - l0) + c * l_rate  # (4)
    tan_elastic = tan_k * (l - l0) + k * (tan_l - tan_l0)
    tan_tension = tan_elastic + tan_c * l_rate + c * tan_l_rate
    return (axpy(-tan_tension, d, scale(-tension, tan_d)),)  # (5)


@device_fn
def spring_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `spring_force`."""
    k, c, l0 = params[0], params[1], params[2]
    r = x[0]
    l = norm(r)  # (1) replayed
    inv_l = lit(1, l) / l
    d = scale(inv_l, r)  # (2) replayed
    l_rate = dot(d, v[0])  # (3) replayed
    tension = k * (l - l0) + c * l_rate  # (4) replayed

    # (5) f_j = -tension d
    adj_tension = -dot(d, adj_f[0])
    adj_d = scale(-tension, adj_f[0])

    # (4) tension = k (l - l0) + c l_rate
    adj_k = (l - l0) * adj_tension
    adj_l = k * adj_tension
    adj_l0 = -k * adj_tension
    adj_c = l_rate * adj_tension
    adj_l_rate = c * adj_tension

    # (3) l_rate = d.v
    adj_d = axpy(adj_l_rate, v[0], adj_d)
    adj_v = scale(adj_l_rate, d)

    # (2) d = r/l
    adj_r = scale(inv_l, adj_d)
    adj_l -= inv_l * dot(d, adj_d)

    # (1) l = |r|
    adj_r = axpy(adj_l, d, adj_r)
    return (adj_r,), (adj_v,), (adj_k, adj_c, adj_l0), ()


SPRING_TWIN = TwinKind(SPRING, spring_jvp, spring_vjp)
