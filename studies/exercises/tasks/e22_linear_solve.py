"""A linear solve.

x solves A x = b. Differentiate that equation: dA x + A dx = db. So one solve with the transposed
matrix gives adj_b, and adj_A costs no further solve. Chapter 9 builds on it.
"""

import numpy as np


def linear_solve(A, b):
    """Return the solution x (3,) of A x = b."""
    return np.linalg.solve(A, b)  # (1)


# --- solution ---


def linear_solve_vjp(A, b, adj_x):
    """Return adj_A, adj_b."""
    x = np.linalg.solve(A, b)
    # (1) A x = b
    adj_b = np.linalg.solve(A.T, adj_x)
    adj_A = -np.outer(adj_b, x)
    return adj_A, adj_b


# --- grading ---


def inputs(rng):
    return {"A": 3.0 * np.eye(3) + rng.normal(size=(3, 3)), "b": rng.normal(size=3)}


MISTAKES = [
    ("transpose", 1, "np.linalg.solve(A.T, adj_x)", "np.linalg.solve(A, adj_x)"),
    ("transpose", 1, "np.outer(adj_b, x)", "np.outer(x, adj_b)"),
    ("sign", 1, "-np.outer(adj_b, x)", "np.outer(adj_b, x)", "dx = A^-1 (db - dA x)."),
    ("stale", 1, "np.outer(adj_b, x)", "np.outer(adj_b, b)", "dA multiplies the solution x."),
    ("stale", 1, "np.outer(adj_b, x)", "np.outer(adj_x, x)", "dA acts like db: use adj_b."),
    ("factor", 1, "np.linalg.solve(A.T, adj_x)", "A.T @ adj_x", "Solve, do not multiply."),
    ("dropped", 1, "-np.outer(adj_b, x)", "0.0 * A", "The matrix acts, too."),
]  # fmt: skip
