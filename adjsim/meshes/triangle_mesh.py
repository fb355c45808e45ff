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


# A triangle flatter than this, 2 A <= FLAT L^2 with its longest side L, is a rounding error
# away from a line: 2 A carries an error of a few eps L^2.
FLAT = 1e-12
INSIDE = 0.5  # winding number from which on a point is inside
ROUNDING = 8.0  # the same in eps where it moves: below, 2 A is rounding alone


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
        faces = checks.indices("faces", self.faces, ("n_faces", 3), len(points), some=True)
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
        about = self.points - self.points.mean(axis=0)  # far from the origin digits are lost
        x0, x1, x2 = (about[self.faces[:, k]] for k in range(3))
        return float(np.einsum("ij,ij->", x0, np.cross(x1, x2)) / 6.0)

    @cached_property
    def centroid(self) -> np.ndarray:
        """Centre of mass of the solid that a closed mesh bounds, (3,) [m]."""
        middle = self.points.mean(axis=0)
        corners = (self.points - middle)[self.faces]
        volumes = np.linalg.det(corners) / 6.0  # of tetrahedra with their tip at `middle`
        return middle + volumes @ corners.sum(axis=1) / (4.0 * volumes.sum())

    @cached_property
    def edges(self) -> np.ndarray:
        """The two points of each edge, (n_edges, 2) int64, sorted."""
        return self._edges[0]

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

    def require_sound(self, name: str = "surface") -> None:
        """Raise unless every triangle has an area, no two are the same, and every point is used.

        What a cloth and a hull of contacts need; a closed surface that is filled or only drawn
        does not.

        Raises
        ------
        ValueError
            Naming the first triangle of zero area, the first two with the same corners, or the
            first point that belongs to none.
        """
        check_areas(name, self.points, self.faces)
        self._require_different(name)
        unused = np.setdiff1d(np.arange(len(self.points)), self.faces)
        if unused.size:
            raise ValueError(
                f"`{name}` must use all its points, but {unused.size} of {len(self.points)} belong "
                f"to no triangle, the first is point {unused[0]}. Remove them and renumber: "
                "adjsim.meshes.cells.used_points(points, faces)."
            )

    def _require_different(self, name: str) -> None:
        keys = np.sort(self.faces, axis=1)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        before = first[inverse.ravel()]
        again = before != np.arange(len(self.faces))
        if again.any():
            e = int(np.argmax(again))
            raise ValueError(
                f"`{name}` must have each triangle once, but {int(again.sum())} are there again: "
                f"triangle {e} has the corners of triangle {before[e]}, points "
                f"{self.faces[e].tolist()}. Remove one of them."
            )

    def require_closed(self, name: str = "surface") -> None:
        """Raise unless the mesh bounds a volume and faces outwards.

        Raises
        ------
        ValueError
            Naming the first triangle that is there twice, open edge, edge of more than two
            triangles, or edge whose triangles do not agree on where outside is; or if all of
            them face inwards.
        """
        self._require_different(name)
        edges, counts, balance = self._edges
        problems = [
            (
                counts == 1,
                "be closed",
                "have one triangle only",
                "Close the holes, e.g. with pyvista.PolyData.fill_holes, or give a volume mesh.",
            ),
            (counts > 2, "be manifold", "have more than two triangles", "Remove inner walls."),
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


def have_no_area(points: np.ndarray, triangles: np.ndarray, flat: float = FLAT) -> np.ndarray:
    """Return which triangles have 2 A <= flat L^2, (n_triangles,) bool."""
    corners = points[triangles]
    sides = corners[:, [1, 2, 0]] - corners
    longest2 = (sides**2).sum(axis=2).max(axis=1)
    twice_area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    return twice_area <= flat * longest2


def collapsed_triangle(name: str, x: np.ndarray, triangles: np.ndarray) -> str | None:
    """Return the first triangle of a force that positions have made to a line, in words."""
    flat = have_no_area(x, triangles, ROUNDING * np.finfo(x.dtype).eps)
    if not flat.any():
        return None
    e = int(np.argmax(flat))
    return (
        f"the triangle of `{name}` at row {e}, nodes {triangles[e].tolist()}, lies on a line: it "
        "has no normal"
    )


def check_areas(name: str, points: np.ndarray, triangles: np.ndarray) -> None:
    """Name the first triangle of zero area."""
    flat = have_no_area(points, triangles)
    if flat.any():
        e = int(np.argmax(flat))
        raise ValueError(
            f"`{name}` must have triangles of positive area, but {int(flat.sum())} of "
            f"{len(flat)} have none: the first is triangle {e}, points "
            f"{triangles[e].tolist()}, whose corners lie on a line. Join its points "
            "(pyvista.PolyData.clean does that), or remesh."
        )


def winding_number(point: np.ndarray, vertices: np.ndarray, faces: np.ndarray) -> float:
    """Return how often a surface goes around a point: 1 inside a closed one, 0 outside.

    The sum of the solid angles of the triangles, over 4 pi. Source: Van Oosterom & Strackee, The
    solid angle of a plane triangle, IEEE Trans. Biomed. Eng. 30 (1983).
    """
    a, b, c = (vertices[faces[:, k]] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(corner, axis=1) for corner in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    below = la * lb * lc
    for first, second, length in ((a, b, lc), (b, c, la), (c, a, lb)):
        below = below + np.einsum("ij,ij->i", first, second) * length
    return float(np.arctan2(volume, below).sum() / (2.0 * np.pi))


def vertex_normals(x: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return unit normals of points x, (n, 3), weighted by area; 0 where no face is."""
    a, b, c = (x[faces[:, k]] for k in range(3))
    out = np.zeros_like(x)
    for k in range(3):
        np.add.at(out, faces[:, k], np.cross(b - a, c - a))
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), np.finfo(x.dtype).tiny)
