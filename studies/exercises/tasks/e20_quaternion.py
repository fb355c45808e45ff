"""A product of quaternions.

q = (w, x, y, z). The product is linear in both factors and does not commute. Written with scalar
parts and vectors, the adjoint of each factor is a product with the conjugate of the other, on the
same side. Chapter 5 turns bodies with it.
"""

import numpy as np


def quaternion_product(p, q):
    """Return the quaternion r = p q, (4,)."""
    a, u = p[0], p[1:]
    b, v = q[0], q[1:]
    w = a * b - u @ v  # (1)
    y = a * v + b * u + np.cross(u, v)  # (2)
    return np.array([w, *y])


# --- solution ---


def quaternion_product_vjp(p, q, adj_r):
    """Return adj_p, adj_q."""
    a, u = p[0], p[1:]
    b, v = q[0], q[1:]
    adj_w, adj_y = adj_r[0], adj_r[1:]
    # (2) y = a v + b u + u x v
    adj_a = v @ adj_y
    adj_b = u @ adj_y
    adj_u = b * adj_y + np.cross(v, adj_y)
    adj_v = a * adj_y + np.cross(adj_y, u)
    # (1) w = a b - u . v
    adj_a = adj_a + b * adj_w
    adj_b = adj_b + a * adj_w
    adj_u = adj_u - adj_w * v
    adj_v = adj_v - adj_w * u
    adj_p, adj_q = np.array([adj_a, *adj_u]), np.array([adj_b, *adj_v])
    return adj_p, adj_q


# --- grading ---


def inputs(rng):
    """Return two quaternions, not of length 1."""
    p, q = rng.normal(size=(2, 4))
    return {"p": p, "q": q}


MISTAKES = [
    ("transpose", 2, "np.cross(v, adj_y)", "np.cross(adj_y, v)", "A cross product changes sign."),
    ("transpose", 2, "np.cross(adj_y, u)", "np.cross(u, adj_y)", "A cross product changes sign."),
    ("overwritten", 1, "adj_a = adj_a + b", "adj_a = b", "a is used in (2), too."),
    ("sign", 1, "adj_u = adj_u - adj_w * v", "adj_u = adj_u + adj_w * v"),
    ("dropped", 1, "adj_v = adj_v - adj_w * u", "pass", "v is used in (1), too."),
    ("swapped", 2, "b * adj_y + np", "a * adj_y + np", "u is multiplied by the scalar of q."),
    ("dropped", 2, " + np.cross(v, adj_y)", "", "The cross product is what does not commute."),
]
