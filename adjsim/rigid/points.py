r"""The points of bodies among the nodes: what acts on them, and where a step puts them.

Body points are rows of the nodes' arrays, after the nodes, and a force acts on such a row as
on any node; `adjsim/rigid/rows.py` says which are whose.

    F = sum f_k,  S = sum f_k c_k^T      over a body's points, in their order
    x_k = x + R c_k,  v_k = v + D c_k    at the new state

One thread sums, steps and places one body, so the bits do not depend on how many there are. On a
GPU those of many points are the work of several (`adjsim/rigid/pieces.py`).

Adjoint: `adjoint/rigid/points.py`. Tests: `tests/rigid/test_points.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from adjsim.algebra.mat3 import madd
from adjsim.algebra.vec3 import add, axpy
from adjsim.jit.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.jit.calls import make_call
from adjsim.rigid.body_step import body_frames, body_frames_jvp, body_step, body_step_jvp
from adjsim.rigid.rows import place, read_3, read_body, read_params, write_3, write_body
from adjsim.tiles.assembly import DTYPES
from adjsim.tiles.loop_arrays import Bodies, States, types_of
from adjsim.tiles.node_sum import node_sum, zero_of


@device_fn
def body_load(b, bodies, ptr, slots_of, slots):
    """Return F and S of body b: the sums of q and of q c^T, where q is a point's slots' sum."""
    point_ptr, arms = bodies.point_ptr, bodies.arms
    zero = zero_of(slots)
    none = (zero, zero, zero)
    F, S0, S1, S2 = none, none, none, none
    for k in range(point_ptr[b], point_ptr[b + 1]):
        q = node_sum(np.uint64(k), ptr, slots_of, slots)
        c = read_3(arms, k - point_ptr[0], 0)
        F = add(F, q)  # (1)
        S0, S1, S2 = axpy(c[0], q, S0), axpy(c[1], q, S1), axpy(c[2], q, S2)  # (2)
    return F, (S0, S1, S2)


@device_fn
def place_points(b, k, parts, rows):
    """Write positions and velocities of the points of part k of body b: all or a piece."""
    state = read_body(rows.p, b)
    R, D = body_frames(state)
    place(k, parts, state[0], R, rows.x)
    place(k, parts, state[2], D, rows.v)


@device_fn
def advance_body(b, dt, gravity, load, bodies, p, p_new):
    """Advance body b without its points under a load; return 1 if its state is not finite."""
    g = (gravity[0], gravity[1], gravity[2])
    state = body_step(read_body(p, b), load, read_params(bodies.params, b), g, dt)
    write_body(p_new, b, state)
    x, r, v, omega = state
    total = add(add(x, v), omega)
    number = total[0] + total[1] + total[2] + r[0] + r[1] + r[2] + r[3]
    return 0 if number - number == lit(0, number) else 1


@device_fn
def add_moved(b, bodies, M, tan_arms, out):
    """Add M tan_c to the row of every point of body b."""
    point_ptr = bodies.point_ptr
    for k in range(point_ptr[b], point_ptr[b + 1]):
        c = read_3(tan_arms, k - point_ptr[0], 0)
        moved = axpy(c[2], M[2], axpy(c[1], M[1], axpy(c[0], M[0], read_3(out, k, 0))))
        write_3(out, k, 0, moved)


@device_fn
def tangent_body(
    b, dt, tan_gravity, nodes, bodies, tan, work, before, after, tan_before, tan_after
):
    """Advance the tangent of body b and of its points; `after` is the state it goes to."""
    loads = tangent_loads(b, nodes, bodies, tan.arms, work)
    tangent_state(b, dt, tan_gravity, loads, bodies, tan, before.p, tan_before.p, tan_after.p)
    place_tangents(b, b, bodies, tan.arms, after.p, tan_after)


@device_fn
def tangent_loads(k, nodes, parts, tan_arms, work):
    """Return the load of part k of a body and its tangent."""
    ptr, slots_of = nodes.ptr, nodes.slots_of
    load = body_load(k, parts, ptr, slots_of, work.slots)  # (1), (2)
    tan_load = body_load(k, parts, ptr, slots_of, work.tan_slots)
    if tan_arms.shape[0] > 0:
        moved = Bodies(parts.point_ptr, tan_arms, parts.params)
        more = body_load(k, moved, ptr, slots_of, work.slots)[1]
        tan_load = (tan_load[0], madd(tan_load[1], more))
    return load, tan_load


@device_fn
def tangent_state(b, dt, tan_gravity, loads, bodies, tan, p, tan_p, tan_p_new):
    """Advance the tangent of body b under a load and its tangent."""
    g = (tan_gravity[0], tan_gravity[1], tan_gravity[2])
    tan_state = body_step_jvp(
        read_body(p, b), loads[0], read_params(bodies.params, b), dt,
        read_body(tan_p, b), loads[1], read_params(tan.bodies, b), g,
    )  # fmt: skip
    write_body(tan_p_new, b, tan_state)


@device_fn
def place_tangents(b, k, parts, tan_arms, p, tan_rows):
    """Write the tangents of positions and velocities of the points of part k of body b."""
    tan_x, tan_v = tan_rows.x, tan_rows.v
    tan_state = read_body(tan_rows.p, b)
    tan_R, tan_D = body_frames_jvp(read_body(p, b), tan_state)
    place(k, parts, tan_state[0], tan_R, tan_x)
    place(k, parts, tan_state[2], tan_D, tan_v)
    if tan_arms.shape[0] > 0:
        R, D = body_frames(read_body(p, b))
        add_moved(k, parts, R, tan_arms, tan_x)
        add_moved(k, parts, D, tan_arms, tan_v)


def place_all_tangents(bodies, tan_arms, p, tan_rows):
    """Write the tangents of the points of every body, at the start."""
    for b in range(p.shape[0]):
        place_tangents(b, b, bodies, tan_arms, p, tan_rows)


def place_rows(first, last, bodies, state):
    """Write positions and velocities of the points of bodies first to last from their states."""
    for b in range(first, last):
        place_points(b, b, bodies, state)


def place_signature(dtype: np.dtype) -> Any:
    """Return the signature of `place_rows`."""
    of = types_of(dtype)
    return numba.void(numba.int64, numba.int64, of[Bodies], of[States])


@cache
def place_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `place_rows`."""
    return cpu_kernel(specialise(place_rows, f"place_rows_{dtype.name}"), [place_signature(dtype)])


call_place = make_call([place_signature(dtype) for dtype in DTYPES])
