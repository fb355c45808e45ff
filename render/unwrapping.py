r"""Texture coordinates for a mesh that has none: seen along the axes, from six sides.

A face belongs to the side of a box that its normal points at most, and lies on the texture as it is
seen from there. With r the largest distance of a point from the middle of the mesh along any axis,
and (a, b) what points right and up on that side,

    s = a (x - x_middle) / r,   t = b (x - x_middle) / r          in [-1, 1]
    u = (column + 1/2 + (1/2 - margin) s) / 3,   v = (row + 1/2 + (1/2 - margin) t) / 2

Sides +x, +y, +z are columns 0, 1, 2 of the upper row (row 1), -x, -y, -z those of the lower one.
All are drawn to the same scale; a face is at most sqrt(3) times larger than what is seen of it.
Where a surface folds back, places of one side that lie behind each other share their texels.

Tests: `tests/render/test_unwrapping.py`.
"""

import numpy as np

from adjsim import checks


COLUMNS, ROWS = 3, 2  # of sides on the texture
# What points right and up on the sides +x, +y, +z, -x, -y, -z, seen from outside.
RIGHT = np.array([[0, 0, -1], [1, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [-1, 0, 0]], float)
UP = np.array([[0, 1, 0], [0, 0, -1], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]], float)


def box_uv(
    points: np.ndarray, faces: np.ndarray, *, margin: float = 0.03
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the corners of faces lie on a texture of six sides.

    Parameters
    ----------
    points : array_like
        (n_points, 3) [m].
    faces : array_like
        (n_faces, 3) integers.
    margin : float
        Part of a side that stays empty along each of its borders, in [0, 0.5) [-].

    Returns
    -------
    uv : numpy.ndarray
        (n_uv, 2) [-], in [0, 1]; a point has one row for each side that its faces lie on.
    uv_faces : numpy.ndarray
        (n_faces, 3) int64.

    Raises
    ------
    ValueError
        If a shape does not fit, an index is out of range, or `margin` is.
    """
    x = checks.array("points", points, ("n_points", 3))
    corners = checks.indices("faces", faces, ("n_faces", 3), len(x), some=True)
    if not 0.0 <= margin < 0.5:
        raise ValueError(f"`margin` must be in [0, 0.5), got {margin}.")
    edge = x[corners[:, 1:]] - x[corners[:, :1]]
    normal = np.cross(edge[:, 0], edge[:, 1])
    axis = np.abs(normal).argmax(axis=1)
    is_behind = np.take_along_axis(normal, axis[:, None], axis=1)[:, 0] < 0.0
    key = corners + len(x) * (axis + 3 * is_behind)[:, None]  # of a point and a side
    used, uv_faces = np.unique(key, return_inverse=True)
    side, point = np.divmod(used, len(x))
    low, high = x.min(axis=0), x.max(axis=0)
    about = (x[point] - (low + high) / 2.0) / ((high - low).max() / 2.0)
    s, t = (np.einsum("ij,ij->i", about, way[side]) for way in (RIGHT, UP))
    inner = 0.5 - margin
    u = (side % COLUMNS + 0.5 + inner * s) / COLUMNS
    v = (ROWS - 1 - side // COLUMNS + 0.5 + inner * t) / ROWS
    return np.column_stack([u, v]), uv_faces.reshape(corners.shape)
