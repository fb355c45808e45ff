"""Rows of elements by tiles, as the tile loops read them, and back.

Tests: `tests/tiles/test_assembly.py`.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from adjsim.tiles.assembly import TILE


def to_tiles(rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return (..., n, k) rows by tiles, flat; the last tile repeats the last element."""
    *steps, n, k = rows.shape
    if rows.size == 0:
        return np.empty(0, dtype)
    n_tiles = -(-n // TILE)
    padded = rows[..., np.minimum(np.arange(n_tiles * TILE), n - 1), :]
    return padded.reshape(*steps, n_tiles, TILE, k).swapaxes(-1, -2).astype(dtype, "C").ravel()


def from_tiles(flat: np.ndarray, n: int, k: int) -> np.ndarray:
    """Return (n, k) rows of a flat array by tiles; what padding lanes hold is dropped."""
    n_tiles = -(-n // TILE)
    rows = flat.reshape(n_tiles, k, TILE).transpose(0, 2, 1).reshape(n_tiles * TILE, k)[:n]
    return np.ascontiguousarray(rows)  # of one tile it is a view, whose sums have another order


def join(rows: Sequence[Sequence[np.ndarray]], group_ends: np.ndarray) -> list[np.ndarray]:
    """Join `rows[world][force]`, (..., n_elements, n), along elements: one array per table row."""
    return [
        rows[first][f]
        if last == first + 1
        else np.concatenate([world_rows[f] for world_rows in rows[first:last]], axis=-2)
        for first, last in pairwise(group_ends)
        for f in range(len(rows[first]))
    ]
