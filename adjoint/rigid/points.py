r"""Adjoint and tangent of `adjsim/rigid/points.py`: read the two files side by side.

Placing the points and summing what acts on them undo each other: with q_k = base + M c_k

    adj_base = sum adj_q_k,    adj_M = sum adj_q_k c_k^T      `body_load` of the cotangents
    adj_f_k = adj_F + adj_S c_k                               `place` of those of the load

so neither needs a function of its own. What the elements write for a body's points ends in
the cotangent of its state, `adj_p`, and, where that of the arms c_k is asked for, in `adj_arms`:

    q_k = base + M c_k        adj_c_k += M^T adj_q_k
    S = sum f_k c_k^T         adj_c_k += adj_S^T f_k

which is one function, `add_arms`. Arrays of arms that nobody asks for are empty.
"""

import numpy as np

from adjoint.rigid.body_step import (
    body_frames_jvp,
    body_frames_vjp,
    body_step_jvp,
    body_step_vjp,
)
from adjsim.engine.algebra.mat3 import madd
from adjsim.engine.algebra.vec3 import add, axpy, dot
from adjsim.engine.jit.backend import device_fn
from adjsim.engine.loop_arrays import Bodies
from adjsim.engine.node_sum import node_sum
from adjsim.rigid.body_step import body_frames
from adjsim.rigid.points import body_load
from adjsim.rigid.rows import (
    PARAMS_SIZE,
    STATE_SIZE,
    place,
    read_3,
    read_body,
    read_params,
    write_3,
    write_body,
)


@device_fn
def add_body_frame(b, adj_frame_p, adj_p):
    """Add a frame's cotangent to that of the state it shows."""
    for k in range(STATE_SIZE):
        adj_p[b, k] += adj_frame_p[b, k]


@device_fn
def add_arms(b, bodies, M, ptr, slots_of, slots, adj_arms):
    """Add M^T q_k to adj_arms of every point of body b, where q_k is the sum of its slots."""
    point_ptr = bodies.point_ptr
    for k in range(point_ptr[b], point_ptr[b + 1]):
        q, i = node_sum(np.uint64(k), ptr, slots_of, slots), k - point_ptr[0]
        adj_arms[i, 0] += dot(M[0], q)
        adj_arms[i, 1] += dot(M[1], q)
        adj_arms[i, 2] += dot(M[2], q)


@device_fn
def add_moved(b, bodies, M, tan_arms, out):
    """Add M tan_c to the row of every point of body b."""
    point_ptr = bodies.point_ptr
    for k in range(point_ptr[b], point_ptr[b + 1]):
        c = read_3(tan_arms, k - point_ptr[0], 0)
        moved = axpy(c[2], M[2], axpy(c[1], M[1], axpy(c[0], M[0], read_3(out, k, 0))))
        write_3(out, k, 0, moved)


@device_fn
def undo_body_step(b, dt, nodes, bodies, work, p, adj):
    """Undo the step of body b from state p: adj.p, a cotangent of the new state, becomes one of p.

    Writes adj_f of its points.
    """
    load = body_load(b, bodies, nodes.ptr, nodes.slots_of, work.slots)  # replayed
    adj_load = undo_state(b, dt, load, nodes, bodies, p, adj)
    spread_load(b, adj_load, nodes, bodies, work, adj)


@device_fn
def undo_state(b, dt, load, nodes, bodies, p, adj):
    """Undo the step of body b under a load; return the cotangent of the load.

    In adj.gravity the rows of bodies lie behind those of nodes.
    """
    params = read_params(bodies.params, b)
    # p' = step of p under the load
    adj_state, adj_load, adj_row, adj_g = body_step_vjp(
        read_body(p, b), load, params, dt, read_body(adj.p, b)
    )
    write_body(adj.p, b, adj_state)
    n = nodes.w.size + b
    write_3(adj.gravity, n, 0, add(read_3(adj.gravity, n, 0), adj_g))
    for k in range(PARAMS_SIZE):
        adj.bodies[b, k] += adj_row[k]
    return adj_load


@device_fn
def spread_load(k, adj_load, nodes, parts, work, adj):
    """Pull a body's load back to adj_f of the points of its part k, and to their arms."""
    # (1), (2) F = sum f_k, S = sum f_k c_k^T
    place(k, parts, adj_load[0], adj_load[1], work.adj_f)
    if adj.arms.shape[0] > 0:
        add_arms(k, parts, adj_load[1], nodes.ptr, nodes.slots_of, work.slots, adj.arms)


@device_fn
def add_points(b, nodes, bodies, work, p, adj):
    """Pull what the elements wrote for the points of body b back to its state p."""
    v_ptr, v_slots_of = nodes.velocity_ptr, nodes.velocity_slots_of
    # v_k = v + D c_k,  x_k = x + R c_k
    adj_v = body_load(b, bodies, v_ptr, v_slots_of, work.adj_v_slots)
    adj_x = body_load(b, bodies, nodes.ptr, nodes.slots_of, work.adj_x_slots)
    add_point_arms(b, b, nodes, bodies, work, p, adj)
    pull_loads(b, adj_x, adj_v, p, adj)


@device_fn
def add_point_arms(b, k, nodes, parts, work, p, adj):
    """Pull what the elements wrote for the points of part k of body b back to their arms."""
    if adj.arms.shape[0] > 0:
        R, D = body_frames(read_body(p, b))
        v_ptr, v_slots_of = nodes.velocity_ptr, nodes.velocity_slots_of
        add_arms(k, parts, R, nodes.ptr, nodes.slots_of, work.adj_x_slots, adj.arms)
        add_arms(k, parts, D, v_ptr, v_slots_of, work.adj_v_slots, adj.arms)


@device_fn
def pull_loads(b, adj_x, adj_v, p, adj):
    """Pull the sums over the points of body b, of positions and velocities, back to its state p."""
    # R, D = frames of the state
    adj_r, adj_omega = body_frames_vjp(read_body(p, b), adj_x[1], adj_v[1])
    x, r, v, omega = read_body(adj.p, b)
    r = (r[0] + adj_r[0], r[1] + adj_r[1], r[2] + adj_r[2], r[3] + adj_r[3])
    write_body(adj.p, b, (add(x, adj_x[0]), r, add(v, adj_v[0]), add(omega, adj_omega)))


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
