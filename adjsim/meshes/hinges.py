"""The hinges of a triangle mesh: its edges between two triangles.

Tests: `tests/meshes/test_hinges.py`.
"""

from typing import Any

import numpy as np

from adjsim import checks


def mesh_hinges(triangles: Any) -> np.ndarray:
    """Return the hinges of a triangle mesh, one per edge that two triangles share.

    Boundary edges have none. The first of the two triangles, as they are listed, is
    (x3, x4, x1): the angle of a hinge is positive where the sheet is convex on the side that the
    first one's normal points to, also if the other faces the other way.

    Parameters
    ----------
    triangles : array
        Corners of each triangle, (n_triangles, 3) integer.

    Returns
    -------
    array
        Nodes x1, x2, x3, x4 of each hinge, (n_hinges, 4) int64, as `Hinges` takes them, ordered by
        their edge.

    Raises
    ------
    ValueError
        If a triangle names a corner twice, or more than two triangles share an edge.

    Examples
    --------
    >>> from adjsim.meshes import mesh_hinges
    >>> print(mesh_hinges([(0, 1, 2), (2, 1, 3)]))
    [[0 3 1 2]]
    """
    corners = checks.integers("triangles", triangles, ("n_triangles", 3))
    twice = (corners == np.roll(corners, 1, axis=1)).any(axis=1)
    if twice.any():
        row = int(np.argmax(twice))
        raise ValueError(
            f"`triangles` must have three different corners, got {corners[row].tolist()} at row "
            f"{row}. Remove the triangle."
        )
    starts, ends, opposite = (np.roll(corners, -k, axis=1).ravel() for k in range(3))
    keys = np.stack([np.minimum(starts, ends), np.maximum(starts, ends)], axis=-1)
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: first triangle first
    keys = keys[order]
    same = (keys[1:] == keys[:-1]).all(axis=1)
    crowded = same[1:] & same[:-1]
    if crowded.any():
        i, j = keys[int(np.argmax(crowded))].tolist()
        count = int((keys == (i, j)).all(axis=1).sum())
        raise ValueError(
            f"`triangles` must be manifold, at most two at an edge, but {count} share the edge "
            f"between nodes {i} and {j}. Remove some, or list the hinges yourself."
        )
    first, second = order[:-1][same], order[1:][same]
    return np.stack([opposite[first], opposite[second], starts[first], ends[first]], axis=-1)
