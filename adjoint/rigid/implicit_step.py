r"""Adjoint of `adjsim/rigid/implicit_step.py`, which has the tangent: read them side by side.

What is left out: the cotangents of v' and omega'. They are the matrix that the step solves with.
"""

from adjoint.rigid.body_step import body_end_vjp, sym_outer
from adjoint.rigid.quaternion import quat_matrix_vjp
from adjsim.algebra.mat3 import t_matvec
from adjsim.algebra.vec3 import add, axpy, cross, dot, neg, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.body_step import spin, sym_matvec
from adjsim.rigid.implicit_step import row_load
from adjsim.rigid.quaternion import quat_matrix
from adjsim.rigid.rows import (
    INERTIA,
    KAPPA,
    PARAMS_SIZE,
    W,
    place,
    read_3,
    read_body,
    read_params,
    write_3,
    write_body,
)


@device_fn
def body_balance_vjp(state, end, load, params, gravity, dt, adj_e):
    """Pull cotangents of e_v and e_w back: to v and omega, r', the load, parameters, gravity."""
    _, _, v, omega = state
    _, r_end, v_end, omega_end = end
    (_, S), (adj_e_v, adj_e_w) = load, adj_e
    m, inertia, kappa = lit(1, dt) / params[W], params[INERTIA], params[KAPPA]
    change = sub(axpy(dt * kappa, v_end, sub(v_end, v)), scale(dt, gravity))  # (1) replayed
    R = quat_matrix(r_end)  # (3) replayed
    spun = sym_matvec(inertia, omega_end)  # (4) replayed

    # (6) e_w = I (omega' - omega) - dt net
    adj_omega = neg(sym_matvec(inertia, adj_e_w))
    adj_inertia = sym_outer(adj_e_w, sub(omega_end, omega))
    adj_net = scale(-dt, adj_e_w)
    # (5) net = torque - kappa spun - omega' x spun
    adj_kappa = -dot(spun, adj_net)
    adj_spun = axpy(-kappa, adj_net, cross(omega_end, adj_net))
    # (4) spun = I omega'
    more = sym_outer(adj_spun, omega_end)
    adj_inertia = (*add(adj_inertia[:3], more[:3]), *add(adj_inertia[3:], more[3:]))
    # (3) torque = moment(R', S)
    adj_S = spin(R, adj_net)
    adj_r_end = quat_matrix_vjp(r_end, spin(S, neg(adj_net)))
    # (2) e_v = m change - dt F
    adj_F = scale(-dt, adj_e_v)
    adj_m = dot(change, adj_e_v)
    adj_change = scale(m, adj_e_v)
    # (1) change = v' - v + dt (kappa v' - g)
    adj_kappa += dt * dot(v_end, adj_change)
    adj_v, adj_gravity = neg(adj_change), scale(-dt, adj_change)
    none = (lit(0, dt), lit(0, dt), lit(0, dt))  # of J, which a step does not read
    adj_params = (-m * m * adj_m, *adj_inertia, *none, *none, adj_kappa)
    return (adj_v, adj_omega), adj_r_end, (adj_F, adj_S), adj_params, adj_gravity


@device_fn
def add_row_arms(b, bodies, adj_S, f, adj_arms):
    """Add adj_S^T f to `adj_arms` of every point of body b: `row_load` undone for the arms."""
    point_ptr = bodies.point_ptr
    for k in range(point_ptr[b], point_ptr[b + 1]):
        q, i = read_3(f, k, 0), k - point_ptr[0]
        write_3(adj_arms, i, 0, add(read_3(adj_arms, i, 0), t_matvec(adj_S, q)))


def end_bodies_vjp(dt, p, p_end, adj_p_end, adj_p, adj_u):
    """Pull cotangents of where bodies end back to x and r, and to v' and omega', (n_bodies, 6)."""
    for b in range(p.shape[0]):
        state = read_body(p, b)
        adj_x, adj_r, adj_v, adj_omega = body_end_vjp(
            state, read_3(p_end, b, 10), dt, read_body(adj_p_end, b)
        )
        _, _, v, omega = read_body(adj_p, b)
        write_body(adj_p, b, (adj_x, adj_r, v, omega))
        write_3(adj_u, b, 0, adj_v)
        write_3(adj_u, b, 3, adj_omega)


def balance_bodies_vjp(dt, nodes, bodies, f, p, p_end, adj_e, adj_f, adj_p_end, adj):
    """Pull cotangents of e_v and e_w back: to v and omega of `adj.p`, r' of `adj_p_end`, adj_f."""
    g = read_3(nodes.gravity, 0, 0)
    for b in range(p.shape[0]):
        adj_start, adj_r_end, adj_load, adj_row, adj_g = body_balance_vjp(
            read_body(p, b), read_body(p_end, b), row_load(b, bodies, f),
            read_params(bodies.params, b), g, dt, (read_3(adj_e, b, 0), read_3(adj_e, b, 3)),
        )  # fmt: skip
        x, r, _, _ = read_body(adj.p, b)
        write_body(adj.p, b, (x, r, *adj_start))
        for k in range(4):
            adj_p_end[b, 3 + k] += adj_r_end[k]
        place(b, bodies, adj_load[0], adj_load[1], adj_f)
        n = nodes.w.size + b
        write_3(adj.gravity, n, 0, add(read_3(adj.gravity, n, 0), adj_g))
        for k in range(PARAMS_SIZE):
            adj.bodies[b, k] += adj_row[k]
        if adj.arms.shape[0] > 0:
            add_row_arms(b, bodies, adj_load[1], f, adj.arms)
