"""Dot product and cross product.

Two results of the same two vectors: the cotangents of both flow into adj_a and adj_b. For the cross
product use that a . (b x c) stays the same when the three are moved round in a circle.
"""

import numpy as np


def products(a, b):
    """Return d = a . b and the vector c = a x b."""
    d = a @ b  # (1)
    c = np.cross(a, b)  # (2)
    return d, c


# --- solution ---


def products_vjp(a, b, adj_d, adj_c):
    """Return adj_a, adj_b."""
    # (2) c = a x b
    adj_a = np.cross(b, adj_c)
    adj_b = np.cross(adj_c, a)
    # (1) d = a . b
    adj_a = adj_a + adj_d * b
    adj_b = adj_b + adj_d * a
    return adj_a, adj_b


# --- grading ---


def inputs(rng):
    return {"a": rng.normal(size=3), "b": rng.normal(size=3)}


MISTAKES = [
    ("transpose", 2, "np.cross(b, adj_c)", "np.cross(adj_c, b)", "A cross product changes sign."),
    ("transpose", 2, "np.cross(adj_c, a)", "np.cross(a, adj_c)", "A cross product changes sign."),
    ("overwritten", 1, "adj_a = adj_a + adj_d * b", "adj_a = adj_d * b", "a is used in (2), too."),
    ("overwritten", 1, "adj_b = adj_b + adj_d * a", "adj_b = adj_d * a", "b is used in (2), too."),
    ("swapped", 1, "adj_a + adj_d * b", "adj_a + adj_d * a"),
    ("dropped", 1, "adj_b + adj_d * a", "adj_b"),
]
