"""Friction.

A node with velocity v slides on a plane with the unit normal n, pressed by the force p. Friction
grows with the speed, k s, but not beyond mu p. Sticking and sliding have different adjoints.
"""

import numpy as np


def friction(v, n, p, mu, k):
    """Return the friction f (3,) [N]."""
    w = v - (n @ v) * n  # (1)
    s = np.sqrt(w @ w)  # (2)
    q = min(k * s, mu * p)  # (3)
    return -q / s * w  # (4)


# --- solution ---


def friction_vjp(v, n, p, mu, k, adj_f):
    """Return adj_v, adj_n, adj_p, adj_mu, adj_k."""
    w = v - (n @ v) * n
    s = np.sqrt(w @ w)
    q = min(k * s, mu * p)
    # (4) f = -q w / s
    adj_w = -q / s * adj_f
    adj_q = -(w @ adj_f) / s
    adj_s = q * (w @ adj_f) / s**2
    # (3) q = min(k s, mu p)
    adj_p, adj_mu, adj_k = 0.0, 0.0, 0.0
    if k * s < mu * p:
        adj_k = s * adj_q
        adj_s = adj_s + k * adj_q
    else:
        adj_mu = p * adj_q
        adj_p = mu * adj_q
    # (2) s = |w|
    adj_w = adj_w + adj_s / s * w
    # (1) w = v - (n . v) n
    adj_v = adj_w - (n @ adj_w) * n
    adj_n = -(n @ v) * adj_w - (n @ adj_w) * v
    return adj_v, adj_n, adj_p, adj_mu, adj_k


# --- grading ---


def inputs(rng):
    v, n = rng.normal(size=(2, 3))
    p = rng.choice([0.05, 50.0])
    return {"v": v, "n": n / np.sqrt(n @ n), "p": p, "mu": rng.uniform(0.3, 0.8), "k": 2.0}


MISTAKES = [
    ("branch", 3, "if k * s < mu * p:", "if True:", "In sliding, q = mu p."),
    ("branch", 3, "if k * s < mu * p:", "if False:", "In sticking, q = k s."),
    ("overwritten", 3, "adj_s = adj_s + k * adj_q", "adj_s = k * adj_q", "s divides in (4), too."),
    ("overwritten", 2, "adj_w = adj_w + adj_s", "adj_w = adj_s", "w is used in (4), too."),
    ("dropped", 1, "-(n @ v) * adj_w - (n @ adj_w) * v", "-(n @ v) * adj_w",
     "n is used twice in (1)."),
    ("dropped", 1, "adj_v = adj_w - (n @ adj_w) * n", "adj_v = adj_w", "v is used twice in (1)."),
    ("sign", 4, "adj_q = -(w", "adj_q = (w", "Friction acts against w."),
]  # fmt: skip
