"""Flat triangle meshes in the plane z = 0: cloth, and the two-dimensional walker.

A cell of a grid is cut along one of its diagonals: from corner (0, 0) to (1, 1) in an even
cell, from (1, 0) to (0, 1) in an odd one when the diagonals alternate, which gives the
sheet no preferred direction.

Tests: `tests/meshes/test_sheets.py`.
"""

from collections.abc import Sequence

import numpy as np

from adjsim import checks
from adjsim.meshes.cells import used_points
from adjsim.meshes.grid import cell_counts
from adjsim.meshes.triangle_mesh import TriangleMesh


def sheet(
    cells: Sequence[int],
    size: Sequence[float] = (1.0, 1.0),
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    *,
    alternating: bool = True,
) -> TriangleMesh:
    """Return a rectangle cut into cells and these into triangles: a piece of cloth.

    Point (i, j) of the grid has the number i (n_y + 1) + j. The areas add up to that of the
    rectangle, and the triangles face +z.

    Parameters
    ----------
    cells : sequence of int
        Number of cells along x and y, (2,), each at least 1.
    size : sequence of float
        Edge lengths, (2,) [m], positive.
    origin : sequence of float
        The corner with the smallest coordinates, (3,) [m].
    alternating : bool
        Whether the diagonals alternate; otherwise all run from (0, 0) to (1, 1).

    Returns
    -------
    TriangleMesh
        (n_x + 1)(n_y + 1) points, 2 n_x n_y triangles.

    Raises
    ------
    ValueError
        If a count is below 1 or not whole, or a length is not positive.

    Examples
    --------
    >>> from adjsim.meshes import sheet
    >>> print(sheet((2, 1), (0.2, 0.1)).faces)
    [[0 2 3]
     [0 3 1]
     [2 4 3]
     [4 5 3]]
    """
    n_x, n_y = cell_counts(cells, 2)
    lengths = checks.positive("size", checks.array("size", size, (2,)))
    corner = checks.array("origin", origin, (3,))
    x = corner[0] + lengths[0] * (np.arange(n_x + 1) / n_x)
    y = corner[1] + lengths[1] * (np.arange(n_y + 1) / n_y)
    faces = _grid_triangles((n_x, n_y), alternating)
    return TriangleMesh(_grid_points(x, y, corner[2]), faces.reshape(-1, 3))


def walker(
    width: float = 2.0,
    origin: Sequence[float] = (0.0, 0.057, 0.0),
    *,
    cells: Sequence[int] = (9, 8),
    leg: Sequence[int] = (2, 4),
) -> TriangleMesh:
    """Return the flat body that learns to walk: a torso on two legs, in square cells.

    With the defaults it reaches over x in [-1, 1], y in [0.057, 1.835]: the size, and the numbers
    of points and triangles, of the walker in the gradSim paper, 74 and 104.

    Parameters
    ----------
    width : float
        Width of the torso [m], positive.
    origin : sequence of float
        The point on the ground between the feet, (3,) [m].
    cells : sequence of int
        How many cells it is wide and high.
    leg : sequence of int
        The same of each leg, below the two ends of the torso.

    Returns
    -------
    TriangleMesh
        Of triangles that face +z.

    Raises
    ------
    ValueError
        If the width is not positive, or the legs do not leave a torso and a gap between them.

    Examples
    --------
    >>> from adjsim.meshes import walker
    >>> print(walker().faces.shape)
    (104, 3)
    """
    width = float(checks.positive("width", checks.array("width", width, ())))
    middle = checks.array("origin", origin, (3,))
    (n_x, n_y), (wide, high) = cell_counts(cells, 2), cell_counts(leg, 2)
    if not (2 * wide < n_x and high < n_y):
        raise ValueError(
            f"`leg` must be less than half as wide as `cells` and less high, got {wide} x {high} "
            f"of {n_x} x {n_y}."
        )
    there = np.ones((n_x, n_y), bool)
    there[wide : n_x - wide, :high] = False  # between the legs
    x = middle[0] + width * (np.arange(n_x + 1) / n_x - 0.5)
    y = middle[1] + width * (np.arange(n_y + 1) / n_x)
    faces = _grid_triangles((n_x, n_y), alternating=True)[there.ravel()].reshape(-1, 3)
    return TriangleMesh(*used_points(_grid_points(x, y, middle[2]), faces))


def _grid_points(x: np.ndarray, y: np.ndarray, z: float) -> np.ndarray:
    """Return the points of a grid, y fastest, (n_points, 3)."""
    X, Y = np.meshgrid(x, y, indexing="ij")
    return np.stack([X, Y, np.full_like(X, z)], axis=-1).reshape(-1, 3)


def _grid_triangles(cells: tuple[int, int], alternating: bool) -> np.ndarray:
    """Return two triangles for each cell, (n_cells, 2, 3), counter-clockwise."""
    n_y = cells[1]
    i, j = (index.ravel() for index in np.indices(cells))
    a, b = i * (n_y + 1) + j, (i + 1) * (n_y + 1) + j
    even = np.stack([a, b, b + 1, a, b + 1, a + 1], axis=1)
    odd = np.stack([a, b, a + 1, b, b + 1, a + 1], axis=1)
    mirrored = alternating & ((i + j) % 2 == 1)
    return np.where(mirrored[:, None], odd, even).reshape(-1, 2, 3)
