r"""Adjoint and tangent of `adjsim/rigid/quaternion.py`: read the two files side by side.

With s = |h|^2 and the entire functions sinc and cos of sqrt(s),

    d cos/ds = -sinc/2,   d sinc/ds = (cos - sinc)/(2 s) = sum of (-1)^k k s^(k-1)/(2k+1)!

the second by its series for s < 1/4, where the difference would lose digits. The tangent of
u = q/|q| is (tan_q - u u.tan_q)/|q|: a symmetric map, so that the adjoint is the same.
"""

import math

from adjsim.engine.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.engine.jit.backend import device_fn, lit
from adjsim.rigid.quaternion import SERIES_BELOW, sinc_and_cos


@device_fn
def quat_mul_jvp(p, q, tan_p, tan_q):
    """Push tangents through `quat_mul`."""
    a, b = (p[0], p[1], p[2]), (q[0], q[1], q[2])
    tan_a, tan_b = (tan_p[0], tan_p[1], tan_p[2]), (tan_q[0], tan_q[1], tan_q[2])
    along = add(axpy(p[3], tan_b, scale(tan_p[3], b)), axpy(q[3], tan_a, scale(tan_q[3], a)))
    u = add(along, add(cross(tan_a, b), cross(a, tan_b)))  # (1)
    w = tan_p[3] * q[3] + p[3] * tan_q[3] - dot(tan_a, b) - dot(a, tan_b)  # (2)
    return (u[0], u[1], u[2], w)


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
def quat_matrix_jvp(q, tan_q):
    """Push a tangent through `quat_matrix`: three columns."""
    x, y, z, w = q
    tx, ty, tz, tw = tan_q
    two = lit(2, x)
    four = two + two
    xy, zw = two * (tx * y + x * ty), two * (tz * w + z * tw)
    xz, yw = two * (tx * z + x * tz), two * (ty * w + y * tw)
    yz, xw = two * (ty * z + y * tz), two * (tx * w + x * tw)
    xx, yy, zz = four * x * tx, four * y * ty, four * z * tz
    return (
        (-yy - zz, xy + zw, xz - yw),  # (1)
        (xy - zw, -xx - zz, yz + xw),  # (2)
        (xz + yw, yz - xw, -xx - yy),  # (3)
    )


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
def quat_unit_jvp(q, tan_q):
    """Push a tangent through `quat_unit`."""
    r = lit(1, q[0]) / math.sqrt(dot(q, q) + q[3] * q[3])  # (1)
    u = (r * q[0], r * q[1], r * q[2], r * q[3])  # (2)
    along = dot(u, tan_q) + u[3] * tan_q[3]
    return (
        r * (tan_q[0] - along * u[0]), r * (tan_q[1] - along * u[1]),
        r * (tan_q[2] - along * u[2]), r * (tan_q[3] - along * u[3]),
    )  # fmt: skip


@device_fn
def quat_unit_vjp(q, adj):
    """Pull a cotangent of q/|q| back to q: (1 - u u^T)/|q| is symmetric."""
    return quat_unit_jvp(q, adj)


@device_fn
def quat_exp_jvp(h, tan_h):
    """Push a tangent through `quat_exp`."""
    s, tan_s = dot(h, h), lit(2, h[0]) * dot(h, tan_h)  # (1)
    sinc, cos = sinc_and_cos(s)  # (2)
    tan_sinc, tan_cos = sinc_slope(s, sinc, cos) * tan_s, lit(-0.5, s) * sinc * tan_s
    u = axpy(sinc, tan_h, scale(tan_sinc, h))  # (3)
    return (u[0], u[1], u[2], tan_cos)


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


@device_fn
def sinc_slope(s, sinc, cos):
    """Return the derivative of sinc with respect to s, given both functions at s."""
    one = lit(1, s)
    if s > lit(SERIES_BELOW, s):
        return (cos - sinc) / (s + s)
    t = one - s * lit(1 / 180, s)
    t = one - s * lit(1 / 130, s) * t
    t = one - s * lit(1 / 88, s) * t
    t = one - s * lit(1 / 54, s) * t
    t = one - s * lit(1 / 28, s) * t
    t = one - s * lit(1 / 10, s) * t
    return lit(-1 / 6, s) * t
