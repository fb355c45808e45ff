"""The features of a surface of triangles: its vertices, edges and faces, and how each counts.

A vertex of another body that lies within reach is pushed by faces, edges and vertices: by each face
once, by an edge of f faces 1 - f times, by a vertex as often as is left. On a flat patch a vertex
is then pushed once, wherever it lies; at an open boundary too.

Tests: `tests/pairs/test_surface.py`.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np


class Surface(NamedTuple):
    """Features of a surface by their rows of X, and the weights of those that another vertex meets.

    `vertices` (n_vertices, 1), `edges` (n_edges, 2), `faces` (n_faces, 3); `vertex_weights`,
    `edge_weights`: 0 where they do not count, as at an open boundary.
    """

    vertices: np.ndarray
    edges: np.ndarray
    faces: np.ndarray
    vertex_weights: np.ndarray
    edge_weights: np.ndarray


def surface_of(faces: np.ndarray) -> Surface:
    """Return the features of triangles, (n_faces, 3); one that was made of the same is kept."""
    return _surface_of(np.ascontiguousarray(faces, np.int64).tobytes())


@lru_cache(maxsize=64)
def _surface_of(faces_bytes: bytes) -> Surface:
    faces = np.frombuffer(faces_bytes, np.int64).reshape(-1, 3)
    vertices, n_faces = np.unique(faces, return_counts=True)
    sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    edges, n_sides = np.unique(sides, axis=0, return_counts=True)
    ends = np.searchsorted(vertices, edges).ravel()
    of_edges = np.bincount(ends, np.repeat(n_sides - 1, 2), len(vertices))
    return Surface(
        vertices=vertices[:, None],
        edges=edges,
        faces=faces,
        vertex_weights=1.0 - n_faces + of_edges,
        edge_weights=1.0 - n_sides,
    )
