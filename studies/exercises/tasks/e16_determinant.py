"""Determinant and inverse of a 2 x 2 matrix.

J = det F and the inverse B. The derivative of a determinant is the matrix of cofactors. For the
inverse, differentiate B F = 1: dB = -B dF B. Lines (1) and (2) both send something back to F.
"""

import numpy as np


def inverse(F):
    """Return J = det F and B = F^-1, (2, 2)."""
    J = F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]  # (1)
    B = np.linalg.inv(F)  # (2)
    return J, B


# --- solution ---


def inverse_vjp(F, adj_J, adj_B):
    """Return adj_F."""
    B = np.linalg.inv(F)
    # (2) B = F^-1
    adj_F = -B.T @ adj_B @ B.T
    # (1) J = det F
    cof = np.array([[F[1, 1], -F[1, 0]], [-F[0, 1], F[0, 0]]])
    adj_F = adj_F + adj_J * cof
    return adj_F


# --- grading ---


def inputs(rng):
    return {"F": np.array([[2.0, 0.5], [-0.7, 1.5]]) + rng.normal(scale=0.3, size=(2, 2))}


MISTAKES = [
    ("sign", 2, "-B.T @ adj_B @ B.T", "B.T @ adj_B @ B.T"),
    ("transpose", 2, "-B.T @ adj_B @ B.T", "-B @ adj_B @ B"),
    ("transpose", 1, "adj_J * cof", "adj_J * cof.T", "That is the adjugate, J F^-1."),
    ("sign", 1, "-F[1, 0]], [-F[0, 1]", "F[1, 0]], [F[0, 1]", "Cofactors alternate in sign."),
    ("overwritten", 1, "adj_F + adj_J * cof", "adj_J * cof", "F is used in (2), too."),
    ("dropped", 1, "adj_F + adj_J * cof", "adj_F", "J is a result, too."),
    ("transpose", 2, "-B.T @ adj_B @ B.T", "-B.T @ adj_B.T @ B.T"),
]
