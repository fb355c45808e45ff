"""Boxes cut into tetrahedra.

Five tetrahedra to a cell: one on the four corners whose bits (x, y, z) have an even sum,
one at each of the other four corners; every second cell is mirrored, so that the
diagonals of shared faces agree. Six to a cell: one for each order in which the three axes
can be walked from corner (0, 0, 0) to corner (1, 1, 1) (Kuhn 1960); all cells are alike,
so the mesh has a preferred diagonal, and no alternation; that is what fits where an axis
is bent to a ring, whatever the number of cells.

Tests: `tests/meshes/test_grid.py`.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from adjsim import checks
from adjsim.meshes.tet_mesh import TetMesh, signed_volumes


# Bytes that cutting a cell takes, by the number of dimensions: measured, of six tetrahedra. What
# is asked for is refused where it is more than the machine has at all.
CUTTING = {2: 200, 3: 3900}


def box_tets(
    cells: Sequence[int],
    size: Sequence[float] = (1.0, 1.0, 1.0),
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    *,
    tets_per_cell: int = 5,
) -> TetMesh:
    """Return the box `origin` to `origin + size`, cut into cells and these into tetrahedra.

    Point (i, j, k) of the grid has the number (i (n_y + 1) + j) (n_z + 1) + k. The volumes
    add up to that of the box, so that a density weighs exactly rho V.

    Parameters
    ----------
    cells : sequence of int
        Number of cells along x, y and z, (3,), each at least 1.
    size : sequence of float
        Edge lengths of the box, (3,) [m], positive.
    origin : sequence of float
        The corner with the smallest coordinates, (3,) [m].
    tets_per_cell : int
        5 (alternating) or 6 (all cells alike).

    Returns
    -------
    TetMesh
        (n_x + 1)(n_y + 1)(n_z + 1) points, `tets_per_cell` n_x n_y n_z tetrahedra.

    Raises
    ------
    ValueError
        If a count is below 1 or not whole, a length is not positive, or
        `tets_per_cell` is neither 5 nor 6.

    Examples
    --------
    >>> from adjsim.meshes import box_tets
    >>> box = box_tets(cells=(2, 1, 1), size=(0.2, 0.1, 0.1))
    >>> print(box.points.shape, box.tets.shape, round(box.volumes.sum(), 6))
    (12, 3) (10, 4) 0.002
    """
    counts = cell_counts(cells, 3)
    lengths = checks.positive("size", checks.array("size", size, (3,)))
    corner = checks.array("origin", origin, (3,))
    if tets_per_cell not in (5, 6):
        raise ValueError(f"`tets_per_cell` must be 5 or 6, got {tets_per_cell}.")

    axes = [corner[d] + lengths[d] * (np.arange(counts[d] + 1) / counts[d]) for d in range(3)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)

    index = np.arange(len(points)).reshape(*(n + 1 for n in counts))
    return TetMesh(points, grid_tets(index, tets_per_cell=tets_per_cell))


def grid_tets(
    index: np.ndarray, *, tets_per_cell: int = 5, filled: np.ndarray | None = None
) -> np.ndarray:
    """Cut the cells of a grid of points into tetrahedra, (n_tets, 4) int64.

    `index`, (n_x + 1, n_y + 1, n_z + 1) int, is the number of the point at each place of the grid;
    an axis whose last plane repeats the numbers of the first is a ring. `tets_per_cell` is 5
    (alternating; around a ring an even number of cells) or 6 (all cells alike). `filled` is a mask
    of the cells that are there, (n_x, n_y, n_z) bool; None: all. Tetrahedra are positive where the
    three axes form a right-handed frame.
    """
    index = checks.integers("index", index, ("n_x + 1", "n_y + 1", "n_z + 1"))
    counts = tuple(n - 1 for n in index.shape)
    corners = [
        index[tuple(slice(bit, bit + n) for bit, n in zip(bits, counts, strict=True))]
        for bits in _corner_bits()
    ]
    cells = np.stack(corners, axis=-1).reshape(-1, 8)
    if tets_per_cell == 6:
        template = np.broadcast_to(_kuhn_tets(), (len(cells), 6, 4))
    else:
        even, odd = _five_tets()
        mirrored = np.indices(counts).sum(axis=0).ravel() % 2 == 1
        template = np.where(mirrored[:, None, None], odd, even)
    tets = cells[np.arange(len(cells))[:, None, None], template]
    if filled is not None:
        tets = tets[filled.ravel()]
    return tets.reshape(-1, 4)


def cell_counts(cells: Sequence[int], dimensions: int) -> tuple[int, ...]:
    """Return the counts as Python integers, each at least 1, if there is memory to cut so many."""
    given = np.asarray(cells)
    if given.shape != (dimensions,) or given.dtype.kind not in "iu" or (given < 1).any():
        number = {2: "two", 3: "three"}[dimensions]
        raise ValueError(f"`cells` must be {number} whole numbers, each at least 1, got {cells!r}.")
    counts = tuple(int(n) for n in given)
    n_cells = math.prod(counts)
    n_bytes = n_cells * CUTTING[dimensions]
    try:
        np.empty(n_bytes, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:  # the others beyond 63 bits
        raise MemoryError(
            f"`cells` must leave the mesh room in memory: to cut {n_cells:,} cells, "
            f"{list(counts)}, takes about {n_bytes:,} bytes. Take fewer."
        ) from error
    return counts


def _corner_bits() -> list[tuple[int, int, int]]:
    """Return the bits (x, y, z) of corners 0 to 7 of a cell."""
    return [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]


def _positive(template: list[list[int]]) -> np.ndarray:
    """Return the tetrahedra of a unit cell, two nodes swapped where one is inverted."""
    tets = np.array(template)
    negative = signed_volumes(np.array(_corner_bits(), dtype=float), tets) < 0.0
    tets[negative] = tets[negative][:, [0, 1, 3, 2]]
    return tets


def _five_tets() -> tuple[np.ndarray, np.ndarray]:
    """Return the five tetrahedra of an even and of an odd (mirrored) cell, (5, 4) each."""
    even = [[0b000, 0b011, 0b101, 0b110]]
    even += [[c, c ^ 0b100, c ^ 0b010, c ^ 0b001] for c in (0b100, 0b010, 0b001, 0b111)]
    odd = [[c ^ 0b100 for c in tet] for tet in even]
    return _positive(even), _positive(odd)


def _kuhn_tets() -> np.ndarray:
    """Return the six tetrahedra of a cell, (6, 4)."""
    walks = [
        list(itertools.accumulate((1 << axis for axis in order), initial=0))
        for order in itertools.permutations(range(3))
    ]
    return _positive(walks)
