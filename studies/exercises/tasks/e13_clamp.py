"""Clamping.

Every entry of x is held between two numbers. An entry that was clamped passes nothing on; what it
would have passed goes to the bound that it met.
"""

import numpy as np


def clamp(x, low, high):
    """Return y (6,): the entries of x, at least low and at most high."""
    return np.minimum(np.maximum(x, low), high)  # (1)


# --- solution ---


def clamp_vjp(x, low, high, adj_y):
    """Return adj_x, adj_low, adj_high."""
    # (1) y = min(max(x, low), high)
    inside = (low < x) & (x < high)
    adj_x = np.where(inside, adj_y, 0.0)
    adj_low = adj_y[x <= low].sum()
    adj_high = adj_y[x >= high].sum()
    return adj_x, adj_low, adj_high


# --- grading ---


def inputs(rng):
    x = np.concatenate([rng.uniform(-3, -2, 2), rng.uniform(-0.9, 0.9, 2), rng.uniform(2, 3, 2)])
    return {"x": x, "low": rng.uniform(-1.5, -1.0), "high": rng.uniform(1.0, 1.5)}


MISTAKES = [
    ("branch", 1, "np.where(inside, adj_y, 0.0)", "adj_y", "A clamped entry passes nothing on."),
    ("branch", 1, "np.where(inside, adj_y, 0.0)", "np.where(inside, 0.0, adj_y)"),
    ("dropped", 1, "(low < x) & (x < high)", "low < x", "There is a bound above, too."),
    ("dropped", 1, "adj_y[x <= low].sum()", "0.0", "The bound acts where it is met."),
    ("swapped", 1, "adj_low, adj_high\n", "adj_high, adj_low\n"),
    ("factor", 1, "adj_y[x >= high].sum()", "adj_y[x >= high].mean()", "Sum, do not average."),
    ("factor", 1, "np.where(inside, adj_y, 0.0)", "np.where(inside, x * adj_y, 0.0)"),
]
