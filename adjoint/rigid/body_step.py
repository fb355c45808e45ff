r"""Adjoint of `adjsim/rigid/body_step.py`, which has the tangent: read them side by side.

The pair `spin`, `moment` undoes itself: for D = spin(R, omega) = R [omega]x

    adj_omega += moment(R, adj_D),     adj_R += spin(adj_D, -omega)

and for tau = moment(R, S)

    adj_S += spin(R, adj_tau),         adj_R += spin(S, -adj_tau).

A symmetric matrix of six numbers appears with both of its entries off the diagonal, and so
does its cotangent.
"""

from adjoint.rigid.quaternion import quat_exp_vjp, quat_matrix_vjp, quat_mul_vjp, quat_unit_vjp
from adjsim.algebra.mat3 import madd
from adjsim.algebra.vec3 import add, axpy, cross, dot, neg, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.body_step import moment, spin, sym_matvec
from adjsim.rigid.quaternion import quat_exp, quat_matrix, quat_mul
from adjsim.rigid.rows import INERTIA, INVERSE, KAPPA, W


@device_fn
def sym_outer(a, b):
    """Return the six numbers of a b^T + b a^T, its diagonal halved: the adjoint of a.A b."""
    return (
        a[0] * b[0],
        a[1] * b[1],
        a[2] * b[2],
        a[0] * b[1] + a[1] * b[0],
        a[0] * b[2] + a[2] * b[0],
        a[1] * b[2] + a[2] * b[1],
    )


@device_fn
def body_frames_vjp(state, adj_R, adj_D):
    """Pull cotangents of R and D back to r and omega."""
    _, r, _, omega = state
    R = quat_matrix(r)  # (1) replayed
    # (2) D = R [omega]x
    adj_omega = moment(R, adj_D)
    adj_R = madd(adj_R, spin(adj_D, neg(omega)))
    # (1) R = R(r)
    return quat_matrix_vjp(r, adj_R), adj_omega


@device_fn
def body_end_vjp(state, omega_new, dt, adj_new):
    """Pull a cotangent of the new state back to x, r and the new velocities."""
    _, r, _, _ = state
    adj_x, adj_r_new, adj_v_new, adj_omega_new = adj_new
    half = lit(0.5, dt) * dt
    h = scale(half, omega_new)
    turn = quat_exp(h)  # (2) replayed
    # (4) r' = turned/|turned|
    adj_turned = quat_unit_vjp(quat_mul(r, turn), adj_r_new)
    # (3) turned = r (x) turn
    adj_r, adj_turn = quat_mul_vjp(r, turn, adj_turned)
    # (2) turn = exp(dt/2 omega')
    adj_omega_new = axpy(half, quat_exp_vjp(h, adj_turn), adj_omega_new)
    # (1) x' = x + dt v'
    return adj_x, adj_r, axpy(dt, adj_x, adj_v_new), adj_omega_new


@device_fn
def body_step_vjp(state, load, params, dt, adj_state):
    """Pull a cotangent of the new state back to the state, load, parameters and gravity."""
    _, r, v, omega = state
    F, S = load
    w, inertia, inverse, kappa = params[W], params[INERTIA], params[INVERSE], params[KAPPA]
    R = quat_matrix(r)  # (2) replayed
    spun = sym_matvec(inertia, omega)  # (4) replayed
    net = sub(moment(R, S), cross(omega, spun))  # (5) replayed
    rate = axpy(-kappa, omega, sym_matvec(inverse, net))
    omega_new = axpy(dt, rate, omega)  # (6) replayed

    # the new state, by `body_end`
    adj_x, adj_r, adj_v, adj_omega_new = body_end_vjp(state, omega_new, dt, adj_state)
    # (6) omega' = omega + dt rate
    adj_rate = scale(dt, adj_omega_new)
    # (5) rate = J (torque - omega x spun) - kappa omega
    adj_kappa = -dot(omega, adj_rate)
    adj_omega_new = axpy(-kappa, adj_rate, adj_omega_new)
    adj_inverse = sym_outer(adj_rate, net)
    adj_net = sym_matvec(inverse, adj_rate)
    adj_omega = sub(adj_omega_new, cross(spun, adj_net))
    adj_spun = cross(omega, adj_net)
    # (4) spun = I omega
    adj_inertia = sym_outer(adj_spun, omega)
    adj_omega = add(adj_omega, sym_matvec(inertia, adj_spun))
    # (3) torque = moment(R, S)
    adj_S = spin(R, adj_net)
    adj_R = spin(S, neg(adj_net))
    # (2) R = R(r)
    from_R = quat_matrix_vjp(r, adj_R)
    adj_r = (
        adj_r[0] + from_R[0], adj_r[1] + from_R[1], adj_r[2] + from_R[2], adj_r[3] + from_R[3],
    )  # fmt: skip
    # (1) v' = v + dt (w F + g - kappa v)
    adj_gravity = scale(dt, adj_v)
    adj_w = dot(F, adj_gravity)
    adj_F = scale(w, adj_gravity)
    adj_kappa -= dot(v, adj_gravity)
    adj_v = axpy(-kappa, adj_gravity, adj_v)
    adj_params = (adj_w, *adj_inertia, *adj_inverse, adj_kappa)
    return (adj_x, adj_r, adj_v, adj_omega), (adj_F, adj_S), adj_params, adj_gravity
