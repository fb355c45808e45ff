"""One frame of a rasterizer.

Two triangles, the first in front, on a picture of 4 x 4 pixels. A pixel's coverage is the product
of a sigmoid for each edge, as in exercise 26 but with t, twice an area, in place of the distance.
The faces are blended over a white background, as in exercise 27. Corners get cotangents from every
pixel and every edge: start adj_x and adj_C at 0 and add.
"""

import numpy as np


W, SIZE = 0.5, 4


def frame(x, C):
    """Return the picture I (4, 4, 3) of two faces with corners x (2, 3, 2) and colours C (2, 3)."""
    I = np.zeros((SIZE, SIZE, 3))
    for row, column in np.ndindex(SIZE, SIZE):
        p, T = np.array([column, row]), 1.0
        for j in range(2):
            D = 1.0
            for k in range(3):
                u, r = x[j, (k + 1) % 3] - x[j, k], p - x[j, k]  # (1)
                t = u[0] * r[1] - u[1] * r[0]  # (2)
                D = D / (1.0 + np.exp(-t / W))  # (3)
            I[row, column] += T * D * C[j]  # (4)
            T = T * (1.0 - D)  # (5)
        I[row, column] += T  # (6)
    return I


# --- solution ---


def frame_vjp(x, C, adj_I):
    """Return adj_x, adj_C."""
    adj_x, adj_C = np.zeros_like(x), np.zeros_like(C)
    for row, column in np.ndindex(SIZE, SIZE):
        p, adj = np.array([column, row]), adj_I[row, column]
        u, r = np.roll(x, -1, axis=1) - x, p - x
        S = 1.0 / (1.0 + np.exp(-(u[..., 0] * r[..., 1] - u[..., 1] * r[..., 0]) / W))
        D = S.prod(axis=1)
        T = np.array([1.0, 1.0 - D[0]])
        # (6) I = I + T
        adj_T = adj.sum()
        for j in reversed(range(2)):
            # (5) T = T (1 - D)
            adj_D = -T[j] * adj_T
            adj_T = (1.0 - D[j]) * adj_T
            # (4) I = I + T D C
            adj_D = adj_D + T[j] * (C[j] @ adj)
            adj_C[j] = adj_C[j] + T[j] * D[j] * adj
            adj_T = adj_T + D[j] * (C[j] @ adj)
            for k in range(3):
                # (3) D = D sigmoid(t / w)
                adj_t = D[j] * (1.0 - S[j, k]) / W * adj_D
                # (2) t = cross(u, r)
                adj_u = adj_t * np.array([r[j, k, 1], -r[j, k, 0]])
                adj_r = adj_t * np.array([-u[j, k, 1], u[j, k, 0]])
                # (1) u = next - this, r = p - this
                adj_x[j, (k + 1) % 3] += adj_u
                adj_x[j, k] += -adj_u - adj_r
    return adj_x, adj_C


# --- grading ---


def inputs(rng):
    x = np.array([[(0, 0), (3, 0.5), (1, 3)], [(1, 0), (3.5, 2), (0, 2.5)]])
    return {"x": x + rng.normal(scale=0.2, size=x.shape), "C": rng.uniform(size=(2, 3))}


MISTAKES = [
    ("overwritten", 4, "adj_C[j] = adj_C[j] + T[j]", "adj_C[j] = T[j]", "Every pixel adds to it."),
    ("overwritten", 4, "adj_D = adj_D + T[j]", "adj_D = T[j]", "D is used in (5), too."),
    ("overwritten", 4, "adj_T = adj_T + D[j]", "adj_T = D[j]", "T is carried on by (5), too."),
    ("dropped", 1, "-adj_u - adj_r", "-adj_u", "This corner is used twice in (1)."),
    ("dropped", 1, "adj_x[j, (k + 1) % 3] += adj_u", "pass", "An edge has two ends."),
    ("factor", 3, "(1.0 - S[j, k]) / W", "(1.0 - S[j, k])", "The sigmoid is of t / w."),
    ("stale", 4, "+ T[j] * D[j] * adj", "+ D[j] * adj", "Use the light that reached this face."),
    ("dropped", 6, "adj_T = adj.sum()", "adj_T = 0.0", "The background is white, and is hidden."),
    ("transpose", 2, "[-u[j, k, 1], u[j, k, 0]]", "[u[j, k, 1], -u[j, k, 0]]",
     "A cross product changes sign."),
]  # fmt: skip
