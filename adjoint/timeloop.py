r"""Adjoint and tangent of `adjsim/timeloop.py`: the step undone, last line first.

    (2) x' = x + dt v'                     adj_v' += dt adj_x'
    (1) v' = v + dt (w f + [w>0] g)        adj_f = dt w adj_v',  adj_g += dt [w>0] adj_v'
                                           adj_w += dt f . adj_v'
        f = f(x, v, theta)                 adj_x += (df/dx)^T adj_f, adj_v, adj_theta alike

The step of a rigid body is undone beside it, by `adjoint/rigid/points.py`. A frame's cotangent
is added when the sweep reaches its state. The Jacobian of the step is
triangular, so no system is solved. Source: gradSim (ICLR 2021) eq. 5.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import prange

from adjoint.assembly import REST_VJP_LOOP, VJP_LOOP
from adjoint.rigid.points import (
    add_body_frame,
    add_points,
    place_tangents,
    tangent_body,
    undo_body_step,
)
from adjsim.assembly import DTYPES, call_of
from adjsim.backend import cpu_kernel, device_fn, lit, prefetch, shared_fn, specialise
from adjsim.calls import NO_FUNCTION, make_call
from adjsim.node_sum import node_sum, node_sums
from adjsim.parts import BODY_HI, BODY_LO, FORCE, NODE_HI, NODE_LO, ROW, TILE_HI, TILE_LO
from adjsim.timeloop import body_types, part_forces


ROWS_OF_A_LINE = 2  # of three float64, in the 64 bytes of a cache line


@device_fn
def euler_step_jvp(tan_x, tan_v, f, tan_f, w, tan_w, tan_gravity, dt):
    """Push tangents through `euler_step`: tangents of the new x and v."""
    free = lit(1, w) if w > lit(0, w) else lit(0, w)
    tan_a = (
        w * tan_f[0] + tan_w * f[0] + free * tan_gravity[0],
        w * tan_f[1] + tan_w * f[1] + free * tan_gravity[1],
        w * tan_f[2] + tan_w * f[2] + free * tan_gravity[2],
    )
    tv = (tan_v[0] + dt * tan_a[0], tan_v[1] + dt * tan_a[1], tan_v[2] + dt * tan_a[2])  # (1)
    tx = (tan_x[0] + dt * tv[0], tan_x[1] + dt * tv[1], tan_x[2] + dt * tv[2])  # (2)
    return tx, tv


@device_fn
def add_frame(n, adj_frame_x, adj_frame_v, adj_x, adj_v):
    """Add a frame's cotangent to that of the state it shows."""
    for c in range(3):
        k = np.uint64(c)
        adj_x[n, k] += adj_frame_x[n, k]
        adj_v[n, k] += adj_frame_v[n, k]


@device_fn
def undo_euler_step(n, dt, w, adj_x, adj_v, adj_f, adj_gravity):
    """Undo the step's lines (2) and (1) for node n, but for adj_w."""
    scale = dt * w[n]
    free = dt if w[n] > lit(0, dt) else lit(0, dt)
    for c in range(3):
        k = np.uint64(c)
        # (2) x' = x + dt v'
        adj_v_new = adj_v[n, k] + dt * adj_x[n, k]
        # (1) v' = v + dt (w f + [w > 0] g)
        adj_v[n, k] = adj_v_new
        adj_f[n, k] = scale * adj_v_new
        adj_gravity[n, k] += free * adj_v_new


@device_fn
def add_slots(n, ptr, slots_of, adj_slots, adj):
    """Add a node's slots to its cotangent."""
    add_vector(n, node_sum(n, ptr, slots_of, adj_slots), adj)


@device_fn
def add_all_slots(n, ptr, slots_of, v_ptr, v_slots_of, adj_x_slots, adj_v_slots, adj_x, adj_v):
    """Add a node's slots of positions and of velocities to its cotangents.

    Those of velocities are some of those of positions: as many are all of them.
    """
    e = n + np.uint64(1)
    if v_ptr[e] - v_ptr[n] == ptr[e] - ptr[n]:
        total_x, total_v = node_sums(n, ptr, slots_of, adj_x_slots, adj_v_slots)
        add_vector(n, total_x, adj_x)
        add_vector(n, total_v, adj_v)
    else:
        add_slots(n, ptr, slots_of, adj_x_slots, adj_x)
        add_slots(n, v_ptr, v_slots_of, adj_v_slots, adj_v)


@device_fn
def add_vector(n, value, adj):
    """Add a vector to a node's cotangent."""
    adj[n, 0] += value[0]
    adj[n, 1] += value[1]
    adj[n, 2] += value[2]


@device_fn
def add_inverse_mass(n, dt, ptr, slots_of, slots, adj_v, adj_w):
    """Add dt f . adj_v' to a node's adj_w, while adj_v is still that of the new velocity."""
    f = node_sum(n, ptr, slots_of, slots)
    adj_w[n] += dt * (f[0] * adj_v[n, 0] + f[1] * adj_v[n, 1] + f[2] * adj_v[n, 2])


@device_fn
def turn_nodes(
    lo, hi, dt, ends, begins, has_frame, with_forces, w, ptr, slots_of, v_ptr, v_slots_of,
    slots, adj_x_slots, adj_v_slots, adj_frame_x, adj_frame_v,
    adj_x, adj_v, adj_f, adj_gravity, adj_w,
):  # fmt: skip
    """Do what `turn_rows` does, on nodes lo to hi."""
    for i in range(lo, hi):
        n = np.uint64(i)
        if ends:
            add_all_slots(
                n, ptr, slots_of, v_ptr, v_slots_of, adj_x_slots, adj_v_slots, adj_x, adj_v
            )
        if has_frame:
            add_frame(n, adj_frame_x, adj_frame_v, adj_x, adj_v)
        if begins:
            undo_euler_step(n, dt, w, adj_x, adj_v, adj_f, adj_gravity)
    for i in range(lo, hi if begins and with_forces else lo):
        add_inverse_mass(np.uint64(i), dt, ptr, slots_of, slots, adj_v, adj_w)


def turn_rows(
    lo, hi, first, last, dt, ends, begins, has_frame, with_forces, w, ptr, slots_of, v_ptr,
    v_slots_of, slots, adj_x_slots, adj_v_slots, bodies, p_end, p_begin,
    adj_frame_x, adj_frame_v, adj_frame_p,
    adj_x, adj_v, adj_f, adj_gravity, adj_w, adj_p, adj_bodies, adj_arms,
):  # fmt: skip
    """Between two steps, on nodes lo to hi and bodies first to last: end one, begin the next.

    To end is to add up what the elements wrote; to begin, to go from the adjoint of the new
    state, with that of the frame that shows it, to adj_f. `slots` hold the forces of the step
    that begins.
    """
    turn_nodes(
        lo, hi, dt, ends, begins, has_frame, with_forces, w, ptr, slots_of, v_ptr, v_slots_of,
        slots, adj_x_slots, adj_v_slots, adj_frame_x, adj_frame_v,
        adj_x, adj_v, adj_f, adj_gravity, adj_w,
    )  # fmt: skip
    loads = (ptr, slots_of, v_ptr, v_slots_of)
    for b in range(first, last):
        if ends:
            add_points(b, loads, adj_x_slots, adj_v_slots, bodies, p_end, adj_p, adj_arms)
        if has_frame:
            add_body_frame(b, adj_frame_p, adj_p)
        if begins:
            adj = (adj_p, adj_f, adj_gravity, adj_bodies, adj_arms)
            undo_body_step(b, w.size + b, dt, ptr, slots_of, slots, bodies, p_begin, adj)


@device_fn
def part_turn(
    part, turn, loads, bodies, parts, dt, flags, slots, frames, shown, p_end, p_begin, adj
):  # fmt: skip
    """Do what `turn_rows` does, on a part's nodes and bodies."""
    ends, begins, has_frame, with_forces = flags
    w, ptr, slots_of, v_ptr, v_slots_of = loads
    f_slots, adj_x_slots, adj_v_slots = slots
    _, adj_frames_x, adj_frames_v, adj_frames_p = frames
    adj_x, adj_v, adj_f, adj_gravity, adj_w = adj[:5]
    range_ptr, ranges = parts[2], parts[3]
    r, last = range_ptr[part], range_ptr[part + 1] - 1
    if last < r:
        return
    args = (
        ranges[r, NODE_LO], ranges[last, NODE_HI], ranges[r, BODY_LO], ranges[last, BODY_HI],
        dt, ends, begins, has_frame, with_forces,
        w, ptr, slots_of, v_ptr, v_slots_of, f_slots, adj_x_slots, adj_v_slots,
        bodies, p_end, p_begin, adj_frames_x[shown], adj_frames_v[shown], adj_frames_p[shown],
        adj_x, adj_v, adj_f, adj_gravity, adj_w, adj[8], adj[9], adj[10],
    )  # fmt: skip
    call_turn(turn, 0, args)


@device_fn
def fetch_part(part, parts, x, v):
    """Ask for a part's nodes, stored long ago, ahead of their use."""
    range_ptr, ranges = parts[2], parts[3]
    for r in range(range_ptr[part], range_ptr[part + 1]):
        for n in range(ranges[r, NODE_LO], ranges[r, NODE_HI], ROWS_OF_A_LINE):
            prefetch(x, np.uint64(n))
            prefetch(v, np.uint64(n))


@device_fn
def part_adjoints(part, vjps, rests, packed, parts, step, x, v, slots, adj, scratch):
    """Undo a part's elements."""
    table, nodes, consts, params, series = packed
    _, adj_x_slots, adj_v_slots = slots
    adj_f, adj_params, adj_series, adj_consts = adj[2], adj[5], adj[6], adj[7]
    tile_ptr, tiles = parts[0], parts[1]
    for t in range(tile_ptr[part], tile_ptr[part + 1]):
        force = tiles[t, FORCE]
        head = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step,
            table, nodes, (x, v, adj_f), (consts, params, series),
        )  # fmt: skip
        out = (adj_x_slots, adj_v_slots, adj_params, adj_series)
        call_vjp(vjps, force, (*head, out, scratch[part]))
        if rests[force] != NO_FUNCTION:
            call_rest_vjp(rests, force, (*head, (adj_consts,), scratch[part]))


def reverse_part(
    part, calls, packed, loads, bodies, parts, slots, frames, adj, dt, k0, rows, X, V, P,
    with_forces, scratch,
):  # fmt: skip
    """Undo rows.size steps of a part, the last one first; `rows[k]` holds state k0 + k.

    `frames` = (index of the frame that shows state k0 + k + 1, or -1; adj_x, adj_v, adj_p).
    The forces of a step, which undoing it may read, are computed beside the adjoints of the
    elements of the step after it.
    """
    vjps, rests, forces, turn = calls
    last = rows.size - 1
    if with_forces:
        x, v = X[rows[last]], V[rows[last]]
        part_forces(part, forces, packed, parts, k0 + last, x, v, slots[0], scratch)
    for back in range(rows.size + 1):
        k = last - back
        frame = frames[0][k] if k >= 0 else -1
        flags = (back > 0, k >= 0, frame >= 0, with_forces)
        a, b = rows[max(k, 0)], rows[min(k + 1, last)]
        fetch_part(part, parts, X[a], V[a])
        part_turn(
            part, turn, loads, bodies, parts, dt, flags, slots, frames, max(frame, 0),
            P[b], P[a], adj,
        )  # fmt: skip
        if k >= 0:
            part_adjoints(part, vjps, rests, packed, parts, k0 + k, X[a], V[a], slots, adj, scratch)
        if with_forces and k > 0:
            before = rows[k - 1]
            part_forces(
                part, forces, packed, parts, k0 + k - 1, X[before], V[before], slots[0], scratch
            )


PART = shared_fn(reverse_part)


def reverse_alone(
    calls, packed, loads, bodies, parts, slots, frames, adj, dt, k0, rows, X, V, P,
    with_forces, scratch,
):  # fmt: skip
    """Undo steps of every part alone."""
    for part in prange(scratch.shape[0]):
        PART(
            part, calls, packed, loads, bodies, parts, slots, frames, adj, dt, k0, rows, X, V, P,
            with_forces, scratch,
        )  # fmt: skip


def reverse_together(
    calls, packed, loads, bodies, parts, slots, frames, adj, dt, k0, rows, X, V, P,
    with_forces, scratch,
):  # fmt: skip
    """Undo the steps of all parts, step by step, as `reverse_part` does those of one."""
    vjps, rests, forces, turn = calls
    n_parts, last = scratch.shape[0], rows.size - 1
    x, v = X[rows[last]], V[rows[last]]
    # A choice inside the call of `prange` would make the loop a serial one.
    n_ahead = n_parts if with_forces else 0
    for part in prange(n_ahead):
        part_forces(part, forces, packed, parts, k0 + last, x, v, slots[0], scratch)
    for back in range(rows.size + 1):
        k = last - back
        frame = frames[0][k] if k >= 0 else -1
        flags = (back > 0, k >= 0, frame >= 0, with_forces)
        a, b, before = rows[max(k, 0)], rows[min(k + 1, last)], rows[max(k - 1, 0)]
        for part in prange(n_parts):
            part_turn(
                part, turn, loads, bodies, parts, dt, flags, slots, frames, max(frame, 0),
                P[b], P[a], adj,
            )  # fmt: skip
        n_left = n_parts if k >= 0 else 0
        for part in prange(n_left):
            part_adjoints(part, vjps, rests, packed, parts, k0 + k, X[a], V[a], slots, adj, scratch)
            if with_forces and k > 0:
                part_forces(
                    part, forces, packed, parts, k0 + k - 1, X[before], V[before], slots[0], scratch
                )


@device_fn
def tangent_node(
    n, dt, w, tan_w, tan_gravity, ptr, slots_of, slots, tan_slots,
    tan_x, tan_v, tan_x_new, tan_v_new,
):  # fmt: skip
    """Advance the tangent of node n."""
    tx, tv = euler_step_jvp(
        (tan_x[n, 0], tan_x[n, 1], tan_x[n, 2]),
        (tan_v[n, 0], tan_v[n, 1], tan_v[n, 2]),
        node_sum(n, ptr, slots_of, slots),
        node_sum(n, ptr, slots_of, tan_slots),
        w[n], tan_w[n], (tan_gravity[0], tan_gravity[1], tan_gravity[2]), dt,
    )  # fmt: skip
    tan_x_new[n, 0], tan_x_new[n, 1], tan_x_new[n, 2] = tx
    tan_v_new[n, 0], tan_v_new[n, 1], tan_v_new[n, 2] = tv


def tangent_rows(
    lo, hi, first, last, dt, w, tan_w, tan_gravity, ptr, slots_of, slots, tan_slots, bodies,
    tan_bodies, tan_arms, p, p_new, tan_x, tan_v, tan_p, tan_x_new, tan_v_new, tan_p_new,
):  # fmt: skip
    """Advance the tangents of nodes lo to hi and of bodies first to last."""
    for i in range(lo, hi):
        tangent_node(
            np.uint64(i), dt, w, tan_w, tan_gravity, ptr, slots_of, slots, tan_slots,
            tan_x, tan_v, tan_x_new, tan_v_new,
        )  # fmt: skip
    for b in range(first, last):
        tangent_body(
            b, dt, tan_gravity, ptr, slots_of, slots, tan_slots, bodies, tan_bodies, tan_arms,
            p, p_new, tan_p, tan_p_new, tan_x_new, tan_v_new,
        )  # fmt: skip


def place_all_tangents(bodies, tan_arms, p, tan_p, tan_x, tan_v):
    """Write the tangents of the points of every body, at the start."""
    for b in range(p.shape[0]):
        place_tangents(b, bodies, tan_arms, p, tan_p, tan_x, tan_v)


@cache
def place_tangents_kernel() -> Callable:
    """Return the compiled `place_all_tangents`."""
    return cpu_kernel(place_all_tangents)


def turn_signature(dtype: np.dtype) -> Any:
    """Return the signature of `turn_rows`."""
    real, a, m, u, i, b = _types(dtype)
    heads = (i, i, i, i, real, b, b, b, b, a, u, u, u, u, a, a, a, body_types(dtype))
    return numba.void(*heads, *(m,) * 9, a, m, m, m)


def tangent_signature(dtype: np.dtype) -> Any:
    """Return the signature of `tangent_rows`."""
    real, a, m, u, i, _ = _types(dtype)
    heads = (i, i, i, i, real, a, a, a, u, u, a, a, body_types(dtype))
    return numba.void(*heads, *(m,) * 10)


def _types(dtype: np.dtype) -> tuple:
    real = numba.from_dtype(dtype)
    return real, real[::1], real[:, ::1], numba.uint32[::1], numba.int64, numba.boolean


call_vjp, call_rest_vjp = call_of(VJP_LOOP), call_of(REST_VJP_LOOP)
call_turn = make_call([turn_signature(dtype) for dtype in DTYPES])


@cache
def turn_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `turn_rows`."""
    return cpu_kernel(specialise(turn_rows, f"turn_rows_{dtype.name}"), [turn_signature(dtype)])


@cache
def tangent_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `tangent_rows`."""
    name = f"tangent_rows_{dtype.name}"
    return cpu_kernel(specialise(tangent_rows, name), [tangent_signature(dtype)])
