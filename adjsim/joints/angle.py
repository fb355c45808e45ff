r"""The angle of a vector in a plane, atan2, from sums, products and roots alone.

A call of the library's would keep the compiler from doing sixteen elements side by side.

    t = min/max of both in [0, 1],   twice  tan(a/2) = t/(1 + sqrt(1 + t^2)),   then t <= 0.2 and
    atan t = t (1 - s/3 + s^2/5 - ...),  s = t^2 <= 0.04: the first term left out is 1e-18

Tests: `tests/joints/test_angle.py`.
"""

import math

from adjsim.jit.backend import device_fn, lit


@device_fn
def angle_of(along, across):
    """Return the angle of (along, across) in (-pi, pi]."""
    x, y = abs(along), abs(across)
    t = half_tangent(half_tangent(min(x, y) / max(x, y)))
    a = lit(4, t) * t * arc_series(t * t)
    a = lit(math.pi / 2, t) - a if y > x else a
    a = lit(math.pi, t) - a if along < lit(0, t) else a
    return -a if across < lit(0, t) else a


@device_fn
def half_tangent(t):
    """Return tan(a/2) of tan a = t."""
    unity = lit(1, t)
    return t / (unity + math.sqrt(unity + t * t))


@device_fn
def arc_series(s):
    """Return the sum of (-s)^k/(2k+1), k = 0 to 12: atan t / t."""
    a = lit(1 / 23, s) - s * lit(1 / 25, s)
    a = lit(1 / 21, s) - s * a
    a = lit(1 / 19, s) - s * a
    a = lit(1 / 17, s) - s * a
    a = lit(1 / 15, s) - s * a
    a = lit(1 / 13, s) - s * a
    a = lit(1 / 11, s) - s * a
    a = lit(1 / 9, s) - s * a
    a = lit(1 / 7, s) - s * a
    a = lit(1 / 5, s) - s * a
    a = lit(1 / 3, s) - s * a
    return lit(1, s) - s * a
