r"""Adjoint of `adjsim/rigid/points.py`, which has the tangent: read them side by side.

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

from adjoint.rigid.body_step import body_frames_vjp, body_step_vjp
from adjsim.algebra.vec3 import add, dot
from adjsim.jit.backend import device_fn
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
from adjsim.tiles.node_sum import node_sum


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
