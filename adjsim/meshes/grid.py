"""Boxes cut into tetrahedra.

Five tetrahedra to a cell: one on the four corners whose bits (x, y, z) have an even sum,
one at each of the other four corners; every second cell is mirrored, so that the
diagonals of shared faces agree. Six to a cell: one for each order in which the three axes
can be walked from corner (0, 0, 0) to corner (1, 1, 1) (Kuhn 1960); all cells are alike,
so the mesh has a preferred diagonal, and no alternation.

Tests: `tests/meshes/test_grid.py`.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from adjsim import checks
from adjsim.meshes.tet_mesh import TetMesh, signed_volumes


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
    """
    counts = _cell_counts(cells)
    lengths = checks.positive("size", checks.array("size", size, (3,)))
    corner = checks.array("origin", origin, (3,))
    if tets_per_cell not in (5, 6):
        raise ValueError(f"`tets_per_cell` must be 5 or 6, got {tets_per_cell}.")

    axes = [corner[d] + lengths[d] * (np.arange(counts[d] + 1) / counts[d]) for d in range(3)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)

    _, n_y, n_z = counts
    i, j, k = np.meshgrid(*(np.arange(n) for n in counts), indexing="ij")
    first = ((i * (n_y + 1) + j) * (n_z + 1) + k).ravel()
    # Corner number of a cell: 4 x + 2 y + z of its bits.
    step = np.array([(x * (n_y + 1) + y) * (n_z + 1) + z for x, y, z in _corner_bits()])
    if tets_per_cell == 6:
        tets = first[:, None, None] + step[_kuhn_tets()]
    else:
        even, odd = _five_tets()
        mirrored = ((i + j + k) % 2 == 1).ravel()
        template = np.where(mirrored[:, None, None], odd, even)
        tets = first[:, None, None] + step[template]
    return TetMesh(points, tets.reshape(-1, 4))


def _cell_counts(cells: Sequence[int]) -> tuple[int, int, int]:
    """Return the three counts as Python integers, each at least 1."""
    given = np.asarray(cells)
    if given.shape != (3,) or given.dtype.kind not in "iu" or (given < 1).any():
        raise ValueError(f"`cells` must be three whole numbers, each at least 1, got {cells!r}.")
    n_x, n_y, n_z = (int(n) for n in given)
    return n_x, n_y, n_z


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
