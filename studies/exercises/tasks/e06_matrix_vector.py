"""A matrix times a vector.

y = A x with a square matrix, so that the shapes do not tell where a transpose belongs. If in
doubt, write out one entry, y_i = sum_j A_ij x_j.
"""

import numpy as np


def matrix_vector(A, x):
    """Return y = A x, (3,)."""
    return A @ x  # (1)


# --- solution ---


def matrix_vector_vjp(A, x, adj_y):
    """Return adj_A, adj_x."""
    # (1) y = A x
    adj_A = np.outer(adj_y, x)
    adj_x = A.T @ adj_y
    return adj_A, adj_x


# --- grading ---


def inputs(rng):
    return {"A": rng.normal(size=(3, 3)), "x": rng.normal(size=3)}


MISTAKES = [
    ("transpose", 1, "A.T @ adj_y", "A @ adj_y"),
    ("transpose", 1, "np.outer(adj_y, x)", "np.outer(x, adj_y)"),
    ("sign", 1, "A.T @ adj_y", "-A.T @ adj_y"),
    ("sign", 1, "np.outer(adj_y, x)", "-np.outer(adj_y, x)"),
    ("stale", 1, "np.outer(adj_y, x)", "np.outer(A @ x, x)", "That is y where its cotangent goes."),
    ("dropped", 1, "np.outer(adj_y, x)", "0.0 * A", "The matrix acts, too."),
]
