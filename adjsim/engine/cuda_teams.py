r"""Teams of threads of a GPU: all of the grid on all worlds, or a block on each world.

A sweep is a list of phases, as on the CPU (`adjsim/engine/phases.py`), and one loop runs them for
every team, `run_team`. A phase, phase(turn, team, args), says whether the team meets at a barrier
after it: all of its threads say the same. Blocks share nothing, so
theirs are cheap and a launch has room for any number of worlds; the grid's, which cost
microseconds, are for worlds that are too large for one multiprocessor.

A block works on slices of the arrays (`adjsim/engine/layouts.py`: worlds that stand apart). Those
that it reads over and over lie in its shared memory, as far as this has room: then a step waits
for no more than the numbers of its elements.

After a barrier a kernel finds the arrays of its team again, `TEAM_ARRAYS(own, memory, args)`: their
some thirty addresses need not stay in registers while elements, which need most, are done.

Tests: `tests/engine/test_cuda_teams.py`, `tests/cuda`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np

from adjsim.engine.layouts import BODY, NODE, ROW, SLOT, SUM, VELOCITY_SUM
from adjsim.engine.packing import PackedModels
from adjsim.jit.backend import device_fn, specialise
from adjsim.jit.cuda_launch import (
    BLOCK,
    blocks_at_once,
    launch_blocks,
    launch_cooperative,
    most_shared,
)
from adjsim.jit.cuda_views import cut, share
from adjsim.jit.devices import cuda_module
from adjsim.rigid.pieces import Pieces, cut_bodies
from adjsim.rigid.rows import read_3
from adjsim.tiles.assembly import CONSTS, N_TILES, NODES, PARAMS, TILE
from adjsim.tiles.loop_arrays import Bodies, Elements, ModelArrays, Nodes, States


MOST_ELEMENTS = 4000  # of a world on which a block works
MOST_IF_FEW_WORLDS = 1600  # elements; above, the grid is faster if most multiprocessors would idle
PROCESSORS = 100  # of a GPU, about
# Threads of a block that has a multiprocessor to itself, of one that shares it, and of a warp
MOST_THREADS, MOST_IF_SHARED, WARP = 512, 256, 32
ALIGNED = 16  # [bytes]


def fits_blocks(sizes: Sequence[int]) -> bool:
    """Whether worlds with so many elements and rows of X are done faster by a block each.

    By estimate one multiprocessor needs 4 ns for the step of a tetrahedron (its operations take
    1.9), and the grid 6 us for two barriers and for memory. Up to `MOST_IF_FEW_WORLDS` elements
    a block is through before these have passed. With enough worlds to keep all multiprocessors
    busy, a grid gains nothing.
    """
    idle = max(0.0, 1.0 - len(sizes) / PROCESSORS)
    return max(sizes) * idle <= MOST_IF_FEW_WORLDS and max(sizes) <= MOST_ELEMENTS


class Worlds(NamedTuple):
    """Where the parts of worlds begin, as in `Layout`, and where shared memory holds arrays."""

    starts: Any
    places: Any = None


class Part(NamedTuple):
    """The rows of X, nodes, bodies and slots of one world, ends excluded."""

    row_lo: Any
    row_hi: Any
    node_lo: Any
    node_hi: Any
    body_lo: Any
    body_hi: Any
    slot_lo: Any
    slot_hi: Any


@dataclass(frozen=True)
class Sizes:
    """The largest numbers of rows of X and so on in any world, and the forces of each."""

    rows: int
    nodes: int
    bodies: int
    slots: int
    sums: int
    velocity_sums: int
    columns: int
    lanes: int
    of_elements: tuple[int, int, int]  # numbers of nodes, constants and parameters

    @classmethod
    def of(cls, packed: PackedModels) -> "Sizes":
        """Return those of worlds that stand apart."""
        lanes = packed.table[:, N_TILES].reshape(packed.n_worlds, -1).sum(axis=1) * TILE
        largest = np.diff(packed.starts, axis=0).max(axis=0).tolist()
        ends = [len(packed.nodes), len(packed.consts), len(packed.params)]
        firsts = packed.table[:: len(packed.kinds) or 1, OF_ELEMENTS]
        of_elements = np.diff([*firsts.tolist(), ends], axis=0).max(axis=0, initial=0).tolist()
        return cls(
            *largest,
            columns=len(packed.kinds),
            lanes=int(lanes.max(initial=0)),
            of_elements=tuple(of_elements),
        )

    def threads(self, n_worlds: int, shared: int, most: int) -> int:
        """Return how many threads a block has, of so many with so many bytes of shared memory.

        A block does its elements in turns of as many as it has threads, and each turn is a chain
        that takes 1.1 us of a tetrahedron (`adjsim/engine/patches.py`). So it has up to 512: with
        128 registers a thread these are all of a multiprocessor's. Where several blocks fit on one,
        by shared memory, and there are enough, two of 256 do as much, and one works while the other
        waits. A kernel that needs more registers has fewer threads (`launch_blocks`).
        """
        alone = n_worlds <= PROCESSORS or 2 * shared > most
        limit = MOST_THREADS if alone else MOST_IF_SHARED
        return min(limit, -(-max(self.lanes, self.rows, 1) // WARP) * WARP)

    def of_model(self, real: int) -> list[tuple[int, ...]]:
        """Return the bytes of what `share_model` shares; a number has `real` bytes."""
        return [
            (self.columns * 7 * 8,),
            (self.nodes * real,),
            ((self.rows + 1) * 4,),
            (self.sums * 4,),
            (3 * real,),
        ]


TABLE, W, PTR, SUMS, GRAVITY, FIRST_OWN = range(6)  # in the places of shared memory
OF_ELEMENTS = NODES, CONSTS, PARAMS  # columns of the table; their arrays have places one by one


def pieces_of(packed: PackedModels, dtype: np.dtype) -> Pieces:
    """Return the pieces of the bodies of all worlds, on the host."""
    ptr, ends = packed.bodies.point_ptr, packed.body_ends.tolist()
    teams = [ptr]
    if packed.stands_apart:
        teams = [ptr[lo + w : hi + w + 1] for w, (lo, hi) in enumerate(pairwise(ends))]
    return cut_bodies(teams, dtype)


def place_in_shared_memory(units: Sequence[tuple[int, ...]], most: int) -> tuple[np.ndarray, int]:
    """Return where arrays of so many bytes lie in `most` of shared memory, and where these end.

    A unit has a place for each of its arrays, or, if it does not fit, -1. The first ones go first.
    """
    places, used = [], 0
    for unit in units:
        ends = used + np.cumsum([-(-size // ALIGNED) * ALIGNED for size in (0, *unit)])
        fits = ends[-1] <= most
        places += ends[:-1].tolist() if fits else [-1] * len(unit)
        used = int(ends[-1]) if fits else used
    return np.array(places, np.int64), used


class Team(NamedTuple):
    """A thread in its team.

    Attributes: its number, how many there are, the world of the team or -1, its shared memory, how
    elements are shared out (`make_forces`, `make_forces_of_patches`), the barrier of a block and
    the atomic minimum.
    """

    start: Any
    stride: Any
    world: Any
    memory: Any
    threads: Any
    wait: Any
    lower: Any


@device_fn
def no_phase(turn, team, args):
    """Stand for a phase that a sweep does not have."""
    return False


@device_fn
def never(turn, args):
    """Stand for what ends a sweep early."""
    return False


@device_fn
def nothing(team, args):
    """Stand for what a block does before or after all turns."""


# Bound by `team_kernel`.
CUDA: Any = None
IN_BLOCKS = False
EXTRA_TURNS = 0  # beside one for each step
FIRST = SECOND = THIRD = FOURTH = FIFTH = SIXTH = SEVENTH = no_phase
FILL = STORE = nothing
ENDS_WITH = never
PHASES = ("FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH", "SIXTH", "SEVENTH")


def run_team(args):  # noqa: C901, PLR0912 -- a branch for each phase
    """Run all turns of a sweep: of all worlds, or, in blocks, of one."""
    # 32 bits: these stay in registers while elements, which need most of them, are done.
    if IN_BLOCKS:
        start, stride = np.int32(CUDA.threadIdx.x), np.int32(CUDA.blockDim.x)
        world, memory = np.int64(CUDA.blockIdx.x), CUDA.shared.array(0, numba.uint8)
        barrier, threads = CUDA.syncthreads, (start, stride)
    else:
        start, stride = np.int32(CUDA.grid(1)), np.int32(CUDA.gridsize(1))
        world, barrier = -1, CUDA.cg.this_grid().sync
        memory = CUDA.shared.array(0, args.numbers.dtype)
        threads = (CUDA.threadIdx.x, CUDA.blockDim.x, CUDA.blockIdx.x, CUDA.gridDim.x)
    team = Team(start, stride, world, memory, threads, CUDA.syncthreads, CUDA.atomic.min)
    if IN_BLOCKS:
        FILL(team, args)
        barrier()
    for turn in range(args.rows.size - 2 + EXTRA_TURNS):
        if FIRST(turn, team, args):
            barrier()
        if SECOND(turn, team, args):
            barrier()
        if THIRD(turn, team, args):
            barrier()
        if FOURTH(turn, team, args):
            barrier()
        if FIFTH(turn, team, args):
            barrier()
        if SIXTH(turn, team, args):
            barrier()
        if SEVENTH(turn, team, args):
            barrier()
        if ENDS_WITH(turn, args):
            break
    if IN_BLOCKS:
        barrier()
        STORE(team, args)


def team_kernel(
    name: str, phases: Sequence[Callable], *, in_blocks: bool, with_bodies: bool, **calls: Any
) -> Callable:
    """Return the kernel of a sweep, without what its models do not have.

    `calls` are what its phases and the loop call: they are bound into them.
    """
    bound: dict[str, Any] = {"IN_BLOCKS": in_blocks, "WITH_BODIES": with_bodies, **calls}
    for slot, phase in zip(PHASES, phases, strict=False):
        bound[slot] = device_fn(specialise(phase, f"{phase.__name__}_of_{name}", **bound))
    return specialise(run_team, name, CUDA=cuda_module(), **bound)


@device_fn
def fill(start, stride, source, target, place):
    """Copy this thread's numbers of a flat array, if the target has a place in shared memory."""
    for i in range(start, source.size if place >= 0 else start, stride):
        target[i] = source[i]


@device_fn
def fill_rows(start, stride, source, target, place):
    """Copy this thread's rows of an array, as `fill`."""
    if place >= 0:
        copy_rows(start, stride, source, target)


@device_fn
def copy_rows(start, stride, source, target):
    """Copy this thread's rows of an array."""
    for i in range(start, source.shape[0], stride):
        for c in range(source.shape[1]):
            target[i, c] = source[i, c]


@device_fn
def part_of(starts, world):
    """Return what is a world's."""
    end = world + 1
    return Part(
        starts[world, ROW], starts[end, ROW], starts[world, NODE], starts[end, NODE],
        starts[world, BODY], starts[end, BODY], starts[world, SLOT], starts[end, SLOT],
    )  # fmt: skip


@device_fn
def all_of(states):
    """Return all rows of X and all bodies."""
    n, m = states.x.shape[1], states.p.shape[1]
    return Part(0, n, 0, n, 0, m, 0, 0)


@device_fn
def own_state(spans, states, row):
    """Return a world's rows of the state in a row."""
    x, v = (
        cut(states.x[row], spans.row_lo, spans.row_hi),
        cut(states.v[row], spans.row_lo, spans.row_hi),
    )
    return States(x, v, cut(states.p[row], spans.body_lo, spans.body_hi))


@device_fn
def own_pieces(world, spans, pieces):
    """Return a world's pieces of bodies."""
    lo, hi = pieces.ptr[spans.body_lo], pieces.ptr[spans.body_hi]
    return Pieces(
        cut(pieces.point_ptr, lo + world, hi + world + 1),
        cut(pieces.body, lo, hi),
        cut(pieces.ptr, spans.body_lo, spans.body_hi + 1),
        cut(pieces.loads, lo, hi),
    )


@device_fn
def model_of(world, spans, starts, model):
    """Return a world's slices of a model; numbers of its elements are found by its table."""
    elements, nodes, bodies = model
    end, own_rows = world + 1, table_rows(world, starts, elements.table)
    rows, bodies_lo, bodies_hi = (
        (spans.row_lo + world, spans.row_hi + end),
        spans.body_lo,
        spans.body_hi,
    )
    sums = starts[world, SUM], starts[end, SUM]
    moving_sums = starts[world, VELOCITY_SUM], starts[end, VELOCITY_SUM]
    points = spans.row_lo - spans.node_lo, spans.row_hi - spans.node_hi
    return ModelArrays(
        Elements(
            cut(elements.table, own_rows[0], own_rows[1]),
            elements.nodes, elements.consts, elements.params, elements.series,
        ),
        Nodes(
            cut(nodes.w, spans.node_lo, spans.node_hi),
            cut(nodes.gravity, world, end),
            cut(nodes.ptr, rows[0], rows[1]),
            cut(nodes.slots_of, sums[0], sums[1]),
            cut(nodes.velocity_ptr, rows[0], rows[1]),
            cut(nodes.velocity_slots_of, moving_sums[0], moving_sums[1]),
            nodes.world_of,
            cut(nodes.led, spans.node_lo, spans.node_hi),
        ),
        Bodies(
            cut(bodies.point_ptr, bodies_lo + world, bodies_hi + end),
            cut(bodies.arms, points[0], points[1]),
            cut(bodies.params, bodies_lo, bodies_hi),
        ),
    )  # fmt: skip


@device_fn
def share_model(memory, places, model):
    """Return a world's model with what steps read most in shared memory; the first places."""
    elements, nodes, bodies = model
    own_elements = Elements(
        share(elements.table, memory, places[TABLE]),
        elements.nodes, elements.consts, elements.params, elements.series,
    )  # fmt: skip
    own_nodes = Nodes(
        share(nodes.w, memory, places[W]),
        share(nodes.gravity, memory, places[GRAVITY]),
        share(nodes.ptr, memory, places[PTR]),
        share(nodes.slots_of, memory, places[SUMS]),
        nodes.velocity_ptr, nodes.velocity_slots_of, nodes.world_of, nodes.led,
    )  # fmt: skip
    return ModelArrays(own_elements, own_nodes, bodies)


@device_fn
def fill_model(start, stride, places, model, own_model):
    """Write the numbers of a world's model that lie in shared memory."""
    nodes, own_nodes = model.nodes, own_model.nodes
    fill_rows(start, stride, model.elements.table, own_model.elements.table, places[TABLE])
    fill(start, stride, nodes.w, own_nodes.w, places[W])
    fill_rows(start, stride, nodes.gravity, own_nodes.gravity, places[GRAVITY])
    fill(start, stride, nodes.ptr, own_nodes.ptr, places[PTR])
    fill(start, stride, nodes.slots_of, own_nodes.slots_of, places[SUMS])


@device_fn
def share_elements(memory, places, k, elements):
    """Return a world's elements with what they read in shared memory; from place k on."""
    return Elements(
        elements.table,
        share(elements.nodes, memory, places[k]),
        share(elements.consts, memory, places[k + 1]),
        share(elements.params, memory, places[k + 2]),
        elements.series,
    )


@device_fn
def table_rows(world, starts, table):
    """Return the first row of a world in the table of all, and the first of the next world."""
    n_columns = table.shape[0] // (starts.shape[0] - 1)
    return world * n_columns, (world + 1) * n_columns


@device_fn
def fill_part(start, stride, column, rows, table, source, own_table, target, place):
    """Copy a world's numbers of one array of elements, and count them from there in its table.

    `rows`: its first in the table of all worlds, and the first of the next world.
    """
    row, end = rows
    if place >= 0 and row < end:
        lo, hi = table[row, column], source.size
        if end < table.shape[0]:
            hi = table[end, column]
        for i in range(start, hi - lo, stride):
            target[i] = source[lo + i]
        for i in range(start, end - row, stride):
            own_table[i, column] -= lo


@device_fn
def fill_elements(start, stride, places, k, rows, elements, target):
    """Write what a world's elements read to shared memory, after its table; as `fill_part`."""
    fill_part(
        start, stride, NODES, rows, elements.table, elements.nodes, target.table, target.nodes,
        places[k],
    )  # fmt: skip
    fill_part(
        start, stride, CONSTS, rows, elements.table, elements.consts, target.table, target.consts,
        places[k + 1],
    )  # fmt: skip
    fill_part(
        start, stride, PARAMS, rows, elements.table, elements.params, target.table, target.params,
        places[k + 2],
    )  # fmt: skip


@device_fn
def share_state(state, places, k, memory):
    """Return whether x and v have places k and k + 1, and the state with these in shared memory."""
    now = States(share(state.x, memory, places[k]), share(state.v, memory, places[k + 1]), state.p)
    return places[k] >= 0, now


@device_fn
def fill_state(start, stride, state, now, places, k):
    """Write positions and velocities to shared memory, if they have places there."""
    fill_rows(start, stride, state.x, now.x, places[k])
    fill_rows(start, stride, state.v, now.v, places[k + 1])


@device_fn
def shared_or_stored(is_shared, now, state):
    """Return a state, but for its bodies the shared one where that is kept."""
    x, v = (now.x, now.v) if is_shared else (state.x, state.v)
    return States(x, v, state.p)


@device_fn
def states_of_step(spans, is_shared, now, states, a, b):
    """Return the states before and after a step as it works on them, and where that after it lies.

    They are rows a and b. In shared memory one copy serves for both: while nodes are moved, each
    thread reads only the nodes that it moves.
    """
    stored = own_state(spans, states, b)
    before = shared_or_stored(is_shared, now, own_state(spans, states, a))
    return before, shared_or_stored(is_shared, now, stored), stored


@device_fn
def store_rows(is_shared, lo, hi, now, stored):
    """Copy positions and velocities of some rows from shared memory, if they are kept there."""
    for i in range(lo, hi if is_shared else lo):
        for c in range(3):
            stored.x[i, c] = now.x[i, c]
            stored.v[i, c] = now.v[i, c]


@device_fn
def store_points(start, stride, is_shared, bodies, pieces, now, stored):
    """Copy the rows of the points that this thread has placed, as `store_rows`."""
    ptr = pieces.point_ptr if pieces.body.size > 0 else bodies.point_ptr
    for k in range(start, ptr.size - 1 if is_shared else start, stride):
        store_rows(is_shared, ptr[k], ptr[k + 1], now, stored)


@device_fn
def world_at(world, nodes, i):
    """Return the world of node i, or of a body behind the nodes: of a block its own."""
    return nodes.world_of[i] if world < 0 else world


@device_fn
def gravity_at(world, nodes, i):
    """Return the gravity of node i, or of a body behind the nodes: a block has one."""
    return read_3(nodes.gravity, nodes.world_of[i] if world < 0 else 0, 0)


def holds_patches(kernel: Any, args: Any, shared: int) -> bool:
    """Whether the device holds a block of a kernel for each patch at once."""
    args = args._replace(worlds=args.worlds._replace(places=np.zeros(0, np.int64)))
    return args.patches.table.shape[0] - 1 <= blocks_at_once(kernel, args, shared)


def run_teams(
    kernel: Any, sizes: Sizes | None, args: Any, units: Sequence[tuple[int, ...]], *, patch: int
) -> None:
    """Launch a kernel of one block for each world, or, without `sizes`, of the whole grid.

    `units` are bytes of arrays that blocks share, as `place_in_shared_memory` takes them; `patch`
    those that a block needs for its patch.
    """
    places, n_bytes = place_in_shared_memory(units, most_shared())
    args = args._replace(worlds=args.worlds._replace(places=places))
    if sizes is None:
        n_pairs = args.pairs.pair_nodes.size // 4 if args.pairs else 0
        patches, nodes = BLOCK * args.patches.table.shape[0], args.model.nodes.world_of.size
        width = max(patches, nodes, n_pairs)
        launch_cooperative(kernel, width, args, shared=patch)
    else:
        n_worlds = args.worlds.starts.shape[0] - 1
        threads = sizes.threads(n_worlds, n_bytes, most_shared())
        launch_blocks(kernel, n_worlds, threads, n_bytes, args)
