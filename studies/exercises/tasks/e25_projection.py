"""Perspective projection.

A pinhole with focal length f sees the point (x, y, z) of its own axes at f (x, y) / z. The depth z
is an output as well, and divides both coordinates.
"""

import numpy as np


def project(p, f):
    """Return the place a (2,) on the screen and the depth z of a point p (3,)."""
    z = p[2]  # (1)
    a = f * p[:2] / z  # (2)
    return a, z


# --- solution ---


def project_vjp(p, f, adj_a, adj_z):
    """Return adj_p, adj_f."""
    z = p[2]
    a = f * p[:2] / z
    # (2) a = f (x, y) / z
    adj_xy = f / z * adj_a
    adj_f = (a @ adj_a) / f
    adj_z = adj_z - (a @ adj_a) / z
    # (1) z = p[2]
    adj_p = np.array([*adj_xy, adj_z])
    return adj_p, adj_f


# --- grading ---


def inputs(rng):
    return {"p": np.array([*rng.normal(size=2), rng.uniform(2.0, 4.0)]), "f": rng.uniform(1.0, 3.0)}


MISTAKES = [
    ("overwritten", 2, "adj_z = adj_z - (a", "adj_z = -(a", "z is an output, too."),
    ("dropped", 2, "adj_z = adj_z - (a @ adj_a) / z", "pass", "The depth divides in (2)."),
    ("sign", 2, "adj_z - (a", "adj_z + (a", "What is farther away looks smaller."),
    ("factor", 2, "adj_f = (a @ adj_a) / f", "adj_f = a @ adj_a", "a holds f already."),
    ("factor", 2, "adj_xy = f / z", "adj_xy = f"),
    ("factor", 2, "adj_z - (a @ adj_a) / z", "adj_z - (a @ adj_a) / z**2", "a holds 1/z already."),
]
