r"""Tangent and adjoint of `render/faces/coverage.py`: read the two files side by side.

The nearest boundary point q = sum w_k a_k lies on one edge, where its place is optimal, or
it is a corner; so the weights w may be held (envelope theorem):

    d^2 = |o|^2,   o = p - sum w_k a_k,   tan d^2 = -2 o.(sum w_k tan_a_k)

The pixel p is fixed. On the inside medial axis, a kink, the first of the nearest edges
counts. That of D = sigmoid(y) is undone in `blending.py`.
"""

from adjsim.jit.backend import device_fn, lit
from render.faces.coverage import edge_square_distance, inside


@device_fn
def nearest_on_boundary(p, a0, a1, a2):
    """Offset o = p - q to the nearest boundary point q = sum w_k a_k, and its weights w."""
    d0, o0, t0 = edge_square_distance(p, a1, a2)
    d1, o1, t1 = edge_square_distance(p, a2, a0)
    d2, o2, t2 = edge_square_distance(p, a0, a1)
    zero, unity = lit(0.0, d0), lit(1.0, d0)
    first, second = d0 <= d1 and d0 <= d2, d1 <= d2
    o_x = o0[0] if first else (o1[0] if second else o2[0])
    o_y = o0[1] if first else (o1[1] if second else o2[1])
    w0 = zero if first else (t1 if second else unity - t2)
    w1 = unity - t0 if first else (zero if second else t2)
    w2 = t0 if first else (unity - t1 if second else zero)
    return (o_x, o_y), (w0, w1, w2)


@device_fn
def signed_square_distance_jvp(p, a0, a1, a2, tan_a0, tan_a1, tan_a2):
    """Tangent of the squared distance to the boundary, negative outside."""
    o, w = nearest_on_boundary(p, a0, a1, a2)  # (1), (2) w held
    tan_q_x = w[0] * tan_a0[0] + w[1] * tan_a1[0] + w[2] * tan_a2[0]
    tan_q_y = w[0] * tan_a0[1] + w[1] * tan_a1[1] + w[2] * tan_a2[1]
    tan_d = lit(-2.0, o[0]) * (o[0] * tan_q_x + o[1] * tan_q_y)
    return tan_d if inside(p, a0, a1, a2) else -tan_d  # (3)


@device_fn
def signed_square_distance_vjp(p, a0, a1, a2, adj_d):
    """Pull adj_d back through `signed_square_distance`: adj_a0, adj_a1, adj_a2."""
    o, w = nearest_on_boundary(p, a0, a1, a2)  # (1), (2) replayed

    # (3) -d outside
    adj_d = adj_d if inside(p, a0, a1, a2) else -adj_d

    # (2), (1) d = o.o,  o = p - sum w_k a_k,  w held
    adj_q = (lit(-2.0, adj_d) * o[0] * adj_d, lit(-2.0, adj_d) * o[1] * adj_d)
    return (
        (w[0] * adj_q[0], w[0] * adj_q[1]),
        (w[1] * adj_q[0], w[1] * adj_q[1]),
        (w[2] * adj_q[0], w[2] * adj_q[1]),
    )
