r"""Adjoint and tangent of `adjsim/engine/timeloop.py`: the step undone, last line first.

    (2) x' = x + dt v'                     adj_v' += dt adj_x'
    (1) v' = v + dt (w f + [w>0] g)        adj_f = dt w adj_v',  adj_g += dt [w>0] adj_v'
                                           adj_w += dt f . adj_v'
        f = f(x, v, theta)                 adj_x += (df/dx)^T adj_f, adj_v, adj_theta alike

A node that a grip leads is undone by `adjoint/forces/grip.py`. The step of a rigid body is undone
beside it, by `adjoint/rigid/points.py`. A frame's cotangent is added when the sweep reaches its
state. The Jacobian of the step is triangular, so no system is solved. Source: gradSim (ICLR 2021)
eq. 5.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from adjoint.forces.grip import undo_led_step
from adjoint.rigid.points import add_body_frame, add_points, undo_body_step
from adjoint.tiles.assembly import REST_VJP_LOOP, VJP_LOOP
from adjsim.engine.partition import NODE_HI, NODE_LO
from adjsim.engine.tangents import vector_type
from adjsim.engine.timeloop import near_forces, part_forces, span_of, state_at
from adjsim.forces.grip import is_led, place_of
from adjsim.jit.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.jit.calls import NO_FUNCTION, make_call
from adjsim.jit.row_gathers import prefetch
from adjsim.pairs.near import (
    makes_lists,
    near_elements,
    near_tiles,
    near_vector,
    serve,
    sum_pairs,
    sum_params,
)
from adjsim.tiles.assembly import DTYPES, FORCE, ROW, TILE_HI, TILE_LO, call_of
from adjsim.tiles.loop_arrays import Bodies, Nodes, Span, States, named_type, types_of
from adjsim.tiles.node_sum import node_sum, node_sums


ROWS_OF_A_LINE = 2  # of three float64, in the 64 bytes of a cache line


@device_fn
def add_frame(n, adj_frame, adj):
    """Add a frame's cotangent to that of the state it shows."""
    for c in range(3):
        k = np.uint64(c)
        adj.x[n, k] += adj_frame.x[n, k]
        adj.v[n, k] += adj_frame.v[n, k]


@device_fn
def undo_euler_step(n, dt, w, adj, adj_f):
    """Undo the step's lines (2) and (1) for node n, but for adj_w."""
    scale = dt * w[n]
    free = dt if w[n] > lit(0, dt) else lit(0, dt)
    for c in range(3):
        k = np.uint64(c)
        # (2) x' = x + dt v'
        adj_v_new = adj.v[n, k] + dt * adj.x[n, k]
        # (1) v' = v + dt (w f + [w > 0] g)
        adj.v[n, k] = adj_v_new
        adj_f[n, k] = scale * adj_v_new
        adj.gravity[n, k] += free * adj_v_new


@device_fn
def undo_node_step(n, step, dt, nodes, adj, adj_f):
    """Undo the step of node n, but for adj_w; no force moves a led one."""
    if is_led(n, nodes):
        undo_led_step(n, place_of(n, step, nodes.led), dt, adj)
        adj_f[n, 0] = adj_f[n, 1] = adj_f[n, 2] = lit(0, dt)
    else:
        undo_euler_step(n, dt, nodes.w, adj, adj_f)


@device_fn
def add_slots(n, ptr, slots_of, adj_slots, adj):
    """Add a node's slots to its cotangent."""
    add_vector(n, node_sum(n, ptr, slots_of, adj_slots), adj)


@device_fn
def add_all_slots(n, nodes, work, adj):
    """Add a node's slots of positions and of velocities to its cotangents.

    Only some elements write slots of velocities. If all of a node do, one loop sums both.
    """
    e = n + np.uint64(1)
    ptr, slots_of, v_ptr = nodes.ptr, nodes.slots_of, nodes.velocity_ptr
    if v_ptr[e] - v_ptr[n] == ptr[e] - ptr[n]:
        total_x, total_v = node_sums(n, ptr, slots_of, work.adj_x_slots, work.adj_v_slots)
        add_vector(n, total_x, adj.x)
        add_vector(n, total_v, adj.v)
    else:
        add_slots(n, ptr, slots_of, work.adj_x_slots, adj.x)
        add_slots(n, v_ptr, nodes.velocity_slots_of, work.adj_v_slots, adj.v)


@device_fn
def add_vector(n, value, adj):
    """Add a vector to a node's cotangent."""
    adj[n, 0] += value[0]
    adj[n, 1] += value[1]
    adj[n, 2] += value[2]


@device_fn
def add_inverse_mass(n, dt, nodes, slots, adj):
    """Add dt f . adj_v' to a node's adj.w, while adj.v is still that of the new velocity."""
    f = node_sum(n, nodes.ptr, nodes.slots_of, slots)
    adj.w[n] += dt * (f[0] * adj.v[n, 0] + f[1] * adj.v[n, 1] + f[2] * adj.v[n, 2])


class ReverseWork(NamedTuple):
    """Slots of the forces, of adj_x and of adj_v; adj_f (n_rows, 3); scratch, none on a GPU."""

    slots: Any
    adj_x_slots: Any
    adj_v_slots: Any
    adj_f: Any
    scratch: Any


class Turn(NamedTuple):
    """What is done between two steps; `step` is the number of the one that begins."""

    step: Any
    ends: Any
    begins: Any
    has_frame: Any
    with_forces: Any


class Frames(NamedTuple):
    """Which frame shows the state after each step, or -1, and the cotangents of all frames."""

    of_step: Any
    x: Any
    v: Any
    p: Any


def turn_rows(span, dt, turn, nodes, bodies, work, p_end, p_begin, adj_frame, adj):
    """Between two steps, on the nodes and bodies of a span: end one, begin the next.

    To end is to add up what the elements wrote; to begin, to go from the adjoint of the new
    state, with that of the frame that shows it, to adj_f. `work.slots` holds the forces of the step
    that begins.
    """
    for i in range(span.node_lo, span.node_hi):
        n = np.uint64(i)
        if turn.ends:
            add_all_slots(n, nodes, work, adj)
        if turn.has_frame:
            add_frame(n, adj_frame, adj)
        if turn.begins:
            undo_node_step(n, turn.step, dt, nodes, adj, work.adj_f)
    replays = turn.begins and turn.with_forces
    for i in range(span.node_lo, span.node_hi if replays else span.node_lo):
        add_inverse_mass(np.uint64(i), dt, nodes, work.slots, adj)
    for b in range(span.body_lo, span.body_hi):
        if turn.ends:
            add_points(b, nodes, bodies, work, p_end, adj)
        if turn.has_frame:
            add_body_frame(b, adj_frame.p, adj.p)
        if turn.begins:
            undo_body_step(b, dt, nodes, bodies, work, p_begin, adj)


@device_fn
def part_turn(
    i_part, calls, nodes, bodies, parts, dt, turn, work, adj_frame, p_end, p_begin, adj
):  # fmt: skip
    """Do what `turn_rows` does, on a part's nodes and bodies."""
    r, last = parts.range_ptr[i_part], parts.range_ptr[i_part + 1] - 1
    if last < r:
        return
    span = span_of(parts.ranges, r, last)
    args = (span, dt, turn, nodes, bodies, work, p_end, p_begin, adj_frame, adj)
    call_turn(calls, 0, args)


@device_fn
def fetch_part(i_part, parts, state):
    """Ask for a part's nodes, stored long ago, ahead of their use."""
    ranges = parts.ranges
    for r in range(parts.range_ptr[i_part], parts.range_ptr[i_part + 1]):
        for n in range(ranges[r, NODE_LO], ranges[r, NODE_HI], ROWS_OF_A_LINE):
            prefetch(state.x, np.uint64(n))
            prefetch(state.v, np.uint64(n))


@device_fn
def part_adjoints(i_part, calls, elements, parts, step, state, work, adj):
    """Undo a part's elements."""
    rows = (elements.consts, elements.params, elements.series)
    out = (work.adj_x_slots, work.adj_v_slots, adj.params, adj.series)
    tiles = parts.tiles
    for t in range(parts.tile_ptr[i_part], parts.tile_ptr[i_part + 1]):
        force = tiles[t, FORCE]
        head = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step,
            elements.table, elements.nodes, (state.x, state.v, work.adj_f), rows,
        )  # fmt: skip
        call_vjp(calls.vjps, force, (*head, out, work.scratch[i_part]))
        if calls.rests[force] != NO_FUNCTION:
            call_rest_vjp(calls.rests, force, (*head, (adj.consts,), work.scratch[i_part]))


class ReverseCalls(NamedTuple):
    """Tables of compiled functions: of the adjoints of elements and of rest shapes, and others.

    There are no `forces` where undoing a step does not read them.
    """

    vjps: Any
    rests: Any
    forces: Any
    turn: Any


# Turn 0 of the reverse sweep only computes the forces of the last step. One more turn, after that
# of step 0, adds up what the elements of step 0 wrote.
TURNS_BESIDES_STEPS = 2


@device_fn
def turn_phase(i_part, turn, job):
    """End the step after step k, and begin to undo step k, on a part's nodes and bodies."""
    rows, frames = job.steps.rows, job.fields
    last = rows.size - 1
    k = last + 1 - turn
    if k > last:
        return 0
    frame = frames.of_step[k] if k >= 0 else -1
    what = Turn(job.steps.first + k, k < last, k >= 0, frame >= 0, len(job.calls.forces) > 0)
    state, p_end = state_at(job.states, rows[max(k, 0)]), job.states.p[rows[min(k + 1, last)]]
    fetch_part(i_part, job.parts, state)
    part_turn(
        i_part, job.calls.turn, job.nodes, job.bodies, job.parts, job.steps.dt, what, job.work,
        state_at(frames, max(frame, 0)), p_end, state.p, job.vector,
    )  # fmt: skip
    return 0


@device_fn
def adjoint_phase(i_part, turn, job):
    """Undo a part's elements in step k; compute the forces of the step that is undone next.

    Undoing a step may read its forces.
    """
    rows, first = job.steps.rows, job.steps.first
    k = rows.size - turn
    if 0 <= k < rows.size:
        state = state_at(job.states, rows[k])
        part_adjoints(
            i_part, job.calls, job.elements, job.parts, first + k, state, job.work, job.vector
        )
    if len(job.calls.forces) > 0 and k > 0:
        before = state_at(job.states, rows[k - 1])
        part_forces(
            i_part, job.calls.forces, job.elements, job.parts, first + k - 1, before, job.work
        )
    return 0


@device_fn
def adjoint_and_pair_phase(part_index, turn, job):
    """Undo a part's elements in step k, as `adjoint_phase` does, and its pairs."""
    adjoint_phase(part_index, turn, job)
    rows, pairs, job_work = job.steps.rows, job.elements, job.work
    k = rows.size - turn
    if 0 <= k < rows.size:
        work = ReverseWork(
            pairs.slots, pairs.more_slots, pairs.v_slots, job_work.adj_f, job_work.scratch
        )
        part_adjoints(
            part_index, job.calls, near_elements(pairs), near_tiles(pairs), job.steps.first + k,
            state_at(job.states, rows[k]), work, near_vector(pairs),
        )  # fmt: skip
    return 0


@device_fn
def pair_adjoint_sum_phase(i_part, turn, job):
    """Add up what the pairs wrote in step k."""
    rows, pairs = job.steps.rows, job.elements
    if 0 <= rows.size - turn < rows.size:
        sum_pairs(i_part, pairs, pairs.more_slots, job.work.adj_x_slots)
        sum_pairs(i_part, pairs, pairs.v_slots, job.work.adj_v_slots)
        sum_params(i_part, pairs, job.vector.params)
    return 0


@device_fn
def watch_back_phase(i_part, turn, job):
    """Make a part's list serve the step that is undone next."""
    rows, pairs = job.steps.rows, job.elements
    k = rows.size - turn
    if k > 0 and makes_lists(i_part, pairs):
        serve(pairs, pairs.shares[i_part, 0], job.states.x[rows[k - 1]])
    return 0


@device_fn
def pair_force_phase(i_part, turn, job):
    """Compute the forces of a part's pairs in the step that is undone next."""
    k = job.steps.rows.size - turn
    if len(job.calls.forces) > 0 and k > 0:
        near_forces(i_part, k - 1, job)
    return 0


@device_fn
def next_sum_phase(i_part, turn, job):
    """Add up the forces of the pairs in the step that is undone next."""
    if len(job.calls.forces) > 0 and job.steps.rows.size - turn > 0:
        sum_pairs(i_part, job.elements, job.elements.slots, job.work.slots)
    return 0


REVERSE = (turn_phase, adjoint_phase)
REVERSE_PAIRS = (
    turn_phase, adjoint_and_pair_phase, pair_adjoint_sum_phase, watch_back_phase, pair_force_phase,
    next_sum_phase,
)  # fmt: skip


def turn_signature(dtype: np.dtype) -> Any:
    """Return the signature of `turn_rows`."""
    of, real, boolean = types_of(dtype), numba.from_dtype(dtype), numba.boolean
    a, m = real[::1], real[:, ::1]
    turn = named_type(Turn, [numba.int64, *[boolean] * 4])
    work = named_type(ReverseWork, [a, a, a, m, m])
    heads = (of[Span], real, turn, of[Nodes], of[Bodies], work, m, m)
    return numba.void(*heads, of[States], vector_type(dtype))


call_vjp, call_rest_vjp = call_of(VJP_LOOP), call_of(REST_VJP_LOOP)
call_turn = make_call([turn_signature(dtype) for dtype in DTYPES])


@cache
def turn_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `turn_rows`."""
    return cpu_kernel(specialise(turn_rows, f"turn_rows_{dtype.name}"), [turn_signature(dtype)])
