"""Roughness of a mesh by loops over sets: the oracle of the shape regularisers."""

from itertools import combinations

import numpy as np


def edges_of(faces):
    """Every edge as a pair of vertices in order."""
    return sorted({tuple(sorted(pair)) for face in faces for pair in combinations(face, 2)})


def laplacian(x, faces):
    """Mean over the vertices of faces of |x_i - mean of neighbours|^2."""
    near = {}
    for i, j in edges_of(faces):
        near.setdefault(i, []).append(j)
        near.setdefault(j, []).append(i)
    return np.mean([np.sum((x[i] - np.mean(x[others], axis=0)) ** 2) for i, others in near.items()])


def edge_length(x, faces, length):
    """Mean over edges of the squared difference of their length from a given one."""
    return np.mean([(np.linalg.norm(x[j] - x[i]) - length) ** 2 for i, j in edges_of(faces)])


def normal_consistency(x, faces):
    """Mean over edges of two faces of 1 - cos between normals, for faces that all turn one way."""
    normals = {}
    for a, b, c in faces:
        m = np.cross(x[b] - x[a], x[c] - x[a])
        for pair in ((a, b), (b, c), (c, a)):
            normals.setdefault(frozenset(pair), []).append(m / np.linalg.norm(m))
    return np.mean([1 - pair[0] @ pair[1] for pair in normals.values() if len(pair) == 2])
