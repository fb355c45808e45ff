r"""How much of a pixel a screen triangle covers: a sigmoid of its signed squared distance.

    d^2 = squared distance from p to the boundary,  delta = +1 inside, -1 outside
    D = sigmoid(delta d^2 / sigma)

The distance to the boundary is that to the nearest of three edges, the first of equals:
the inside medial axis is a kink. Edge k is opposite to corner k.

Adjoint: `adjoint/render/coverage.py`. Tests: `tests/render/test_coverage.py`.
Source: Liu et al., Soft Rasterizer, ICCV 2019, eq. 1.
"""

import math

from adjsim.backend import device_fn, lit


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
def coverage(y):
    """D = sigmoid(y) and 1 - D, each without cancellation."""
    e = math.exp(-abs(y))
    big = lit(1.0, y) / (lit(1.0, y) + e)
    small = e * big
    if y >= lit(0.0, y):
        return big, small
    return small, big


@device_fn
def log_coverage(y):
    """D = sigmoid(y), 1 - D, and log D, which does not underflow."""
    e = math.exp(-abs(y))
    big = lit(1.0, y) / (lit(1.0, y) + e)
    small = e * big
    log_big = -math.log1p(e)
    if y >= lit(0.0, y):
        return big, small, log_big
    return small, big, y + log_big
