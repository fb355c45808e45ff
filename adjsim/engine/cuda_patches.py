"""The work of a block of GPU threads on a patch of elements, between barriers of the block.

    load_state     x and v of the patch's nodes -> shared memory
    a chain        element functions -> slots in shared memory; consts, params in global memory
    sum_nodes      the slots of each node, in order -> its row of the sums

The chain runs the readers, element functions and writers of `adjsim/tiles/assembly.py` with other
arrays: nodes are numbers within the patch, fields and slots the block's. The patches are
those of `adjsim/engine/patches.py`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from adjsim.algebra.vec3 import sub
from adjsim.engine.patches import (
    NODE_LO,
    NODES,
    READS_REST,
    READS_VELOCITY,
    ROW,
    SLOTS,
    TILE_HI,
    TILE_LO,
)
from adjsim.jit.backend import device_fn
from adjsim.tiles.assembly import (
    TILE,
    U1,
    U2,
    U3,
    U_TILE,
    Loop,
    block_offsets,
    make_element,
    n_rows,
    places_of,
    row_counts,
)
from adjsim.tiles.element_kind import ElementKind
from adjsim.tiles.node_sum import node_sum


# Where the parts of a block's shared memory begin: slots of forces or of what goes back to
# positions, rest positions, up to four fields of nodes, and more slots.
ZERO = np.uint64(0)
REST, X0, V0, X1, V1, SLOTS1 = (np.uint64(SLOTS + k * 3 * NODES) for k in range(6))
SHARED_NUMBERS = SLOTS + 5 * 3 * NODES, 2 * SLOTS + 5 * 3 * NODES  # without and with these


@cache
def make_load_shared(n: int, *, relative: bool = False) -> Callable:
    """Return the reader of n vectors of one lane, from a field in shared memory."""
    if n == 0:
        return load_0
    head = make_load_shared(n - 1, relative=relative)
    node = np.uint64((n if relative else n - 1) * TILE)

    @device_fn
    def load_vectors(nodes, o, shared, start):
        return (*head(nodes, o, shared, start), vector_at(shared, start, nodes[o + node]))

    @device_fn
    def load_relative(nodes, o, shared, start):
        first = vector_at(shared, start, nodes[o])
        edge = sub(vector_at(shared, start, nodes[o + node]), first)
        return (*head(nodes, o, shared, start), edge)

    return load_relative if relative else load_vectors


@device_fn
def load_0(nodes, o, shared, start):
    """Return no vectors."""
    return ()


@device_fn
def vector_at(shared, start, i):
    """Return vector i of a field that begins at `start`."""
    o = start + U3 * np.uint64(i)
    return shared[o], shared[o + U1], shared[o + U2]


def from_patch(kind: ElementKind, letter: str, field: int) -> Callable:
    """Return the reader of what a field says of an element's nodes; fields are where they begin."""
    load = make_load_shared(n_rows(kind, letter), relative=kind.relative)

    @device_fn
    def read(source, lane, at, fields):
        nodes, shared = source
        return load(nodes, at[0], shared, fields[field])

    return read


def from_rest(kind: ElementKind) -> Callable:
    """Return the reader of an element's constants, which computes them from rest positions."""
    load, constants = make_load_shared(kind.n_vectors, relative=kind.relative), kind.rest
    assert constants is not None

    @device_fn
    def read(source, lane, at, fields):
        nodes, shared = source
        return constants(load(nodes, at[0], shared, REST))

    return read


@cache
def make_patch_lanes(loop: Loop, kind: ElementKind, element: Callable | None) -> Callable:
    """Return the function that does the elements of a patch, strided over the threads.

    `fields` and `slots` are where those of X and V begin in shared memory.
    """
    if element is None:
        return no_patch_lanes
    read_rest = from_rest(kind) if kind.rest else None
    do, counts = make_element(loop, kind, element, from_patch, read_rest), row_counts(kind)
    slots_of_tile = np.uint64(3 * kind.n_nodes * TILE)

    @device_fn
    def lanes(thread, stride, patch, step, patches, elements, shared, fields, slots, rows, out):
        row = patches.table[patch]
        i, n = thread, (row[TILE_HI] - row[TILE_LO]) * TILE
        while i < n:  # a range with a step would divide
            offsets = block_offsets(elements.table, row[ROW], step)  # here: fewer registers
            tile, q = np.uint64(i) // U_TILE, np.uint64(i) % U_TILE
            places = places_of(offsets, np.uint64(row[TILE_LO]) + tile, q, counts)
            slot = tile * slots_of_tile + q
            at = (places[0], places[1], places[2], places[3], slots[0] + slot, slots[1] + slot)
            do((elements.nodes, shared), q, at, fields, rows, out)
            i += stride

    return lanes


@device_fn
def no_patch_lanes(
    thread, stride, patch, step, patches, elements, shared, fields, slots, rows, out
):
    """Stand for forces that have no such element function."""


def make_patch_chain(forces: tuple[Callable, ...]) -> Callable:
    """Return the function that does a patch's elements, whichever force they are of."""
    chain = no_patch_lanes
    for force, lanes in enumerate(forces):
        if lanes is not no_patch_lanes:
            chain = _longer(chain, lanes, force, len(forces))
    return chain


def _longer(head: Callable, lanes: Callable, force: int, n_forces: int) -> Callable:
    """Return a chain with one more force."""

    @device_fn
    def chain(thread, stride, patch, step, patches, elements, shared, fields, slots, rows, out):
        if patches.table[patch, ROW] % n_forces == force:
            lanes(thread, stride, patch, step, patches, elements, shared, fields, slots, rows, out)
        else:
            head(thread, stride, patch, step, patches, elements, shared, fields, slots, rows, out)

    return chain


@device_fn
def load_nodes(thread, stride, patch, patches, field, shared, start):
    """Read the rows of a patch's nodes into shared memory."""
    lo, hi = patches.table[patch, NODE_LO], patches.table[patch + 1, NODE_LO]
    j = lo + thread
    while j < hi:
        n, o = np.uint64(patches.nodes[np.uint64(j)]), start + U3 * np.uint64(j - lo)
        shared[o], shared[o + U1], shared[o + U2] = field[n, 0], field[n, 1], field[n, 2]
        j += stride


@device_fn
def load_state(thread, stride, patch, patches, state, shared, starts):
    """Read positions of a patch's nodes and, if its elements do, velocities."""
    load_nodes(thread, stride, patch, patches, state.x, shared, starts[0])
    if patches.table[patch, READS_VELOCITY] > 0:
        load_nodes(thread, stride, patch, patches, state.v, shared, starts[1])


@device_fn
def load_rest(thread, stride, patch, patches, shared):
    """Read the rest positions of a patch's nodes into shared memory, if its elements do."""
    lo, hi = 3 * patches.table[patch, NODE_LO], 3 * patches.table[patch + 1, NODE_LO]
    k = lo + thread if patches.table[patch, READS_REST] > 0 else hi
    while k < hi:
        shared[REST + np.uint64(k - lo)] = patches.rest[np.uint64(k)]
        k += stride


@device_fn
def sum_nodes(thread, stride, patch, patches, slots, sums):
    """Add up the slots of each of a patch's nodes."""
    lo, hi = patches.table[patch, NODE_LO], patches.table[patch + 1, NODE_LO]
    j = lo + thread
    while j < hi:
        n = np.uint64(j)
        sums[n, 0], sums[n, 1], sums[n, 2] = node_sum(n, patches.ptr, patches.places, slots)
        j += stride


@device_fn
def sum_moving(thread, stride, patch, patches, slots, sums):
    """Add up the slots of velocities of each of a patch's nodes, if its elements write any."""
    if patches.table[patch, READS_VELOCITY] > 0:
        sum_nodes(thread, stride, patch, patches, slots, sums)


def make_forces_of_patches(chain: Callable) -> Callable:
    """Return the function that writes the sums of forces of all patches that this block works on.

    `team` is this thread's number and how many threads a block has, and the same of blocks; `wait`
    is the barrier of the block.
    """

    @device_fn
    def forces(team, wait, step, patches, elements, state, shared, slots):
        thread, stride, patch, n_blocks = team
        numbers = (elements.consts, elements.params, elements.series)
        while patch < patches.table.shape[0] - 1:
            load_rest(thread, stride, patch, patches, shared)
            load_state(thread, stride, patch, patches, state, shared, (X0, V0))
            wait()
            chain(
                thread, stride, patch, step, patches, elements, shared, (X0, V0), (ZERO, ZERO),
                numbers, (shared,),
            )  # fmt: skip
            wait()
            sum_nodes(thread, stride, patch, patches, shared, slots)
            patch += n_blocks

    return forces
