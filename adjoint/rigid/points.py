r"""Adjoint and tangent of `adjsim/rigid/points.py`: read the two files side by side.

Placing the points and summing what acts on them undo each other: with q_k = base + M c_k

    adj_base = sum adj_q_k,    adj_M = sum adj_q_k c_k^T      `body_load` of the cotangents
    adj_f_k = adj_F + adj_S c_k                               `place` of those of the load

so neither needs a function of its own. What the elements write for a body's points ends in
the cotangent of its state, `adj_p`, and nowhere else.
"""

from adjoint.rigid.body_step import (
    body_frames_jvp,
    body_frames_vjp,
    body_step_jvp,
    body_step_vjp,
)
from adjsim.backend import device_fn
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
from adjsim.vec3 import add


@device_fn
def add_body_frame(b, adj_frame_p, adj_p):
    """Add a frame's cotangent to that of the state it shows."""
    for k in range(STATE_SIZE):
        adj_p[b, k] += adj_frame_p[b, k]


@device_fn
def undo_body_step(b, n, dt, ptr, slots_of, slots, bodies, p, adj):
    """Undo the step of body b from state p: adj_p of the new state becomes that of the old.

    Writes adj_f of its points; `n` is the row of adj_gravity that is its own.
    """
    adj_p, adj_f, adj_gravity, adj_params = adj
    load = body_load(b, bodies, ptr, slots_of, slots)  # replayed
    params = read_params(bodies[2], b)
    # p' = step of p under the load
    adj_state, adj_load, adj_row, adj_g = body_step_vjp(
        read_body(p, b), load, params, dt, read_body(adj_p, b)
    )
    write_body(adj_p, b, adj_state)
    # (1), (2) F = sum f_k, S = sum f_k c_k^T
    place(b, bodies, adj_load[0], adj_load[1], adj_f)
    write_3(adj_gravity, n, 0, add(read_3(adj_gravity, n, 0), adj_g))
    for k in range(PARAMS_SIZE):
        adj_params[b, k] += adj_row[k]


@device_fn
def add_points(b, loads, adj_x_slots, adj_v_slots, bodies, p, adj_p):
    """Pull what the elements wrote for the points of body b back to its state p."""
    ptr, slots_of, v_ptr, v_slots_of = loads
    # v_k = v + D c_k,  x_k = x + R c_k
    adj_v, adj_D = body_load(b, bodies, v_ptr, v_slots_of, adj_v_slots)
    adj_x, adj_R = body_load(b, bodies, ptr, slots_of, adj_x_slots)
    # R, D = frames of the state
    adj_r, adj_omega = body_frames_vjp(read_body(p, b), adj_R, adj_D)
    x, r, v, omega = read_body(adj_p, b)
    r = (r[0] + adj_r[0], r[1] + adj_r[1], r[2] + adj_r[2], r[3] + adj_r[3])
    write_body(adj_p, b, (add(x, adj_x), r, add(v, adj_v), add(omega, adj_omega)))


@device_fn
def tangent_body(
    b, dt, tan_gravity, ptr, slots_of, slots, tan_slots, bodies, tan_params,
    p, p_new, tan_p, tan_p_new, tan_x_new, tan_v_new,
):  # fmt: skip
    """Advance the tangent of body b and of its points; p_new is the state it goes to."""
    load = body_load(b, bodies, ptr, slots_of, slots)  # (1), (2)
    tan_load = body_load(b, bodies, ptr, slots_of, tan_slots)
    g = (tan_gravity[0], tan_gravity[1], tan_gravity[2])
    tan_state = body_step_jvp(
        read_body(p, b), load, read_params(bodies[2], b), dt,
        read_body(tan_p, b), tan_load, read_params(tan_params, b), g,
    )  # fmt: skip
    write_body(tan_p_new, b, tan_state)
    place_tangents(b, bodies, p_new, tan_p_new, tan_x_new, tan_v_new)


@device_fn
def place_tangents(b, bodies, p, tan_p, tan_x, tan_v):
    """Write the tangents of positions and velocities of the points of body b."""
    tan_state = read_body(tan_p, b)
    tan_R, tan_D = body_frames_jvp(read_body(p, b), tan_state)
    place(b, bodies, tan_state[0], tan_R, tan_x)
    place(b, bodies, tan_state[2], tan_D, tan_v)
