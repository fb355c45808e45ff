r"""One step of one rigid body, and the affine map that carries its points.

State (x, r, v, omega): centre of mass [m], unit quaternion, velocity [m/s], angular velocity
in the body frame [rad/s]. The points of a body, constants c_k in its frame about the centre
of mass, are an affine map of it,

    p_k = x + R c_k,    dp_k/dt = v + D c_k,    D = R [omega]x,    R = R(r)

so what acts on a body is the adjoint of that map: with forces f_k at its points,

    F = sum f_k,    S = sum f_k c_k^T,    R^T tau = sum c_k x R^T f_k = moment(R, S)

which equals R^T sum (p_k - x) x f_k. The step, with w = 1/m, J = I^-1, and kappa for a drag of
force -kappa m v and moment -kappa I omega:

    v'     = v + dt (w F + g - kappa v)
    omega' = omega + dt (J (R^T tau - omega x I omega) - kappa omega)
    x'     = x + dt v'
    r'     = r (x) exp(dt/2 omega'), divided by its length

A product of unit quaternions has length 1, up to rounding: the division changes nothing else. In
float32 the rounding of the exponential is the same in every step of a steady spin, and r would
grow by up to 6e-8 a step.

Symmetric matrices are six numbers: xx, yy, zz, xy, xz, yz.

Adjoint: `adjoint/rigid/body_step.py`. Tests: `tests/rigid/test_body_step.py`.
Source: gradSim (ICLR 2021) eq. 2.
"""

from adjsim.algebra.mat3 import madd
from adjsim.algebra.vec3 import add, axpy, cross, dot, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.quaternion import (
    quat_exp,
    quat_exp_jvp,
    quat_matrix,
    quat_matrix_jvp,
    quat_mul,
    quat_mul_jvp,
    quat_unit,
    quat_unit_jvp,
)
from adjsim.rigid.rows import INERTIA, INVERSE, KAPPA, W


@device_fn
def sym_matvec(A, b):
    """Return A b for a symmetric A of six numbers."""
    return (
        A[0] * b[0] + A[3] * b[1] + A[4] * b[2],
        A[3] * b[0] + A[1] * b[1] + A[5] * b[2],
        A[4] * b[0] + A[5] * b[1] + A[2] * b[2],
    )


@device_fn
def spin(R, omega):
    """Return R [omega]x, three columns: the columns of R turned by omega in its own frame."""
    return (
        sub(scale(omega[2], R[1]), scale(omega[1], R[2])),
        sub(scale(omega[0], R[2]), scale(omega[2], R[0])),
        sub(scale(omega[1], R[0]), scale(omega[0], R[1])),
    )


@device_fn
def moment(R, S):
    """Return sum c x R^T f of S = sum f c^T: the adjoint of `spin` with respect to omega."""
    return (
        dot(R[2], S[1]) - dot(R[1], S[2]),
        dot(R[0], S[2]) - dot(R[2], S[0]),
        dot(R[1], S[0]) - dot(R[0], S[1]),
    )


@device_fn
def body_frames(state):
    """Return R and D: a point c is at x + R c and moves with v + D c."""
    _, r, _, omega = state
    R = quat_matrix(r)  # (1)
    return R, spin(R, omega)  # (2)


@device_fn
def body_frames_jvp(state, tan_state):
    """Push tangents through `body_frames`: tangents of R and D."""
    _, r, _, omega = state
    _, tan_r, _, tan_omega = tan_state
    R, tan_R = quat_matrix(r), quat_matrix_jvp(r, tan_r)  # (1)
    return tan_R, madd(spin(tan_R, omega), spin(R, tan_omega))  # (2)


@device_fn
def body_end(state, v_new, omega_new, dt):
    """Return the state that a body is in after it moved with new velocities for a step."""
    x, r, _, _ = state
    x_new = axpy(dt, v_new, x)  # (1)
    turn = quat_exp(scale(lit(0.5, dt) * dt, omega_new))  # (2)
    return x_new, quat_unit(quat_mul(r, turn)), v_new, omega_new  # (3), (4)


@device_fn
def body_end_jvp(state, omega_new, dt, tan_state, tan_v_new, tan_omega_new):
    """Push tangents through `body_end`."""
    _, r, _, _ = state
    tan_x, tan_r, _, _ = tan_state
    half = lit(0.5, dt) * dt
    tan_x_new = axpy(dt, tan_v_new, tan_x)  # (1)
    h = scale(half, omega_new)  # (2)
    turn, tan_turn = quat_exp(h), quat_exp_jvp(h, scale(half, tan_omega_new))
    tan_turned = quat_mul_jvp(r, turn, tan_r, tan_turn)  # (3)
    tan_r_new = quat_unit_jvp(quat_mul(r, turn), tan_turned)  # (4)
    return tan_x_new, tan_r_new, tan_v_new, tan_omega_new


@device_fn
def body_step(state, load, params, gravity, dt):
    """Advance one body by one step; `load` = (F, S), `params` = (w, I, J, kappa), 14 numbers."""
    _, r, v, omega = state
    F, S = load
    w, inertia, inverse, kappa = params[W], params[INERTIA], params[INVERSE], params[KAPPA]
    v_new = axpy(dt, axpy(-kappa, v, axpy(w, F, gravity)), v)  # (1)
    R = quat_matrix(r)  # (2)
    torque = moment(R, S)  # (3) body frame [N m]
    spun = sym_matvec(inertia, omega)  # (4) angular momentum, body frame
    net = sub(torque, cross(omega, spun))
    rate = axpy(-kappa, omega, sym_matvec(inverse, net))  # (5)
    return body_end(state, v_new, axpy(dt, rate, omega), dt)  # (6)


@device_fn
def body_step_jvp(state, load, params, dt, tan_state, tan_load, tan_params, tan_gravity):
    """Push tangents through `body_step`."""
    _, r, v, omega = state
    _, tan_r, tan_v, tan_omega = tan_state
    (F, S), (tan_F, tan_S) = load, tan_load
    w, inertia, inverse, kappa = params[W], params[INERTIA], params[INVERSE], params[KAPPA]
    tan_w, tan_inertia, tan_inverse = tan_params[W], tan_params[INERTIA], tan_params[INVERSE]
    tan_kappa = tan_params[KAPPA]
    tan_a = add(axpy(w, tan_F, scale(tan_w, F)), tan_gravity)
    tan_a = axpy(-kappa, tan_v, axpy(-tan_kappa, v, tan_a))
    tan_v_new = axpy(dt, tan_a, tan_v)  # (1)
    R, tan_R = quat_matrix(r), quat_matrix_jvp(r, tan_r)  # (2)
    torque = moment(R, S)  # (3)
    tan_torque = add(moment(tan_R, S), moment(R, tan_S))
    spun = sym_matvec(inertia, omega)  # (4)
    tan_spun = add(sym_matvec(tan_inertia, omega), sym_matvec(inertia, tan_omega))
    net = sub(torque, cross(omega, spun))  # (5)
    tan_net = sub(tan_torque, add(cross(tan_omega, spun), cross(omega, tan_spun)))
    rate = axpy(-kappa, omega, sym_matvec(inverse, net))
    tan_rate = add(sym_matvec(tan_inverse, net), sym_matvec(inverse, tan_net))
    tan_rate = axpy(-kappa, tan_omega, axpy(-tan_kappa, omega, tan_rate))
    omega_new, tan_omega_new = axpy(dt, rate, omega), axpy(dt, tan_rate, tan_omega)  # (6)
    return body_end_jvp(state, omega_new, dt, tan_state, tan_v_new, tan_omega_new)
