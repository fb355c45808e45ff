"""The tangent of a step: of its elements, nodes and bodies.

The phases of `adjsim/engine/timeloop.py`, for a state and its tangent along one direction.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from adjsim.engine.packing import PackedModels
from adjsim.engine.partition import WORLD
from adjsim.engine.tangent_packing import PackedVector
from adjsim.engine.timeloop import (
    euler_step_jvp,
    force_table,
    part_forces,
    span_of,
    state_at,
    step_phase,
    step_table,
    watch_phase,
)
from adjsim.forces.grip import is_led, led_step, place_of
from adjsim.jit.backend import cpu_kernel, device_fn, specialise
from adjsim.jit.calls import NO_FUNCTION, function_table, make_call
from adjsim.pairs.near import near_elements, near_tiles, near_vector, sum_pairs
from adjsim.rigid.points import tangent_body
from adjsim.tiles.assembly import (
    DTYPES,
    FORCE,
    JVP_LOOP,
    REST_JVP_LOOP,
    ROW,
    TILE_HI,
    TILE_LO,
    call_of,
    tile_kernel,
)
from adjsim.tiles.loop_arrays import Bodies, Nodes, Span, States, named_type, types_of
from adjsim.tiles.node_sum import node_sum


class TangentWork(NamedTuple):
    """Slots of the forces and of their tangents; scratch, none on a GPU."""

    slots: Any
    tan_slots: Any
    scratch: Any


@device_fn
def tangent_node(n, step, dt, tan_gravity, nodes, tan, work, tan_before, tan_after):
    """Advance the tangent of node n; the step of a led one is linear in x and its place."""
    x, v = tan_before.x, tan_before.v
    tan_x, tan_v = (x[n, 0], x[n, 1], x[n, 2]), (v[n, 0], v[n, 1], v[n, 2])
    if is_led(n, nodes):
        tx, tv = led_step(place_of(n, step, nodes.led), tan_x, dt, tan.series)
    else:
        tx, tv = euler_step_jvp(
            tan_x, tan_v,
            node_sum(n, nodes.ptr, nodes.slots_of, work.slots),
            node_sum(n, nodes.ptr, nodes.slots_of, work.tan_slots),
            nodes.w[n], tan.w[n], (tan_gravity[0], tan_gravity[1], tan_gravity[2]), dt,
        )  # fmt: skip
    tan_after.x[n, 0], tan_after.x[n, 1], tan_after.x[n, 2] = tx
    tan_after.v[n, 0], tan_after.v[n, 1], tan_after.v[n, 2] = tv


def tangent_rows(
    span, step, dt, tan_gravity, nodes, bodies, tan, work, before, after, tan_before, tan_after
):
    """Advance the tangents of the nodes and bodies of a span."""
    for i in range(span.node_lo, span.node_hi):
        tangent_node(np.uint64(i), step, dt, tan_gravity, nodes, tan, work, tan_before, tan_after)
    for b in range(span.body_lo, span.body_hi):
        tangent_body(
            b, dt, tan_gravity, nodes, bodies, tan, work, before, after, tan_before, tan_after
        )


def tangent_signature(dtype: np.dtype) -> Any:
    """Return the signature of `tangent_rows`."""
    of, real = types_of(dtype), numba.from_dtype(dtype)
    a, m = real[::1], real[:, ::1]
    heads = (of[Span], numba.int64, real, a, of[Nodes], of[Bodies], vector_type(dtype))
    return numba.void(*heads, named_type(TangentWork, [a, a, m]), *(of[States],) * 4)


def vector_type(dtype: np.dtype) -> Any:
    """Return the type of a `PackedVector`."""
    real = numba.from_dtype(dtype)
    a, m = real[::1], real[:, ::1]
    return named_type(PackedVector, [m, m, m, a, a, a, a, m, m, m])


@cache
def tangent_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `tangent_rows`."""
    name = f"tangent_rows_{dtype.name}"
    return cpu_kernel(specialise(tangent_rows, name), [tangent_signature(dtype)])


call_jvp = call_of(JVP_LOOP)
call_rest_jvp = call_of(REST_JVP_LOOP)
call_tangent = make_call([tangent_signature(dtype) for dtype in DTYPES])


class TangentCalls(NamedTuple):
    """Tables of compiled functions that a step and its tangent call."""

    forces: Any
    jvps: Any  # of forces
    rests: Any  # of forces, for tangents of rest shapes
    steps: Any  # of nodes and bodies
    tangent: Any  # of a step


@device_fn
def part_tangents(part_index, calls, elements, tan, parts, step, state, tan_state, work):
    """Write a part's force slots and their tangents."""
    part_forces(part_index, calls.forces, elements, parts, step, state, work)
    rows, tiles = (elements.consts, elements.params, elements.series), parts.tiles
    for t in range(parts.tile_ptr[part_index], parts.tile_ptr[part_index + 1]):
        force = tiles[t, FORCE]
        head = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step,
            elements.table, elements.nodes,
        )  # fmt: skip
        tail = ((work.tan_slots,), work.scratch[part_index])
        fields = (state.x, state.v, tan_state.x, tan_state.v)
        call_jvp(calls.jvps, force, (*head, fields, (*rows, tan.params, tan.series), *tail))
        if calls.rests[force] != NO_FUNCTION:
            inputs = ((state.x, state.v), (*rows, tan.consts))
            call_rest_jvp(calls.rests, force, (*head, *inputs, *tail))


@device_fn
def part_tangent_step(i_part, k, calls, nodes, bodies, tan, parts, steps, work, states, tan_states):
    """Advance the tangents of a part's nodes and bodies by step k of a job."""
    ranges, a, b = parts.ranges, steps.rows[k], steps.rows[k + 1]
    ends = (state_at(states, a), state_at(states, b))
    tan_ends = (state_at(tan_states, a), state_at(tan_states, b))
    for r in range(parts.range_ptr[i_part], parts.range_ptr[i_part + 1]):
        head = (span_of(ranges, r, r), steps.first + k, steps.dt, tan.gravity[ranges[r, WORLD]])
        call_tangent(calls, 0, (*head, nodes, bodies, tan, work, *ends, *tan_ends))


@device_fn
def force_and_tangent_phase(i_part, k, job):
    """Write the force slots of a part in step k of a job, and their tangents."""
    row, step = job.steps.rows[k], job.steps.first + k
    part_tangents(
        i_part, job.calls, job.elements, job.vector, job.parts, step, state_at(job.states, row),
        state_at(job.fields, row), job.work,
    )  # fmt: skip
    return 0


@device_fn
def step_and_tangent_phase(i_part, k, job):
    """Advance a part's nodes and bodies by step k of a job, and their tangents."""
    lost = step_phase(i_part, k, job)
    part_tangent_step(
        i_part, k, job.calls.tangent, job.nodes, job.bodies, job.vector, job.parts, job.steps,
        job.work, job.states, job.fields,
    )  # fmt: skip
    return lost


@device_fn
def tangent_and_pair_phase(i_part, k, job):
    """Write the force slots of a part and of its pairs in step k of a job, and their tangents."""
    force_and_tangent_phase(i_part, k, job)
    row, step, pairs = job.steps.rows[k], job.steps.first + k, job.elements
    work = TangentWork(pairs.slots, pairs.more_slots, job.work.scratch)
    part_tangents(
        i_part, job.calls, near_elements(pairs), near_vector(pairs), near_tiles(pairs), step,
        state_at(job.states, row), state_at(job.fields, row), work,
    )  # fmt: skip
    return 0


@device_fn
def tangent_sum_phase(i_part, k, job):
    """Add up the forces of the pairs, and their tangents."""
    pairs = job.elements
    sum_pairs(i_part, pairs, pairs.slots, job.work.slots)
    sum_pairs(i_part, pairs, pairs.more_slots, job.work.tan_slots)
    return 0


TANGENT = (force_and_tangent_phase, step_and_tangent_phase)
TANGENT_PAIRS = (
    tangent_and_pair_phase, tangent_sum_phase, step_and_tangent_phase, watch_phase,
)  # fmt: skip


def tangent_calls(packed: PackedModels, dtype: np.dtype, *, with_rest: bool) -> TangentCalls:
    """Return the tables of packed models, whose kinds have tangents."""
    kinds = [kind.pairs or kind for kind in packed.kinds]
    jvps: list[Any] = [tile_kernel(JVP_LOOP, kind, kind.jvp, dtype) for kind in kinds]
    rests = [
        tile_kernel(REST_JVP_LOOP, kind, kind.jvp_consts, dtype)
        if kind.jvp_consts is not None and with_rest
        else None
        for kind in kinds
    ]
    return TangentCalls(
        forces=force_table(packed, dtype),
        jvps=function_table(jvps),
        rests=function_table(rests),
        steps=step_table(dtype),
        tangent=function_table([tangent_kernel(dtype)]),
    )
