"""Patches: runs of elements of one force that a block of GPU threads works on together.

Their slots lie in the block's shared memory. The block adds up the slots of each of its nodes and
writes one sum per patch and node to global memory, where a node adds up its few sums. Both orders
are fixed: element and local node within a patch, force and patch at a node. Elements are
sorted along a Morton curve, so that a patch is compact and has few nodes.

Tests: `tests/engine/test_patches.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim.forces.element import Force
from adjsim.jit.row_gathers import TILE
from adjsim.tiles.element_kind import ElementKind


# Of a patch at most: elements, nodes, and numbers of slots.
ELEMENTS, NODES, SLOTS = 256, 192, 3072
SMALL_PATCH, MOST_IN_SMALL = 128, 60_000  # elements of such a patch, and of all patches
LEVELS = 10  # of the Morton curve: bits per axis


# Columns of `Patches.table`.
ROW, TILE_LO, TILE_HI, READS_VELOCITY, READS_REST, NODE_LO = range(6)


class Patches(NamedTuple):
    """Patches of every force, one after the other, and their nodes, patch by patch.

    `table` (n_patches + 1, 6) int64: the ROW of a patch in the table of elements, its tiles,
    whether its elements read velocities and rest positions, and its first node. Node j of all
    patches is row nodes[j] of X and adds up the slots places[ptr[j]:ptr[j + 1]] of its patch; its
    rest position is three numbers of `rest`, from which constants are computed: they take less
    memory than these.
    """

    table: Any
    nodes: Any
    ptr: Any
    places: Any
    rest: Any


def morton_order(force: Force) -> np.ndarray | None:
    """Return a force's elements along a Morton curve at rest; None: as they are."""
    rest = getattr(force, "rest_positions", None)
    if rest is None or force.changes or not force.is_of_nodes or len(force.nodes) <= ELEMENTS:
        return None
    centroids = rest[force.nodes].mean(axis=1)
    size = np.ptp(centroids, axis=0).max() or 1.0
    cells = ((centroids - centroids.min(axis=0)) / size * (2**LEVELS - 1)).astype(np.int64)
    code = np.zeros(len(cells), np.int64)
    for bit in range(LEVELS):
        for axis in range(3):
            code |= (cells[:, axis] >> bit & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


def patch_elements(n_elements: int) -> int:
    """Return how many of `n_elements` elements a patch has at most.

    The threads of a block, 128, do the elements of a patch one after the other. One tetrahedron
    is a chain of operations that takes 1.1 us, and 3 us in reverse (by estimate, a step of 10 000
    takes 11 and 26). An H200 has 132 multiprocessors with room for 4 such blocks each: up to
    132 x 4 x 128 = 67 000 elements all are done at once, one by each thread. Beyond, the chains
    queue up either way, and patches of 256 have a sixth fewer nodes to read and to add up.
    """
    return SMALL_PATCH if n_elements <= MOST_IN_SMALL else ELEMENTS


def cut_patches(
    rows: Sequence[np.ndarray], kinds: Sequence[ElementKind], n_nodes: int
) -> tuple[Patches, list[np.ndarray], list[np.ndarray]]:
    """Return the patches of elements, their nodes' numbers in patches, and the patches' nodes.

    By row of the table: `rows`, the nodes of elements, (n_elements, k) rows of X; their `kinds`;
    and what is returned beside the patches. Rest positions are 0. Elements with pairs, of one row
    each, are in no patch; that row is the node.
    """
    tables, places, counts, local, owners = [], [], [], [], []
    n_pairs, none, most = 0, np.zeros(0, np.int64), patch_elements(sum(map(len, rows)))
    for row, nodes in enumerate(rows):
        n, k = nodes.shape
        if kinds[row].pairs:
            local.append(np.zeros((n, k), np.uint16))
            owners.append(nodes.ravel())
            continue
        size, pairs, which, own_counts = _patch_nodes(nodes, n_nodes, most)
        own_patch, own_nodes = np.divmod(pairs, n_nodes)
        numbers = np.arange(-(-n // size))
        first = np.searchsorted(own_patch, numbers)
        table = np.zeros((len(numbers), 6), np.int64)
        table[:, ROW], table[:, READS_VELOCITY] = row, kinds[row].uses_velocity
        table[:, READS_REST] = kinds[row].rest is not None
        table[:, TILE_LO], table[:, NODE_LO] = size // TILE * numbers, n_pairs + first
        table[:, TILE_HI] = np.minimum(size // TILE * (numbers + 1), -(-n // TILE))
        patch, e = np.divmod(np.arange(n), size)
        own_places = ((e // TILE * k)[:, None] + np.arange(k)) * 3 * TILE + (e % TILE)[:, None]
        order = np.argsort(which.ravel(), kind="stable")
        tables.append(table)
        places.append(own_places.ravel()[order])
        counts.append(own_counts)
        local.append((which - first[patch][:, None]).astype(np.uint16))
        owners.append(own_nodes)
        n_pairs += len(pairs)
    table = np.concatenate([*tables, [[len(rows), 0, 0, 0, 0, n_pairs]]]).astype(np.int64)
    ptr = np.concatenate([[0], np.cumsum(np.concatenate([none, *counts]))])
    in_patches = [nodes for nodes, kind in zip(owners, kinds, strict=True) if not kind.pairs]
    patches = Patches(
        table,
        np.concatenate([none, *in_patches]).astype(np.uint32),
        ptr.astype(np.uint32),
        np.concatenate([none, *places]).astype(np.uint16),
        np.zeros((n_pairs, 3)),
    )
    return patches, local, owners


def _patch_nodes(
    nodes: np.ndarray, n_nodes: int, most: int
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return how many elements of one force form a patch, `most` or less, and the nodes of these.

    The nodes as patch times `n_nodes` plus row of X, in order; which of them the nodes of each
    element are; and how often each occurs.
    """
    n, k = nodes.shape
    size = min(most, SLOTS // (3 * k * TILE) * TILE)
    while True:
        keys = (np.arange(n) // size)[:, None] * n_nodes + nodes
        pairs, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
        if size == TILE or np.bincount(pairs // n_nodes).max(initial=0) <= NODES:
            return size, pairs, which.reshape(n, k), counts
        size = max(TILE, size // 2 // TILE * TILE)
