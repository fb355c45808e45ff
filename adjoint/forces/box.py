r"""Adjoint of `adjsim/forces/box.py`, which has the tangent: read them side by side.

Which of faces, edges and corners is nearest is frozen.
"""

from adjoint.forces.contact import ContactTwin
from adjoint.forces.gap import direction_vjp, relative_velocity_vjp
from adjoint.forces.registry import register
from adjsim.algebra.mat3 import matvec
from adjsim.algebra.vec3 import add, axpy, dot, neg, scale, sub
from adjsim.forces.box import (
    HALF_EXTENTS,
    OMEGA,
    R_1,
    R_2,
    R_3,
    X_C,
    BoxContact,
    box_distance,
    excess,
)
from adjsim.jit.backend import device_fn, lit


@device_fn
def excess_vjp(y, b, adj_e):
    """Pull adj_e back through `excess`: adj_y, adj_b."""
    e = excess(y, b)
    zero = lit(0, e)
    if e > zero:
        return adj_e, -adj_e
    return (adj_e, adj_e) if e < zero else (zero, zero)


@device_fn
def box_distance_vjp(y, b, adj_n, adj_s):
    """Pull cotangents back through `box_distance`: adj_y, adj_b."""
    n, s = box_distance(y, b)
    if s > lit(0, s):
        # (2) outside: n = e/|e|, s = |e|
        adj_e = direction_vjp(n, s, adj_n, adj_s)
        # (1) e = y - min(max(y, -b), b)
        adj_y0, adj_b0 = excess_vjp(y[0], b[0], adj_e[0])
        adj_y1, adj_b1 = excess_vjp(y[1], b[1], adj_e[1])
        adj_y2, adj_b2 = excess_vjp(y[2], b[2], adj_e[2])
        return (adj_y0, adj_y1, adj_y2), (adj_b0, adj_b1, adj_b2)
    # (2) inside: s = |y_i| - b_i, n constant
    return scale(adj_s, n), (-adj_s * abs(n[0]), -adj_s * abs(n[1]), -adj_s * abs(n[2]))


@device_fn
def box_gap_vjp(x, v, params, series, adj_n, adj_c, adj_u):
    """Pull cotangents back through `box_gap`, where it touches."""
    center, b, Omega = series[X_C], params[HALF_EXTENTS], series[OMEGA]
    R = (series[R_1], series[R_2], series[R_3])
    d = sub(x, center)  # (3) replayed
    y = (dot(R[0], d), dot(R[1], d), dot(R[2], d))  # (4) replayed
    n_box, _ = box_distance(y, b)  # (5) replayed

    # (8) u = v - V - Omega x d
    adj_v, adj_d, adj_V, adj_Omega = relative_velocity_vjp(d, Omega, adj_u)

    # (7) c = r - s
    adj_radius, adj_s = adj_c, -adj_c

    # (6) n = R n_box
    adj_R0, adj_R1, adj_R2 = scale(n_box[0], adj_n), scale(n_box[1], adj_n), scale(n_box[2], adj_n)
    adj_n_box = (dot(R[0], adj_n), dot(R[1], adj_n), dot(R[2], adj_n))

    # (5) n_box and s from y and b
    adj_y, adj_b = box_distance_vjp(y, b, adj_n_box, adj_s)

    # (4) y = R^T d
    adj_R0, adj_R1, adj_R2 = (
        axpy(adj_y[0], d, adj_R0),
        axpy(adj_y[1], d, adj_R1),
        axpy(adj_y[2], d, adj_R2),
    )
    adj_d = add(adj_d, matvec(R, adj_y))

    # (3) d = x - center
    adj_x, adj_center = adj_d, neg(adj_d)
    adj_series = (*adj_center, *adj_R0, *adj_R1, *adj_R2, *adj_V, *adj_Omega)
    return adj_x, adj_v, (adj_radius, *adj_b), adj_series


register(BoxContact, ContactTwin(BoxContact, box_gap_vjp))
