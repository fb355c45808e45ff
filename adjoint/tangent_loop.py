"""The tangent of the time loop: states and their derivatives along one direction, together.

The loops beside those of `adjsim/timeloop.py`, with the steps of `adjoint/timeloop.py`.
"""

from numba import prange

from adjoint.assembly import JVP_LOOP, REST_JVP_LOOP
from adjoint.timeloop import tangent_signature
from adjsim.assembly import DTYPES, call_of
from adjsim.backend import device_fn, shared_fn
from adjsim.calls import NO_FUNCTION, make_call
from adjsim.parts import BODY_HI, BODY_LO, FORCE, NODE_HI, NODE_LO, ROW, TILE_HI, TILE_LO, WORLD
from adjsim.timeloop import part_forces, part_step


call_jvp, call_rest_jvp = call_of(JVP_LOOP), call_of(REST_JVP_LOOP)
call_tangent = make_call([tangent_signature(dtype) for dtype in DTYPES])


@device_fn
def part_tangents(part, jvps, rests, packed, tan_packed, parts, step, states, tan_slots, scratch):
    """Write the tangents of a part's force slots."""
    table, nodes, consts, params, series = packed
    tan_params, tan_series, tan_consts = tan_packed
    x, v, tan_x, tan_v = states
    tile_ptr, tiles = parts[0], parts[1]
    for t in range(tile_ptr[part], tile_ptr[part + 1]):
        force = tiles[t, FORCE]
        head = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step, table, nodes,
        )  # fmt: skip
        rows, tail = (consts, params, series), ((tan_slots,), scratch[part])
        fields = (x, v, tan_x, tan_v)
        call_jvp(jvps, force, (*head, fields, (*rows, tan_params, tan_series), *tail))
        if rests[force] != NO_FUNCTION:
            call_rest_jvp(rests, force, (*head, (x, v), (*rows, tan_consts), *tail))


@device_fn
def part_tangent_step(
    part, tangent_range, loads, tan_loads, bodies, parts, dt, slots, tan_slots, p, p_new,
    tan_states,
):  # fmt: skip
    """Advance the tangents of a part's nodes and bodies."""
    w, _, ptr, slots_of = loads
    tan_w, tan_gravity, tan_bodies, tan_arms = tan_loads
    range_ptr, ranges = parts[2], parts[3]
    for r in range(range_ptr[part], range_ptr[part + 1]):
        args = (
            ranges[r, NODE_LO], ranges[r, NODE_HI], ranges[r, BODY_LO], ranges[r, BODY_HI],
            dt, w, tan_w, tan_gravity[ranges[r, WORLD]], ptr, slots_of, slots, tan_slots,
            bodies, tan_bodies, tan_arms, p, p_new,
        )  # fmt: skip
        call_tangent(tangent_range, 0, (*args, *tan_states))


def tangent_part(
    part, calls, packed, tan_packed, loads, tan_loads, bodies, parts, slots, tan_slots, dt, k0,
    rows, X, V, P, TX, TV, TP, scratch, finite, stops,
):  # fmt: skip
    """Run a part and its tangent from state k0, as `adjsim.timeloop.advance_part`."""
    forces, jvps, rests, steps, tangent_range = calls
    for k in range(rows.size - 1):
        a, b = rows[k], rows[k + 1]
        states, tan_states = (X[a], V[a], TX[a], TV[a]), (TX[a], TV[a], TP[a], TX[b], TV[b], TP[b])
        part_forces(part, forces, packed, parts, k0 + k, X[a], V[a], slots, scratch)
        part_tangents(
            part, jvps, rests, packed, tan_packed, parts, k0 + k, states, tan_slots, scratch
        )
        bad = part_step(
            part, steps, loads, bodies, parts, dt, slots,
            X[a], V[a], P[a], X[b], V[b], P[b], k, finite,
        )  # fmt: skip
        part_tangent_step(
            part, tangent_range, loads, tan_loads, bodies, parts, dt, slots, tan_slots,
            P[a], P[b], tan_states,
        )  # fmt: skip
        if bad > 0 and stops:
            return


TANGENT_PART = shared_fn(tangent_part)


def tangent_alone(
    calls, packed, tan_packed, loads, tan_loads, bodies, parts, slots, tan_slots, dt, k0,
    rows, X, V, P, TX, TV, TP, scratch, finite, stops,
):  # fmt: skip
    """Run every part and its tangent alone; `finite` and `stops` as in `advance_alone`."""
    for part in prange(scratch.shape[0]):
        TANGENT_PART(
            part, calls, packed, tan_packed, loads, tan_loads, bodies, parts, slots, tan_slots,
            dt, k0, rows, X, V, P, TX, TV, TP, scratch, finite, stops,
        )  # fmt: skip


def tangent_together(
    calls, packed, tan_packed, loads, tan_loads, bodies, parts, slots, tan_slots, dt, k0,
    rows, X, V, P, TX, TV, TP, scratch, finite, stops,
):  # fmt: skip
    """Run all parts and their tangents step by step; the rest as in `tangent_alone`."""
    forces, jvps, rests, steps, tangent_range = calls
    n_parts = scratch.shape[0]
    for k in range(rows.size - 1):
        a, b = rows[k], rows[k + 1]
        states, tan_states = (X[a], V[a], TX[a], TV[a]), (TX[a], TV[a], TP[a], TX[b], TV[b], TP[b])
        for part in prange(n_parts):
            part_forces(part, forces, packed, parts, k0 + k, X[a], V[a], slots, scratch)
            part_tangents(
                part, jvps, rests, packed, tan_packed, parts, k0 + k, states, tan_slots, scratch
            )
        bad = 0
        for part in prange(n_parts):
            bad += part_step(
                part, steps, loads, bodies, parts, dt, slots,
                X[a], V[a], P[a], X[b], V[b], P[b], k, finite,
            )  # fmt: skip
            part_tangent_step(
                part, tangent_range, loads, tan_loads, bodies, parts, dt, slots, tan_slots,
                P[a], P[b], tan_states,
            )  # fmt: skip
        if bad > 0 and stops:
            break
