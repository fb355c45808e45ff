"""The tangent of the time loop: states and their derivatives along one direction, together.

It repeats the loop of `adjsim/engine/timeloop.py` and pushes the tangent through every step with
the functions of `adjoint/engine/timeloop.py`.
"""

from typing import Any, NamedTuple

from numba import prange

from adjoint.engine.timeloop import tangent_signature
from adjsim.engine.assembly import DTYPES, JVP_LOOP, REST_JVP_LOOP, call_of
from adjsim.engine.jit.backend import device_fn, shared_fn
from adjsim.engine.jit.calls import NO_FUNCTION, make_call
from adjsim.engine.loop_arrays import ModelArrays
from adjsim.engine.partition import FORCE, ROW, TILE_HI, TILE_LO, WORLD
from adjsim.engine.timeloop import part_forces, part_step, span_of, state_at


call_jvp, call_rest_jvp = call_of(JVP_LOOP), call_of(REST_JVP_LOOP)
call_tangent = make_call([tangent_signature(dtype) for dtype in DTYPES])


class TangentCalls(NamedTuple):
    """Tables of compiled functions that a step and its tangent call."""

    forces: Any
    jvps: Any  # of forces
    rests: Any  # of forces, for tangents of rest shapes
    steps: Any  # of nodes and bodies
    tangent: Any  # of a step


@device_fn
def part_tangents(part, calls, elements, tan, parts, step, state, tan_state, work):
    """Write a part's force slots and their tangents."""
    part_forces(part, calls.forces, elements, parts, step, state, work)
    rows, tiles = (elements.consts, elements.params, elements.series), parts.tiles
    for t in range(parts.tile_ptr[part], parts.tile_ptr[part + 1]):
        force = tiles[t, FORCE]
        head = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step,
            elements.table, elements.nodes,
        )  # fmt: skip
        tail = ((work.tan_slots,), work.scratch[part])
        fields = (state.x, state.v, tan_state.x, tan_state.v)
        call_jvp(calls.jvps, force, (*head, fields, (*rows, tan.params, tan.series), *tail))
        if calls.rests[force] != NO_FUNCTION:
            own = ((state.x, state.v), (*rows, tan.consts))
            call_rest_jvp(calls.rests, force, (*head, *own, *tail))


@device_fn
def part_tangent_step(
    part, calls, nodes, bodies, tan, parts, dt, work, before, after, tan_before, tan_after
):  # fmt: skip
    """Advance the tangents of a part's nodes and bodies."""
    ranges = parts.ranges
    for r in range(parts.range_ptr[part], parts.range_ptr[part + 1]):
        args = (
            span_of(ranges, r, r), dt, tan.gravity[ranges[r, WORLD]], nodes, bodies,
            tan, work, before, after, tan_before, tan_after,
        )  # fmt: skip
        call_tangent(calls, 0, args)


def tangent_part(part, calls, model, tan, parts, work, steps, states, tan_states, finite, stops):
    """Run a part and its tangent, as `adjsim.engine.timeloop.advance_part`."""
    elements, nodes, bodies = model
    for k in range(steps.rows.size - 1):
        a, b = steps.rows[k], steps.rows[k + 1]
        before, after = state_at(states, a), state_at(states, b)
        tan_before, tan_after = state_at(tan_states, a), state_at(tan_states, b)
        step = steps.first + k
        part_tangents(part, calls, elements, tan, parts, step, before, tan_before, work)
        bad = part_step(
            part, calls.steps, nodes, bodies, parts, steps.dt, work.slots, before, after, k, finite
        )
        part_tangent_step(
            part, calls.tangent, nodes, bodies, tan, parts, steps.dt, work, before, after,
            tan_before, tan_after,
        )  # fmt: skip
        if bad > 0 and stops:
            return


TANGENT_PART = shared_fn(tangent_part)


def tangent_alone(
    calls, elements, nodes, bodies, tan, parts, work, steps, states, tan_states, finite, stops
):  # fmt: skip
    """Run every part and its tangent alone; `finite` and `stops` as in `advance_alone`."""
    for part in prange(work.scratch.shape[0]):
        model = ModelArrays(elements, nodes, bodies)
        TANGENT_PART(
            part, calls, model, tan, parts, work, steps, states, tan_states, finite, stops
        )  # fmt: skip


def tangent_together(
    calls, elements, nodes, bodies, tan, parts, work, steps, states, tan_states, finite, stops
):  # fmt: skip
    """Run all parts and their tangents step by step; the rest as in `tangent_alone`."""
    n_parts = work.scratch.shape[0]
    for k in range(steps.rows.size - 1):
        a, b, step = steps.rows[k], steps.rows[k + 1], steps.first + k
        for part in prange(n_parts):
            before, tan_before = state_at(states, a), state_at(tan_states, a)
            part_tangents(part, calls, elements, tan, parts, step, before, tan_before, work)
        bad = 0
        for part in prange(n_parts):
            before, after = state_at(states, a), state_at(states, b)
            bad += part_step(
                part, calls.steps, nodes, bodies, parts, steps.dt, work.slots, before, after, k,
                finite,
            )  # fmt: skip
            part_tangent_step(
                part, calls.tangent, nodes, bodies, tan, parts, steps.dt, work, before, after,
                state_at(tan_states, a), state_at(tan_states, b),
            )  # fmt: skip
        if bad > 0 and stops:
            break
