r"""Adjoint of `adjsim/rigid/quaternion.py`, which has the tangent: read them side by side.

With s = |h|^2 and the entire functions sinc and cos of sqrt(s),

    d cos/ds = -sinc/2,   d sinc/ds = (cos - sinc)/(2 s) = sum of (-1)^k k s^(k-1)/(2k+1)!

the second by its series for s < 1/4, where the difference would lose digits. The tangent of
u = q/|q| is (tan_q - u u.tan_q)/|q|: a symmetric map, so that the adjoint is the same.
"""

from adjsim.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.quaternion import quat_unit_jvp, sinc_and_cos, sinc_slope


@device_fn
def quat_mul_vjp(p, q, adj):
    """Pull a cotangent of p (x) q back to p and q."""
    a, b = (p[0], p[1], p[2]), (q[0], q[1], q[2])
    adj_u, adj_w = (adj[0], adj[1], adj[2]), adj[3]
    # (2) w = p3 q3 - a.b
    adj_p3, adj_q3 = q[3] * adj_w, p[3] * adj_w
    adj_a, adj_b = scale(-adj_w, b), scale(-adj_w, a)
    # (1) u = p3 b + q3 a + a x b
    adj_p3 += dot(b, adj_u)
    adj_q3 += dot(a, adj_u)
    adj_a = add(adj_a, axpy(q[3], adj_u, cross(b, adj_u)))
    adj_b = add(adj_b, axpy(p[3], adj_u, cross(adj_u, a)))
    return (adj_a[0], adj_a[1], adj_a[2], adj_p3), (adj_b[0], adj_b[1], adj_b[2], adj_q3)


@device_fn
def quat_matrix_vjp(q, adj_R):
    """Pull a cotangent of R(q), three columns, back to q."""
    x, y, z, w = q
    two = lit(2, x)
    # (1) to (3): what multiplies xy, xz, yz, zw, yw, xw and the squares
    xy, xz, yz = adj_R[0][1] + adj_R[1][0], adj_R[0][2] + adj_R[2][0], adj_R[1][2] + adj_R[2][1]
    zw, yw, xw = adj_R[0][1] - adj_R[1][0], adj_R[2][0] - adj_R[0][2], adj_R[1][2] - adj_R[2][1]
    xx = -two * (adj_R[1][1] + adj_R[2][2])
    yy = -two * (adj_R[0][0] + adj_R[2][2])
    zz = -two * (adj_R[0][0] + adj_R[1][1])
    return (
        two * (xy * y + xz * z + xw * w + xx * x),
        two * (xy * x + yz * z + yw * w + yy * y),
        two * (xz * x + yz * y + zw * w + zz * z),
        two * (zw * z + yw * y + xw * x),
    )


@device_fn
def quat_unit_vjp(q, adj):
    """Pull a cotangent of q/|q| back to q: (1 - u u^T)/|q| is symmetric."""
    return quat_unit_jvp(q, adj)


@device_fn
def quat_exp_vjp(h, adj):
    """Pull a cotangent of exp(h) back to h."""
    s = dot(h, h)  # (1) replayed
    sinc, cos = sinc_and_cos(s)  # (2) replayed
    adj_u = (adj[0], adj[1], adj[2])
    # (3) u = sinc h
    adj_sinc = dot(h, adj_u)
    # (2) sinc and cos of s
    adj_s = sinc_slope(s, sinc, cos) * adj_sinc - lit(0.5, s) * sinc * adj[3]
    # (1) s = h.h
    return axpy(adj_s + adj_s, h, scale(sinc, adj_u))
