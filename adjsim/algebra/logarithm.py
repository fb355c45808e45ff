r"""The natural logarithm of a number near 1, from sums, products and roots alone.

A call of the library's would keep the compiler from doing sixteen elements side by side.

    w = J^(1/8) by three roots,   u = (w - 1)/(w + 1),   log J = 16 (u + u^3/3 + u^5/5 + ...)

J - 1 = (w - 1)(w + 1)(w^2 + 1)(w^4 + 1), so that u has all its digits near J = 1 too. The first
term left out is below rounding for 1/32 < J < 32, and 1e-8 of the result for 1/4000 < J < 4000.

Tests: `tests/algebra/test_logarithm.py`.
"""

import math

from adjsim.jit.backend import device_fn, lit


@device_fn
def natural_log(J):
    """Return log J; NaN for J <= 0."""
    zero, unity = lit(0, J), lit(1, J)
    w4 = math.sqrt(J if zero < J else lit(math.nan, J))
    w2 = math.sqrt(w4)
    w = math.sqrt(w2)
    u = (J - unity) / ((w4 + unity) * (w2 + unity) * (w + unity) * (w + unity))
    return lit(16, J) * u * odd_series(u * u)


@device_fn
def odd_series(s):
    """Return the sum of s^k/(2k+1), k = 0 to 10: artanh u / u of s = u^2."""
    a = lit(1 / 19, s) + s * lit(1 / 21, s)
    a = lit(1 / 17, s) + s * a
    a = lit(1 / 15, s) + s * a
    a = lit(1 / 13, s) + s * a
    a = lit(1 / 11, s) + s * a
    a = lit(1 / 9, s) + s * a
    a = lit(1 / 7, s) + s * a
    a = lit(1 / 5, s) + s * a
    a = lit(1 / 3, s) + s * a
    return lit(1, s) + s * a
