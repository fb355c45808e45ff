"""A point that touches an edge.

The closest point of the edge from a to b is a + t (b - a), here always between its ends. A point p
that is nearer than R is pushed away, and the ends share the opposite force: b gets the part t. The
closest point moves when p, a or b move, and with it the share (chapter 11).
"""

import numpy as np


R = 2.0


def edge_contact(p, a, b, k):
    """Return the force f on the point and the force g on the end b, (2,) each."""
    u = b - a  # (1)
    t = (p - a) @ u / (u @ u)  # (2)
    r = p - a - t * u  # (3)
    s = np.sqrt(r @ r)  # (4)
    f = k * (R / s - 1.0) * r  # (5)
    return f, -t * f  # (6)


# --- solution ---


def edge_contact_vjp(p, a, b, k, adj_f, adj_g):
    """Return adj_p, adj_a, adj_b, adj_k."""
    u = b - a
    t = (p - a) @ u / (u @ u)
    r = p - a - t * u
    s = np.sqrt(r @ r)
    f = k * (R / s - 1.0) * r
    # (6) g = -t f
    adj_t = -f @ adj_g
    adj_f = adj_f - t * adj_g
    # (5) f = k (R / s - 1) r
    adj_k = (R / s - 1.0) * r @ adj_f
    adj_s = -k * R / (s * s) * r @ adj_f
    adj_r = k * (R / s - 1.0) * adj_f
    # (4) s = |r|
    adj_r = adj_r + adj_s / s * r
    # (3) r = p - a - t u
    adj_p = adj_r
    adj_a = -adj_r
    adj_t = adj_t - u @ adj_r
    adj_u = -t * adj_r
    # (2) t = (p - a) . u / u . u
    w = adj_t / (u @ u)
    adj_p = adj_p + w * u
    adj_a = adj_a - w * u
    adj_u = adj_u + w * (p - a - 2.0 * t * u)
    # (1) u = b - a
    adj_b = adj_u
    adj_a = adj_a - adj_u
    return adj_p, adj_a, adj_b, adj_k


# --- grading ---


def inputs(rng):
    a, u = rng.normal(size=(2, 2))
    n = np.array([-u[1], u[0]]) / np.sqrt(u @ u)
    p = a + rng.uniform(0.2, 0.8) * u + rng.uniform(0.5, 1.5) * n
    return {"p": p, "a": a, "b": a + u, "k": rng.uniform(1.0, 2.0)}


MISTAKES = [
    ("dropped", 6, "adj_t = -f @ adj_g", "adj_t = 0.0", "The share of b depends on t."),
    ("sign", 6, "adj_f - t * adj_g", "adj_f + t * adj_g"),
    ("overwritten", 4, "adj_r = adj_r + adj_s", "adj_r = adj_s", "r is used in (5), too."),
    ("dropped", 2, "w = adj_t / (u @ u)", "w = 0.0", "The closest point moves."),
    ("factor", 2, "2.0 * t * u", "t * u", "u . u changes by twice the product."),
    ("overwritten", 1, "adj_a = adj_a - adj_u", "adj_a = -adj_u", "a is used in three lines."),
    ("factor", 5, "adj_s = -k * R / (s * s)", "adj_s = -k * R / s"),
]
