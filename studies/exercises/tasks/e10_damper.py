"""A damper along a spring.

The force on node 0 of a damper that resists only a change of length: c times the speed along the
unit vector d. d is used twice, once to measure the speed and once to point.
"""

import numpy as np


def damper(x0, x1, v0, v1, c):
    """Return the force f0 (3,) [N] on node 0."""
    r = x1 - x0  # (1)
    l = np.sqrt(r @ r)  # (2)
    d = r / l  # (3)
    w = v1 - v0  # (4)
    s = d @ w  # (5)
    return c * s * d  # (6)


# --- solution ---


def damper_vjp(x0, x1, v0, v1, c, adj_f0):
    """Return adj_x0, adj_x1, adj_v0, adj_v1, adj_c."""
    r = x1 - x0
    l = np.sqrt(r @ r)
    d = r / l
    w = v1 - v0
    s = d @ w
    # (6) f0 = c s d
    adj_c = s * (d @ adj_f0)
    adj_s = c * (d @ adj_f0)
    adj_d = c * s * adj_f0
    # (5) s = d . w
    adj_d = adj_d + adj_s * w
    adj_w = adj_s * d
    # (3), (2) d = r / |r|
    adj_r = (adj_d - d * (d @ adj_d)) / l
    # (4), (1) w = v1 - v0, r = x1 - x0
    return -adj_r, adj_r, -adj_w, adj_w, adj_c


# --- grading ---


def inputs(rng):
    x0, x1, v0, v1 = rng.normal(size=(4, 3))
    return {"x0": x0, "x1": x1, "v0": v0, "v1": v1, "c": rng.uniform(0.1, 2.0)}


MISTAKES = [
    ("overwritten", 5, "adj_d = adj_d + adj_s * w", "adj_d = adj_s * w", "d is used in (6), too."),
    ("dropped", 5, "adj_d = adj_d + adj_s * w", "pass", "d is used in (5), too."),
    ("dropped", 3, "(adj_d - d * (d @ adj_d)) / l", "adj_d / l", "A unit vector can only turn."),
    ("factor", 3, "(adj_d - d * (d @ adj_d)) / l", "adj_d - d * (d @ adj_d)", "Divide by l."),
    ("sign", 4, "-adj_w, adj_w", "adj_w, adj_w", "v0 has a minus in (4)."),
    ("factor", 6, "adj_c = s * (d", "adj_c = (d", "The speed is missing."),
    ("swapped", 5, "adj_w = adj_s * d", "adj_w = adj_s * w"),
]
