"""Triangle meshes: the surface of a body, as a file or a user gives it.

A surface bounds a volume when every edge lies between exactly two triangles that run
through it in opposite directions, and it faces outwards when

    V = 1/6 sum x0 . (x1 x x2) > 0     (divergence theorem).

Tests: `tests/meshes/test_triangle_mesh.py`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adjsim import checks


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A triangle mesh, open or closed.

    Parameters
    ----------
    points : array_like
        Positions, (n_points, 3) [m].
    faces : array_like
        Corners of each triangle, (n_faces, 3) int, counter-clockwise seen from outside.

    Raises
    ------
    ValueError
        If an index is out of range, or a triangle names a corner twice.
    """

    points: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        points = checks.array("points", self.points, ("n_points", 3))
        faces = checks.indices("faces", self.faces, ("n_faces", 3), len(points))
        checks.freeze(self, "points", points)
        checks.freeze(self, "faces", faces)
        twice = (faces == np.roll(faces, 1, axis=1)).any(axis=1)
        if twice.any():
            e = int(np.argmax(twice))
            raise ValueError(
                f"`faces` must have three different corners, got {faces[e].tolist()} at row {e}. "
                "Remove the triangle."
            )

    @cached_property
    def volume(self) -> float:
        """Enclosed volume [m^3] of a closed mesh, negative if it faces inwards."""
        x0, x1, x2 = (self.points[self.faces[:, k]] for k in range(3))
        return float(np.einsum("ij,ij->", x0, np.cross(x1, x2)) / 6.0)

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the edges, their number of triangles, the sum of their directions."""
        directed = self.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
        sign = np.where(directed[:, 0] < directed[:, 1], 1, -1)
        edges, inverse, counts = np.unique(
            np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True
        )
        balance = np.bincount(inverse.ravel(), weights=sign, minlength=len(edges))
        return edges, counts, balance

    def require_closed(self, name: str = "surface") -> None:
        """Raise unless the mesh bounds a volume and faces outwards.

        Raises
        ------
        ValueError
            Naming the first open edge, or edge of more than two triangles, or edge whose
            triangles do not agree on where outside is; or if all of them face inwards.
        """
        edges, counts, balance = self._edges
        problems = [
            (
                counts == 1,
                "be closed",
                "have one triangle only",
                "Close the holes, e.g. with pyvista.PolyData.fill_holes, or give a volume mesh.",
            ),
            (
                counts > 2,
                "be manifold",
                "have more than two triangles",
                "Remove inner walls and doubled triangles.",
            ),
            (
                balance != 0,
                "agree on which side is outside",
                "have triangles that disagree",
                "Run pyvista.PolyData.compute_normals(auto_orient_normals=True) on it.",
            ),
        ]
        for bad, wanted, what, way_out in problems:
            if bad.any():
                first = edges[np.argmax(bad)].tolist()
                raise ValueError(
                    f"`{name}` must {wanted}, but {int(bad.sum())} of its {len(edges)} edges "
                    f"{what}, the first between points {first[0]} and {first[1]}. {way_out}"
                )
        if not self.volume > 0.0:
            raise ValueError(
                f"`{name}` must face outwards, but it encloses {self.volume:.3g}. "
                "Reverse its triangles: faces[:, ::-1]."
            )
