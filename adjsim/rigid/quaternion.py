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

from adjsim.engine.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.engine.jit.backend import device_fn, lit


SERIES_BELOW = 0.25  # of s; the first term left out is 1e-18
MAX_DOUBLINGS = 64  # an angle that is not finite ends the loop here


@device_fn
def quat_mul(p, q):
    """Return the product p (x) q."""
    a, b = (p[0], p[1], p[2]), (q[0], q[1], q[2])
    u = add(axpy(p[3], b, scale(q[3], a)), cross(a, b))  # (1)
    return (u[0], u[1], u[2], p[3] * q[3] - dot(a, b))  # (2)


@device_fn
def quat_matrix(q):
    """Return R(q) as three columns; q has unit length."""
    x, y, z, w = q
    one, two = lit(1, x), lit(2, x)
    return (
        (one - two * (y * y + z * z), two * (x * y + z * w), two * (x * z - y * w)),  # (1)
        (two * (x * y - z * w), one - two * (x * x + z * z), two * (y * z + x * w)),  # (2)
        (two * (x * z + y * w), two * (y * z - x * w), one - two * (x * x + y * y)),  # (3)
    )


@device_fn
def quat_unit(q):
    """Return q/|q|."""
    r = lit(1, q[0]) / math.sqrt(dot(q, q) + q[3] * q[3])  # (1)
    return (r * q[0], r * q[1], r * q[2], r * q[3])  # (2)


@device_fn
def quat_exp(h):
    """Return the unit quaternion exp(h): the turn by the rotation vector 2 h."""
    s = dot(h, h)  # (1)
    sinc, cos = sinc_and_cos(s)  # (2)
    u = scale(sinc, h)  # (3)
    return (u[0], u[1], u[2], cos)


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
    one = lit(1, s)
    t = one - s * lit(1 / 210, s)
    t = one - s * lit(1 / 156, s) * t
    t = one - s * lit(1 / 110, s) * t
    t = one - s * lit(1 / 72, s) * t
    t = one - s * lit(1 / 42, s) * t
    t = one - s * lit(1 / 20, s) * t
    return one - s * lit(1 / 6, s) * t


@device_fn
def cos_series(s):
    """Return the sum of (-s)^k/(2k)!, k = 0 to 7."""
    one = lit(1, s)
    t = one - s * lit(1 / 182, s)
    t = one - s * lit(1 / 132, s) * t
    t = one - s * lit(1 / 90, s) * t
    t = one - s * lit(1 / 56, s) * t
    t = one - s * lit(1 / 30, s) * t
    t = one - s * lit(1 / 12, s) * t
    return one - s * lit(1 / 2, s) * t
