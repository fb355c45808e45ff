"""Tetrahedral meshes: points, tetrahedra, volumes and the surface that bounds them.

A tetrahedron (i0, i1, i2, i3) is positive when

    6 V = (x1 - x0) . ((x2 - x0) x (x3 - x0)) > 0,

the convention of the tetrahedral forces. Tests: `tests/meshes/test_tet_mesh.py`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adjsim import checks


# The face of a positive tetrahedron opposite to node a, seen from outside in
# counter-clockwise order.
OUTWARD_FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
# A tetrahedron flatter than this, 6 V <= FLAT L^3 with its longest edge L, is a rounding
# error away from inverted: 6 V carries an error of a few eps L^3.
FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class Surface:
    """The triangles that bound a tetrahedral mesh.

    Attributes
    ----------
    faces : ndarray
        Triangles, (n_faces, 3) int64, counter-clockwise seen from outside; they index the
        points of the tetrahedral mesh.
    nodes : ndarray
        The points that lie on the surface, (n_vertices,) int64, increasing.
    """

    faces: np.ndarray
    nodes: np.ndarray

    @cached_property
    def local_faces(self) -> np.ndarray:
        """Triangles that index `nodes` instead, (n_faces, 3) int64."""
        return np.searchsorted(self.nodes, self.faces)


@dataclass(frozen=True, eq=False)
class TetMesh:
    """A checked tetrahedral mesh: every tetrahedron positive, every point used.

    Parameters
    ----------
    points : array_like
        Positions, (n_points, 3) [m].
    tets : array_like
        Nodes of each tetrahedron, (n_tets, 4) int.

    Raises
    ------
    ValueError
        If an index is out of range, a tetrahedron is inverted or flat, or a point belongs
        to no tetrahedron.
    """

    points: np.ndarray
    tets: np.ndarray

    def __post_init__(self) -> None:
        points = checks.array("points", self.points, ("n_points", 3))
        tets = checks.indices("tets", self.tets, ("n_tets", 4), len(points), some=True)
        checks.freeze(self, "points", points)
        checks.freeze(self, "tets", tets)
        check_positive(points, tets)
        _check_all_used(len(points), tets)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def n_tets(self) -> int:
        """Number of tetrahedra."""
        return len(self.tets)

    @cached_property
    def volumes(self) -> np.ndarray:
        """Volume of each tetrahedron, (n_tets,) [m^3]."""
        return signed_volumes(self.points, self.tets)

    @cached_property
    def _surface(self) -> Surface:
        faces = self.tets[:, OUTWARD_FACES].reshape(-1, 3)
        keys = np.sort(faces, axis=1)
        _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
        if counts.max() > 2:
            nodes = keys[first[np.argmax(counts)]].tolist()
            raise ValueError(
                f"`tets` must share each face between at most two tetrahedra, got "
                f"{counts.max()} at the face {nodes}: some tetrahedra overlap."
            )
        boundary = faces[np.sort(first[counts == 1])]
        return Surface(boundary, np.unique(boundary))

    def surface(self) -> Surface:
        """Return the boundary: the faces that belong to one tetrahedron only.

        Returns
        -------
        Surface
            Outward-facing triangles, and the points that lie on them.

        Raises
        ------
        ValueError
            If a face belongs to more than two tetrahedra.
        """
        return self._surface


def signed_volumes(points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Return the signed volume of each tetrahedron, (n_tets,) [m^3]."""
    x0 = points[tets[:, 0]]
    a, b, c = (points[tets[:, k]] - x0 for k in (1, 2, 3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0


def check_positive(points: np.ndarray, tets: np.ndarray) -> None:
    """Name the first inverted or flat tetrahedron."""
    volume = signed_volumes(points, tets)
    corners = points[tets]
    edges = corners[:, [1, 2, 3, 2, 3, 3]] - corners[:, [0, 0, 0, 1, 1, 2]]
    longest = np.sqrt((edges**2).sum(axis=2).max(axis=1))
    bad = 6.0 * volume <= FLAT * longest**3
    if not bad.any():
        return
    e = int(np.argmax(bad))
    flat = abs(6.0 * volume[e]) <= FLAT * longest[e] ** 3
    what, way_out = (
        ("flat", "Remove it or move its points apart.")
        if flat
        else ("inverted", "Swap two of its nodes.")
    )
    raise ValueError(
        f"`tets` must hold tetrahedra of positive volume, but {int(bad.sum())} of {len(tets)} "
        f"do not: tetrahedron {e}, nodes {tets[e].tolist()}, is {what} "
        f"(volume {volume[e]:.3g}). {way_out}"
    )


def _check_all_used(n_points: int, tets: np.ndarray) -> None:
    """Name the first point that belongs to no tetrahedron: it would have no mass."""
    unused = np.setdiff1d(np.arange(n_points), tets)
    if unused.size:
        raise ValueError(
            f"`points` must all belong to a tetrahedron, but {unused.size} of {n_points} do not, "
            f"the first is point {unused[0]}: it would have no mass. Remove them and renumber."
        )
