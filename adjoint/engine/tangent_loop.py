"""The tangent of the time loop: states and their derivatives along one direction, together.

It repeats the loop of `adjsim/engine/timeloop.py` and pushes the tangent through every step with
the functions of `adjoint/engine/timeloop.py`.
"""

from typing import Any, NamedTuple

from adjoint.engine.assembly import JVP_LOOP, REST_JVP_LOOP
from adjoint.engine.timeloop import tangent_signature
from adjsim.engine.assembly import DTYPES, call_of
from adjsim.engine.jit.backend import device_fn
from adjsim.engine.jit.calls import NO_FUNCTION, make_call
from adjsim.engine.partition import FORCE, ROW, TILE_HI, TILE_LO, WORLD
from adjsim.engine.timeloop import part_forces, span_of, state_at, step_phase


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


@device_fn
def force_and_tangent_phase(part, k, job):
    """Write the force slots of a part in step k of a job, and their tangents."""
    row, step = job.steps.rows[k], job.steps.first + k
    part_tangents(
        part, job.calls, job.elements, job.vector, job.parts, step, state_at(job.states, row),
        state_at(job.fields, row), job.work,
    )  # fmt: skip
    return 0


@device_fn
def step_and_tangent_phase(part, k, job):
    """Advance a part's nodes and bodies by step k of a job, and their tangents."""
    lost = step_phase(part, k, job)
    a, b = job.steps.rows[k], job.steps.rows[k + 1]
    part_tangent_step(
        part, job.calls.tangent, job.nodes, job.bodies, job.vector, job.parts, job.steps.dt,
        job.work, state_at(job.states, a), state_at(job.states, b), state_at(job.fields, a),
        state_at(job.fields, b),
    )  # fmt: skip
    return lost


TANGENT = (force_and_tangent_phase, step_and_tangent_phase)
