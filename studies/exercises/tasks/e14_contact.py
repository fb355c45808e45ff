"""Penalty contact with a floor.

Four balls of radius r above the floor y = 0. Where one sinks in by d it is pushed back by k d, less
what damping takes; the floor never pulls. Line (3) chooses, and the adjoint follows its choice.
"""

import numpy as np


def contact(y, v, r, k, c):
    """Return the forces f (4,) [N] upwards on balls at heights y with velocities v, (4,) each."""
    d = r - y  # (1)
    p = k * d - c * v  # (2)
    return np.where((d > 0.0) & (p > 0.0), p, 0.0)  # (3)


# --- solution ---


def contact_vjp(y, v, r, k, c, adj_f):
    """Return adj_y, adj_v, adj_r, adj_k, adj_c."""
    d = r - y
    p = k * d - c * v
    # (3) f = p, or 0
    adj_p = np.where((d > 0.0) & (p > 0.0), adj_f, 0.0)
    # (2) p = k d - c v
    adj_k = d @ adj_p
    adj_d = k * adj_p
    adj_c = -(v @ adj_p)
    adj_v = -c * adj_p
    # (1) d = r - y
    return -adj_d, adj_v, adj_d.sum(), adj_k, adj_c


# --- grading ---


def inputs(rng):
    y = np.array([0.8, 1.5, 0.9, 0.7]) + rng.uniform(0.0, 0.05, 4)
    v = np.array([-1.0, -90.0, 9.0, 1.0]) + rng.uniform(0.0, 0.5, 4)
    return {"y": y, "v": v, "r": 1.0, "k": rng.uniform(40, 50), "c": rng.uniform(1.0, 2.0)}


MISTAKES = [
    ("branch", 3, "(d > 0.0) & (p > 0.0), adj_f", "p > 0.0, adj_f", "No force without contact."),
    ("branch", 3, "(d > 0.0) & (p > 0.0), adj_f", "d > 0.0, adj_f", "Where it would pull, f is 0."),
    ("branch", 3, "np.where((d > 0.0) & (p > 0.0), adj_f, 0.0)", "adj_f", "No force, no flow."),
    ("sign", 1, "-adj_d, adj_v", "adj_d, adj_v", "A higher ball sinks in less."),
    ("sign", 2, "-(v @ adj_p)", "v @ adj_p", "Damping is subtracted."),
    ("factor", 2, "adj_v = -c * adj_p", "adj_v = -adj_p"),
    ("stale", 2, "adj_k = d @ adj_p", "adj_k = p @ adj_p", "k is multiplied by d."),
]  # fmt: skip
