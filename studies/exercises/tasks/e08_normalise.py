"""A unit vector.

A unit vector can only turn: what a cotangent has along n is lost. The map is symmetric, so the
adjoint of dn = (dm - n (n . dm)) / |m| looks like its tangent.
"""

import numpy as np


def unit(m):
    """Return n = m / |m|, (3,)."""
    l = np.sqrt(m @ m)  # (1)
    return m / l  # (2)


# --- solution ---


def unit_vjp(m, adj_n):
    """Return adj_m."""
    l = np.sqrt(m @ m)
    n = m / l
    # (2) n = m / l
    adj_m = adj_n / l
    adj_l = -(n @ adj_n) / l
    # (1) l = |m|
    adj_m = adj_m + adj_l * n
    return adj_m


# --- grading ---


def inputs(rng):
    return {"m": rng.normal(size=3)}


MISTAKES = [
    ("sign", 2, "adj_l = -(n", "adj_l = (n"),
    ("overwritten", 1, "adj_m = adj_m + adj_l * n", "adj_m = adj_l * n", "m is used in (2), too."),
    ("dropped", 1, "adj_m = adj_m + adj_l * n", "pass", "The length changes with m."),
    ("factor", 2, "(n @ adj_n) / l", "(n @ adj_n)"),
    ("factor", 2, "adj_m = adj_n / l", "adj_m = adj_n"),
    ("factor", 1, "adj_l * n", "2.0 * adj_l * n", "That is the derivative of m . m."),
]
