"""The tangent of the time loop: states and their derivatives along one direction, together.

It repeats the loop of `adjsim/engine/timeloop.py` and pushes the tangent through every step with
the functions of `adjoint/engine/timeloop.py`.
"""

from numba import prange

from adjsim.engine.jit.backend import shared_fn
from adjsim.engine.loop_arrays import ModelArrays
from adjsim.engine.tangents import part_tangent_step, part_tangents
from adjsim.engine.timeloop import part_step, state_at


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
