"""The angle of a hinge.

Two triangles share the edge e; a and b are the other edges of each from the same corner. The angle
between their normals, with its sign, is atan2(s, c). The derivative of atan2(s, c) is (c ds - s dc)
/ (s^2 + c^2). Chapter 5 draws this hinge.
"""

import numpy as np


def hinge_angle(e, a, b):
    """Return the angle phi [rad]."""
    m = np.cross(e, a)  # (1)
    n = np.cross(b, e)  # (2)
    l = np.sqrt(e @ e)  # (3)
    s = np.cross(m, n) @ e / l  # (4)
    c = m @ n  # (5)
    return np.arctan2(s, c)  # (6)


# --- solution ---


def hinge_angle_vjp(e, a, b, adj_phi):
    """Return adj_e, adj_a, adj_b."""
    m = np.cross(e, a)
    n = np.cross(b, e)
    l = np.sqrt(e @ e)
    s = np.cross(m, n) @ e / l
    c = m @ n
    # (6) phi = atan2(s, c)
    adj_s = c / (s * s + c * c) * adj_phi
    adj_c = -s / (s * s + c * c) * adj_phi
    # (5) c = m . n
    adj_m = adj_c * n
    adj_n = adj_c * m
    # (4) s = (m x n) . e / l
    adj_m = adj_m + adj_s / l * np.cross(n, e)
    adj_n = adj_n + adj_s / l * np.cross(e, m)
    adj_e = adj_s / l * np.cross(m, n)
    adj_l = -s / l * adj_s
    # (3) l = |e|
    adj_e = adj_e + adj_l / l * e
    # (2) n = b x e
    adj_b = np.cross(e, adj_n)
    adj_e = adj_e + np.cross(adj_n, b)
    # (1) m = e x a
    adj_e = adj_e + np.cross(a, adj_m)
    adj_a = np.cross(adj_m, e)
    return adj_e, adj_a, adj_b


# --- grading ---


def inputs(rng):
    e, a, b = rng.normal(size=(3, 3))
    return {"e": e, "a": a, "b": b}


MISTAKES = [
    ("sign", 6, "adj_c = -s", "adj_c = s", "atan2 falls where c grows."),
    ("swapped", 6, "adj_s = c /", "adj_s = s /"),
    ("overwritten", 4, "adj_m = adj_m + adj_s", "adj_m = adj_s", "m is used in (5), too."),
    ("transpose", 4, "np.cross(n, e)", "np.cross(e, n)", "A cross product changes sign."),
    ("transpose", 1, "np.cross(adj_m, e)", "np.cross(e, adj_m)", "A cross product changes sign."),
    ("overwritten", 1, "adj_e = adj_e + np.cross(a, adj_m)", "adj_e = np.cross(a, adj_m)",
     "e is used in four lines."),
    ("factor", 4, "adj_l = -s / l", "adj_l = -s"),
]  # fmt: skip
