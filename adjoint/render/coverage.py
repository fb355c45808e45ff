r"""Tangent and adjoint of `render/coverage.py`: read the two files side by side.

The nearest point q = (1-t) a + t b of an edge is optimal in t, or t is held at an end, so
t may be taken as constant (envelope theorem):

    d^2 = |p - q|^2,   d d^2 = -2 (p - q).((1-t) da + t db)

The pixel p is fixed. On the inside medial axis, a kink, the first of the nearest edges
counts. D' = D (1 - D) y', with 1 - D from the forward, never by subtraction.
"""

from adjsim.backend import device_fn, lit
from render.coverage import coverage, edge_square_distance, inside


@device_fn
def edge_square_distance_jvp(p, a, b, tan_a, tan_b):
    """Squared distance from p to the edge ab, then its tangent."""
    d2, o, t = edge_square_distance(p, a, b)
    s = lit(1.0, t) - t
    tan_o = (-s * tan_a[0] - t * tan_b[0], -s * tan_a[1] - t * tan_b[1])  # (1)-(4), t held
    return d2, lit(2.0, d2) * (o[0] * tan_o[0] + o[1] * tan_o[1])  # (5)


@device_fn
def edge_square_distance_vjp(p, a, b, adj_d2):
    """Pull adj_d2 back through `edge_square_distance`: adj_a, adj_b."""
    _, o, t = edge_square_distance(p, a, b)  # (1)-(4) replayed

    # (5) d2 = o.o
    adj_o = (lit(2.0, t) * o[0] * adj_d2, lit(2.0, t) * o[1] * adj_d2)

    # (4)-(1) o = p - (1-t) a - t b, t held
    s = t - lit(1.0, t)
    return (s * adj_o[0], s * adj_o[1]), (-t * adj_o[0], -t * adj_o[1])


@device_fn
def signed_square_distance_jvp(p, a0, a1, a2, tan_a0, tan_a1, tan_a2):
    """Squared distance to the boundary, negative outside, then its tangent."""
    d0, tan_d0 = edge_square_distance_jvp(p, a1, a2, tan_a1, tan_a2)  # (1)
    d1, tan_d1 = edge_square_distance_jvp(p, a2, a0, tan_a2, tan_a0)
    d2, tan_d2 = edge_square_distance_jvp(p, a0, a1, tan_a0, tan_a1)
    d, tan_d = d2, tan_d2  # (2)
    if d0 <= d1 and d0 <= d2:
        d, tan_d = d0, tan_d0
    elif d1 <= d2:
        d, tan_d = d1, tan_d1
    if inside(p, a0, a1, a2):  # (3)
        return d, tan_d
    return -d, -tan_d


@device_fn
def signed_square_distance_vjp(p, a0, a1, a2, adj_d):
    """Pull adj_d back through `signed_square_distance`: adj_a0, adj_a1, adj_a2."""
    d0, _, _ = edge_square_distance(p, a1, a2)  # (1) replayed
    d1, _, _ = edge_square_distance(p, a2, a0)
    d2, _, _ = edge_square_distance(p, a0, a1)
    zero = (lit(0.0, d0), lit(0.0, d0))

    # (3) -d outside
    if not inside(p, a0, a1, a2):
        adj_d = -adj_d

    # (2), (1) the nearest edge
    if d0 <= d1 and d0 <= d2:
        adj_a1, adj_a2 = edge_square_distance_vjp(p, a1, a2, adj_d)
        return zero, adj_a1, adj_a2
    if d1 <= d2:
        adj_a2, adj_a0 = edge_square_distance_vjp(p, a2, a0, adj_d)
        return adj_a0, zero, adj_a2
    adj_a0, adj_a1 = edge_square_distance_vjp(p, a0, a1, adj_d)
    return adj_a0, adj_a1, zero


@device_fn
def coverage_slope(y):
    """D'(y) = D (1 - D)."""
    D, rest = coverage(y)
    return D * rest
