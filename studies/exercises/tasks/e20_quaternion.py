"""A product of quaternions.

q = (x, y, z, w), a vector and a number. The product is linear in both factors and does not commute.
The adjoint of each factor is a product with the conjugate of the other, on the same side, but here
it is enough to undo the two lines. Chapter 5 turns bodies with it.
"""

import numpy as np


def quaternion_product(p, q):
    """Return the quaternion r = p q, (4,)."""
    u, a = p[:3], p[3]
    v, b = q[:3], q[3]
    y = a * v + b * u + np.cross(u, v)  # (1)
    w = a * b - u @ v  # (2)
    return np.array([*y, w])


# --- solution ---


def quaternion_product_vjp(p, q, adj_r):
    """Return adj_p, adj_q."""
    u, a = p[:3], p[3]
    v, b = q[:3], q[3]
    adj_y, adj_w = adj_r[:3], adj_r[3]
    # (2) w = a b - u . v
    adj_a = b * adj_w
    adj_b = a * adj_w
    adj_u = -adj_w * v
    adj_v = -adj_w * u
    # (1) y = a v + b u + u x v
    adj_a = adj_a + v @ adj_y
    adj_b = adj_b + u @ adj_y
    adj_u = adj_u + b * adj_y + np.cross(v, adj_y)
    adj_v = adj_v + a * adj_y + np.cross(adj_y, u)
    adj_p, adj_q = np.array([*adj_u, adj_a]), np.array([*adj_v, adj_b])
    return adj_p, adj_q


# --- grading ---


def inputs(rng):
    p, q = rng.normal(size=(2, 4))
    return {"p": p, "q": q}


MISTAKES = [
    ("transpose", 1, "np.cross(v, adj_y)", "np.cross(adj_y, v)", "A cross product changes sign."),
    ("transpose", 1, "np.cross(adj_y, u)", "np.cross(u, adj_y)", "A cross product changes sign."),
    ("overwritten", 1, "adj_a = adj_a + v", "adj_a = v", "a is used in (2), too."),
    ("sign", 2, "adj_u = -adj_w * v", "adj_u = adj_w * v", "(2) subtracts u . v."),
    ("dropped", 2, "adj_v = -adj_w * u", "adj_v = 0.0", "v is used in (2), too."),
    ("swapped", 1, "b * adj_y + np", "a * adj_y + np", "u is multiplied by the number of q."),
    ("dropped", 1, " + np.cross(v, adj_y)", "", "The cross product is what does not commute."),
]
