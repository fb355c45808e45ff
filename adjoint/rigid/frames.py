r"""Adjoint of `adjsim/rigid/frames.py`, which has the tangent: read them side by side.

Of c = a x b the cotangents are adj_a = b x adj_c and adj_b = adj_c x a.
"""

from adjsim.algebra.vec3 import add, axpy, cross, dot, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.frames import axes_of


@device_fn
def motion_vjp(E, D, a, adj_motion):
    """Pull cotangents of p, p', omega and E back through `motion`: adj_x, adj_v, adj_a."""
    adj_p, adj_p_rate, adj_omega, adj_E = adj_motion
    half = scale(lit(0.5, a[0]), adj_omega)

    # (3) omega = 1/2 sum e_i x e_i'
    adj_E = (
        add(adj_E[0], cross(D[0], half)),
        add(adj_E[1], cross(D[1], half)),
        add(adj_E[2], cross(D[2], half)),
    )
    adj_D = (cross(half, E[0]), cross(half, E[1]), cross(half, E[2]))

    # (2) p = c + E a, p' = c' + E' a
    adj_E = outer_add(adj_p, a, adj_E)
    adj_D = outer_add(adj_p_rate, a, adj_D)
    adj_a = (
        dot(E[0], adj_p) + dot(D[0], adj_p_rate),
        dot(E[1], adj_p) + dot(D[1], adj_p_rate),
        dot(E[2], adj_p) + dot(D[2], adj_p_rate),
    )

    # (1) e_i = l_i - c, e_i' = l_i' - c'
    return axes_vjp(adj_p, adj_E), axes_vjp(adj_p_rate, adj_D), adj_a


@device_fn
def outer_add(b, a, A):
    """Return A + b a^T."""
    return (axpy(a[0], b, A[0]), axpy(a[1], b, A[1]), axpy(a[2], b, A[2]))


@device_fn
def axes_vjp(adj_center, adj_E):
    """Pull a cotangent of the axes back to the four points, beside one of the centre."""
    return (sub(adj_center, add(adj_E[0], add(adj_E[1], adj_E[2]))), *adj_E)


@device_fn
def spread_vjp(E, a, f, T, adj_g):
    """Pull cotangents of the forces on the points back through `spread`: E, a, f and T."""
    half = scale(lit(0.5, a[0]), T)

    # (4) g_0 = f - sum g_i
    adj_f = adj_g[0]
    adj_g1, adj_g2, adj_g3 = axes_of(adj_g)

    # (3) to (1) g_i = a_i f + T/2 x e_i
    adj_E = (cross(adj_g1, half), cross(adj_g2, half), cross(adj_g3, half))
    adj_half = add(cross(E[0], adj_g1), add(cross(E[1], adj_g2), cross(E[2], adj_g3)))
    adj_a = (dot(f, adj_g1), dot(f, adj_g2), dot(f, adj_g3))
    adj_f = axpy(a[0], adj_g1, axpy(a[1], adj_g2, axpy(a[2], adj_g3, adj_f)))
    return adj_E, adj_a, adj_f, scale(lit(0.5, a[0]), adj_half)
