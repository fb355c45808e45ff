"""The length of a vector.

Two lines: a difference of two points, and its length. The derivative of a length by its vector is
the unit vector; no square is left over.
"""

import numpy as np


def distance(x0, x1):
    """Return the distance l of two points (3,)."""
    r = x1 - x0  # (1)
    return np.sqrt(r @ r)  # (2)


# --- solution ---


def distance_vjp(x0, x1, adj_l):
    """Return adj_x0, adj_x1."""
    r = x1 - x0
    l = np.sqrt(r @ r)
    # (2) l = |r|
    adj_r = adj_l / l * r
    # (1) r = x1 - x0
    return -adj_r, adj_r


# --- grading ---


def inputs(rng):
    return {"x0": rng.normal(size=3), "x1": rng.normal(size=3)}


MISTAKES = [
    ("sign", 1, "-adj_r, adj_r", "adj_r, adj_r", "The points pull against each other."),
    ("swapped", 1, "-adj_r, adj_r", "adj_r, -adj_r", "Which point has the minus in (1)?"),
    ("factor", 2, "adj_l / l * r", "adj_l * r", "The unit vector is r / l."),
    ("factor", 2, "adj_l / l * r", "2.0 * adj_l * r", "That is the derivative of r . r, not of l."),
    ("factor", 2, "adj_l / l * r", "0.5 * adj_l / l * r", "The 2 of r . r cancels the 1/2."),
    ("dropped", 1, "-adj_r, adj_r", "0.0 * adj_r, adj_r", "Both points move the length."),
]
