r"""Adjoint of `adjsim/forces/springs.py`, which has the tangent: read them side by side.

Every block undoes the forward line with the same number, last line first.
Differentiated with respect to positions, velocities, k, c and l0.
"""

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import axpy, dot, norm, scale
from adjsim.forces.springs import L0, SPRING, C, K, Springs
from adjsim.jit.backend import device_fn, lit


@device_fn
def spring_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `spring_force`."""
    k, c, l0 = params[K], params[C], params[L0]
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


SPRING_TWIN = TwinKind(SPRING, spring_vjp)


register(Springs, ForceTwin(SPRING_TWIN))
