"""A bilinear texture.

A texture of 4 x 4 grey texels is read between four of them. The place (s, t) is in texels; its
whole part chooses the four and is held, its fraction weights them. Each texel gets its share of
adj_c.
"""

import numpy as np


def texture(T, s, t):
    """Return the value c at column s and row t of texels T (4, 4)."""
    i, j = int(t), int(s)  # (1)
    a, b = s - j, t - i  # (2)
    top = (1.0 - a) * T[i, j] + a * T[i, j + 1]  # (3)
    low = (1.0 - a) * T[i + 1, j] + a * T[i + 1, j + 1]  # (4)
    return (1.0 - b) * top + b * low  # (5)


# --- solution ---


def texture_vjp(T, s, t, adj_c):
    """Return adj_T, adj_s, adj_t."""
    i, j = int(t), int(s)
    a, b = s - j, t - i
    top = (1.0 - a) * T[i, j] + a * T[i, j + 1]
    low = (1.0 - a) * T[i + 1, j] + a * T[i + 1, j + 1]
    adj_T = np.zeros_like(T)
    # (5) c = (1 - b) top + b low
    adj_top = (1.0 - b) * adj_c
    adj_low = b * adj_c
    adj_b = (low - top) * adj_c
    # (4) low = (1 - a) T10 + a T11
    adj_T[i + 1, j] = (1.0 - a) * adj_low
    adj_T[i + 1, j + 1] = a * adj_low
    adj_a = (T[i + 1, j + 1] - T[i + 1, j]) * adj_low
    # (3) top = (1 - a) T00 + a T01
    adj_T[i, j] = (1.0 - a) * adj_top
    adj_T[i, j + 1] = a * adj_top
    adj_a = adj_a + (T[i, j + 1] - T[i, j]) * adj_top
    # (2) a = s - j, b = t - i
    return adj_T, adj_a, adj_b


# --- grading ---


def inputs(rng):
    s, t = rng.integers(0, 3, 2) + rng.uniform(0.1, 0.9, 2)
    return {"T": rng.uniform(size=(4, 4)), "s": s, "t": t}


MISTAKES = [
    ("overwritten", 3, "adj_a = adj_a + (T[i, j + 1]", "adj_a = (T[i, j + 1]", "(4) uses a, too."),
    ("dropped", 3, "adj_a = adj_a + (T[i, j + 1] - T[i, j]) * adj_top", "pass", "(3) uses a, too."),
    ("sign", 5, "(low - top) * adj_c", "(top - low) * adj_c"),
    ("swapped", 2, "adj_T, adj_a, adj_b\n", "adj_T, adj_b, adj_a\n", "s is the column, t the row."),
    ("transpose", 3, "adj_T[i, j + 1] = a", "adj_T[j + 1, i] = a", "Rows come first."),
    ("swapped", 5, "adj_top = (1.0 - b)", "adj_top = b"),
    ("factor", 4, "adj_T[i + 1, j] = (1.0 - a) * adj_low", "adj_T[i + 1, j] = adj_low"),
]
