r"""Adjoint of `adjsim/forces/lift_drag.py`, which has the tangent: read them side by side.

Differentiated with respect to positions, velocities, k_lift, k_drag and the wind. At the
kink of the drag, n.v_r = 0, the derivative of |.| is taken as 0. All three nodes feel the
same f, so their cotangents are added first.
"""

import math

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import add, axpy, cross, dot, neg, norm, scale, sub
from adjsim.forces.lift_drag import (
    EPSILON,
    LIFT_DRAG,
    LiftDrag,
    relative_velocity,
    slope_of_abs,
    twice_area_normal,
)
from adjsim.jit.backend import device_fn, lit


@device_fn
def lift_drag_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `lift_drag_force`."""
    k_lift, k_drag = params
    sixth = lit(1 / 6, k_lift)
    c = twice_area_normal(x)  # (1) replayed
    v_r = relative_velocity(v, series)  # (2) replayed
    over_l = lit(1, k_lift) / norm(c)  # (3) replayed
    w = dot(c, v_r)  # (4) replayed
    s = math.sqrt(dot(v_r, v_r) + lit(EPSILON * EPSILON, w))  # (5) replayed
    drag = -sixth * k_drag * abs(w)  # (6) replayed
    t = -sixth * s * over_l
    lift = t * k_lift * w  # (7) replayed
    adj_force = add(adj_f[0], add(adj_f[1], adj_f[2]))

    # (8) f = drag v_r + lift c
    adj_drag = dot(v_r, adj_force)
    adj_lift = dot(c, adj_force)
    adj_v_r = scale(drag, adj_force)
    adj_c = scale(lift, adj_force)

    # (7) lift = -k_lift s w/(6 l)
    adj_k_lift = t * w * adj_lift
    adj_w = t * k_lift * adj_lift
    adj_s = -sixth * k_lift * w * over_l * adj_lift
    adj_l = -lift * over_l * adj_lift

    # (6) drag = -k_drag |w|/6
    adj_k_drag = -sixth * abs(w) * adj_drag
    adj_w -= sixth * k_drag * slope_of_abs(w) * adj_drag

    # (5) s = sqrt(v_r.v_r + eps^2)
    adj_v_r = axpy(adj_s / s, v_r, adj_v_r)

    # (4) w = c.v_r
    adj_c = axpy(adj_w, v_r, adj_c)
    adj_v_r = axpy(adj_w, c, adj_v_r)

    # (3) l = |c|
    adj_c = axpy(adj_l * over_l, c, adj_c)

    # (2) v_r = (v0 + v1 + v2)/3 - wind
    adj_v = scale(lit(1 / 3, s), adj_v_r)
    adj_wind = neg(adj_v_r)

    # (1) c = (x1 - x0) x (x2 - x0)
    adj_x1 = cross(sub(x[2], x[0]), adj_c)
    adj_x2 = cross(adj_c, sub(x[1], x[0]))
    adj_x0 = neg(add(adj_x1, adj_x2))
    return (adj_x0, adj_x1, adj_x2), (adj_v, adj_v, adj_v), (adj_k_lift, adj_k_drag), adj_wind


LIFT_DRAG_TWIN = TwinKind(LIFT_DRAG, lift_drag_vjp)

register(LiftDrag, ForceTwin(LIFT_DRAG_TWIN))
