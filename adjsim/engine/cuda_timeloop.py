r"""The time loop on a GPU: one thread per element, then one per node, in one kernel.

A tile is half a warp: lane q of tile t is element 16 t + q, so reads of rows and writes of
slots are coalesced. A launch is many steps, of a block for each world or of the whole grid
(`adjsim/engine/cuda_teams.py`): the team meets at a barrier between elements and nodes. The CPU
runs the same element functions, readers and `step_node`.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.cuda_own_nodes import make_forces_of_own_patch, own_nodes_phase
from adjsim.engine.cuda_pairs import ends_with, mark_pairs, pair_kind, sum_pair_slots, watch_pairs
from adjsim.engine.cuda_patches import (
    SHARED_NUMBERS,
    make_forces_of_patches,
    make_patch_chain,
    make_patch_lanes,
)
from adjsim.engine.cuda_teams import (
    FIRST_OWN,
    Sizes,
    Worlds,
    all_of,
    cut,
    fill_elements,
    fill_model,
    fill_state,
    gravity_at,
    holds_patches,
    model_of,
    own_pieces,
    own_state,
    part_of,
    run_teams,
    share,
    share_elements,
    share_model,
    share_state,
    states_of_step,
    store_points,
    store_rows,
    table_rows,
    team_kernel,
    world_at,
)
from adjsim.engine.packing import PackedModels
from adjsim.engine.timeloop import state_at, step_node
from adjsim.jit.backend import device_fn
from adjsim.jit.device_arrays import to_host
from adjsim.jit.devices import Device, array_module
from adjsim.pairs.near import near_elements
from adjsim.rigid.pieces import Pieces, place_pieces, step_body, sum_pieces
from adjsim.tiles.assembly import (
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
from adjsim.tiles.element_kind import ElementKind
from adjsim.tiles.loop_arrays import ModelArrays, States


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


# Bound by `team_kernel`.
FORCES: Any = None
PAIR_FORCES: Any = None
TEAM_ARRAYS: Any = None
WITH_BODIES = False
SLOTS, X, ELEMENTS = FIRST_OWN, FIRST_OWN + 1, FIRST_OWN + 3  # in the places of shared memory


class TeamAdvance(NamedTuple):
    """What the phases of `ADVANCE` are given.

    `numbers` has dt; `rows` k0 and then the rows of n + 1 states; `finite` n for each world, and
    ends as how many of its steps stayed finite; `pairs` the `TeamPairs`, if any change.
    """

    model: ModelArrays
    patches: Any
    pieces: Pieces
    slots: Any
    numbers: Any
    rows: Any
    states: States
    finite: Any
    worlds: Worlds
    pairs: Any = ()


def pair_phase(k, team, args):
    """Write the force slots of the pairs in step k."""
    spans, _, _, _, is_shared, now = TEAM_ARRAYS(team.world, team.memory, args)
    before, _, _ = states_of_step(
        spans, is_shared, now, args.states, args.rows[k + 1], args.rows[k + 2]
    )
    threads, pairs, step = (team.start, team.stride), args.pairs, args.rows[0] + k
    elements, slots = near_elements(pairs), pairs.slots
    PAIR_FORCES(threads, team.wait, step, args.patches, elements, before, team.memory, slots)
    mark_pairs(team, pairs)
    return False


def force_phase(k, team, args):
    """Write the force slots of the elements in step k."""
    spans, model, _, slots, is_shared, now = TEAM_ARRAYS(team.world, team.memory, args)
    before, _, _ = states_of_step(
        spans, is_shared, now, args.states, args.rows[k + 1], args.rows[k + 2]
    )
    step, wait, elements = args.rows[0] + k, team.wait, model.elements
    FORCES(team.threads, wait, step, args.patches, elements, before, team.memory, slots)
    return True


def pair_sum_phase(k, team, args):
    """Add up the forces of the pairs."""
    _, _, _, slots, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
    sum_pair_slots(team, args.pairs, args.pairs.slots, slots)
    return True


def load_phase(k, team, args):
    """Add up the forces on pieces of bodies."""
    if WITH_BODIES:
        _, model, pieces, slots, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
        if pieces.body.size > 0:
            sum_pieces(team.start, team.stride, model.bodies, pieces, model.nodes, slots)
            return True
    return False


def step_phase(k, team, args):
    """Advance nodes and bodies by step k."""
    spans, model, pieces, slots, is_shared, now = TEAM_ARRAYS(team.world, team.memory, args)
    before, after, stored = states_of_step(
        spans, is_shared, now, args.states, args.rows[k + 1], args.rows[k + 2]
    )
    nodes, dt, step, series = model.nodes, args.numbers[0], args.rows[0] + k, model.elements.series
    for n in range(team.start, nodes.w.size, team.stride):
        world = world_at(team.world, nodes, n)
        gravity = gravity_at(team.world, nodes, n)
        bad = step_node(np.uint64(n), step, dt, gravity, series, nodes, slots, before, after)
        if bad > 0:
            team.lower(args.finite, world, k)
        store_rows(is_shared, n, n + 1, now, stored)
    if WITH_BODIES:
        step_bodies(
            team, dt, k, args.finite, model, pieces, slots, before, after
        )  # fmt: skip
        return pieces.body.size > 0
    return False


def place_phase(k, team, args):
    """Place the points of bodies after step k."""
    if WITH_BODIES:
        spans, model, pieces, _, is_shared, now = TEAM_ARRAYS(team.world, team.memory, args)
        _, after, stored = states_of_step(
            spans, is_shared, now, args.states, args.rows[k + 1], args.rows[k + 2]
        )
        if pieces.body.size > 0:
            place_pieces(team.start, team.stride, model.bodies, pieces, after)
        store_points(team.start, team.stride, is_shared, model.bodies, pieces, now, stored)
    return True


def watch_phase(k, team, args):
    """Look at how far the surfaces have moved."""
    watch_pairs(team, k, args.pairs, args.states.x[args.rows[k + 2]])
    return True


ADVANCE = (force_phase, load_phase, step_phase, place_phase)
ADVANCE_PAIRS = (
    pair_phase, force_phase, pair_sum_phase, load_phase, step_phase, place_phase, watch_phase,
)  # fmt: skip


@device_fn
def step_bodies(team, dt, k, finite, model, pieces, slots, before, after):
    """Advance this thread's bodies by step k."""
    nodes, bodies = model.nodes, model.bodies
    for body in range(team.start, bodies.point_ptr.size - 1, team.stride):
        world = world_at(team.world, nodes, nodes.w.size + body)
        gravity = gravity_at(team.world, nodes, nodes.w.size + body)
        bad = step_body(body, dt, gravity, nodes, bodies, pieces, slots, before, after)
        if bad > 0:
            team.lower(finite, world, k)


@device_fn
def grid_arrays_of_advance(world, memory, args):
    """Return what the grid has of `args`."""
    now = state_at(args.states, 0)
    return all_of(args.states), args.model, args.pieces, args.slots, False, now


@device_fn
def block_arrays_of_advance(world, memory, args):
    """Return what a block has of `args`, in shared memory where that has places."""
    spans, places = part_of(args.worlds.starts, world), args.worlds.places
    model = share_model(memory, places, model_of(world, spans, args.worlds.starts, args.model))
    slots = share(cut(args.slots, spans.slot_lo, spans.slot_hi + 1), memory, places[SLOTS])
    is_shared, now = share_state(own_state(spans, args.states, args.rows[1]), places, X, memory)
    elements = share_elements(memory, places, ELEMENTS, model.elements)
    model = ModelArrays(elements, model.nodes, model.bodies)
    return spans, model, own_pieces(world, spans, args.pieces), slots, is_shared, now


@device_fn
def fill_advance(team, args):
    """Write the numbers that a block begins with to its shared memory."""
    start, stride, world = team.start, team.stride, team.world
    spans, model, _, _, _, now = block_arrays_of_advance(world, team.memory, args)
    places = args.worlds.places
    fill_model(start, stride, places, model_of(world, spans, args.worlds.starts, args.model), model)
    rows = table_rows(world, args.worlds.starts, args.model.elements.table)
    fill_elements(start, stride, places, ELEMENTS, rows, args.model.elements, model.elements)
    fill_state(start, stride, own_state(spans, args.states, args.rows[1]), now, places, X)


@cache
def advance_kernel(
    kinds: tuple[ElementKind, ...], *, in_blocks: bool, with_bodies: bool, own_nodes: bool = False
) -> Callable:
    """Return the forward kernel of a model with these kinds of force."""
    how: dict[str, Any] = {"in_blocks": in_blocks, "with_bodies": with_bodies}
    chain = chain_of(FORCE_LOOP, [(kind, kind.force) for kind in kinds], in_blocks=in_blocks)
    forces = make_forces(chain) if in_blocks else make_forces_of_patches(chain)
    arrays = block_arrays_of_advance if in_blocks else grid_arrays_of_advance
    calls: dict[str, Any] = {"FORCES": forces, "TEAM_ARRAYS": arrays, "FILL": fill_advance}
    phases, pairs = ADVANCE, pair_kind(kinds)
    if own_nodes:
        calls = {"FORCES": make_forces_of_own_patch(chain), "EXTRA_TURNS": 1}
        return team_kernel("advance_own_nodes", (own_nodes_phase,), **how, **calls)
    if pairs:
        phases = ADVANCE_PAIRS
        calls["PAIR_FORCES"] = make_forces(chain_of_pairs(FORCE_LOOP, pairs, pairs.force))
        calls["ENDS_WITH"] = ends_with
    return team_kernel(named("advance", **how), phases, **how, **calls)


def make_forces(chain: Callable) -> Callable:
    """Return the function that writes the slots of forces of a block's world."""

    @device_fn
    def forces(team, wait, step, patches, elements, state, memory, slots):
        numbers = (elements.consts, elements.params, elements.series)
        nodes, read = elements.nodes, (state.x, state.v)
        chain(team[0], team[1], step, elements.table, nodes, read, numbers, (slots,))

    return forces


def chain_of(
    loop: Loop, elements: Sequence[tuple[ElementKind, Callable | None]], *, in_blocks: bool
) -> Callable:
    """Return the function that does all elements of a block's world, or of a patch.

    It leaves out elements with pairs.
    """
    make, lane = (make_chain, make_lane) if in_blocks else (make_patch_chain, make_patch_lanes)
    return make(tuple(lane(loop, k, None if k.pairs else element) for k, element in elements))


def chain_of_pairs(loop: Loop, pairs: ElementKind, element: Callable) -> Callable:
    """Return the function that does all pairs."""
    return make_chain((make_lane(loop, pairs, element),))


def named(name: str, *, in_blocks: bool, with_bodies: bool) -> str:
    """Return the name of a kernel."""
    team = "in_blocks" if in_blocks else "on_grid"
    return f"{name}_{team}{'_with_bodies' if with_bodies else ''}"


def advance_on_gpu(
    packed: PackedModels, sizes: Sizes | None, pieces: Pieces, dt: float, slots: Any, k0: int,
    rows: np.ndarray, fields: tuple, pairs: Any, sums: Any = None,
) -> np.ndarray:  # fmt: skip
    """Advance on the GPU; return how many of the steps stayed finite, of each world.

    `rows` as in `adjsim.tiles.loop_arrays.Steps`; the arrays live on the device. Worlds with
    `sizes` stand apart. `pairs` that change, or (). Where patches may advance their own nodes,
    `sums` are two places for the sums of forces.
    """
    finite = array_module(Device.CUDA).full(packed.n_worlds, len(rows) - 1, np.int64)
    real, units = slots.dtype.itemsize, []
    if sizes:
        state = sizes.rows * 3 * real
        nodes, consts, params = sizes.of_elements
        units = [*sizes.of_model(real), ((sizes.slots + 1) * real,), (state, state)]
        units += [(nodes * 4,), (consts * real,), (params * real,)]
    args = TeamAdvance(
        packed.arrays,
        packed.patches or (),
        pieces,
        slots,
        np.array([dt], slots.dtype),
        np.concatenate([[k0], rows]).astype(np.int64),
        States(*fields),
        finite,
        Worlds(packed.starts),
        pairs,
    )
    how: dict[str, Any] = {"in_blocks": bool(sizes), "with_bodies": packed.n_bodies > 0}
    kernel, patch = advance_kernel(packed.kinds, **how), SHARED_NUMBERS[0] * real
    if sums is not None:
        faster = advance_kernel(packed.kinds, **how, own_nodes=True)
        into_sums = args._replace(slots=sums)
        if holds_patches(faster, into_sums, patch):
            kernel, args = faster, into_sums
    run_teams(kernel, sizes, args, units, patch=patch)
    return to_host(finite)
