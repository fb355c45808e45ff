r"""How much of a pixel a screen triangle covers: a sigmoid of its signed squared distance.

    d^2 = squared distance from p to the boundary,  delta = +1 inside, -1 outside
    D = sigmoid(delta d^2 / sigma)

The distance to the boundary is that to the nearest of three edges, the first of equals:
the inside medial axis is a kink. Edge k is opposite to corner k.

Adjoint: `adjoint/render/faces/coverage.py`. Tests: `tests/render/faces/test_coverage.py`.
Source: Liu et al., Soft Rasterizer, ICCV 2019, eq. 1.
"""

import math

import numpy as np

from adjsim.jit.backend import device_fn, lit


LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 355.0 / 512.0, -2.121944400546905827679e-4
# e^r = 1 + r + r^2 q(r): coefficients of the even powers in q, then of the odd ones.
EXP = (
    (2.7620088445409746e-07, 2.4801521295954376e-05, 0.0013888888917213717, 0.04166666666662413,
     0.5000000000000001),
    (2.510038549551032e-08, 2.7557268459997064e-06, 0.00019841269863053618, 0.008333333333330062,
     0.16666666666666669),
)  # fmt: skip


@device_fn
def cross2(a, b):
    """Signed area of the parallelogram of two screen vectors."""
    return a[0] * b[1] - a[1] * b[0]


@device_fn
def edge_square_distance(p, a, b):
    """Squared distance from p to the edge ab, the offset o of p and its place t on ab."""
    u = (b[0] - a[0], b[1] - a[1])  # (1)
    r = (p[0] - a[0], p[1] - a[1])  # (2)
    along = (r[0] * u[0] + r[1] * u[1]) * (lit(1.0, u[0]) / (u[0] * u[0] + u[1] * u[1]))
    t = min(max(along, lit(0.0, along)), lit(1.0, along))  # (3)
    o = (r[0] - t * u[0], r[1] - t * u[1])  # (4)
    return o[0] * o[0] + o[1] * o[1], o, t  # (5)


@device_fn
def inside(p, a0, a1, a2):
    """Whether p is in the triangle, whichever way round its corners go."""
    c0 = cross2((a2[0] - a1[0], a2[1] - a1[1]), (p[0] - a1[0], p[1] - a1[1]))
    c1 = cross2((a0[0] - a2[0], a0[1] - a2[1]), (p[0] - a2[0], p[1] - a2[1]))
    c2 = cross2((a1[0] - a0[0], a1[1] - a0[1]), (p[0] - a0[0], p[1] - a0[1]))
    return min(c0, c1, c2) >= lit(0.0, c0) or max(c0, c1, c2) <= lit(0.0, c0)


@device_fn
def signed_square_distance(p, a0, a1, a2):
    """Squared distance from p to the boundary of the triangle, negative outside."""
    d0, _, _ = edge_square_distance(p, a1, a2)  # (1)
    d1, _, _ = edge_square_distance(p, a2, a0)
    d2, _, _ = edge_square_distance(p, a0, a1)
    d = min(d0, d1, d2)  # (2)
    return d if inside(p, a0, a1, a2) else -d  # (3)


@device_fn
def sigmoid_parts(y, e):
    """D = sigmoid(y) and 1 - D, each without cancellation, from e = exp(-|y|)."""
    big = lit(1.0, y) / (lit(1.0, y) + e)
    small = e * big
    positive = y >= lit(0.0, y)
    return big if positive else small, small if positive else big


@device_fn
def coverage(y):
    """D = sigmoid(y) and 1 - D, each without cancellation."""
    return sigmoid_parts(y, math.exp(-abs(y)))


@device_fn
def two_sums(x, q):
    """Polynomial of x from its even and odd powers, the highest first, which are summed apart.

    Neither sum waits for the other.
    """
    s = x * x
    even, odd = lit(q[0][0], x), lit(q[1][0], x)
    for c in q[0][1:]:
        even = even * s + lit(c, x)
    for c in q[1][1:]:
        odd = odd * s + lit(c, x)
    return odd * x + even


@device_fn
def exp_minus(a):
    """exp(-a) for a >= 0, to two roundings, in operations that vectorise; CPU only.

    exp(-a) = 2^k e^r, |r| <= log(2)/2, with a polynomial for e^r that is fitted at Chebyshev
    nodes, to 2e-17; log(2) is taken in two parts, of which the first times k is exact (Cody &
    Waite, Software Manual for the Elementary Functions, 1980, ch. 6).
    From a = 708 on, where the result would not be a normal number, it is 0.
    """
    k = np.floor(lit(0.5, a) - lit(LOG2_E, a) * a)
    r = -a - k * lit(LN2_HIGH, a) - k * lit(LN2_LOW, a)
    e = r * r * two_sums(r, EXP) + r + lit(1.0, a)
    near = a < lit(708.0, a)
    bits = np.int64(np.int32(k if near else lit(0.0, a))) + np.int64(1023)
    scale = np.int64(bits << np.int64(52)).view(np.float64)
    return type(a)(scale) * e if near else lit(0.0, a)


@device_fn
def log_coverage(y, D, rest):
    """Logarithm of D, which does not underflow, from y, D and 1 - D."""
    return math.log1p(-rest) if y >= lit(0.0, y) else y + math.log1p(-D)
