"""Pairs of features in every case, in the middle of it and near its border; and differences."""

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.pairs.closest import EDGE, EDGES, FACE, VERTEX


TURN = Rotation.from_rotvec([0.4, -0.9, 1.3]).as_matrix()  # no axis is special
A, B, C = np.array([(0.0, 0.0, 0.0), (1.0, 0.1, 0.0), (0.2, 0.9, 0.0)])
UP = np.array([0.0, 0.0, 0.3])
OUT = np.array([0.8, 0.7, 0.0])  # away from the side from B to C


def over(point, *corners):
    """Vertex above a point of a feature, and its corners; the last one again for a smaller one."""
    corners = (*corners, *(corners[-1],) * (3 - len(corners)))
    return np.array([point + UP, *corners])


def crossed(s, t, angle, gap=0.3):
    """Two edges whose closest points lie at s and t; 1 and 1.2 long."""
    d_1, d_2 = np.array([1.0, 0, 0]), 1.2 * np.array([np.cos(angle), np.sin(angle), 0])
    x_0 = np.array([0.1, -0.2, 0.05])
    x_2 = x_0 + s * d_1 - [0, 0, gap] - t * d_2
    return np.array([x_0, x_0 + d_1, x_2, x_2 + d_2])


# Name: code, corners, how far from degenerate the geometry is.
CASES = {
    "vertex over vertex": (VERTEX, over(np.add(A, [0.1, 0.2, 0]), A), 1.0),
    "vertex over edge": (EDGE, over(0.4 * A + 0.6 * B + [0, -0.1, 0], A, B), 1.0),
    "vertex before edge": (EDGE, over(np.add(A, [-0.2, -0.1, 0]), A, B), 1.0),
    "vertex beyond edge": (EDGE, over(np.add(B, [0.2, -0.1, 0]), A, B), 1.0),
    "vertex over face": (FACE, over(0.3 * A + 0.3 * B + 0.4 * C, A, B, C), 1.0),
    "vertex over side AB": (FACE, over(0.5 * A + 0.5 * B + [0.02, -0.2, 0], A, B, C), 1.0),
    "vertex over side BC": (FACE, over(0.5 * B + 0.5 * C + 0.2 * OUT, A, B, C), 1.0),
    "vertex over side CA": (FACE, over(0.5 * C + 0.5 * A + [-0.2, 0.04, 0], A, B, C), 1.0),
    "vertex over corner A": (FACE, over(np.add(A, [-0.1, -0.1, 0]), A, B, C), 1.0),
    "vertex over corner B": (FACE, over(np.add(B, [0.2, -0.1, 0]), A, B, C), 1.0),
    "vertex over corner C": (FACE, over(np.add(C, [-0.05, 0.2, 0]), A, B, C), 1.0),
    "just inside of a side": (FACE, over(0.5 * A + 0.5 * B + [-1e-3, 0.01, 0], A, B, C), 1e-2),
    "just outside of a side": (FACE, over(0.5 * A + 0.5 * B + [1e-3, -0.01, 0], A, B, C), 1e-2),
    "just beyond a corner": (FACE, over(np.add(A, [-0.01, -0.01, 0]), A, B, C), 1e-2),
    "thin face": (
        FACE,
        over(0.3 * A + 0.5 * B + [0.05, 0.004, 0], A, B, np.add(A, [0.4, 0.06, 0])),
        1e-2,
    ),
    "crossed edges": (EDGES, crossed(0.4, 0.7, 1.1), 1.0),
    "right angle": (EDGES, crossed(0.5, 0.5, 0.5 * np.pi), 1.0),
    "obtuse edges": (EDGES, crossed(0.3, 0.45, 2.5), 1.0),
    "edges near their ends": (EDGES, crossed(0.04, 0.97, 1.1), 1e-1),
    "edges parallel enough to fade": (EDGES, crossed(0.4, 0.6, 0.02), 2e-2),
    "edges almost parallel": (EDGES, crossed(0.45, 0.6, 2e-3), 2e-3),
    "edges almost opposite": (EDGES, crossed(0.45, 0.4, np.pi - 0.02), 2e-2),
}


def pair(name):
    """Return code, corners (4, 3) in general position, and the distance from degenerate."""
    code, corners, near = CASES[name]
    return code, corners @ TURN.T, near


def central(f, x, d, h):
    """The derivative of f along d by a central difference of fourth order."""
    ahead = np.asarray(f(x + h * d)) - np.asarray(f(x - h * d))
    farther = np.asarray(f(x + 2 * h * d)) - np.asarray(f(x - 2 * h * d))
    return (8.0 * ahead - farther) / (12.0 * h)
