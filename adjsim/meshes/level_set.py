"""The surface on which a function of a grid is zero, by marching tetrahedra.

Each cell is cut into five tetrahedra, and the surface crosses each in a triangle or a quadrilateral
(Doi & Koide, IEICE Trans. E74 (1991)). So it is closed and manifold, and no case is ambiguous.
Crossings near a point of the grid become one vertex, their mean, which removes the slivers that the
method is known for (Treece, Prager & Gee, Computers & Graphics 23 (1999)); if that leaves an edge
with more than two triangles somewhere, fewer are joined.

Tests: `tests/meshes/test_level_set.py`.
"""

from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from adjsim import checks
from adjsim.meshes.cells import used_points
from adjsim.meshes.grid import grid_tets
from adjsim.meshes.triangle_mesh import TriangleMesh


# Of an edge: crossings that are nearer to its end become one vertex; the first that will do.
NEAR = (0.3, 0.2, 0.1)


def level_set(values: ArrayLike, origin: ArrayLike, spacing: float) -> TriangleMesh:
    """Return the closed surface around where a function is positive.

    Parameters
    ----------
    values : array_like
        The function at the points of a grid, (n_x, n_y, n_z); not positive at its border.
    origin : array_like
        The point with the smallest coordinates, (3,) [m].
    spacing : float
        Distance of neighbouring points [m].

    Raises
    ------
    ValueError
        If the function is positive nowhere, or at the border, or the spacing is not positive.
    """
    field = checks.array("values", values, ("n_x", "n_y", "n_z"))
    corner = checks.array("origin", origin, (3,))
    spacing = float(checks.positive("spacing", checks.array("spacing", spacing, ())))
    inside = field > 0.0
    if not inside.any():
        raise ValueError("`values` must be positive somewhere: there is no surface.")
    if inside.sum() > inside[1:-1, 1:-1, 1:-1].sum():
        raise ValueError(
            "`values` must not be positive at the border of the grid, where the surface would be "
            "open. Make the grid larger."
        )
    faces, ends, share = _crossings(field)
    place = np.stack(np.unravel_index(ends, field.shape), axis=-1).astype(np.float64)
    cuts = place[:, 0] + share[:, None] * (place[:, 1] - place[:, 0])
    cuts = corner + spacing * cuts
    alone = field.size + np.arange(len(ends))
    for near in NEAR:
        nearest = np.select([share < near, share > 1.0 - near], [ends[:, 0], ends[:, 1]], alone)
        _, cluster, counts = np.unique(nearest, return_inverse=True, return_counts=True)
        means = [np.bincount(cluster, cuts[:, axis]) / counts for axis in range(3)]
        joined = _without_folds(cluster[faces])
        with suppress(ValueError):  # what is thinner than a cell may have no face left
            mesh = TriangleMesh(*used_points(np.stack(means, axis=-1), joined))
            mesh.require_closed()
            return mesh
    return TriangleMesh(cuts, faces)


def _crossings(field: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return faces (n_faces, 3), the points of the grid (n, 2) inside and outside whose edge each
    vertex is on, and how far from the first (n,) as a part of the edge.
    """
    values, inside = field.ravel(), field.ravel() > 0.0
    index = np.arange(field.size).reshape(field.shape)
    of_cells = np.lib.stride_tricks.sliding_window_view(field > 0.0, (2, 2, 2))
    mixed = np.asarray(of_cells.any(axis=(3, 4, 5)) & ~of_cells.all(axis=(3, 4, 5)))
    tets = grid_tets(index, filled=mixed)
    code = inside[tets] @ (1, 2, 4, 8)
    edges = []
    for which in range(1, 15):
        is_in = [bool(which >> corner & 1) for corner in range(4)]
        a, b, c, d = tets[code == which][:, _insides_first(is_in)].T
        if sum(is_in) == 1:
            edges.append([(a, b), (a, c), (a, d)])
        elif sum(is_in) == 3:
            edges.append([(a, d), (b, d), (c, d)])
        else:
            edges.append([(a, c), (a, d), (b, d)])
            edges.append([(a, c), (b, d), (b, c)])
    pairs = np.concatenate([np.transpose(triangle, (2, 0, 1)) for triangle in edges])
    ends, vertex = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    first, second = values[ends].T
    return vertex.reshape(-1, 3), ends, first / (first - second)


def _insides_first(is_in: list[bool]) -> list[int]:
    """Return the corners of a tetrahedron, those inside first, in an even permutation."""
    order = sorted(range(4), key=lambda corner: not is_in[corner])
    if np.linalg.det(np.eye(4)[order]) < 0.0:
        k = 2 if sum(is_in) < 3 else 0
        order[k], order[k + 1] = order[k + 1], order[k]
    return order


def _without_folds(faces: np.ndarray) -> np.ndarray:
    """Return triangles of three different corners, without those that lie on each other."""
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    _, triangle, counts = np.unique(
        np.sort(faces, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return faces[counts[triangle.ravel()] == 1]
