r"""Smooth normals: the mean normal of the faces at a vertex, weighted by their areas.

    m_i = sum over the faces at i of (x1 - x0) x (x2 - x0),   n_i = m_i/|m_i|

All faces of an object count, drawn or not. A sum m that is 0 has the normal 0, and so has one
that is no more than the rounding of what it is the sum of: it points anywhere. A sheet with two
sides that share their vertices has such sums.

Adjoint: `adjoint/render/shaders/normals.py`. Tests: `tests/render/shaders/test_normals.py`.
"""

from typing import NamedTuple

import numpy as np

from adjsim.algebra.vec3 import add, cross, norm, scale, sub
from adjsim.jit.backend import cpu_kernel, device_fn, lit


ALIKE = 1.0 / 16.0  # of a sum: if the sizes that were summed do not feel that, it is rounding


class VertexCorners(NamedTuple):
    """The corners 3 f + k of faces that lie at each vertex, in the order of the faces."""

    start: np.ndarray  # (n_vertices + 1,) int64
    corners: np.ndarray  # (3 n_faces,) int64


def _list_corners(flat, place, corners):
    """Write the corners of each vertex in their order; `place`, where they begin, is used up."""
    for c in range(flat.shape[0]):
        corners[place[flat[c]]] = c
        place[flat[c]] += 1


list_corners = cpu_kernel(_list_corners)


def vertex_corners(faces: np.ndarray, n_vertices: int) -> VertexCorners:
    """Return the corners at each vertex; faces are (n_faces, 3)."""
    flat = faces.reshape(-1)
    start = np.zeros(n_vertices + 1, np.int64)
    np.cumsum(np.bincount(flat, minlength=n_vertices), out=start[1:])
    corners = np.empty(len(flat), np.int64)
    list_corners(flat, start.copy(), corners)
    return VertexCorners(start, corners)


@device_fn
def unit_sum(m, size):
    """The unit vector m/|m| and 1/|m|; both 0 where a sum m, of terms of this size, is rounding."""
    zero = lit(0.0, m[0])
    l = norm(m)  # (1)
    c = lit(1.0, l) / l if size + lit(ALIKE, l) * l > size else zero  # (2)
    return scale(c, m), c  # (3)


@device_fn
def unit_mean(m):
    """As `unit_sum` of a mean m of unit vectors, with weights that are not negative."""
    return unit_sum(m, lit(1.0, m[0]))


@device_fn
def unit_or_zero(m):
    """As `unit_sum` of a vector m that cannot cancel; both 0 where m is 0."""
    return unit_sum(m, lit(0.0, m[0]))


@device_fn
def area_normal(x0, x1, x2):
    """Normal m [m^2] of a face: twice its area long."""
    u = sub(x1, x0)  # (1)
    v = sub(x2, x0)  # (2)
    return cross(u, v)  # (3)


@device_fn
def sum_abs(a):
    """The sum of the sizes of three coordinates."""
    return abs(a[0]) + abs(a[1]) + abs(a[2])


@device_fn
def normal_size(x0, x1, x2):
    """Size [m^2] of the products that the normal of a face is made of, which may cancel too."""
    return sum_abs(sub(x1, x0)) * sum_abs(sub(x2, x0))


@device_fn
def corner_point(x, faces, f, k):
    """Corner k of face f."""
    i = faces[f, k]
    return (x[i, 0], x[i, 1], x[i, 2])


@device_fn
def normal_sum(i, x, faces, vertex_corners):
    """Sum m [m^2] of the normals of the faces at vertex i, in their order, and its size."""
    zero = lit(0.0, x[0, 0])
    m, size = (zero, zero, zero), zero
    for c in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        f = vertex_corners.corners[c] // 3
        x0, x1, x2 = (
            corner_point(x, faces, f, 0),
            corner_point(x, faces, f, 1),
            corner_point(x, faces, f, 2),
        )
        m = add(m, area_normal(x0, x1, x2))
        size += normal_size(x0, x1, x2)
    return m, size


@device_fn
def normal_body(i, x, faces, vertex_corners, normals):
    """Vertex i: write its unit normal."""
    m, size = normal_sum(i, x, faces, vertex_corners)
    n, _ = unit_sum(m, size)
    normals[i, 0], normals[i, 1], normals[i, 2] = n
