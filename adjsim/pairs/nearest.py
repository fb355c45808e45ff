r"""Find the nearest points of a surface of triangles to points in space, with signed distances.

A point y has its nearest point p = sum b_i x_i on a face, an edge or a vertex of the surface. The
distance is positive outside: on the side that the normal of this feature points to, which is that
of the face, the sum of those of the faces at an edge, or their sum weighed by angles at a vertex.

    d = s |y - p|,   s = sign n . (y - p),   dd = -sum b_i (n . dx_i),   n = s (y - p)/|y - p|

since p is stationary: to first order it moves along its feature. n is the normal of the feature
where d is 0. Ties go to the face with the lowest number.

Faces are grouped once by where they are, and every group has a sphere around it: a group that is
farther away than the nearest face so far is left out. The result is that of a comparison with all.

Source of the signs: Baerentzen & Aanaes, Signed distance computation using the angle weighted
pseudonormal, IEEE TVCG 11 (2005). Tests: `tests/pairs/test_nearest.py`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from adjsim.algebra.vec3 import axpy, cross, dot, norm, scale
from adjsim.jit.backend import device_fn, loop_kernel
from adjsim.pairs.closest import FACE, closest


GROUP = 16  # faces, at most
ROUNDING = 1e-9  # of the size of a surface, by which a sphere is larger than what it holds


class Nearest(NamedTuple):
    """What is nearest to n points; where a point is NaN all numbers are 0."""

    distances: np.ndarray  # d, (n,) [m]
    normals: np.ndarray  # n, (n, 3)
    faces: np.ndarray  # number of the face, (n,)
    weights: np.ndarray  # b_i of its corners, (n, 3)


class _Groups(NamedTuple):
    """The faces in groups, and the faces at every vertex."""

    faces: np.ndarray  # (n_faces, 3)
    order: np.ndarray  # of the faces, group by group
    starts: np.ndarray  # of the groups in this order, (n_groups + 1,)
    places: np.ndarray  # number of the place of every vertex: those at one place share it
    at: np.ndarray  # faces at places, place by place
    first: np.ndarray  # where those of a place begin, (n_places + 1,)


@dataclass(frozen=True, eq=False)
class SurfaceSearch:
    """What is nearest on a surface of triangles that moves."""

    groups: _Groups

    @property
    def faces(self) -> np.ndarray:
        """The corners of every face, (n_faces, 3)."""
        return self.groups.faces

    @classmethod
    def of(cls, faces: np.ndarray, x: np.ndarray) -> Self:
        """Return the search on faces (n_faces, 3) of vertices that are at x (n, 3) at some time.

        Vertices at the same place then, as along a seam of a texture, count as one for normals.
        """
        faces = np.ascontiguousarray(faces, np.int64)
        order, starts = _grouped(x[faces].mean(axis=1))
        places = np.unique(x, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        corners = places[faces].ravel()
        at = np.argsort(corners, kind="stable") // 3
        first = np.concatenate([[0], np.cumsum(np.bincount(corners, minlength=places.max() + 1))])
        return cls(_Groups(faces, order, starts, places, at, first))

    def nearest(self, x: np.ndarray, points: np.ndarray) -> Nearest:
        """Return what is nearest to points (n, 3) [m] where the vertices are at x (n_vertices, 3).

        It is computed in float64. A face without an area has no normal of its own.
        """
        groups, x = self.groups, np.ascontiguousarray(x, np.float64)
        starts, counts = groups.starts[:-1], np.diff(groups.starts)
        corners = x[groups.faces[groups.order]]
        middles = corners.mean(axis=1)
        radii = _lengths(corners - middles[:, None]).max(axis=1)
        radii += ROUNDING * float(np.ptp(x, axis=0).max())
        centers = np.add.reduceat(middles, starts) / counts[:, None]
        apart = _lengths(middles - np.repeat(centers, counts, axis=0))
        wide = np.maximum.reduceat(apart + radii, starts)
        spheres = np.column_stack([middles, radii]), np.column_stack([centers, wide])
        n = len(points)
        out = Nearest(np.zeros(n), np.zeros((n, 3)), np.zeros(n, np.int64), np.zeros((n, 3)))
        points = np.ascontiguousarray(points, np.float64)
        loop_kernel(find_nearest)(groups, x, *spheres, points, out)
        return out


def _lengths(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("...i,...i->...", vectors, vectors))


def _grouped(middles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of faces by groups of neighbours, and where these begin."""
    parts, done = [np.arange(len(middles))], []
    while parts:
        rows = parts.pop()
        if len(rows) <= GROUP:
            done.append(rows)
            continue
        axis = int(np.argmax(np.ptp(middles[rows], axis=0)))
        rows = rows[np.argsort(middles[rows, axis], kind="stable")]
        parts += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
    return np.concatenate(done), np.cumsum([0, *map(len, done)])


@device_fn
def apart(spheres, k, y):
    """Return the square of the distance of y from the middle of sphere k."""
    a, b, c = spheres[k, 0] - y[0], spheres[k, 1] - y[1], spheres[k, 2] - y[2]
    return a * a + b * b + c * c


@device_fn
def side_of(x, start, end):
    """Return the vector from a vertex to another."""
    return x[end, 0] - x[start, 0], x[end, 1] - x[start, 1], x[end, 2] - x[start, 2]


@device_fn
def from_point(x, i, y):
    """Return the vector from y to a vertex."""
    return x[i, 0] - y[0], x[i, 1] - y[1], x[i, 2] - y[2]


@device_fn
def nearest_face(groups, x, spheres, spheres_of_groups, y):
    """Return the nearest face, y - p, and the weights of its corners, negative."""
    n_groups, first, least = spheres_of_groups.shape[0], 0, math.inf
    for g in range(n_groups):
        square = apart(spheres_of_groups, g, y)
        if square < least:
            first, least = g, square
    best, far, face = math.inf, math.inf, -1
    b, r = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for turn in range(n_groups):
        # the group that is likely to hold it, then all others
        g = first if turn == 0 else (turn - 1 if turn <= first else turn)
        if apart(spheres_of_groups, g, y) > (spheres_of_groups[g, 3] + far) ** 2:
            continue
        for k in range(groups.starts[g], groups.starts[g + 1]):
            if apart(spheres, k, y) > (spheres[k, 3] + far) ** 2:
                continue
            f = groups.order[k]
            i, u, v = groups.faces[f, 0], groups.faces[f, 1], groups.faces[f, 2]
            near = closest(FACE, (from_point(x, i, y), from_point(x, u, y), from_point(x, v, y)))
            square = dot(near.r, near.r)
            if square < best or (square == best and f < face):
                best, face, r, b = square, f, near.r, near.weights
                far = math.sqrt(best)
    return face, r, b


@device_fn
def corner_in(groups, f, face, b, place):
    """Return how many of the corners of `face` that have a weight f has, and which is at a place.

    Where it lacks one, the first number is smaller than the count of these corners.
    """
    shared, corner = 0, 0
    for i in range(3):
        at = groups.places[groups.faces[f, i]]
        if at == place:
            corner = i
        for c in range(3):
            if b[c] != 0.0 and groups.places[groups.faces[face, c]] == at:
                shared += 1
    return shared, corner


@device_fn
def normal_of(groups, x, face, b):
    """Return the unit normal of the feature of a face whose corners have weights, 0 if none."""
    n = (0.0, 0.0, 0.0)
    lead = 0 if b[0] != 0.0 else (1 if b[1] != 0.0 else 2)
    count = (b[0] != 0.0) + (b[1] != 0.0) + (b[2] != 0.0)
    place = groups.places[groups.faces[face, lead]]
    for k in range(groups.first[place], groups.first[place + 1]):
        f = groups.at[k]
        shared, corner = corner_in(groups, f, face, b, place)
        if shared == count:
            o = groups.faces[f, corner]
            a = side_of(x, o, groups.faces[f, (corner + 1) % 3])
            c = side_of(x, o, groups.faces[f, (corner + 2) % 3])
            across = cross(a, c)
            area = norm(across)
            if area > 0.0:
                share = math.atan2(area, dot(a, c)) if count == 1 else 1.0
                n = axpy(share / area, across, n)
    size = norm(n)
    return scale(1.0 / size, n) if size > 0.0 else n


def find_nearest(groups, x, spheres, spheres_of_groups, points, out):
    """Write what is nearest to each point; spheres are x, y, z and radius, faces in their order."""
    for j in range(points.shape[0]):
        y = (points[j, 0], points[j, 1], points[j, 2])
        if not math.isfinite(y[0] + y[1] + y[2]):
            continue
        face, r, b = nearest_face(groups, x, spheres, spheres_of_groups, y)
        n = normal_of(groups, x, face, b)
        d, far = dot(r, n), norm(r)
        if b[0] * b[1] * b[2] == 0.0 and far > 0.0:  # at an edge or a vertex
            s = 1.0 if d >= 0.0 else -1.0
            d, n = s * far, scale(s / far, r)
        out.distances[j], out.faces[j] = d, face
        for i in range(3):
            out.weights[j, i], out.normals[j, i] = -b[i], n[i]
