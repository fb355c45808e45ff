r"""The reverse sweep and the tangent on a GPU: twins of `adjsim/engine/cuda_timeloop.py`.

Same lanes, same node functions as on the CPU; one launch per segment of steps.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjoint.engine.cuda_pairs import sum_pair_params
from adjoint.engine.cuda_patches import make_adjoints_of_patches, make_tangents_of_patches
from adjoint.engine.timeloop import (
    Frames,
    ReverseWork,
    add_all_slots,
    add_frame,
    add_inverse_mass,
    undo_node_step,
)
from adjoint.forces.element import TwinKind
from adjoint.rigid.pieces import pull_body, spread_pieces, sum_adjoint_pieces, undo_body
from adjoint.rigid.points import add_body_frame
from adjoint.tiles.assembly import REST_VJP_LOOP, VJP_LOOP
from adjsim.engine.cuda_pairs import ends_with, mark_pairs, pair_kind, sum_pair_slots
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
    team_kernel,
    world_at,
)
from adjsim.engine.cuda_timeloop import (
    chain_of,
    chain_of_pairs,
    make_chain,
    make_forces,
    named,
    step_bodies,
    watch_phase,
)
from adjsim.engine.tangent_packing import PackedVector
from adjsim.engine.tangents import TangentWork, tangent_node
from adjsim.engine.timeloop import state_at, step_node
from adjsim.jit.backend import device_fn
from adjsim.jit.device_arrays import to_host
from adjsim.pairs.near import near_elements, near_vector
from adjsim.rigid.pieces import (
    Pieces,
    place_pieces,
    place_tangent_pieces,
    sum_tangent_pieces,
    tangent_body,
)
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE
from adjsim.tiles.assembly import FORCE_LOOP, JVP_LOOP, REST_JVP_LOOP, Loop
from adjsim.tiles.element_kind import ElementKind
from adjsim.tiles.loop_arrays import ModelArrays, States


# Bound by `team_kernel`.
TEAM_ARRAYS: Any = None
FORCES: Any = None
ADJOINTS: Any = None
TANGENTS: Any = None
PAIR_FORCES: Any = None
PAIR_ADJOINTS: Any = None
PAIR_TANGENTS: Any = None
WITH_BODIES = False
# In the places of shared memory: of the reverse sweep, and of the tangent.
(
    ADJ_X_SLOTS, ADJ_F, NOW, _, ADJ_X, ADJ_V, ADJ_W, ADJ_GRAVITY, ADJ_P, ADJ_BODIES, ADJ_V_SLOTS,
    FORCE_SLOTS,
) = range(FIRST_OWN, FIRST_OWN + 12)  # fmt: skip
SLOTS, TAN_SLOTS, X, _, TAN_X, _ = range(FIRST_OWN, FIRST_OWN + 6)


class TeamReverse(NamedTuple):
    """What the phases of `REVERSE` are given; `rows` = (k0, with_forces, rows of n states).

    `pairs` as in `TeamAdvance`.
    """

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
    pairs: Any = ()


class TeamTangent(NamedTuple):
    """What the phases of `TANGENT` are given; `rows`, `finite`, `pairs` as in `TeamAdvance`."""

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
    pairs: Any = ()


# Of n steps, turn 0 only computes the forces of the last one, and turn t undoes step n - t.


@device_fn
def step_of(turn, args):
    """Return which step of the launch a turn undoes."""
    return args.rows.size - 2 - turn


def begin_phase(turn, team, args):
    """Turn the adjoint of the new state, and of a frame that shows it, into those of the forces."""
    if turn == 0:
        return False
    spans, model, pieces, work, adj, is_shared, now = TEAM_ARRAYS(team.world, team.memory, args)
    k = step_of(turn, args)
    stored, frame = own_state(spans, args.states, args.rows[k + 2]), args.frames.of_step[k]
    load_rows(team.start, team.stride, is_shared, stored, now)
    adj_frame = (frame >= 0, own_frame(spans, args.frames, max(frame, 0)))
    dt, with_forces = args.numbers[0], args.rows[1] > 0
    threads, step = (team.start, team.stride), args.rows[0] + k
    begin(threads, step, dt, adj_frame, with_forces, model, work, adj)
    if WITH_BODIES:
        undo_bodies(team.start, team.stride, dt, adj_frame, model, pieces, work, stored.p, adj)
    return True


def spread_phase(turn, team, args):
    """Give the points of bodies in pieces the adjoints of their forces."""
    if WITH_BODIES and turn > 0:
        _, model, pieces, work, adj, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
        if pieces.body.size > 0:
            spread_pieces(team.start, team.stride, model.nodes, model.bodies, pieces, work, adj)
            return True
    return False


def pair_phase(turn, team, args):
    """Undo the pairs; compute their forces in the step that is undone next, if it reads them."""
    k, threads, pairs = step_of(turn, args), (team.start, team.stride), args.pairs
    elements, step, patches = near_elements(pairs), args.rows[0] + k, args.patches
    if turn > 0:
        work = ReverseWork(
            pairs.slots, pairs.more_slots, pairs.v_slots, args.work.adj_f, args.work.scratch
        )
        state = state_at(args.states, args.rows[k + 2])
        PAIR_ADJOINTS(
            threads, team.wait, step, patches, elements, state, team.memory, work,
            near_vector(pairs),
        )  # fmt: skip
    if args.rows[1] > 0 and k > 0:
        before = state_at(args.states, args.rows[k + 1])
        PAIR_FORCES(
            threads, team.wait, step - 1, patches, elements, before, team.memory, pairs.slots
        )
    mark_pairs(team, pairs)
    return False


def pair_sum_phase(turn, team, args):
    """Add up what the pairs wrote, and their forces."""
    pairs, work = args.pairs, args.work
    if turn > 0:
        sum_pair_slots(team, pairs, pairs.more_slots, work.adj_x_slots)
        sum_pair_slots(team, pairs, pairs.v_slots, work.adj_v_slots)
        sum_pair_params(team, pairs, args.adj.params)
    if args.rows[1] > 0 and step_of(turn, args) > 0:
        sum_pair_slots(team, pairs, pairs.slots, work.slots)
    return True


def adjoint_phase(turn, team, args):
    """Undo the elements; compute the forces of the step that is undone next, if it reads them."""
    k, wait, patches = step_of(turn, args), team.wait, args.patches
    step = args.rows[0] + k
    if turn > 0:
        spans, model, _, work, adj, is_shared, now = TEAM_ARRAYS(team.world, team.memory, args)
        state = shared_or_stored(is_shared, now, own_state(spans, args.states, args.rows[k + 2]))
        elements = model.elements
        ADJOINTS(team.threads, wait, step, patches, elements, state, team.memory, work, adj)
    if args.rows[1] > 0 and k > 0:
        spans, model, _, work, _, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
        before, elements = own_state(spans, args.states, args.rows[k + 1]), model.elements
        FORCES(team.threads, wait, step - 1, patches, elements, before, team.memory, work.slots)
    return True


def sum_phase(turn, team, args):
    """Add up what the elements wrote for pieces of bodies, and their forces."""
    if WITH_BODIES:
        spans, model, pieces, work, adj, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
        if pieces.body.size > 0:
            row = args.rows[step_of(turn, args) + 2] if turn > 0 else 0
            p = own_state(spans, args.states, row).p
            sum_adjoint_pieces(
                team.start, team.stride, turn > 0, model.nodes, model.bodies, pieces, work, p, adj
            )
            return True
    return False


def end_phase(turn, team, args):
    """Add up what the elements wrote, for nodes and bodies."""
    if turn > 0:
        spans, model, pieces, work, adj, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
        p = own_state(spans, args.states, args.rows[step_of(turn, args) + 2]).p
        end(team.start, team.stride, WITH_BODIES, model, pieces, work, p, adj)
    return False


REVERSE = (begin_phase, spread_phase, adjoint_phase, sum_phase, end_phase)
REVERSE_PAIRS = (
    begin_phase, spread_phase, pair_phase, adjoint_phase, pair_sum_phase, sum_phase, end_phase,
)  # fmt: skip


@device_fn
def grid_arrays_of_reverse(world, memory, args):
    """Return what the grid has of `args`."""
    rows, now = all_of(args.states), state_at(args.states, 0)
    return rows, args.model, args.pieces, args.work, args.adj, False, now


@device_fn
def block_arrays_of_reverse(world, memory, args):
    """Return what a block has of `args`, in shared memory where that has places."""
    spans, places = part_of(args.worlds.starts, world), args.worlds.places
    model = share_model(memory, places, model_of(world, spans, args.worlds.starts, args.model))
    work = share_work(spans, places, memory, args.work)
    adj = share_adjoints(places, memory, own_adjoints(spans, args.adj))
    is_shared, now = share_state(own_state(spans, args.states, 0), places, NOW, memory)
    return spans, model, own_pieces(world, spans, args.pieces), work, adj, is_shared, now


@device_fn
def fill_reverse(team, args):
    """Write the numbers that a block begins with to its shared memory."""
    start, stride, world = team.start, team.stride, team.world
    spans, model, _, _, adj, _, _ = block_arrays_of_reverse(world, team.memory, args)
    places = args.worlds.places
    fill_model(start, stride, places, model_of(world, spans, args.worlds.starts, args.model), model)
    copy_adjoints(start, stride, places, own_adjoints(spans, args.adj), adj)


@device_fn
def store_reverse(team, args):
    """Write the cotangents that a block ends with to where they came from."""
    spans, _, _, _, adj, _, _ = block_arrays_of_reverse(team.world, team.memory, args)
    copy_adjoints(team.start, team.stride, args.worlds.places, adj, own_adjoints(spans, args.adj))


@device_fn
def begin(threads, step, dt, frame, with_forces, model, work, adj):
    """Go from the adjoint of the new state to adj_f, on this thread's nodes.

    `frame`: whether one shows the state, and its cotangent.
    """
    nodes, (has_frame, adj_frame), (start, stride) = model.nodes, frame, threads
    for i in range(start, nodes.w.size, stride):
        n = np.uint64(i)
        if has_frame:
            add_frame(n, adj_frame, adj)
        undo_node_step(n, step, dt, nodes, adj, work.adj_f)
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
def own_frame(spans, frames, k):
    """Return a world's part of the cotangents of frame k, which has no points of bodies."""
    x, v = (
        cut(frames.x[k], spans.node_lo, spans.node_hi),
        cut(frames.v[k], spans.node_lo, spans.node_hi),
    )
    return States(x, v, cut(frames.p[k], spans.body_lo, spans.body_hi))


@device_fn
def share_work(spans, places, memory, work):
    """Return a world's work arrays, in shared memory where they have places there."""
    lo, hi = spans.slot_lo, spans.slot_hi + 1
    return ReverseWork(
        share(cut(work.slots, lo, hi), memory, places[FORCE_SLOTS]),
        share(cut(work.adj_x_slots, lo, hi), memory, places[ADJ_X_SLOTS]),
        share(cut(work.adj_v_slots, lo, hi), memory, places[ADJ_V_SLOTS]),
        share(cut(work.adj_f, spans.row_lo, spans.row_hi), memory, places[ADJ_F]),
        work.scratch,
    )


@device_fn
def own_adjoints(spans, adj):
    """Return a world's cotangents; those of elements are found by the table, as those of all."""
    lo, hi, body_lo, body_hi = spans.node_lo, spans.node_hi, spans.body_lo, spans.body_hi
    points = spans.row_lo - lo, spans.row_hi - hi
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


def pair_tangent_phase(k, team, args):
    """Write the force slots of the pairs in step k, and their tangents."""
    row, step, pairs = args.rows[k + 1], args.rows[0] + k, args.pairs
    both = state_at(args.states, row), state_at(args.tan_states, row)
    work = TangentWork(pairs.slots, pairs.more_slots, args.work.scratch)
    PAIR_TANGENTS(
        (team.start, team.stride), team.wait, step, args.patches, near_elements(pairs), both,
        team.memory, near_vector(pairs), work,
    )  # fmt: skip
    mark_pairs(team, pairs)
    return False


def pair_tangent_sum_phase(k, team, args):
    """Add up the forces of the pairs, and their tangents."""
    sum_pair_slots(team, args.pairs, args.pairs.slots, args.work.slots)
    sum_pair_slots(team, args.pairs, args.pairs.more_slots, args.work.tan_slots)
    return True


def tangent_phase(k, team, args):
    """Write the force slots of the elements in step k, and their tangents."""
    spans, model, _, tan, work, is_shared, now, tan_now = TEAM_ARRAYS(team.world, team.memory, args)
    a, b, step = args.rows[k + 1], args.rows[k + 2], args.rows[0] + k
    before, _, _ = states_of_step(spans, is_shared, now, args.states, a, b)
    tan_before, _, _ = states_of_step(spans, is_shared, tan_now, args.tan_states, a, b)
    both, elements, wait = (before, tan_before), model.elements, team.wait
    TANGENTS(team.threads, wait, step, args.patches, elements, both, team.memory, tan, work)
    return True


def tangent_load_phase(k, team, args):
    """Add up the forces on pieces of bodies, and their tangents."""
    if WITH_BODIES:
        _, model, pieces, tan, work, _, _, _ = TEAM_ARRAYS(team.world, team.memory, args)
        if pieces.body.size > 0:
            sum_tangent_pieces(
                team.start, team.stride, model.nodes, model.bodies, pieces, tan.arms, work
            )
            return True
    return False


def tangent_step_phase(k, team, args):
    """Advance nodes and bodies by step k, and their tangents."""
    spans, model, pieces, tan, work, is_shared, now, tan_now = TEAM_ARRAYS(
        team.world, team.memory, args
    )
    a, b = args.rows[k + 1], args.rows[k + 2]
    before, after, stored = states_of_step(spans, is_shared, now, args.states, a, b)
    tan_before, tan_after, tan_stored = states_of_step(
        spans, is_shared, tan_now, args.tan_states, a, b
    )
    nodes, dt, step, series = model.nodes, args.numbers[0], args.rows[0] + k, model.elements.series
    for i in range(team.start, nodes.w.size, team.stride):
        n, world = np.uint64(i), world_at(team.world, nodes, i)
        gravity = gravity_at(team.world, nodes, i)
        bad = step_node(n, step, dt, gravity, series, nodes, work.slots, before, after)
        if bad > 0:
            team.lower(args.finite, world, k)
        tan_gravity = args.tan.gravity[world]
        tangent_node(n, step, dt, tan_gravity, nodes, tan, work, tan_before, tan_after)
        store_rows(is_shared, i, i + 1, now, stored)
        store_rows(is_shared, i, i + 1, tan_now, tan_stored)
    if WITH_BODIES:
        step_bodies(
            team, dt, k, args.finite, model, pieces, work.slots, before, after
        )  # fmt: skip
        both, both_after = (before, tan_before), (after, tan_after)
        tangent_bodies(team, dt, args.tan, model, pieces, tan, work, both, both_after)
        return pieces.body.size > 0
    return False


def tangent_place_phase(k, team, args):
    """Place the points of bodies after step k, and their tangents."""
    if WITH_BODIES:
        spans, model, pieces, tan, _, is_shared, now, tan_now = TEAM_ARRAYS(
            team.world, team.memory, args
        )
        a, b, bodies = args.rows[k + 1], args.rows[k + 2], model.bodies
        start, stride = team.start, team.stride
        _, after, stored = states_of_step(spans, is_shared, now, args.states, a, b)
        _, tan_after, tan_stored = states_of_step(spans, is_shared, tan_now, args.tan_states, a, b)
        if pieces.body.size > 0:
            place_pieces(start, stride, bodies, pieces, after)
            place_tangent_pieces(start, stride, bodies, pieces, tan.arms, after.p, tan_after)
        store_points(start, stride, is_shared, bodies, pieces, now, stored)
        store_points(start, stride, is_shared, bodies, pieces, tan_now, tan_stored)
    return True


TANGENT = (tangent_phase, tangent_load_phase, tangent_step_phase, tangent_place_phase)
TANGENT_PAIRS = (
    pair_tangent_phase, tangent_phase, pair_tangent_sum_phase, *TANGENT[1:], watch_phase,
)  # fmt: skip


@device_fn
def tangent_bodies(team, dt, all_tan, model, pieces, tan, work, both, both_after):
    """Advance the tangents of this thread's bodies; `all_tan` is that of all worlds."""
    nodes, bodies = model.nodes, model.bodies
    (before, tan_before), (after, tan_after) = both, both_after
    for i in range(team.start, bodies.point_ptr.size - 1, team.stride):
        world = world_at(team.world, nodes, nodes.w.size + i)
        tangent_body(
            i, dt, all_tan.gravity[world], nodes, bodies, pieces, tan, work,
            before, after, tan_before, tan_after,
        )  # fmt: skip


@device_fn
def grid_arrays_of_tangent(world, memory, args):
    """Return what the grid has of `args`."""
    rows, now, tan_now = all_of(args.states), state_at(args.states, 0), state_at(args.tan_states, 0)
    return rows, args.model, args.pieces, args.tan, args.work, False, now, tan_now


@device_fn
def block_arrays_of_tangent(world, memory, args):
    """Return what a block has of `args`, in shared memory where that has places."""
    spans, places = part_of(args.worlds.starts, world), args.worlds.places
    model = share_model(memory, places, model_of(world, spans, args.worlds.starts, args.model))
    lo, hi = spans.slot_lo, spans.slot_hi + 1
    work = TangentWork(
        share(cut(args.work.slots, lo, hi), memory, places[SLOTS]),
        share(cut(args.work.tan_slots, lo, hi), memory, places[TAN_SLOTS]),
        args.work.scratch,
    )
    tan, pieces = own_adjoints(spans, args.tan), own_pieces(world, spans, args.pieces)
    is_shared, now = share_state(own_state(spans, args.states, args.rows[1]), places, X, memory)
    tan_first = own_state(spans, args.tan_states, args.rows[1])
    _, tan_now = share_state(tan_first, places, TAN_X, memory)
    return spans, model, pieces, tan, work, is_shared, now, tan_now


@device_fn
def fill_tangent(team, args):
    """Write the numbers that a block begins with to its shared memory."""
    start, stride, world = team.start, team.stride, team.world
    spans, model, _, _, _, _, now, tan_now = block_arrays_of_tangent(world, team.memory, args)
    places, row = args.worlds.places, args.rows[1]
    fill_model(start, stride, places, model_of(world, spans, args.worlds.starts, args.model), model)
    fill_state(start, stride, own_state(spans, args.states, row), now, places, X)
    fill_state(start, stride, own_state(spans, args.tan_states, row), tan_now, places, TAN_X)


@cache
def twin_kernel(
    sweep: str,
    laws: tuple[TwinKind | ElementKind, ...],
    *,
    with_rest: bool,
    in_blocks: bool,
    with_bodies: bool,
) -> Callable:
    """Return the kernel of "reverse" or "tangent" for a model with these twins or kinds."""
    loop, rest_loop = LOOPS[sweep]
    kinds = [kind_of(law) for law in laws]

    def chain(loop: Loop, laws: tuple[TwinKind | ElementKind, ...]) -> Callable:
        elements = [(kind_of(law), getattr(law, loop.name)) for law in laws]
        return chain_of(loop, elements, in_blocks=in_blocks)

    how: dict[str, Any] = {"in_blocks": in_blocks, "with_bodies": with_bodies}
    forces = chain_of(FORCE_LOOP, [(kind, kind.force) for kind in kinds], in_blocks=in_blocks)
    twins, rest = chain(loop, laws), chain(rest_loop, laws if with_rest else ())
    calls: dict[str, Any]
    if sweep == "reverse":
        make = make_adjoints if in_blocks else make_adjoints_of_patches
        make_own_forces = make_forces if in_blocks else make_forces_of_patches
        phases, calls = REVERSE, {"ADJOINTS": make(twins, rest), "FORCES": make_own_forces(forces)}
        calls |= {"FILL": fill_reverse, "STORE": store_reverse, "EXTRA_TURNS": 1}
    else:
        make = make_tangents if in_blocks else make_tangents_of_patches
        phases, calls = TANGENT, {"TANGENTS": make(forces, twins, rest), "FILL": fill_tangent}
    if pair_kind(kinds):
        phases = REVERSE_PAIRS if sweep == "reverse" else TANGENT_PAIRS
        calls |= calls_of_pairs(sweep, next(law for law in laws if kind_of(law).pairs))
    name = f"{sweep}{'_with_rest' if with_rest else ''}"
    calls["TEAM_ARRAYS"] = ARRAYS[sweep][in_blocks]
    return team_kernel(named(name, **how), phases, **how, **calls)


def calls_of_pairs(sweep: str, law: TwinKind | ElementKind) -> dict[str, Callable]:
    """Return what the phases of pairs of "reverse" or "tangent" call."""
    loop, pairs = LOOPS[sweep][0], kind_of(law).pairs
    assert pairs is not None
    forces = chain_of_pairs(FORCE_LOOP, pairs, pairs.force)
    twins, rest = chain_of_pairs(loop, pairs, getattr(law, loop.name)), make_chain(())
    if sweep == "reverse":
        return {"PAIR_ADJOINTS": make_adjoints(twins, rest), "PAIR_FORCES": make_forces(forces)}
    return {"PAIR_TANGENTS": make_tangents(forces, twins, rest), "ENDS_WITH": ends_with}


def make_adjoints(chain: Callable, rest_chain: Callable) -> Callable:
    """Return the function that undoes the elements of a block's world."""

    @device_fn
    def adjoints(team, wait, step, patches, elements, state, memory, work, adj):
        numbers = (elements.consts, elements.params, elements.series)
        start, stride = team
        read, (table, nodes) = (state.x, state.v, work.adj_f), (elements.table, elements.nodes)
        out = (work.adj_x_slots, work.adj_v_slots, adj.params, adj.series)
        chain(start, stride, step, table, nodes, read, numbers, out)
        rest_chain(start, stride, step, table, nodes, read, numbers, (adj.consts,))

    return adjoints


def make_tangents(forces: Callable, chain: Callable, rest_chain: Callable) -> Callable:
    """Return the function that writes the slots of forces and tangents of a block's world."""

    @device_fn
    def tangents(team, wait, step, patches, elements, both, memory, tan, work):
        start, stride = team
        consts, params, series = elements.consts, elements.params, elements.series
        (state, tan_state), table, nodes = both, elements.table, elements.nodes
        read, fields = (state.x, state.v), (state.x, state.v, tan_state.x, tan_state.v)
        with_tangents = (consts, params, series, tan.params, tan.series)
        forces(start, stride, step, table, nodes, read, (consts, params, series), (work.slots,))
        chain(start, stride, step, table, nodes, fields, with_tangents, (work.tan_slots,))
        with_rest = (consts, params, series, tan.consts)
        rest_chain(start, stride, step, table, nodes, read, with_rest, (work.tan_slots,))

    return tangents


def kind_of(law: TwinKind | ElementKind) -> ElementKind:
    """Return the kind of a twin; a kind is its own."""
    return law.kind if isinstance(law, TwinKind) else law


ARRAYS = {
    "reverse": (grid_arrays_of_reverse, block_arrays_of_reverse),
    "tangent": (grid_arrays_of_tangent, block_arrays_of_tangent),
}
LOOPS = {"reverse": (VJP_LOOP, REST_VJP_LOOP), "tangent": (JVP_LOOP, REST_JVP_LOOP)}


def undo_on_gpu(twins: tuple[TwinKind, ...], sizes: Sizes | None, args: TeamReverse) -> None:
    """Run `reverse`; the arrays of `args` live on the device and are updated."""
    with_rest, with_bodies = args.adj.consts.size > 0, len(args.adj.p) > 0
    kernel = twin_kernel(
        "reverse", twins, with_rest=with_rest, in_blocks=bool(sizes), with_bodies=with_bodies
    )
    real, units = args.work.slots.dtype.itemsize, []
    if sizes:
        slots, of_nodes, of_rows = ((sizes.slots + 1), 3 * sizes.nodes, 3 * sizes.rows)
        gravity, bodies = 3 * (sizes.nodes + sizes.bodies), STATE_SIZE * sizes.bodies
        numbers = [
            (slots,), (of_rows,), (of_rows, of_rows), (of_nodes,), (of_nodes,), (sizes.nodes,),
            (gravity,), (bodies,), (PARAMS_SIZE * sizes.bodies,), (slots,), (slots,),
        ]  # fmt: skip
        units = [*sizes.of_model(real), *(tuple(real * n for n in unit) for unit in numbers)]
    moves = any(twin.kind.uses_velocity for twin in twins)
    run_teams(kernel, sizes, args, units, patch=SHARED_NUMBERS[moves] * real)


def advance_tangent_on_gpu(
    kinds: tuple[ElementKind, ...], sizes: Sizes | None, args: TeamTangent
) -> np.ndarray:
    """Run `tangent`; return how many of the steps stayed finite, of each world."""
    with_rest, with_bodies = args.tan.consts.size > 0, len(args.tan.p) > 0
    kernel = twin_kernel(
        "tangent", kinds, with_rest=with_rest, in_blocks=bool(sizes), with_bodies=with_bodies
    )
    real, units = args.work.slots.dtype.itemsize, []
    if sizes:
        slots, rows = ((sizes.slots + 1) * real,), (3 * sizes.rows * real,) * 2
        units = [*sizes.of_model(real), slots, slots, (*rows, *rows)]
    run_teams(kernel, sizes, args, units, patch=SHARED_NUMBERS[1] * real)
    return to_host(args.finite)
