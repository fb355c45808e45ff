r"""A step of implicit Euler of rigid bodies: where it ends, and what is out of balance there.

The unknowns of a body are its velocities at the end, v' and omega' in the body frame. They say
where it ends (`body_end` of `adjsim/rigid/body_step.py`), and are right where

    e_v = m (v' - v) - dt (F + m g - kappa m v')                                         [N s]
    e_w = I (omega' - omega) - dt (moment(R', S) - omega' x I omega' - kappa I omega')   [N m s]

are 0. F and S are the load of the forces at the end, and R' = R(r'): unlike in a semi-implicit
step, the gyroscopic moment and the drag are those at the end, too.

The loops do this for all bodies; f, (n_rows, 3), are the forces in the rows of X.

Adjoint: `adjoint/rigid/implicit_step.py`. Tests: `tests/rigid/test_implicit_step.py`.
"""

from adjsim.algebra.mat3 import madd
from adjsim.algebra.vec3 import add, axpy, cross, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.body_step import body_end, body_end_jvp, moment, sym_matvec
from adjsim.rigid.points import place_points, place_tangents
from adjsim.rigid.quaternion import quat_matrix, quat_matrix_jvp
from adjsim.rigid.rows import INERTIA, KAPPA, W, read_3, read_body, read_params, write_3, write_body
from adjsim.tiles.loop_arrays import Bodies


UNKNOWNS = 6  # of a body: v' and omega', the last columns of its state


@device_fn
def body_balance(state, end, load, params, gravity, dt):
    """Return e_v and e_w of a step from `state` to `end` under a load at its end."""
    _, _, v, omega = state
    _, r_end, v_end, omega_end = end
    F, S = load
    m, inertia, kappa = lit(1, dt) / params[W], params[INERTIA], params[KAPPA]
    change = sub(axpy(dt * kappa, v_end, sub(v_end, v)), scale(dt, gravity))  # (1) of velocity
    e_v = axpy(-dt, F, scale(m, change))  # (2)
    torque = moment(quat_matrix(r_end), S)  # (3) body frame
    spun = sym_matvec(inertia, omega_end)  # (4)
    net = sub(axpy(-kappa, spun, torque), cross(omega_end, spun))  # (5)
    e_w = axpy(-dt, net, sym_matvec(inertia, sub(omega_end, omega)))  # (6)
    return e_v, e_w


@device_fn
def body_balance_jvp(
    state, end, load, params, gravity, dt, tan_state, tan_end, tan_load, tan_params, tan_gravity
):
    """Push tangents through `body_balance`."""
    _, _, v, omega = state
    _, r_end, v_end, omega_end = end
    _, _, tan_v, tan_omega = tan_state
    _, tan_r_end, tan_v_end, tan_omega_end = tan_end
    (_, S), (tan_F, tan_S) = load, tan_load
    m, inertia, kappa = lit(1, dt) / params[W], params[INERTIA], params[KAPPA]
    tan_m, tan_inertia, tan_kappa = -m * m * tan_params[W], tan_params[INERTIA], tan_params[KAPPA]
    change = sub(axpy(dt * kappa, v_end, sub(v_end, v)), scale(dt, gravity))  # (1)
    tan_change = axpy(dt * kappa, tan_v_end, sub(tan_v_end, tan_v))
    tan_change = axpy(dt * tan_kappa, v_end, axpy(-dt, tan_gravity, tan_change))
    tan_e_v = axpy(-dt, tan_F, axpy(m, tan_change, scale(tan_m, change)))  # (2)
    R, tan_R = quat_matrix(r_end), quat_matrix_jvp(r_end, tan_r_end)  # (3)
    tan_torque = add(moment(tan_R, S), moment(R, tan_S))
    spun = sym_matvec(inertia, omega_end)  # (4)
    tan_spun = add(sym_matvec(tan_inertia, omega_end), sym_matvec(inertia, tan_omega_end))
    tan_net = axpy(-kappa, tan_spun, axpy(-tan_kappa, spun, tan_torque))  # (5)
    tan_net = sub(tan_net, add(cross(tan_omega_end, spun), cross(omega_end, tan_spun)))
    tan_e_w = sym_matvec(tan_inertia, sub(omega_end, omega))  # (6)
    tan_e_w = add(tan_e_w, sym_matvec(inertia, sub(tan_omega_end, tan_omega)))
    return tan_e_v, axpy(-dt, tan_net, tan_e_w)


@device_fn
def row_load(b, bodies, f):
    """Return F and S of body b, from the forces in the rows of its points."""
    point_ptr, arms = bodies.point_ptr, bodies.arms
    zero = lit(0, f[0, 0])
    none = (zero, zero, zero)
    F, S0, S1, S2 = none, none, none, none
    for k in range(point_ptr[b], point_ptr[b + 1]):
        q, c = read_3(f, k, 0), read_3(arms, k - point_ptr[0], 0)
        F = add(F, q)
        S0, S1, S2 = axpy(c[0], q, S0), axpy(c[1], q, S1), axpy(c[2], q, S2)
    return F, (S0, S1, S2)


def end_bodies(dt, bodies, p, end):
    """Write the end states and the points of bodies; `end.p` holds the end velocities."""
    for b in range(p.shape[0]):
        write_body(
            end.p, b, body_end(read_body(p, b), read_3(end.p, b, 7), read_3(end.p, b, 10), dt)
        )
        place_points(b, b, bodies, end)


def end_bodies_jvp(dt, bodies, tan_arms, p, p_end, tan_p, tan_end):
    """Write the tangents of the end states; `tan_end.p` holds the tangents of the velocities."""
    for b in range(p.shape[0]):
        omega_end, tan_v, tan_omega = (
            read_3(p_end, b, 10), read_3(tan_end.p, b, 7), read_3(tan_end.p, b, 10),
        )  # fmt: skip
        tan = body_end_jvp(read_body(p, b), omega_end, dt, read_body(tan_p, b), tan_v, tan_omega)
        write_body(tan_end.p, b, tan)
        place_tangents(b, b, bodies, tan_arms, p_end, tan_end)


def balance_bodies(dt, gravity, bodies, f, p, p_end, out):
    """Write e_v and e_w of all bodies, (n_bodies, 6)."""
    g = read_3(gravity, 0, 0)
    for b in range(p.shape[0]):
        params = read_params(bodies.params, b)
        residual = body_balance(
            read_body(p, b), read_body(p_end, b), row_load(b, bodies, f), params, g, dt
        )
        write_3(out, b, 0, residual[0])
        write_3(out, b, 3, residual[1])


def balance_bodies_jvp(dt, nodes, bodies, tan, f, tan_f, p, p_end, tan_p, tan_p_end, out):
    """Write the tangents of e_v and e_w of all bodies."""
    g, tan_g = read_3(nodes.gravity, 0, 0), read_3(tan.gravity, 0, 0)
    for b in range(p.shape[0]):
        load, tan_load = row_load(b, bodies, f), row_load(b, bodies, tan_f)
        if tan.arms.shape[0] > 0:
            more = row_load(b, Bodies(bodies.point_ptr, tan.arms, bodies.params), f)[1]
            tan_load = (tan_load[0], madd(tan_load[1], more))
        residual = body_balance_jvp(
            read_body(p, b), read_body(p_end, b), load, read_params(bodies.params, b), g, dt,
            read_body(tan_p, b), read_body(tan_p_end, b), tan_load, read_params(tan.bodies, b),
            tan_g,
        )  # fmt: skip
        write_3(out, b, 0, residual[0])
        write_3(out, b, 3, residual[1])
