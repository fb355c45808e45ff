r"""The reverse sweep and the tangent on a GPU: twins of `adjsim/engine/cuda_timeloop.py`.

Same lanes, same node functions as on the CPU; one launch per segment of steps.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from adjoint.engine.assembly import REST_VJP_LOOP, VJP_LOOP
from adjoint.engine.cuda_patches import make_adjoints_of_patches, make_tangents_of_patches
from adjoint.engine.timeloop import (
    Frames,
    ReverseWork,
    add_all_slots,
    add_frame,
    add_inverse_mass,
    undo_euler_step,
)
from adjoint.forces.element import TwinKind
from adjoint.rigid.pieces import pull_body, spread_pieces, sum_adjoint_pieces, undo_body
from adjoint.rigid.points import add_body_frame
from adjsim.engine.assembly import FORCE_LOOP, JVP_LOOP, REST_JVP_LOOP, Loop
from adjsim.engine.cuda_patches import SHARED_NUMBERS, make_forces_of_patches
from adjsim.engine.cuda_teams import (
    FIRST_OWN,
    Sizes,
    Worlds,
    all_of,
    copy_rows,
    cut,
    fill,
    fill_model,
    fill_rows,
    fill_state,
    gravity_at,
    model_of,
    own_pieces,
    own_state,
    part_of,
    run_teams,
    share,
    share_model,
    share_state,
    shared_or_stored,
    states_of_step,
    store_points,
    store_rows,
    world_at,
)
from adjsim.engine.cuda_timeloop import bound, chain_of, make_forces, named, step_bodies
from adjsim.engine.jit.backend import device_fn, is_hashed, to_host
from adjsim.engine.loop_arrays import ModelArrays, States
from adjsim.engine.tangent_packing import PackedVector
from adjsim.engine.tangents import TangentWork, tangent_node
from adjsim.engine.timeloop import state_at, step_node
from adjsim.forces.element import ElementKind
from adjsim.rigid.pieces import (
    Pieces,
    place_pieces,
    place_tangent_pieces,
    sum_tangent_pieces,
    tangent_body,
)
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE


# Bound by `specialise`.
TEAM_ARRAYS: Any = None
CUDA: Any = None
FORCES: Any = None
ADJOINTS: Any = None
TANGENTS: Any = None
IN_BLOCKS = WITH_BODIES = False
# In the places of shared memory: of the reverse sweep, and of the tangent.
(
    ADJ_X_SLOTS, ADJ_V_SLOTS, FORCE_SLOTS, ADJ_F, NOW, _, ADJ_X, ADJ_V, ADJ_W, ADJ_GRAVITY, ADJ_P,
    ADJ_BODIES,
) = range(FIRST_OWN, FIRST_OWN + 12)  # fmt: skip
SLOTS, TAN_SLOTS, X, _, TAN_X, _ = range(FIRST_OWN, FIRST_OWN + 6)


class TeamReverse(NamedTuple):
    """What `reverse` is given; `rows` = (k0, with_forces, rows of n states)."""

    model: ModelArrays
    patches: Any
    pieces: Pieces
    work: ReverseWork
    frames: Frames
    adj: PackedVector
    numbers: Any
    rows: Any
    states: States
    worlds: Worlds


class TeamTangent(NamedTuple):
    """What `tangent` is given; `rows` and `finite` as in `TeamAdvance`."""

    model: ModelArrays
    patches: Any
    pieces: Pieces
    tan: PackedVector
    work: TangentWork
    numbers: Any
    rows: Any
    states: States
    tan_states: States
    finite: Any
    worlds: Worlds


def reverse(args):
    """Undo n steps, the last one first: of all worlds, or, in blocks, of one."""
    rows, states = args.rows, args.states
    dt, k0, with_forces, n_steps = args.numbers[0], rows[0], rows[1] > 0, rows.size - 2
    if IN_BLOCKS:
        start, stride = np.int64(CUDA.threadIdx.x), np.int64(CUDA.blockDim.x)
        own, memory = np.int64(CUDA.blockIdx.x), CUDA.shared.array(0, numba.uint8)
        barrier, threads = CUDA.syncthreads, (start, stride)
        fill_reverse(start, stride, own, memory, args)
        barrier()
    else:
        start, stride, own, barrier = CUDA.grid(1), CUDA.gridsize(1), -1, CUDA.cg.this_grid().sync
        memory = CUDA.shared.array(0, args.numbers.dtype)
        threads = (CUDA.threadIdx.x, CUDA.blockDim.x, CUDA.blockIdx.x, CUDA.gridDim.x)
    wait, patches = CUDA.syncthreads, args.patches
    for back in range(n_steps + 1):
        k = n_steps - back  # the step that this pass undoes; the first pass undoes none
        row = rows[k + 2] if back > 0 else 0
        if back > 0:
            part, model, pieces, work, adj, is_shared, now = TEAM_ARRAYS(own, memory, args)
            stored = own_state(part, states, row)
            load_rows(start, stride, is_shared, stored, now)
            frame = args.frames.of_step[k]
            given = (frame >= 0, own_frame(part, args.frames, max(frame, 0)))
            begin(start, stride, dt, given, with_forces, model, work, adj)
            if WITH_BODIES:
                undo_bodies(start, stride, dt, given, model, pieces, work, stored.p, adj)
            if WITH_BODIES and pieces.body.size > 0:
                barrier()
                spread_pieces(start, stride, model.nodes, model.bodies, pieces, work, adj)
            barrier()
            part, model, pieces, work, adj, is_shared, now = TEAM_ARRAYS(own, memory, args)
            state = shared_or_stored(is_shared, now, own_state(part, states, row))
            ADJOINTS(threads, wait, k0 + k, patches, model.elements, state, memory, work, adj)
        if with_forces and k > 0:  # of the step that is undone next: NVVM inlines each call
            part, model, pieces, work, adj, is_shared, now = TEAM_ARRAYS(own, memory, args)
            before = own_state(part, states, rows[k + 1])
            FORCES(threads, wait, k0 + k - 1, patches, model.elements, before, memory, work.slots)
        barrier()
        part, model, pieces, work, adj, is_shared, now = TEAM_ARRAYS(own, memory, args)
        p = own_state(part, states, row).p
        if WITH_BODIES and pieces.body.size > 0:
            sum_adjoint_pieces(
                start, stride, back > 0, model.nodes, model.bodies, pieces, work, p, adj
            )
            barrier()
        if back > 0:
            end(start, stride, WITH_BODIES, model, pieces, work, p, adj)
    if IN_BLOCKS:
        barrier()
        store_reverse(start, stride, own, memory, args)


@device_fn
def grid_arrays_of_reverse(own, memory, args):
    """Return what the grid has of `args`."""
    part, now = all_of(args.states), state_at(args.states, 0)
    return part, args.model, args.pieces, args.work, args.adj, False, now


@device_fn
def block_arrays_of_reverse(own, memory, args):
    """Return what a block has of `args`, in shared memory where that has places."""
    part, places = part_of(args.worlds.starts, own), args.worlds.places
    model = share_model(memory, places, model_of(own, part, args.worlds.starts, args.model))
    work = share_work(part, places, memory, args.work)
    adj = share_adjoints(places, memory, own_adjoints(part, args.adj))
    is_shared, now = share_state(own_state(part, args.states, 0), places, NOW, memory)
    return part, model, own_pieces(own, part, args.pieces), work, adj, is_shared, now


@device_fn
def fill_reverse(start, stride, own, memory, args):
    """Write the numbers that a block begins with to its shared memory."""
    part, model, _, _, adj, _, _ = block_arrays_of_reverse(own, memory, args)
    places = args.worlds.places
    fill_model(start, stride, places, model_of(own, part, args.worlds.starts, args.model), model)
    copy_adjoints(start, stride, places, own_adjoints(part, args.adj), adj)


@device_fn
def store_reverse(start, stride, own, memory, args):
    """Write the cotangents that a block ends with to where they came from."""
    part, _, _, _, adj, _, _ = block_arrays_of_reverse(own, memory, args)
    copy_adjoints(start, stride, args.worlds.places, adj, own_adjoints(part, args.adj))


@device_fn
def begin(start, stride, dt, frame, with_forces, model, work, adj):
    """Go from the adjoint of the new state to adj_f, on this thread's nodes.

    `frame`: whether one shows the state, and its cotangent.
    """
    nodes, (has_frame, adj_frame) = model.nodes, frame
    for i in range(start, nodes.w.size, stride):
        n = np.uint64(i)
        if has_frame:
            add_frame(n, adj_frame, adj)
        undo_euler_step(n, dt, nodes.w, adj, work.adj_f)
        if with_forces:
            add_inverse_mass(n, dt, nodes, work.slots, adj)


@device_fn
def undo_bodies(start, stride, dt, frame, model, pieces, work, p, adj):
    """Begin with this thread's bodies; `frame` as in `begin`."""
    nodes, bodies, (has_frame, adj_frame) = model.nodes, model.bodies, frame
    for b in range(start, bodies.point_ptr.size - 1, stride):
        if has_frame:
            add_body_frame(b, adj_frame.p, adj.p)
        undo_body(b, dt, nodes, bodies, pieces, work, p, adj)


@device_fn
def end(start, stride, with_bodies, model, pieces, work, p, adj):
    """Add up what the elements wrote, for this thread's nodes and bodies."""
    nodes, bodies = model.nodes, model.bodies
    for i in range(start, nodes.w.size, stride):
        add_all_slots(np.uint64(i), nodes, work, adj)
    if with_bodies:
        for b in range(start, bodies.point_ptr.size - 1, stride):
            pull_body(b, nodes, bodies, pieces, work, p, adj)


@device_fn
def load_rows(start, stride, is_shared, stored, now):
    """Copy this thread's rows of positions and velocities to shared memory, if kept there."""
    if is_shared:
        copy_rows(start, stride, stored.x, now.x)
        copy_rows(start, stride, stored.v, now.v)


@device_fn
def own_frame(part, frames, k):
    """Return a world's part of the cotangents of frame k, which has no points of bodies."""
    x, v = (
        cut(frames.x[k], part.node_lo, part.node_hi),
        cut(frames.v[k], part.node_lo, part.node_hi),
    )
    return States(x, v, cut(frames.p[k], part.body_lo, part.body_hi))


@device_fn
def share_work(part, places, memory, work):
    """Return a world's work arrays, in shared memory where they have places there."""
    lo, hi = part.slot_lo, part.slot_hi + 1
    return ReverseWork(
        share(cut(work.slots, lo, hi), memory, places[FORCE_SLOTS]),
        share(cut(work.adj_x_slots, lo, hi), memory, places[ADJ_X_SLOTS]),
        share(cut(work.adj_v_slots, lo, hi), memory, places[ADJ_V_SLOTS]),
        share(cut(work.adj_f, part.row_lo, part.row_hi), memory, places[ADJ_F]),
        work.scratch,
    )


@device_fn
def own_adjoints(part, adj):
    """Return a world's cotangents; those of elements are found by the table, as those of all."""
    lo, hi, body_lo, body_hi = part.node_lo, part.node_hi, part.body_lo, part.body_hi
    points = part.row_lo - lo, part.row_hi - hi
    return PackedVector(
        cut(adj.x, lo, hi), cut(adj.v, lo, hi),
        cut(adj.gravity, lo + body_lo, hi + body_hi), cut(adj.w, lo, hi),
        adj.params, adj.series, adj.consts,
        cut(adj.p, body_lo, body_hi), cut(adj.bodies, body_lo, body_hi),
        adj.arms[points[0] : points[1]],
    )  # fmt: skip


@device_fn
def share_adjoints(places, memory, adj):
    """Return cotangents that lie in shared memory where they have places there."""
    return PackedVector(
        share(adj.x, memory, places[ADJ_X]), share(adj.v, memory, places[ADJ_V]),
        share(adj.gravity, memory, places[ADJ_GRAVITY]), share(adj.w, memory, places[ADJ_W]),
        adj.params, adj.series, adj.consts,
        share(adj.p, memory, places[ADJ_P]), share(adj.bodies, memory, places[ADJ_BODIES]),
        adj.arms,
    )  # fmt: skip


@device_fn
def copy_adjoints(start, stride, places, source, target):
    """Copy the cotangents that have places in shared memory, to there or back."""
    fill_rows(start, stride, source.x, target.x, places[ADJ_X])
    fill_rows(start, stride, source.v, target.v, places[ADJ_V])
    fill_rows(start, stride, source.gravity, target.gravity, places[ADJ_GRAVITY])
    fill(start, stride, source.w, target.w, places[ADJ_W])
    fill_rows(start, stride, source.p, target.p, places[ADJ_P])
    fill_rows(start, stride, source.bodies, target.bodies, places[ADJ_BODIES])


def tangent(args):
    """Run state and tangent together: of all worlds, or, in blocks, of one."""
    rows, states, tan_states, finite = args.rows, args.states, args.tan_states, args.finite
    if IN_BLOCKS:
        start, stride = np.int64(CUDA.threadIdx.x), np.int64(CUDA.blockDim.x)
        own, memory = np.int64(CUDA.blockIdx.x), CUDA.shared.array(0, numba.uint8)
        barrier, threads = CUDA.syncthreads, (start, stride)
        fill_tangent(start, stride, own, memory, args)
        barrier()
    else:
        start, stride, own, barrier = CUDA.grid(1), CUDA.gridsize(1), -1, CUDA.cg.this_grid().sync
        memory = CUDA.shared.array(0, args.numbers.dtype)
        threads = (CUDA.threadIdx.x, CUDA.blockDim.x, CUDA.blockIdx.x, CUDA.gridDim.x)
    dt, k0 = args.numbers[0], rows[0]
    for k in range(rows.size - 2):
        a, b = rows[k + 1], rows[k + 2]
        part, model, pieces, tan, work, is_shared, now, tan_now = TEAM_ARRAYS(own, memory, args)
        before, _, _ = states_of_step(part, is_shared, now, states, a, b)
        tan_before, _, _ = states_of_step(part, is_shared, tan_now, tan_states, a, b)
        both = (before, tan_before)
        TANGENTS(
            threads, CUDA.syncthreads, k0 + k, args.patches, model.elements, both, memory, tan, work
        )
        barrier()
        part, model, pieces, tan, work, is_shared, now, tan_now = TEAM_ARRAYS(own, memory, args)
        before, after, stored = states_of_step(part, is_shared, now, states, a, b)
        tan_before, tan_after, tan_stored = states_of_step(
            part, is_shared, tan_now, tan_states, a, b
        )
        nodes, bodies = model.nodes, model.bodies
        has_pieces = WITH_BODIES and pieces.body.size > 0
        if has_pieces:
            sum_tangent_pieces(start, stride, nodes, bodies, pieces, tan.arms, work)
            barrier()
        for i in range(start, nodes.w.size, stride):
            n, world = np.uint64(i), world_at(own, nodes, i)
            bad = step_node(
                n, dt, gravity_at(own, nodes, i), nodes, work.slots, before, after
            )  # fmt: skip
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
            tangent_node(
                n, dt, args.tan.gravity[world], nodes, tan.w, work, tan_before, tan_after
            )  # fmt: skip
            store_rows(is_shared, i, i + 1, now, stored)
            store_rows(is_shared, i, i + 1, tan_now, tan_stored)
        if WITH_BODIES:
            step_bodies(
                start, stride, own, dt, k, CUDA.atomic.min, finite, model, pieces, work.slots,
                before, after,
            )  # fmt: skip
            both, both_after = (before, tan_before), (after, tan_after)
            tangent_bodies(
                start, stride, own, dt, args.tan, model, pieces, tan, work, both, both_after
            )
        if has_pieces:
            barrier()
            place_pieces(start, stride, bodies, pieces, after)
            place_tangent_pieces(start, stride, bodies, pieces, tan.arms, after.p, tan_after)
        if WITH_BODIES:
            store_points(start, stride, is_shared, bodies, pieces, now, stored)
            store_points(start, stride, is_shared, bodies, pieces, tan_now, tan_stored)
        barrier()


@device_fn
def tangent_bodies(start, stride, own, dt, all_tan, model, pieces, tan, work, both, both_after):
    """Advance the tangents of this thread's bodies; `all_tan` is that of all worlds."""
    nodes, bodies = model.nodes, model.bodies
    (before, tan_before), (after, tan_after) = both, both_after
    for i in range(start, bodies.point_ptr.size - 1, stride):
        world = world_at(own, nodes, nodes.w.size + i)
        tangent_body(
            i, dt, all_tan.gravity[world], nodes, bodies, pieces, tan, work,
            before, after, tan_before, tan_after,
        )  # fmt: skip


@device_fn
def grid_arrays_of_tangent(own, memory, args):
    """Return what the grid has of `args`."""
    part, now, tan_now = all_of(args.states), state_at(args.states, 0), state_at(args.tan_states, 0)
    return part, args.model, args.pieces, args.tan, args.work, False, now, tan_now


@device_fn
def block_arrays_of_tangent(own, memory, args):
    """Return what a block has of `args`, in shared memory where that has places."""
    part, places = part_of(args.worlds.starts, own), args.worlds.places
    model = share_model(memory, places, model_of(own, part, args.worlds.starts, args.model))
    lo, hi = part.slot_lo, part.slot_hi + 1
    work = TangentWork(
        share(cut(args.work.slots, lo, hi), memory, places[SLOTS]),
        share(cut(args.work.tan_slots, lo, hi), memory, places[TAN_SLOTS]),
        args.work.scratch,
    )
    tan, pieces = own_adjoints(part, args.tan), own_pieces(own, part, args.pieces)
    is_shared, now = share_state(own_state(part, args.states, args.rows[1]), places, X, memory)
    tan_first = own_state(part, args.tan_states, args.rows[1])
    _, tan_now = share_state(tan_first, places, TAN_X, memory)
    return part, model, pieces, tan, work, is_shared, now, tan_now


@device_fn
def fill_tangent(start, stride, own, memory, args):
    """Write the numbers that a block begins with to its shared memory."""
    part, model, _, _, _, _, now, tan_now = block_arrays_of_tangent(own, memory, args)
    places, row = args.worlds.places, args.rows[1]
    fill_model(start, stride, places, model_of(own, part, args.worlds.starts, args.model), model)
    fill_state(start, stride, own_state(part, args.states, row), now, places, X)
    fill_state(start, stride, own_state(part, args.tan_states, row), tan_now, places, TAN_X)


@cache
def twin_kernel(
    template: Callable,
    laws: tuple[TwinKind | ElementKind, ...],
    *,
    with_rest: bool,
    in_blocks: bool,
    with_bodies: bool,
) -> Callable:
    """Return `reverse` or `tangent` for a model with these twins or kinds of force."""
    loop, rest_loop = LOOPS[template.__name__]

    kinds = [kind_of(law) for law in laws]

    def chain(loop: Loop, laws: tuple[TwinKind | ElementKind, ...]) -> Callable:
        elements = [(kind_of(law), getattr(law, loop.name)) for law in laws]
        return chain_of(loop, elements, in_blocks=in_blocks)

    how: dict[str, Any] = {"in_blocks": in_blocks, "with_bodies": with_bodies}
    forces = chain_of(FORCE_LOOP, [(kind, kind.force) for kind in kinds], in_blocks=in_blocks)
    own, rest = chain(loop, laws), chain(rest_loop, laws if with_rest else ())
    calls: dict[str, Any]
    if template is reverse:
        make = make_adjoints if in_blocks else make_adjoints_of_patches
        make_own_forces = make_forces if in_blocks else make_forces_of_patches
        calls = {"ADJOINTS": make(own, rest), "FORCES": make_own_forces(forces)}
    else:
        make = make_tangents if in_blocks else make_tangents_of_patches
        calls = {"TANGENTS": make(forces, own, rest)}
    name = f"{template.__name__}{'_with_rest' if with_rest else ''}"
    calls["TEAM_ARRAYS"] = ARRAYS[template.__name__][in_blocks]
    return bound(template, named(name, kinds, **how), **how, **calls)


def make_adjoints(chain: Callable, rest_chain: Callable) -> Callable:
    """Return the function that undoes the elements of a block's world."""

    @device_fn
    def adjoints(team, wait, step, patches, elements, state, memory, work, adj):
        numbers = (elements.consts, elements.params, elements.series)
        start, stride = team
        read, (table, own) = (state.x, state.v, work.adj_f), (elements.table, elements.nodes)
        out = (work.adj_x_slots, work.adj_v_slots, adj.params, adj.series)
        chain(start, stride, step, table, own, read, numbers, out)
        rest_chain(start, stride, step, table, own, read, numbers, (adj.consts,))

    return adjoints


def make_tangents(forces: Callable, chain: Callable, rest_chain: Callable) -> Callable:
    """Return the function that writes the slots of forces and tangents of a block's world."""

    @device_fn
    def tangents(team, wait, step, patches, elements, both, memory, tan, work):
        start, stride = team
        consts, params, series = elements.consts, elements.params, elements.series
        (state, tan_state), table, own = both, elements.table, elements.nodes
        read, fields = (state.x, state.v), (state.x, state.v, tan_state.x, tan_state.v)
        with_tangents = (consts, params, series, tan.params, tan.series)
        forces(start, stride, step, table, own, read, (consts, params, series), (work.slots,))
        chain(start, stride, step, table, own, fields, with_tangents, (work.tan_slots,))
        with_rest = (consts, params, series, tan.consts)
        rest_chain(start, stride, step, table, own, read, with_rest, (work.tan_slots,))

    return tangents


def kind_of(law: TwinKind | ElementKind) -> ElementKind:
    """Return the kind of a twin; a kind is its own."""
    return law.kind if isinstance(law, TwinKind) else law


def are_hashed(laws: tuple[TwinKind | ElementKind, ...]) -> bool:
    """Whether the sources of all element functions are part of the key of the cache."""
    functions: list[Callable | None] = []
    for law in laws:
        kind = kind_of(law)
        functions += kind.force, kind.jvp, kind.jvp_consts
        functions += (law.vjp, law.vjp_consts) if isinstance(law, TwinKind) else ()
    return all(is_hashed(fn) for fn in functions if fn is not None)


ARRAYS = {
    "reverse": (grid_arrays_of_reverse, block_arrays_of_reverse),
    "tangent": (grid_arrays_of_tangent, block_arrays_of_tangent),
}
LOOPS = {"reverse": (VJP_LOOP, REST_VJP_LOOP), "tangent": (JVP_LOOP, REST_JVP_LOOP)}


def undo_on_gpu(twins: tuple[TwinKind, ...], sizes: Sizes | None, args: TeamReverse) -> None:
    """Run `reverse`; the arrays of `args` live on the device and are updated."""
    with_rest, with_bodies = args.adj.consts.size > 0, len(args.adj.p) > 0
    kernel = twin_kernel(
        reverse, twins, with_rest=with_rest, in_blocks=bool(sizes), with_bodies=with_bodies
    )
    real, units = args.work.slots.dtype.itemsize, []
    if sizes:
        slots, of_nodes, of_rows = ((sizes.slots + 1), 3 * sizes.nodes, 3 * sizes.rows)
        gravity, bodies = 3 * (sizes.nodes + sizes.bodies), STATE_SIZE * sizes.bodies
        numbers = [
            (slots,), (slots,), (slots,), (of_rows,), (of_rows, of_rows), (of_nodes,), (of_nodes,),
            (sizes.nodes,), (gravity,), (bodies,), (PARAMS_SIZE * sizes.bodies,),
        ]  # fmt: skip
        units = [*sizes.of_model(real), *(tuple(real * n for n in unit) for unit in numbers)]
    moves = any(twin.kind.uses_velocity for twin in twins)
    run_teams(
        kernel, sizes, args, units, cached=are_hashed(twins), patch=SHARED_NUMBERS[moves] * real
    )


def advance_tangent_on_gpu(
    kinds: tuple[ElementKind, ...], sizes: Sizes | None, args: TeamTangent
) -> np.ndarray:
    """Run `tangent`; return how many of the steps stayed finite, of each world."""
    with_rest, with_bodies = args.tan.consts.size > 0, len(args.tan.p) > 0
    kernel = twin_kernel(
        tangent, kinds, with_rest=with_rest, in_blocks=bool(sizes), with_bodies=with_bodies
    )
    real, units = args.work.slots.dtype.itemsize, []
    if sizes:
        slots, rows = ((sizes.slots + 1) * real,), (3 * sizes.rows * real,) * 2
        units = [*sizes.of_model(real), slots, slots, (*rows, *rows)]
    run_teams(kernel, sizes, args, units, cached=are_hashed(kinds), patch=SHARED_NUMBERS[1] * real)
    return to_host(args.finite)
