"""A ball of tetrahedra: an icosahedron cut into twenty sectors, these cut on, and rounded.

A sector has its tip at the centre and one face of the icosahedron opposite. Cut every edge
into n parts: the points have whole coordinates l + i + j + k = n, shell m = n - l
has 10 m^2 + 2 of them, and the sector falls into n^3 tetrahedra,

    p + e_a                (sum p = n - 1)    one tetrahedron
    p + e_a + e_b          (sum p = n - 2)    an octahedron: four around a diagonal
    p + e_a + e_b + e_c    (sum p = n - 3)    one tetrahedron.

The faces of sectors are cut alike from both sides, whichever of its three diagonals an
octahedron is cut along: the shortest. Shell m is pushed out to the sphere of radius
(m/n) r. The map is the same for every n, so refinement makes no tetrahedron flatter than
a bound, and the volume nears 4/3 pi r^3 from below with an error that falls as 1/n^2.

Tests: `tests/meshes/test_ball.py`.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from adjsim import checks
from adjsim.meshes.tet_mesh import TetMesh, signed_volumes


UNITS = np.eye(4, dtype=np.int64)
# The corners of an octahedron, e_a + e_b with a < b in this order, and for each of its
# diagonals the ring of the other four corners.
OCTAHEDRON = np.array([UNITS[a] + UNITS[b] for a, b in itertools.combinations(range(4), 2)])
DIAGONALS = np.array([[0, 5], [1, 4], [2, 3]])
RINGS = np.array([[1, 2, 4, 3], [0, 2, 5, 3], [0, 1, 5, 4]])


def ball_tets(
    shells: int, radius: float = 1.0, center: Sequence[float] = (0.0, 0.0, 0.0)
) -> TetMesh:
    """Return a ball cut into shells and these into tetrahedra.

    Parameters
    ----------
    shells : int
        Number of shells n, at least 1.
    radius : float
        r [m], positive. The points of the surface lie on the sphere, so the mesh is inside.
    center : sequence of float
        (3,) [m]; this is point 0, and the points are numbered from there outwards.

    Returns
    -------
    TetMesh
        1 + sum of 10 m^2 + 2 over m = 1..n points (147 for n = 3), 20 n^3 tetrahedra.

    Raises
    ------
    ValueError
        If the number of shells is not whole or below 1, or the radius is not positive.

    Examples
    --------
    >>> from adjsim.meshes import ball_tets
    >>> ball = ball_tets(2, radius=0.1)
    >>> print(ball.points.shape, ball.tets.shape, round(ball.volumes.sum(), 5))
    (55, 3) (160, 4) 0.00366
    """
    shells = checks.whole("shells", shells, 1)
    radius = float(checks.positive("radius", checks.array("radius", radius, ())))
    middle = checks.array("center", center, (3,))
    corners, faces = icosahedron()

    lattice = _whole_coordinates(shells)
    # A point as the sector's neighbours see it too: its shell, then its weight on each
    # corner of the icosahedron.
    weights = np.zeros((len(faces), len(lattice), 13), np.int64)
    weights[:, :, 0] = shells - lattice[:, 0]
    sector, row = np.ogrid[: len(faces), : len(lattice)]
    for k in range(3):
        weights[sector, row, 1 + faces[:, k, None]] = lattice[:, k + 1]
    unique, inverse = np.unique(weights.reshape(-1, 13), axis=0, return_inverse=True)
    direction = unique[:, 1:] @ corners
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    shell = unique[:, :1] / shells
    points = shell * direction / np.where(length == 0.0, 1.0, length)

    number = np.full((shells + 1,) * 4, -1)
    number[tuple(lattice.T)] = np.arange(len(lattice))
    tets = _sector_tets(shells, number, inverse.reshape(len(faces), -1), points)
    negative = signed_volumes(points, tets) < 0.0
    tets[negative] = tets[negative][:, [0, 1, 3, 2]]
    return TetMesh(middle + radius * points, tets)


def icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of an icosahedron on the unit sphere, (12, 3), and its faces, (20, 3)."""
    golden = (1.0 + 5.0**0.5) / 2.0
    corners = np.array(
        [
            np.roll((0.0, a, b * golden), axis)
            for axis in range(3)
            for a in (-1.0, 1.0)
            for b in (-1.0, 1.0)
        ]
    )
    near = np.linalg.norm(corners[:, None] - corners[None], axis=2) < 2.5  # edges have length 2
    faces = np.array(
        [
            (a, b, c) if np.linalg.det(corners[[a, b, c]]) > 0.0 else (a, c, b)
            for a, b, c in itertools.combinations(range(12), 3)
            if near[a, b] and near[b, c] and near[c, a]
        ]
    )
    return corners / np.linalg.norm(corners[0]), faces


def _whole_coordinates(total: int) -> np.ndarray:
    """Return all (l, i, j, k) of whole numbers >= 0 with the given sum, (n, 4)."""
    if total < 0:
        return np.empty((0, 4), np.int64)
    i, j, k = (index.ravel() for index in np.indices((total + 1,) * 3))
    inside = i + j + k <= total
    i, j, k = i[inside], j[inside], k[inside]
    return np.stack([total - i - j - k, i, j, k], axis=1)


def _sector_tets(
    shells: int, number: np.ndarray, names: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Return the tetrahedra of all sectors, (20 n^3, 4), in either orientation.

    `number` is the row in a sector of the point with coordinates (l, i, j, k), `names` the
    points of each sector, (20, n_rows).
    """
    up = _whole_coordinates(shells - 1)[:, None] + UNITS
    down = _whole_coordinates(shells - 3)[:, None] + (1 - UNITS)
    middle = _whole_coordinates(shells - 2)[:, None] + OCTAHEDRON
    whole = np.concatenate([up, down])
    tets = names[:, number[tuple(np.moveaxis(whole, -1, 0))]].reshape(-1, 4)

    octahedra = names[:, number[tuple(np.moveaxis(middle, -1, 0))]].reshape(-1, 6)
    ends = points[octahedra[:, DIAGONALS]]
    length = np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=2)
    # Rounded: where symmetry makes two diagonals equal, the same one everywhere.
    shortest = np.argmin(np.round(length, 9), axis=1)
    axis = np.take_along_axis(octahedra, DIAGONALS[shortest], axis=1)
    ring = np.take_along_axis(octahedra, RINGS[shortest], axis=1)
    around = np.stack([ring, np.roll(ring, -1, axis=1)], axis=2)
    four = np.concatenate([np.repeat(axis[:, None], 4, axis=1), around], axis=2)
    return np.concatenate([tets, four.reshape(-1, 4)])
