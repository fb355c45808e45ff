"""A net of springs: gather and sum.

Edge j joins the nodes i0[j] and i1[j]. Line (1) reads each node as often as it has edges; line (3)
adds up what the edges send to each. A read is undone by a sum, and a sum by a read. With NumPy,
x[i] += y counts a repeated index once: np.add.at(x, i, y) counts all. Chapter 8 does this in
parallel.
"""

import numpy as np


I0 = np.array([0, 1, 2, 3, 0])
I1 = np.array([1, 2, 3, 0, 2])


def spring_net(x, k):
    """Return the forces f (4, 3) on nodes x (4, 3), of five springs k (5,) of rest length 0."""
    r = x[I1] - x[I0]  # (1)
    s = k[:, None] * r  # (2)
    f = np.zeros_like(x)
    np.add.at(f, I0, s)  # (3)
    np.add.at(f, I1, -s)  # (4)
    return f


# --- solution ---


def spring_net_vjp(x, k, adj_f):
    """Return adj_x, adj_k."""
    r = x[I1] - x[I0]
    # (4), (3) sums are undone by reads
    adj_s = adj_f[I0] - adj_f[I1]
    # (2) s = k r
    adj_k = (r * adj_s).sum(axis=1)
    adj_r = k[:, None] * adj_s
    # (1) reads are undone by sums
    adj_x = np.zeros_like(x)
    np.add.at(adj_x, I1, adj_r)
    np.add.at(adj_x, I0, -adj_r)
    return adj_x, adj_k


# --- grading ---


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "k": rng.uniform(1.0, 2.0, 5)}


MISTAKES = [
    ("overwritten", 1, "np.add.at(adj_x, I0, -adj_r)", "adj_x[I0] += -adj_r",
     "x[i] += y counts a repeated index once."),
    ("overwritten", 1, "np.add.at(adj_x, I1, adj_r)", "adj_x[I1] += adj_r",
     "x[i] += y counts a repeated index once."),
    ("sign", 1, "np.add.at(adj_x, I0, -adj_r)", "np.add.at(adj_x, I0, adj_r)"),
    ("sign", 4, "adj_f[I0] - adj_f[I1]", "adj_f[I0] + adj_f[I1]", "(4) adds -s."),
    ("dropped", 4, "adj_f[I0] - adj_f[I1]", "adj_f[I0]", "Both ends of an edge get its force."),
    ("factor", 2, "k[:, None] * adj_s", "adj_s"),
    ("swapped", 3, "adj_f[I0] - adj_f[I1]", "adj_f[I1] - adj_f[I0]"),
]  # fmt: skip
