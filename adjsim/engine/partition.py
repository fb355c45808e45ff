"""How the work of a rollout is cut in parts, one for a thread at a time.

    tile_ptr, tiles      part i runs tiles[tile_ptr[i]:tile_ptr[i + 1]]: FORCE, ROW of the
                         table, TILE_LO, TILE_HI
    range_ptr, ranges    and advances ranges[range_ptr[i]:range_ptr[i + 1]]: WORLD, its nodes
                         NODE_LO to NODE_HI, its bodies BODY_LO to BODY_HI

A part's nodes, all worlds together, are one run of rows, and so are its bodies. Parts of whole
groups of worlds stand apart: no element of one touches a node of another.
"""

from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.packing import PackedModels
from adjsim.tiles.assembly import FORCE, N_TILES, ROW, TILE_HI


WORLD, NODE_LO, NODE_HI, BODY_LO, BODY_HI = range(5)


class Parts(NamedTuple):
    """The parts, as above."""

    tile_ptr: np.ndarray
    tiles: np.ndarray
    range_ptr: np.ndarray
    ranges: np.ndarray


def cuts(n: int, n_chunks: int) -> np.ndarray:
    """Return the ends of n_chunks nearly equal parts of range(n)."""
    return np.arange(n_chunks + 1, dtype=np.int64) * n // n_chunks


def tiles_of(packed: PackedModels) -> np.ndarray:
    """Return how many tiles each row of the table has to run: none where pairs are summed up."""
    runs = [kind.pairs is None for kind in packed.kinds]
    return packed.table[:, N_TILES] * np.tile(np.array(runs, np.int64), packed.n_groups)


def whole_groups(packed: PackedModels, *, merged: bool = True) -> Parts:
    """Return one part per group of worlds.

    If `merged`, worlds of a group that follow each other with the same gravity are one range,
    as if they were the first of them: a call less per world and step.
    """
    n_forces = len(packed.kinds)
    tiles = np.zeros((n_forces * packed.n_groups, 4), np.int64)
    tiles[:, ROW] = np.arange(len(tiles))
    tiles[:, FORCE] = tiles[:, ROW] % max(n_forces, 1)
    tiles[:, TILE_HI] = tiles_of(packed)
    tile_ptr = np.arange(packed.n_groups + 1) * n_forces
    starts = np.ones(packed.n_worlds, bool)
    if merged:
        starts[1:] = (packed.gravity[1:] != packed.gravity[:-1]).any(axis=1)
        starts[packed.group_ends[:-1]] = True
    worlds = np.flatnonzero(starts)
    ends = np.append(worlds, packed.n_worlds)
    nodes, bodies = packed.node_ends[ends], packed.body_ends[ends]
    ranges = np.stack([worlds, nodes[:-1], nodes[1:], bodies[:-1], bodies[1:]], axis=1)
    range_ptr = np.searchsorted(worlds, packed.group_ends).astype(np.int64)
    return Parts(tile_ptr, tiles, range_ptr, ranges)


def even_shares(packed: PackedModels, n_parts: int) -> Parts:
    """Return so many parts, each a share of every force's tiles, of the nodes and the bodies."""
    tiles: list[list[tuple[int, ...]]] = [[] for _ in range(n_parts)]
    ranges: list[list[tuple[int, ...]]] = [[] for _ in range(n_parts)]
    for row, n_tiles in enumerate(tiles_of(packed)):
        ends = cuts(int(n_tiles), n_parts).tolist()
        for i in range(n_parts):
            tiles[i].append((row % len(packed.kinds), row, ends[i], ends[i + 1]))
    nodes, bodies = (cuts(n, n_parts) for n in (packed.n_nodes, packed.n_bodies))
    for i in range(n_parts):
        for world in range(packed.n_worlds):
            overlaps = (
                _overlap(nodes, packed.node_ends, i, world),
                _overlap(bodies, packed.body_ends, i, world),
            )
            if any(lo < hi for lo, hi in overlaps):
                ranges[i].append((world, *overlaps[0], *overlaps[1]))
    return Parts(*_listed(tiles, 4), *_listed(ranges, 5))


def _overlap(cut: np.ndarray, ends: np.ndarray, i: int, world: int) -> tuple[int, int]:
    """Return what a part and a world have in common of a run of rows; lo = hi: nothing.

    Both lie inside the part, so that the rows from its first world to its last are its own.
    """
    lo, hi = (min(max(int(end), int(cut[i])), int(cut[i + 1])) for end in ends[world : world + 2])
    return lo, hi


def _listed(lists: list[list[Any]], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of rows as one array, with where each list begins and ends."""
    ptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return ptr, np.array([row for rows in lists for row in rows], np.int64).reshape(-1, width)
