r"""The time loop on a GPU: one thread per element, then one per node, in one kernel.

A tile is half a warp: lane q of tile t is element 16 t + q, so reads of rows and writes of
slots are coalesced. The whole rollout is one cooperative launch; the grid synchronises
between elements and nodes, so no step costs a launch. The CPU runs the same element
functions, readers and `step_node`.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.assembly import (
    FORCE_LOOP,
    N_TILES,
    TILE,
    U_TILE,
    Loop,
    block_offsets,
    make_element,
    n_rows,
    places_of,
    row_counts,
)
from adjsim.engine.jit.backend import (
    Device,
    array_module,
    cuda_module,
    device_fn,
    is_hashed,
    launch_cooperative,
    specialise,
    to_host,
)
from adjsim.engine.loop_arrays import ModelArrays, States
from adjsim.engine.packing import PackedModels
from adjsim.engine.timeloop import state_at, step_node
from adjsim.forces.element import ElementKind
from adjsim.rigid.points import step_body


@cache
def make_load_vectors(n: int, *, relative: bool = False) -> Callable:
    """Return the reader of n vectors of one lane, straight from an (n_nodes, 3) field."""
    if n == 0:
        return load_0
    head = make_load_vectors(n - 1, relative=relative)
    node = np.uint64((n if relative else n - 1) * TILE)

    @device_fn
    def load_vectors(nodes, o, field):
        i = np.uint64(nodes[o + node])
        return (*head(nodes, o, field), (field[i, 0], field[i, 1], field[i, 2]))

    @device_fn
    def load_relative(nodes, o, field):
        i, j = np.uint64(nodes[o + node]), np.uint64(nodes[o])
        edge = (field[i, 0] - field[j, 0], field[i, 1] - field[j, 1], field[i, 2] - field[j, 2])
        return (*head(nodes, o, field), edge)

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


@cache
def make_lane(loop: Loop, kind: ElementKind, element: Callable | None) -> Callable:
    """Return the function that does element i of the force in a row of the table."""
    if element is None:
        return no_lane
    do, counts = make_element(loop, kind, element, from_nodes), row_counts(kind)

    @device_fn
    def lane(i, row, step, table, nodes, fields, rows, out):
        tile, q = np.uint64(i) // U_TILE, np.uint64(i) % U_TILE
        at = places_of(block_offsets(table, row, step), tile, q, counts)
        do(nodes, q, at, fields, rows, out)

    return lane


@device_fn
def no_lane(i, row, step, table, nodes, fields, rows, out):
    """Stand for a force that has no such element function."""


@device_fn
def no_lanes(start, stride, step, table, nodes, fields, rows, out):
    """End the chain of forces; return which lane of the next this thread begins with."""
    return start


def make_chain(lanes: tuple[Callable, ...]) -> Callable:
    """Return a function that runs every force's lanes, strided over the grid.

    Each force has a row of the table per group of worlds. The threads take the lanes of all rows
    in turn, as if they were one row: many short ones keep all threads at work.
    """
    n_forces = len(lanes)
    chain = no_lanes
    for force, lane in enumerate(lanes):
        chain = _longer(chain, lane, force, n_forces)
    return chain


def _longer(head: Callable, lane: Callable, force: int, n_forces: int) -> Callable:
    """Return a chain with one more force."""

    @device_fn
    def chain(start, stride, step, table, nodes, fields, rows, out):
        i = head(start, stride, step, table, nodes, fields, rows, out)
        for row in range(force, table.shape[0], n_forces):
            n = table[row, N_TILES] * TILE
            while i < n:
                lane(i, row, step, table, nodes, fields, rows, out)
                i += stride
            i -= n
        return i

    return chain


# Bound by `specialise`.
CHAIN = no_lanes
CUDA: Any = None


class GridAdvance(NamedTuple):
    """What `advance_on_grid` is given.

    `numbers` has dt; `rows` k0 and then the rows of n + 1 states; `finite` n for each world, and
    ends as how many of its steps stayed finite.
    """

    model: ModelArrays
    slots: Any
    numbers: Any
    rows: Any
    states: States
    finite: Any


def advance_on_grid(args):
    """Run n steps."""
    elements, nodes, bodies = args.model.elements, args.model.nodes, args.model.bodies
    table, own = elements.table, (elements.consts, elements.params, elements.series)
    slots, rows, finite = args.slots, args.rows, args.finite
    start, stride = CUDA.grid(1), CUDA.gridsize(1)
    grid = CUDA.cg.this_grid()
    dt, k0 = args.numbers[0], rows[0]
    for k in range(rows.size - 2):
        before, after = state_at(args.states, rows[k + 1]), state_at(args.states, rows[k + 2])
        read = (before.x, before.v)
        CHAIN(start, stride, k0 + k, table, elements.nodes, read, own, (slots,))
        grid.sync()
        for n in range(start, nodes.w.size, stride):
            world = nodes.world_of[n]
            bad = step_node(np.uint64(n), dt, nodes.gravity[world], nodes, slots, before, after)
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
        for body in range(start, bodies.point_ptr.size - 1, stride):
            world = nodes.world_of[nodes.w.size + body]
            bad = step_body(body, dt, nodes.gravity[world], nodes, bodies, slots, before, after)
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
        grid.sync()


@cache
def advance_grid_kernel(kinds: tuple[ElementKind, ...]) -> Callable:
    """Return the forward kernel of a model with these kinds of force."""
    chain = make_chain(tuple(make_lane(FORCE_LOOP, kind, kind.force) for kind in kinds))
    name = named("advance_on_grid", kinds)
    return specialise(advance_on_grid, name, CHAIN=chain, CUDA=cuda_module())


def named(name: str, kinds: Sequence[ElementKind]) -> str:
    """Return the name of a kernel with these kinds of force: compiled code is found by it."""
    names = " ".join(kind.name for kind in kinds)
    return f"{name}_{hashlib.sha256(names.encode()).hexdigest()[:16]}"


def advance_on_gpu(
    packed: PackedModels, dt: float, slots: Any, k0: int, rows: np.ndarray, fields: tuple
) -> np.ndarray:
    """Advance on the GPU; return how many of the steps stayed finite, of each world.

    `rows` as in `adjsim.engine.loop_arrays.Steps`; the arrays live on the device.
    """
    finite = array_module(Device.CUDA).full(packed.n_worlds, len(rows) - 1, np.int64)
    args = GridAdvance(
        packed.arrays,
        slots,
        np.array([dt], slots.dtype),
        np.concatenate([[k0], rows]).astype(np.int64),
        States(*fields),
        finite,
    )
    width = max(packed.n_slots // 3, packed.n_nodes, packed.n_bodies)
    cached = all(is_hashed(kind.force) for kind in packed.kinds)
    launch_cooperative(advance_grid_kernel(packed.kinds), width, args, cached=cached)
    return to_host(finite)
