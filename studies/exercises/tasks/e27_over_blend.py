"""Blending a list of faces, one over the other.

Five faces, nearest first, with coverages D and colours C; T is the light that still passes. Undo
the loop from the last face to the first, and do not divide by 1 - D: here one face may cover its
pixel fully. Chapter 2 derives it.
"""

import numpy as np


def over(D, C, background):
    """Return the pixel I (3,) from coverages (5,), colours (5, 3) and a background (3,)."""
    T, I = 1.0, np.zeros(3)
    for j in range(len(D)):
        I = I + T * D[j] * C[j]  # (1)
        T = T * (1.0 - D[j])  # (2)
    return I + T * background  # (3)


# --- solution ---


def over_vjp(D, C, background, adj_I):
    """Return adj_D, adj_C, adj_background."""
    T = np.concatenate([[1.0], np.cumprod(1.0 - D)])
    adj_D, adj_C = np.zeros_like(D), np.zeros_like(C)
    # (3) I = I + T background
    adj_background = T[-1] * adj_I
    adj_T = background @ adj_I
    for j in reversed(range(len(D))):
        # (2) T = T (1 - D)
        adj_D[j] = -T[j] * adj_T
        adj_T = (1.0 - D[j]) * adj_T
        # (1) I = I + T D C
        adj_D[j] += T[j] * (C[j] @ adj_I)
        adj_C[j] = T[j] * D[j] * adj_I
        adj_T = adj_T + D[j] * (C[j] @ adj_I)
    return adj_D, adj_C, adj_background


# --- grading ---


def inputs(rng):
    D = rng.uniform(0.2, 0.8, 5)
    D[4] = rng.choice([1.0, 0.5])
    return {"D": D, "C": rng.uniform(size=(5, 3)), "background": rng.uniform(size=3)}


MISTAKES = [
    ("stale", 1, "adj_C[j] = T[j] * D", "adj_C[j] = T[j + 1] * D", "(1) used T before (2) ran."),
    ("stale", 2, "adj_D[j] = -T[j] * adj_T", "adj_D[j] = -T[j + 1] * adj_T",
     "(2) multiplied T as it was before."),
    ("overwritten", 1, "adj_D[j] += T[j]", "adj_D[j] = T[j]", "D is used in (2), too."),
    ("sign", 2, "adj_D[j] = -T[j] * adj_T", "adj_D[j] = T[j] * adj_T", "A face hides others."),
    ("overwritten", 1, "adj_T = adj_T + D[j]", "adj_T = D[j]", "T is carried on by (2), too."),
    ("dropped", 3, "adj_T = background @ adj_I", "adj_T = 0.0", "T also lets the background pass."),
    ("stale", 2, "reversed(range(len(D)))", "range(len(D))", "Undo the last face first."),
    ("dropped", 2, "adj_T = (1.0 - D[j]) * adj_T", "pass", "Light is lost in (2)."),
]  # fmt: skip
