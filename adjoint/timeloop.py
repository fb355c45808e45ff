r"""Adjoint and tangent of `adjsim/timeloop.py`: the step undone, last line first.

    (2) x' = x + dt v'                     adj_v' += dt adj_x'
    (1) v' = v + dt (w f + [w>0] g)        adj_f = dt w adj_v',  adj_g += dt [w>0] adj_v'
                                           adj_w += dt f . adj_v'
        f = f(x, v, theta)                 adj_x += (df/dx)^T adj_f, adj_v, adj_theta alike

A frame's cotangent is added when the sweep reaches its state. The Jacobian of the step is
triangular, so no system is solved. Source: gradSim (ICLR 2021) eq. 5.
"""

from collections.abc import Callable
from functools import cache

import numba
import numpy as np
from numba import prange

from adjoint.assembly import JVP_LAYOUT, REST_JVP_LAYOUT, REST_VJP_LAYOUT, VJP_LAYOUT
from adjsim.assembly import tile_signature
from adjsim.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.timeloop import node_sum


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


def turn_nodes(
    lo, hi, dt, ends, begins, has_frame, with_mass, w, ptr, slots_of, v_ptr, v_slots_of,
    slots, adj_x_slots, adj_v_slots, adj_frame_x, adj_frame_v,
    adj_x, adj_v, adj_f, adj_gravity, adj_w,
):  # fmt: skip
    """Between two steps, on nodes lo to hi: end the reverse of one, begin that of the next.

    To end is to add up what the elements wrote; to begin, to go from the adjoint of the new
    state, with that of the frame that shows it, to adj_f.
    """
    if ends and with_mass:
        for i in range(lo, hi):
            add_inverse_mass(np.uint64(i), dt, ptr, slots_of, slots, adj_v, adj_w)
    for i in range(lo, hi):
        n = np.uint64(i)
        if ends:
            add_slots(n, ptr, slots_of, adj_x_slots, adj_x)
            add_slots(n, v_ptr, v_slots_of, adj_v_slots, adj_v)
        if has_frame:
            add_frame(n, adj_frame_x, adj_frame_v, adj_x, adj_v)
        if begins:
            undo_euler_step(n, dt, w, adj_x, adj_v, adj_f, adj_gravity)


def reverse(
    kernels, packed, loads, slots, frames, adj, dt, k0, rows, X, V, with_mass,
    scratch, tile_cuts, node_cuts,
):  # fmt: skip
    """Undo rows.size steps, the last one first; `rows[k]` holds state k0 + k.

    `frames` = (index of the frame that shows state k0 + k + 1, or -1; adj_x, adj_v). That of
    the rest shape is computed if its array is not empty.
    """
    vjps, forces, rests, turn = kernels
    table, nodes, consts, params, series = packed
    w, ptr, slots_of, v_ptr, v_slots_of = loads
    f_slots, adj_x_slots, adj_v_slots = slots
    frame_of, adj_frames_x, adj_frames_v = frames
    adj_x, adj_v, adj_f, adj_gravity, adj_w, adj_params, adj_series, adj_consts = adj
    for back in range(rows.size + 1):
        k = rows.size - 1 - back
        frame = frame_of[k] if k >= 0 else -1
        for c in prange(node_cuts.size - 1):
            turn[0](
                node_cuts[c], node_cuts[c + 1], dt, back > 0, k >= 0, frame >= 0, with_mass,
                w, ptr, slots_of, v_ptr, v_slots_of, f_slots, adj_x_slots, adj_v_slots,
                adj_frames_x[max(frame, 0)], adj_frames_v[max(frame, 0)],
                adj_x, adj_v, adj_f, adj_gravity, adj_w,
            )  # fmt: skip
        if k < 0:
            break
        x, v = X[rows[k]], V[rows[k]]
        for c in prange(node_cuts.size - 1):
            for r in range(table.shape[0]):
                lo, hi = tile_cuts[r, c], tile_cuts[r, c + 1]
                vjps[r](
                    lo, hi, r, k0 + k, table, nodes, consts, params, series, x, v, adj_f,
                    adj_x_slots, adj_v_slots, adj_params, adj_series, scratch[c],
                )  # fmt: skip
                if with_mass:
                    forces[r](
                        lo, hi, r, k0 + k, table, nodes, consts, params, series, x, v,
                        f_slots, scratch[c],
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


def tangent_nodes(
    lo, hi, dt, w, tan_w, tan_gravity, ptr, slots_of, slots, tan_slots,
    tan_x, tan_v, tan_x_new, tan_v_new,
):  # fmt: skip
    """Advance the tangents of nodes lo to hi."""
    for i in range(lo, hi):
        tangent_node(
            np.uint64(i), dt, w, tan_w, tan_gravity, ptr, slots_of, slots, tan_slots,
            tan_x, tan_v, tan_x_new, tan_v_new,
        )  # fmt: skip


def advance_tangent(
    kernels, packed, tan_packed, loads, tan_loads, slots, tan_slots, dt, k0, rows,
    X, V, TX, TV, scratch, tile_cuts, node_cuts,
):  # fmt: skip
    """Run state and tangent together from state k0; return how many steps stayed finite."""
    forces, jvps, rests, step_range, tangent_range = kernels
    table, nodes, consts, params, series = packed
    tan_params, tan_series, tan_consts = tan_packed
    w, gravity, ptr, slots_of = loads
    tan_w, tan_gravity = tan_loads
    for k in range(rows.size - 1):
        a, b = rows[k], rows[k + 1]
        for c in prange(node_cuts.size - 1):
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
        for c in prange(node_cuts.size - 1):
            bad += step_range[0](
                node_cuts[c], node_cuts[c + 1], dt, w, gravity, ptr, slots_of, slots,
                X[a], V[a], X[b], V[b],
            )  # fmt: skip
            tangent_range[0](
                node_cuts[c], node_cuts[c + 1], dt, w, tan_w, tan_gravity, ptr, slots_of,
                slots, tan_slots, TX[a], TV[a], TX[b], TV[b],
            )  # fmt: skip
        if bad > 0:
            return k
    return rows.size - 1


def _types(dtype: np.dtype) -> tuple:
    real = numba.from_dtype(dtype)
    return real, real[::1], real[:, ::1], numba.uint32[::1], numba.int64, numba.boolean


@cache
def turn_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `turn_nodes`."""
    real, a, m, u, i, b = _types(dtype)
    heads = (i, i, real, b, b, b, b, a, u, u, u, u)
    signature = numba.void(*heads, a, a, a, m, m, m, m, m, m, a)
    return cpu_kernel(specialise(turn_nodes, f"turn_nodes_{dtype.name}"), [signature])


@cache
def tangent_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `tangent_nodes`."""
    real, a, m, u, i, _ = _types(dtype)
    signature = numba.void(i, i, real, a, a, a, u, u, a, a, m, m, m, m)
    return cpu_kernel(specialise(tangent_nodes, f"tangent_nodes_{dtype.name}"), [signature])


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
