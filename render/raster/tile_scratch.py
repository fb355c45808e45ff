"""Room in which a thread works the tiles of a frame, one after the other.

What is in it at the start is left over from other tiles. Blocks reach beyond the last fragment
of a tile: what they find there is dropped.

Tests: `tests/render/raster/test_tile_scratch.py`.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from render.raster.fragments import BLOCK, Fragments, TileGrid, Tiles
from render.raster.tile_rows import LANES, PLACES, SCRATCH


T = TypeVar("T")
# Fragments of a tile for which a thread keeps its room: with the largest, an image and its
# gradient leave some 10 MB, and tangents and outputs besides 25 MB.
LARGEST_KEPT = 1 << 16


class TileSize(NamedTuple):
    """What the tiles of a frame hold at most."""

    fragments: int
    pairs: int
    shift: int  # a tile has 1 << shift pixels in each direction
    dtype: np.dtype


def tile_size(tiles: Tiles, grid: TileGrid) -> TileSize:
    """Return what the tiles of a frame hold at most."""
    n, n_pairs = int(tiles.capacity.max()), int(np.diff(tiles.start).max())
    return TileSize(n, n_pairs, grid.shift, grid.pixel_x.dtype)


class _Rooms(threading.local):
    """The rooms of each thread: to make them again is a tenth of a small image on two threads."""

    def __init__(self) -> None:
        self.kept: dict[Any, tuple[TileSize, Any]] = {}


ROOMS = _Rooms()


def own_room(make: Callable[[TileSize], T], size: TileSize) -> T:
    """Return make(size), or what this thread made before if it is as large.

    `make` may take a part from here too: forward and reverse share what is in the cache.
    """
    key = make, size.dtype
    held, room = ROOMS.kept.get(key, (size, None))
    if held.shift == size.shift:
        size = size._replace(
            fragments=max(size.fragments, held.fragments), pairs=max(size.pairs, held.pairs)
        )
    if room is None or size != held:
        room = make(size)
        if size.fragments <= LARGEST_KEPT:
            ROOMS.kept[key] = size, room
    return room


def empty_fragments(size: TileSize) -> Fragments:
    """Return room for the fragments of a tile."""
    n, dtype, side = size.fragments + LANES, size.dtype, 1 << size.shift
    pixel, face, order = (np.empty(n, np.int32) for _ in range(3))
    spare = np.empty(max(n, PLACES), np.int32)
    # Blocks reach beyond the last fragment: what they find is dropped, but not left to chance.
    p_x, p_y, y, D, rest, z, u = (np.zeros(n, dtype) for _ in range(7))
    start = np.empty(side * side + 2, np.int32)
    pair = np.empty(size.pairs + 1, np.int64)
    logits, box_x, box_y = (np.empty(max(BLOCK, side) + LANES, dtype) for _ in range(3))
    rgb, shade = np.empty((n, 3), dtype), np.zeros(SCRATCH, dtype)
    return Fragments(
        pixel, face, p_x, p_y, y, D, rest, z, u, rgb, order, spare, start, pair,
        logits, box_x, box_y, shade,
    )  # fmt: skip
