"""Soft coverage of an edge.

The edge runs from a to b; points to its left are inside. The signed distance of pixel p over the
softness w goes through a sigmoid. With cross(u, r) = u0 r1 - u1 r0, the cotangents are
adj_u = (r1, -r0) adj_t and adj_r = (-u1, u0) adj_t. Chapter 2 has triangles.
"""

import numpy as np


def coverage(a, b, p, w):
    """Return the coverage D, between 0 and 1."""
    u, r = b - a, p - a  # (1)
    t = u[0] * r[1] - u[1] * r[0]  # (2)
    l = np.sqrt(u @ u)  # (3)
    y = t / l / w  # (4)
    return 1.0 / (1.0 + np.exp(-y))  # (5)


# --- solution ---


def coverage_vjp(a, b, p, w, adj_D):
    """Return adj_a, adj_b, adj_p, adj_w."""
    u, r = b - a, p - a
    t = u[0] * r[1] - u[1] * r[0]
    l = np.sqrt(u @ u)
    y = t / l / w
    D = 1.0 / (1.0 + np.exp(-y))
    # (5) D = sigmoid(y)
    adj_y = D * (1.0 - D) * adj_D
    # (4) y = t / l / w
    adj_t = adj_y / l / w
    adj_l = -y / l * adj_y
    adj_w = -y / w * adj_y
    # (3) l = |u|
    adj_u = adj_l / l * u
    # (2) t = cross(u, r)
    adj_u = adj_u + adj_t * np.array([r[1], -r[0]])
    adj_r = adj_t * np.array([-u[1], u[0]])
    # (1) u = b - a, r = p - a
    adj_a = -adj_u - adj_r
    return adj_a, adj_u, adj_r, adj_w


# --- grading ---


def inputs(rng):
    a, b, p = rng.normal(size=(3, 2))
    return {"a": a, "b": b, "p": p, "w": rng.uniform(0.5, 1.5)}


MISTAKES = [
    ("dropped", 1, "-adj_u - adj_r", "-adj_u", "a is used twice in (1)."),
    ("factor", 5, "D * (1.0 - D)", "D", "The slope of a sigmoid is D (1 - D)."),
    ("overwritten", 2, "adj_u = adj_u + adj_t", "adj_u = adj_t", "u is used in (3), too."),
    ("transpose", 2, "[-u[1], u[0]]", "[u[1], -u[0]]", "A cross product changes sign."),
    ("sign", 4, "adj_l = -y", "adj_l = y", "A longer edge divides."),
    ("factor", 4, "adj_w = -y / w", "adj_w = -y"),
    ("sign", 1, "-adj_u - adj_r", "adj_u + adj_r", "a has a minus in (1)."),
]
