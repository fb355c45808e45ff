r"""Rotations as unit quaternions (x, y, z, w): product, matrix, exponential map, unit length.

    p (x) q     Hamilton's product: R(p (x) q) = R(p) R(q)
    q/|q|       what rounding makes longer or shorter, set back to length 1
    exp(h)      (sinc|h| h, cos|h|) for h in R^3, sinc a = sin a / a: a turn by 2 |h| about h

Both parts of the exponential are entire functions of s = |h|^2, so it is smooth at h = 0:
their series are summed for s < 1/4, and larger s come from it by doubling the angle,

    cos 2a = cos^2 a - s sinc^2 a,   sinc 2a = sinc a cos a.

No sine of the library is called: CUDA's for float32 has a path through float64.

Adjoint: `adjoint/rigid/quaternion.py`. Tests: `tests/rigid/test_quaternion.py`.
"""

import math

from adjsim.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.jit.backend import device_fn, lit


SERIES_BELOW = 0.25  # of s; the first term left out is 1e-18
MAX_DOUBLINGS = 64  # an angle that is not finite ends the loop here


@device_fn
def quat_mul(p, q):
    """Return the product p (x) q."""
    a, b = (p[0], p[1], p[2]), (q[0], q[1], q[2])
    u = add(axpy(p[3], b, scale(q[3], a)), cross(a, b))  # (1)
    return (u[0], u[1], u[2], p[3] * q[3] - dot(a, b))  # (2)


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
def quat_matrix(q):
    """Return R(q) as three columns; q has unit length."""
    x, y, z, w = q
    unity, two = lit(1, x), lit(2, x)
    return (
        (unity - two * (y * y + z * z), two * (x * y + z * w), two * (x * z - y * w)),  # (1)
        (two * (x * y - z * w), unity - two * (x * x + z * z), two * (y * z + x * w)),  # (2)
        (two * (x * z + y * w), two * (y * z - x * w), unity - two * (x * x + y * y)),  # (3)
    )


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
def quat_unit(q):
    """Return q/|q|."""
    r = lit(1, q[0]) / math.sqrt(dot(q, q) + q[3] * q[3])  # (1)
    return (r * q[0], r * q[1], r * q[2], r * q[3])  # (2)


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
def quat_exp(h):
    """Return the unit quaternion exp(h): the turn by the rotation vector 2 h."""
    s = dot(h, h)  # (1)
    sinc, cos = sinc_and_cos(s)  # (2)
    u = scale(sinc, h)  # (3)
    return (u[0], u[1], u[2], cos)


@device_fn
def quat_exp_jvp(h, tan_h):
    """Push a tangent through `quat_exp`."""
    s, tan_s = dot(h, h), lit(2, h[0]) * dot(h, tan_h)  # (1)
    sinc, cos = sinc_and_cos(s)  # (2)
    tan_sinc, tan_cos = sinc_slope(s, sinc, cos) * tan_s, lit(-0.5, s) * sinc * tan_s
    u = axpy(sinc, tan_h, scale(tan_sinc, h))  # (3)
    return (u[0], u[1], u[2], tan_cos)


@device_fn
def sinc_slope(s, sinc, cos):
    """Return the derivative of sinc with respect to s, given both functions at s."""
    unity = lit(1, s)
    if s > lit(SERIES_BELOW, s):
        return (cos - sinc) / (s + s)
    t = unity - s * lit(1 / 180, s)
    t = unity - s * lit(1 / 130, s) * t
    t = unity - s * lit(1 / 88, s) * t
    t = unity - s * lit(1 / 54, s) * t
    t = unity - s * lit(1 / 28, s) * t
    t = unity - s * lit(1 / 10, s) * t
    return lit(-1 / 6, s) * t


@device_fn
def sinc_and_cos(s):
    """Return sin a / a and cos a for a^2 = s >= 0."""
    doublings = 0
    while s > lit(SERIES_BELOW, s) and doublings < MAX_DOUBLINGS:
        s *= lit(0.25, s)
        doublings += 1
    sinc, cos = sinc_series(s), cos_series(s)
    for _ in range(doublings):
        sinc, cos = sinc * cos, cos * cos - s * sinc * sinc
        s *= lit(4, s)
    return sinc, cos


@device_fn
def sinc_series(s):
    """Return the sum of (-s)^k/(2k+1)!, k = 0 to 7."""
    unity = lit(1, s)
    t = unity - s * lit(1 / 210, s)
    t = unity - s * lit(1 / 156, s) * t
    t = unity - s * lit(1 / 110, s) * t
    t = unity - s * lit(1 / 72, s) * t
    t = unity - s * lit(1 / 42, s) * t
    t = unity - s * lit(1 / 20, s) * t
    return unity - s * lit(1 / 6, s) * t


@device_fn
def cos_series(s):
    """Return the sum of (-s)^k/(2k)!, k = 0 to 7."""
    unity = lit(1, s)
    t = unity - s * lit(1 / 182, s)
    t = unity - s * lit(1 / 132, s) * t
    t = unity - s * lit(1 / 90, s) * t
    t = unity - s * lit(1 / 56, s) * t
    t = unity - s * lit(1 / 30, s) * t
    t = unity - s * lit(1 / 12, s) * t
    return unity - s * lit(1 / 2, s) * t
