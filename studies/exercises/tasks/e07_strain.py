"""Strain: a matrix times its own transpose.

The Green strain of a deformation gradient F. F is used twice in line (1), once transposed. For a
product D = A B, adj_A = adj_D B^T and adj_B = A^T adj_D. Do not suppose that adj_E is symmetric.
"""

import numpy as np


def strain(F):
    """Return E = (F^T F - 1) / 2, (3, 3)."""
    C = F.T @ F  # (1)
    return 0.5 * (C - np.eye(3))  # (2)


# --- solution ---


def strain_vjp(F, adj_E):
    """Return adj_F."""
    # (2) E = (C - 1) / 2
    adj_C = 0.5 * adj_E
    # (1) C = F^T F
    adj_F = F @ adj_C + F @ adj_C.T
    return adj_F


# --- grading ---


def inputs(rng):
    return {"F": rng.normal(size=(3, 3))}


MISTAKES = [
    ("dropped", 1, "F @ adj_C + F @ adj_C.T", "F @ adj_C", "F is used twice in (1)."),
    ("dropped", 1, "F @ adj_C + F @ adj_C.T", "F @ adj_C.T", "F is used twice in (1)."),
    ("transpose", 1, "F @ adj_C + F @ adj_C.T", "2.0 * F @ adj_C",
     "adj_C need not be symmetric: the factor transposed in (1) has adj_C transposed."),
    ("transpose", 1, "F @ adj_C + F @ adj_C.T", "(adj_C + adj_C.T) @ F"),
    ("factor", 2, "0.5 * adj_E", "adj_E"),
    ("sign", 2, "0.5 * adj_E", "-0.5 * adj_E"),
]  # fmt: skip
