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

import numba
import numpy as np
from numba import prange

from adjoint.assembly import JVP_LAYOUT, REST_JVP_LAYOUT, REST_VJP_LAYOUT, VJP_LAYOUT
from adjoint.rigid.points import (
    add_body_frame,
    add_points,
    place_tangents,
    tangent_body,
    undo_body_step,
)
from adjsim.assembly import tile_signature
from adjsim.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.node_sum import node_sum
from adjsim.timeloop import body_types


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
    total = node_sum(n, ptr, slots_of, adj_slots)
    adj[n, 0] += total[0]
    adj[n, 1] += total[1]
    adj[n, 2] += total[2]


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
            add_slots(n, ptr, slots_of, adj_x_slots, adj_x)
            add_slots(n, v_ptr, v_slots_of, adj_v_slots, adj_v)
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
    adj_x, adj_v, adj_f, adj_gravity, adj_w, adj_p, adj_bodies,
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
            add_points(b, loads, adj_x_slots, adj_v_slots, bodies, p_end, adj_p)
        if has_frame:
            add_body_frame(b, adj_frame_p, adj_p)
        if begins:
            adj = (adj_p, adj_f, adj_gravity, adj_bodies)
            undo_body_step(b, w.size + b, dt, ptr, slots_of, slots, bodies, p_begin, adj)


def reverse(
    kernels, packed, loads, bodies, slots, frames, adj, dt, k0, rows, X, V, P, with_forces,
    scratch, tile_cuts, row_cuts,
):  # fmt: skip
    """Undo rows.size steps, the last one first; `rows[k]` holds state k0 + k.

    `frames` = (index of the frame that shows state k0 + k + 1, or -1; adj_x, adj_v, adj_p).
    The forces of a step, which undoing it may read, are computed beside the adjoints of the
    elements of the step after it. That of the rest shape is computed if its array is not empty.
    """
    vjps, forces, rests, turn = kernels
    table, nodes, consts, params, series = packed
    w, ptr, slots_of, v_ptr, v_slots_of = loads
    f_slots, adj_x_slots, adj_v_slots = slots
    frame_of, adj_frames_x, adj_frames_v, adj_frames_p = frames
    adj_x, adj_v, adj_f, adj_gravity, adj_w, adj_params, adj_series, adj_consts = adj[:8]
    adj_p, adj_bodies = adj[8:]
    n_chunks, last = row_cuts.shape[1] - 1, rows.size - 1
    for c in prange(n_chunks if with_forces else 0):
        for r in range(table.shape[0]):
            forces[r](
                tile_cuts[r, c], tile_cuts[r, c + 1], r, k0 + last, table, nodes, consts, params,
                series, X[rows[last]], V[rows[last]], f_slots, scratch[c],
            )  # fmt: skip
    for back in range(rows.size + 1):
        k = last - back
        frame = frame_of[k] if k >= 0 else -1
        shown = max(frame, 0)
        p_end, p_begin = P[rows[min(k + 1, last)]], P[rows[max(k, 0)]]
        for c in prange(n_chunks):
            turn[0](
                row_cuts[0, c], row_cuts[0, c + 1], row_cuts[1, c], row_cuts[1, c + 1],
                dt, back > 0, k >= 0, frame >= 0, with_forces,
                w, ptr, slots_of, v_ptr, v_slots_of, f_slots, adj_x_slots, adj_v_slots,
                bodies, p_end, p_begin,
                adj_frames_x[shown], adj_frames_v[shown], adj_frames_p[shown],
                adj_x, adj_v, adj_f, adj_gravity, adj_w, adj_p, adj_bodies,
            )  # fmt: skip
        if k < 0:
            break
        x, v = X[rows[k]], V[rows[k]]
        x_before, v_before = X[rows[max(k - 1, 0)]], V[rows[max(k - 1, 0)]]
        for c in prange(n_chunks):
            for r in range(table.shape[0]):
                lo, hi = tile_cuts[r, c], tile_cuts[r, c + 1]
                vjps[r](
                    lo, hi, r, k0 + k, table, nodes, consts, params, series, x, v, adj_f,
                    adj_x_slots, adj_v_slots, adj_params, adj_series, scratch[c],
                )  # fmt: skip
                if with_forces and k > 0:
                    forces[r](
                        lo, hi, r, k0 + k - 1, table, nodes, consts, params, series,
                        x_before, v_before, f_slots, scratch[c],
                    )  # fmt: skip
                if adj_consts.size > 0:
                    rests[r](
                        lo, hi, r, k0 + k, table, nodes, consts, params, series, x, v, adj_f,
                        adj_consts, scratch[c],
                    )  # fmt: skip


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
    tan_bodies, p, p_new, tan_x, tan_v, tan_p, tan_x_new, tan_v_new, tan_p_new,
):  # fmt: skip
    """Advance the tangents of nodes lo to hi and of bodies first to last."""
    for i in range(lo, hi):
        tangent_node(
            np.uint64(i), dt, w, tan_w, tan_gravity, ptr, slots_of, slots, tan_slots,
            tan_x, tan_v, tan_x_new, tan_v_new,
        )  # fmt: skip
    for b in range(first, last):
        tangent_body(
            b, dt, tan_gravity, ptr, slots_of, slots, tan_slots, bodies, tan_bodies,
            p, p_new, tan_p, tan_p_new, tan_x_new, tan_v_new,
        )  # fmt: skip


def advance_tangent(
    kernels, packed, tan_packed, loads, tan_loads, bodies, slots, tan_slots, dt, k0, rows,
    X, V, P, TX, TV, TP, scratch, tile_cuts, row_cuts,
):  # fmt: skip
    """Run state and tangent together from state k0; return how many steps stayed finite."""
    forces, jvps, rests, step_range, tangent_range = kernels
    table, nodes, consts, params, series = packed
    tan_params, tan_series, tan_consts = tan_packed
    w, gravity, ptr, slots_of = loads
    tan_w, tan_gravity, tan_bodies = tan_loads
    n_chunks = row_cuts.shape[1] - 1
    for k in range(rows.size - 1):
        a, b = rows[k], rows[k + 1]
        for c in prange(n_chunks):
            for r in range(table.shape[0]):
                lo, hi = tile_cuts[r, c], tile_cuts[r, c + 1]
                forces[r](
                    lo, hi, r, k0 + k, table, nodes, consts, params, series, X[a], V[a], slots,
                    scratch[c],
                )  # fmt: skip
                jvps[r](
                    lo, hi, r, k0 + k, table, nodes, consts, params, series, tan_params, tan_series,
                    X[a], V[a], TX[a], TV[a], tan_slots, scratch[c],
                )  # fmt: skip
                if tan_consts.size > 0:
                    rests[r](
                        lo, hi, r, k0 + k, table, nodes, consts, params, series, tan_consts,
                        X[a], V[a], tan_slots, scratch[c],
                    )  # fmt: skip
        bad = 0
        for c in prange(n_chunks):
            lo, hi, first, last = (
                row_cuts[0, c], row_cuts[0, c + 1], row_cuts[1, c], row_cuts[1, c + 1],
            )  # fmt: skip
            bad += step_range[0](
                lo, hi, first, last, dt, w, gravity, ptr, slots_of, slots, bodies,
                X[a], V[a], P[a], X[b], V[b], P[b],
            )  # fmt: skip
            tangent_range[0](
                lo, hi, first, last, dt, w, tan_w, tan_gravity, ptr, slots_of, slots,
                tan_slots, bodies, tan_bodies, P[a], P[b],
                TX[a], TV[a], TP[a], TX[b], TV[b], TP[b],
            )  # fmt: skip
        if bad > 0:
            return k
    return rows.size - 1


def place_all_tangents(bodies, p, tan_p, tan_x, tan_v):
    """Write the tangents of the points of every body, at the start."""
    for b in range(p.shape[0]):
        place_tangents(b, bodies, p, tan_p, tan_x, tan_v)


@cache
def place_tangents_kernel() -> Callable:
    """Return the compiled `place_all_tangents`."""
    return cpu_kernel(place_all_tangents)


def _types(dtype: np.dtype) -> tuple:
    real = numba.from_dtype(dtype)
    return real, real[::1], real[:, ::1], numba.uint32[::1], numba.int64, numba.boolean


@cache
def turn_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `turn_rows`."""
    real, a, m, u, i, b = _types(dtype)
    heads = (i, i, i, i, real, b, b, b, b, a, u, u, u, u, a, a, a, body_types(dtype))
    signature = numba.void(*heads, *(m,) * 9, a, m, m)
    return cpu_kernel(specialise(turn_rows, f"turn_rows_{dtype.name}"), [signature])


@cache
def tangent_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `tangent_rows`."""
    real, a, m, u, i, _ = _types(dtype)
    heads = (i, i, i, i, real, a, a, a, u, u, a, a, body_types(dtype))
    signature = numba.void(*heads, *(m,) * 9)
    return cpu_kernel(specialise(tangent_rows, f"tangent_rows_{dtype.name}"), [signature])


def idle_vjp(
    lo, hi, row, step, table, nodes, consts, params, series, x, v, adj_f,
    adj_x_slots, adj_v_slots, adj_params, adj_series, scratch,
):  # fmt: skip
    """Fill the tuple of adjoints to its fixed length."""


def idle_jvp(
    lo, hi, row, step, table, nodes, consts, params, series, tan_params, tan_series,
    x, v, tan_x, tan_v, tan_slots, scratch,
):  # fmt: skip
    """Fill the tuple of tangents to its fixed length."""


def idle_rest_vjp(
    lo, hi, row, step, table, nodes, consts, params, series, x, v, adj_f, adj_consts, scratch
):  # fmt: skip
    """Stand for a force whose rest shape is not differentiated."""


def idle_rest_jvp(
    lo, hi, row, step, table, nodes, consts, params, series, tan_consts, x, v, tan_slots, scratch
):  # fmt: skip
    """Stand for a force whose rest shape is not differentiated."""


IDLE = {
    VJP_LAYOUT: idle_vjp,
    JVP_LAYOUT: idle_jvp,
    REST_VJP_LAYOUT: idle_rest_vjp,
    REST_JVP_LAYOUT: idle_rest_jvp,
}


@cache
def idle_kernel(layout: str, dtype: np.dtype) -> Callable:
    """Return the compiled loop of a layout that does nothing."""
    idle = IDLE[layout]
    name = f"{idle.__name__}_{dtype.name}"
    return cpu_kernel(specialise(idle, name), [tile_signature(dtype, layout)])


@cache
def reverse_kernel(*, parallel: bool) -> Callable:
    """Return the compiled `reverse`."""
    name = "reverse_parallel" if parallel else "reverse_serial"
    return cpu_kernel(specialise(reverse, name), parallel=parallel)


@cache
def tangent_loop_kernel(*, parallel: bool) -> Callable:
    """Return the compiled `advance_tangent`."""
    name = "advance_tangent_parallel" if parallel else "advance_tangent_serial"
    return cpu_kernel(specialise(advance_tangent, name), parallel=parallel)
