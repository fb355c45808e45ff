r"""Meshes twice as fine: every tetrahedron becomes eight, every triangle four.

The points of the mesh keep their numbers; behind them are the midpoints of its edges. A tetrahedron
(0, 1, 2, 3) leaves one at each corner a, (a, ab, ac, ad), and an octahedron between the six
midpoints, which is cut into four around its shortest diagonal, e.g. from 01 to 23:

    (01, 23, 02, 03)  (01, 23, 03, 13)  (01, 23, 13, 12)  (01, 23, 12, 02)

All eight have the same volume. Faces that two tetrahedra share are cut alike from both sides, so
the finer mesh fits together, and what is linear on the mesh is linear on the finer one.

Source: Bey, Tetrahedral grid refinement, Computing 55 (1995).
Tests: `tests/meshes/test_subdivision.py`.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import scipy.sparse

from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh


M = TypeVar("M", TetMesh, TriangleMesh)
# Of a tetrahedron; midpoint k has the number 4 + k.
EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
CORNERS = np.array([[0, 4, 5, 6], [4, 1, 7, 8], [5, 7, 2, 9], [6, 8, 9, 3]])
# For each diagonal of the octahedron its ends, and the other midpoints in order around it.
DIAGONALS = np.array([[4, 9], [5, 8], [6, 7]])
RINGS = np.array([[5, 6, 8, 7], [4, 7, 9, 6], [4, 5, 9, 8]])
# For each diagonal the four tetrahedra around it, all of positive volume.
INNER = np.stack([[[*ends, a, b] for a, b in zip(ring, np.roll(ring, -1), strict=True)]
                  for ends, ring in zip(DIAGONALS, RINGS, strict=True)])  # fmt: skip
SIDES = np.array([[0, 1], [1, 2], [2, 0]])  # of a triangle; midpoint k has the number 3 + k
QUARTERS = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])


@dataclass(frozen=True, eq=False)
class Subdivision(Generic[M]):
    """A mesh twice as fine as another.

    Attributes
    ----------
    mesh : TetMesh or TriangleMesh
        The finer mesh; its first points are those of the other.
    parents : ndarray
        The cell of the other mesh that each cell is a part of, (n_cells,).
    ends : ndarray
        The two points of the other mesh between which each further point lies, (n_edges, 2).
    """

    mesh: M
    parents: np.ndarray
    ends: np.ndarray

    @property
    def n_before(self) -> int:
        """Number of points of the other mesh."""
        return len(self.mesh.points) - len(self.ends)

    @property
    def means(self) -> scipy.sparse.csr_array:
        """The matrix from numbers of the other mesh's points to all points: means at midpoints."""
        n, m = self.n_before, len(self.ends)
        rows = np.concatenate([np.arange(n), np.repeat(n + np.arange(m), 2)])
        columns = np.concatenate([np.arange(n), self.ends.ravel()])
        entries = (np.repeat([1.0, 0.5], [n, 2 * m]), (rows, columns))
        return scipy.sparse.csr_array(entries, shape=(n + m, n))

    def of_points(self, values: np.ndarray) -> np.ndarray:
        """Return numbers of the other mesh's points at all points: means at midpoints."""
        return np.concatenate([values, values[self.ends].mean(axis=1)])

    def selected(self, mask: np.ndarray) -> np.ndarray:
        """Return a mask of the other mesh's points at all points: midpoints where both ends are."""
        return np.concatenate([mask, mask[self.ends].all(axis=1)])

    def widened(self, matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return a matrix over the other mesh's points as one over all points, (n, n_points)."""
        blank = scipy.sparse.csr_array((len(matrix.indptr) - 1, len(self.ends)))
        return scipy.sparse.csr_array(scipy.sparse.hstack([matrix, blank]))


def subdivided(mesh: M) -> Subdivision[M]:
    """Return the mesh twice as fine: eight times the tetrahedra, or four times the triangles."""
    if isinstance(mesh, TetMesh):
        points, local, ends = _with_midpoints(mesh.points, mesh.tets, EDGES)
        a, b = (points[local[:, DIAGONALS[:, k]]] for k in (0, 1))
        shortest = np.linalg.norm(a - b, axis=2).argmin(axis=1)
        cuts = np.concatenate([np.tile(CORNERS, (len(local), 1, 1)), INNER[shortest]], axis=1)
        tets = np.take_along_axis(local[:, None], cuts, axis=2).reshape(-1, 4)
        return Subdivision(TetMesh(points, tets), np.repeat(np.arange(len(local)), 8), ends)
    points, local, ends = _with_midpoints(mesh.points, mesh.faces, SIDES)
    faces = local[:, QUARTERS].reshape(-1, 3)
    return Subdivision(TriangleMesh(points, faces), np.repeat(np.arange(len(local)), 4), ends)


def _with_midpoints(
    points: np.ndarray, cells: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points with midpoints behind them, each cell's corners and midpoints, and the ends."""
    each = np.sort(cells[:, edges].reshape(-1, 2), axis=1)
    ends, which = np.unique(each, axis=0, return_inverse=True)
    middle = len(points) + which.reshape(len(cells), len(edges))
    local = np.concatenate([cells, middle], axis=1)
    finer = np.concatenate([points, points[ends].mean(axis=1)])
    return finer, local, ends
