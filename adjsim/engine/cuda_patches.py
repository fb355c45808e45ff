"""The work of a block of GPU threads on a patch of elements, between barriers of the block.

    load_state     x and v of the patch's nodes -> shared memory
    a chain        element functions -> slots in shared memory; consts, params in global memory
    sum_nodes      the slots of each node, in order -> its row of the sums

The chain runs the readers, element functions and writers of `adjsim/engine/assembly.py` with other
arrays: nodes are numbers within the patch, fields and slots the block's. The patches are
those of `adjsim/engine/patches.py`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from adjsim.engine.algebra.vec3 import sub
from adjsim.engine.assembly import (
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
from adjsim.engine.jit.backend import device_fn
from adjsim.engine.node_sum import node_sum
from adjsim.engine.patches import MOVES, NODE_LO, ROW, TILE_HI, TILE_LO
from adjsim.forces.element import ElementKind


@cache
def make_load_vectors(n: int, *, relative: bool = False) -> Callable:
    """Return the reader of n vectors of one lane, straight from a field."""
    if n == 0:
        return load_0
    head = make_load_vectors(n - 1, relative=relative)
    node = np.uint64((n if relative else n - 1) * TILE)

    @device_fn
    def load_vectors(nodes, o, field):
        i = np.uint64(nodes[o + node])
        return (*head(nodes, o, field), vector_at(field, i))

    @device_fn
    def load_relative(nodes, o, field):
        i, j = np.uint64(nodes[o + node]), np.uint64(nodes[o])
        return (*head(nodes, o, field), sub(vector_at(field, i), vector_at(field, j)))

    return load_relative if relative else load_vectors


@device_fn
def load_0(nodes, o, field):
    """Return no vectors."""
    return ()


def from_nodes(kind: ElementKind, letter: str, field: int) -> Callable:
    """Return the reader of what a field says of an element's nodes."""
    load = make_load_vectors(n_rows(kind, letter), relative=kind.relative)

    @device_fn
    def read(source, lane, at, fields):
        return load(source, at[0], fields[field])

    return read


@device_fn
def vector_at(field, i):
    """Return row i of an (n, 3) field, or of one whose rows follow each other."""
    if field.ndim == 2:
        return field[i, 0], field[i, 1], field[i, 2]
    o = U3 * i
    return field[o], field[o + U1], field[o + U2]


@cache
def make_lanes(loop: Loop, kind: ElementKind, element: Callable | None) -> Callable:
    """Return the function that does the elements of a patch, strided over the threads."""
    if element is None:
        return no_lanes
    do, counts = make_element(loop, kind, element, from_nodes), row_counts(kind)
    slots_of_tile = np.uint64(3 * kind.n_nodes * TILE)

    @device_fn
    def lanes(thread, stride, patch, step, patches, elements, fields, rows, out):
        part = patches.table[patch]
        offsets = block_offsets(elements.table, part[ROW], step)
        first, n = np.uint64(part[TILE_LO]), (part[TILE_HI] - part[TILE_LO]) * TILE
        for i in range(thread, n, stride):
            tile, q = np.uint64(i) // U_TILE, np.uint64(i) % U_TILE
            own = places_of(offsets, first + tile, q, counts)
            at = (own[0], own[1], own[2], own[3], tile * slots_of_tile + q)
            do(elements.nodes, q, at, fields, rows, out)

    return lanes


@device_fn
def no_lanes(thread, stride, patch, step, patches, elements, fields, rows, out):
    """Stand for forces that have no such element function."""


def make_chain(forces: tuple[Callable, ...]) -> Callable:
    """Return the function that does a patch's elements, whichever force they are of."""
    chain = no_lanes
    for force, lanes in enumerate(forces):
        if lanes is not no_lanes:
            chain = _longer(chain, lanes, force, len(forces))
    return chain


def _longer(head: Callable, lanes: Callable, force: int, n_forces: int) -> Callable:
    """Return a chain with one more force."""

    @device_fn
    def chain(thread, stride, patch, step, patches, elements, fields, rows, out):
        if patches.table[patch, ROW] % n_forces == force:
            lanes(thread, stride, patch, step, patches, elements, fields, rows, out)
        else:
            head(thread, stride, patch, step, patches, elements, fields, rows, out)

    return chain


@device_fn
def load_nodes(thread, stride, patch, patches, field, here):
    """Read the rows of a patch's nodes."""
    lo, hi = patches.table[patch, NODE_LO], patches.table[patch + 1, NODE_LO]
    for j in range(lo + thread, hi, stride):
        n, o = np.uint64(patches.nodes[j]), 3 * (j - lo)
        here[o], here[o + 1], here[o + 2] = field[n, 0], field[n, 1], field[n, 2]


@device_fn
def load_state(thread, stride, patch, patches, state, here):
    """Read positions of a patch's nodes and, if its elements do, velocities."""
    load_nodes(thread, stride, patch, patches, state.x, here[0])
    if patches.table[patch, MOVES] > 0:
        load_nodes(thread, stride, patch, patches, state.v, here[1])


@device_fn
def sum_nodes(thread, stride, patch, patches, slots, sums):
    """Add up the slots of each of a patch's nodes."""
    lo, hi = patches.table[patch, NODE_LO], patches.table[patch + 1, NODE_LO]
    for j in range(lo + thread, hi, stride):
        sums[j, 0], sums[j, 1], sums[j, 2] = node_sum(
            np.uint64(j), patches.ptr, patches.places, slots
        )


@device_fn
def sum_moving(thread, stride, patch, patches, slots, sums):
    """Add up the slots of velocities of each of a patch's nodes, if its elements write any."""
    if patches.table[patch, MOVES] > 0:
        sum_nodes(thread, stride, patch, patches, slots, sums)


@device_fn
def split(numbers, n):
    """Return the first n of some numbers, and the others."""
    return numbers[:n], numbers[n:]
