"""The deformation gradient of a tetrahedron.

Corners x (4, 3); the columns of D are the edges from corner 0; B is the inverse of the same matrix
at rest. Corner 0 is in every edge, so it gets minus the sum of what the others get.
"""


def deformation_gradient(x, B):
    """Return F = D B, (3, 3)."""
    D = (x[1:] - x[0]).T  # (1)
    return D @ B  # (2)


# --- solution ---


def deformation_gradient_vjp(x, B, adj_F):
    """Return adj_x, adj_B."""
    D = (x[1:] - x[0]).T
    # (2) F = D B
    adj_D = adj_F @ B.T
    adj_B = D.T @ adj_F
    # (1) D = (x[1:] - x[0])^T
    adj_x = 0.0 * x
    adj_x[1:] = adj_D.T
    adj_x[0] = -adj_D.sum(axis=1)
    return adj_x, adj_B


# --- grading ---


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "B": rng.normal(size=(3, 3))}


MISTAKES = [
    ("transpose", 2, "adj_F @ B.T", "adj_F @ B"),
    ("transpose", 2, "D.T @ adj_F", "D @ adj_F"),
    ("transpose", 1, "adj_D.T", "adj_D", "The edges are columns, the corners rows."),
    ("transpose", 1, "adj_D.sum(axis=1)", "adj_D.sum(axis=0)", "Sum over edges, not over x, y, z."),
    ("sign", 1, "-adj_D.sum(axis=1)", "adj_D.sum(axis=1)", "Corner 0 has a minus in every edge."),
    ("dropped", 1, "-adj_D.sum(axis=1)", "0.0", "Corner 0 is in every edge."),
    ("transpose", 2, "adj_F @ B.T", "B.T @ adj_F", "The factors of D B keep their sides."),
]
