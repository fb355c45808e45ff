"""A bell: half an ellipsoid of triangles, open below, with lappets around its margin.

Tests: `tests/meshes/test_bells.py`.
"""

from collections.abc import Sequence

import numpy as np

from adjsim import checks
from adjsim.meshes.triangle_mesh import TriangleMesh


RINGS = (8, 16, 24, 24, 24)  # points of each, from the top to the margin


def bell(radius: float = 1.0, height: float = 0.8, lappet: float = 0.25) -> TriangleMesh:
    """Return the body of a jellyfish: a bell, with a lappet under each edge of its margin.

    Parameters
    ----------
    radius, height : float
        Of the half-ellipsoid, whose margin is in the plane y = 0 [m].
    lappet : float
        How far each lappet hangs down [m].

    Returns
    -------
    TriangleMesh
        121 points, of which the 24 tips of lappets are the last, and 192 triangles that face
        outwards.

    Raises
    ------
    ValueError
        If a length is not positive.

    Examples
    --------
    >>> from adjsim.meshes import bell
    >>> print(bell().faces.shape)
    (192, 3)
    """
    sizes = {"radius": radius, "height": height, "lappet": lappet}
    for name, size in sizes.items():
        checks.positive(name, checks.array(name, size, ()))
    rows, points = [np.array([0])], [np.array([[0.0, height, 0.0]])]
    for ring, n in enumerate(RINGS, 1):
        down = 0.5 * np.pi * ring / len(RINGS)
        around = 2.0 * np.pi * (np.arange(n) + 0.5 * (ring % 2)) / n
        wide, up = radius * np.sin(down), height * np.cos(down) if ring < len(RINGS) else 0.0
        rows.append(rows[-1][-1] + 1 + np.arange(n))
        points.append(np.c_[wide * np.cos(around), np.full(n, up), wide * np.sin(around)])
    placed = np.concatenate(points)
    faces = [
        face for ring in range(len(RINGS)) for face in _band(rows[ring], rows[ring + 1], placed)
    ]
    margin, beside = rows[-1], np.roll(rows[-1], -1)
    tips = 0.5 * (placed[margin] + placed[beside]) - [0.0, lappet, 0.0]
    lappets = np.c_[margin, beside, len(placed) + np.arange(len(tips))]
    return TriangleMesh(np.concatenate([placed, tips]), np.r_[np.array(faces), lappets])


def _band(
    inner: np.ndarray, outer: np.ndarray, points: np.ndarray
) -> Sequence[tuple[int, int, int]]:
    """Return the triangles between two rings, the next point of which is taken by its angle."""
    n_inner, n_outer = len(inner), len(outer)
    if n_inner == 1:
        return [(inner[0], outer[(j + 1) % n_outer], outer[j]) for j in range(n_outer)]
    at, out = _angles(points[inner]), _angles(points[outer])
    faces = []
    i = j = 0
    while i < n_inner or j < n_outer:
        a, b = inner[i % n_inner], outer[j % n_outer]
        if i == n_inner or (j < n_outer and out[j] + out[j + 1] <= at[i] + at[i + 1]):
            j += 1
            faces.append((a, outer[j % n_outer], b))
        else:
            i += 1
            faces.append((a, inner[i % n_inner], b))
    return faces


def _angles(points: np.ndarray) -> np.ndarray:
    """Return the angles of a ring about y, the first one again a turn later [rad]."""
    angles = np.unwrap(np.arctan2(points[:, 2], points[:, 0]))
    return np.append(angles, angles[0] + 2.0 * np.pi)
