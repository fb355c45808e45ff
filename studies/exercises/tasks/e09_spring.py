"""The force of a spring.

Chapter 1 derives it. The force on node 0 is k (l - l0) / l times r; node 1 feels the opposite. With
s = k - k l0 / l, line (3) has three inputs, and r is used in lines (2) and (4).
"""

import numpy as np


def spring(x0, x1, l0, k):
    """Return the force f0 (3,) [N] on node 0."""
    r = x1 - x0  # (1)
    l = np.sqrt(r @ r)  # (2)
    s = k * (l - l0) / l  # (3)
    return s * r  # (4)


# --- solution ---


def spring_vjp(x0, x1, l0, k, adj_f0):
    """Return adj_x0, adj_x1, adj_l0, adj_k."""
    r = x1 - x0
    l = np.sqrt(r @ r)
    s = k * (l - l0) / l
    # (4) f0 = s r
    adj_s = r @ adj_f0
    adj_r = s * adj_f0
    # (3) s = k - k l0 / l
    adj_k = (l - l0) / l * adj_s
    adj_l0 = -k / l * adj_s
    adj_l = k * l0 / (l * l) * adj_s
    # (2) l = |r|
    adj_r = adj_r + adj_l / l * r
    # (1) r = x1 - x0
    return -adj_r, adj_r, adj_l0, adj_k


# --- grading ---


def inputs(rng):
    x0, x1 = rng.normal(size=(2, 3))
    return {"x0": x0, "x1": x1, "l0": rng.uniform(0.5, 1.5), "k": rng.uniform(1.0, 9.0)}


MISTAKES = [
    ("sign", 3, "adj_l0 = -k", "adj_l0 = k"),
    ("overwritten", 2, "adj_r = adj_r + adj_l", "adj_r = adj_l", "r is used in (4), too."),
    ("dropped", 2, "adj_r = adj_r + adj_l / l * r", "pass", "A longer spring pulls harder."),
    ("factor", 3, "k * l0 / (l * l)", "k * l0 / l"),
    (
        "factor",
        2,
        "adj_l / l * r",
        "2.0 * adj_l * r",
        "The derivative of a length is a unit vector.",
    ),
    ("sign", 1, "-adj_r, adj_r, adj_l0", "adj_r, adj_r, adj_l0", "x0 has a minus in (1)."),
    ("dropped", 3, "adj_k = (l - l0) / l", "adj_k = l / l", "The rest length is subtracted."),
]
