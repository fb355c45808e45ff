r"""Adjoint of `adjsim/joints/laws.py`, which has the tangent: read them side by side.

Each returns the cotangents of (r, u, omega, E_A, E_B) and of the parameters.
Of c = a x b the cotangents are adj_a = b x adj_c and adj_b = adj_c x a.
"""

from adjoint.joints.drive import drive_vjp
from adjsim.algebra.mat3 import matmul_t, t_matmul
from adjsim.algebra.vec3 import add, axpy, cross, dot, neg, scale
from adjsim.jit.backend import device_fn, lit
from adjsim.joints.angle import angle_of
from adjsim.joints.drive import drive
from adjsim.joints.laws import (
    C_T,
    DRIVEN,
    E_A,
    E_B,
    F_A,
    F_B,
    K_T,
    OMEGA,
    C,
    K,
    R,
    U,
    axes,
    columns,
)
from adjsim.rigid.frames import spins


@device_fn
def axes_vjp(between, joint, adj_Q_a, adj_Q_b):
    """Pull cotangents back through `axes`: E_A, E_B, and F_A and F_B as 18 numbers."""
    adj_E_a = matmul_t(adj_Q_a, columns(joint[F_A]))
    adj_E_b = matmul_t(adj_Q_b, columns(joint[F_B]))
    adj_F_a, adj_F_b = t_matmul(between[E_A], adj_Q_a), t_matmul(between[E_B], adj_Q_b)
    return adj_E_a, adj_E_b, (
        *adj_F_a[0], *adj_F_a[1], *adj_F_a[2], *adj_F_b[0], *adj_F_b[1], *adj_F_b[2],
    )  # fmt: skip


@device_fn
def lock_vjp(Q_a, Q_b, omega, joint, adj_T):
    """Pull adj_T back through `lock`: Q_A, Q_B, omega, k_t and c_t."""
    half = lit(0.5, joint[K_T])
    s = scale(half * joint[K_T], adj_T)
    adj_Q_a = (cross(Q_b[0], s), cross(Q_b[1], s), cross(Q_b[2], s))
    adj_Q_b = (cross(s, Q_a[0]), cross(s, Q_a[1]), cross(s, Q_a[2]))
    adj_k_t, adj_c_t = half * dot(spins(Q_a, Q_b), adj_T), dot(omega, adj_T)
    return adj_Q_a, adj_Q_b, scale(joint[C_T], adj_T), (adj_k_t, adj_c_t)


@device_fn
def ball_vjp(between, joint, series, adj_f, adj_T):
    """Pull adj_f back through `ball`."""
    r, u = between[R], between[U]
    zero = lit(0, joint[K])
    none = (zero, zero, zero)

    # (1) f = k r + c u
    adj_joint = dot(r, adj_f), dot(u, adj_f)
    adj_E = (none, none, none)
    return (scale(joint[K], adj_f), scale(joint[C], adj_f), none, adj_E, adj_E), adj_joint, ()


@device_fn
def weld_vjp(between, joint, series, adj_f, adj_T):
    """Pull adj_f and adj_T back through `weld`."""
    r, u, omega = between[R], between[U], between[OMEGA]
    Q_a, Q_b = axes(between, joint)  # (2) replayed

    # (3) T = k_t/2 sum Q_Ai x Q_Bi + c_t omega
    adj_Q_a, adj_Q_b, adj_omega, adj_held = lock_vjp(Q_a, Q_b, omega, joint, adj_T)

    # (2) Q = E F
    adj_E_a, adj_E_b, adj_F = axes_vjp(between, joint, adj_Q_a, adj_Q_b)

    # (1) f = k r + c u
    adj_joint = (dot(r, adj_f), dot(u, adj_f), *adj_held, *adj_F)
    adj_between = (scale(joint[K], adj_f), scale(joint[C], adj_f), adj_omega, adj_E_a, adj_E_b)
    return adj_between, adj_joint, ()


@device_fn
def hinge_vjp(between, joint, series, adj_f, adj_T):
    """Pull adj_f and adj_T back through `hinge`."""
    r, u, omega = between[R], between[U], between[OMEGA]
    Q_a, Q_b = axes(between, joint)  # (2) replayed
    z = Q_a[2]
    across, along = dot(Q_a[1], Q_b[0]), dot(Q_a[0], Q_b[0])  # (3) replayed
    phi = angle_of(along, across)  # (4) replayed
    w = dot(omega, z)  # (5) replayed
    tau = drive(phi, w, joint[DRIVEN], series[0])  # (6) replayed

    # (8) T = held - (c_t w + tau) z
    adj_tau = -dot(z, adj_T)
    adj_z = scale(-(joint[C_T] * w + tau), adj_T)
    adj_c_t = w * adj_tau
    adj_w = joint[C_T] * adj_tau

    # (7) held = k_t z x z_B + c_t omega
    adj_k_t = dot(cross(z, Q_b[2]), adj_T)
    adj_c_t += dot(omega, adj_T)
    adj_omega = scale(joint[C_T], adj_T)
    adj_z = axpy(joint[K_T], cross(Q_b[2], adj_T), adj_z)
    adj_z_b = scale(joint[K_T], cross(adj_T, z))

    # (6) tau = drive(phi, w)
    adj_phi, more, adj_drive = drive_vjp(phi, w, joint[DRIVEN], adj_tau)
    adj_w += more

    # (5) w = omega.z
    adj_omega = axpy(adj_w, z, adj_omega)
    adj_z = axpy(adj_w, omega, adj_z)

    # (4) phi = atan2(across, along)
    adj_phi = adj_phi / (along * along + across * across)
    adj_across, adj_along = along * adj_phi, -across * adj_phi

    # (3) across = y.x_B, along = x.x_B
    adj_y, adj_x = scale(adj_across, Q_b[0]), scale(adj_along, Q_b[0])
    adj_x_b = axpy(adj_across, Q_a[1], scale(adj_along, Q_a[0]))
    zero = lit(0, joint[K])

    # (2) Q = E F
    adj_E_a, adj_E_b, adj_F = axes_vjp(
        between, joint, (adj_x, adj_y, adj_z), (adj_x_b, (zero, zero, zero), adj_z_b)
    )

    # (1) f = k r + c u
    adj_joint = (dot(r, adj_f), dot(u, adj_f), adj_k_t, adj_c_t, *adj_F, *adj_drive)
    adj_between = (scale(joint[K], adj_f), scale(joint[C], adj_f), adj_omega, adj_E_a, adj_E_b)
    return adj_between, adj_joint, (adj_tau,)


@device_fn
def slider_vjp(between, joint, series, adj_f, adj_T):
    """Pull adj_f and adj_T back through `slider`."""
    r, u, omega = between[R], between[U], between[OMEGA]
    Q_a, Q_b = axes(between, joint)  # (1) replayed
    z = Q_a[2]
    l, l_rate = dot(r, z), dot(u, z)  # (2) replayed
    tau = drive(l, l_rate, joint[DRIVEN], series[0])  # (3) replayed

    # (5) T = k_t/2 sum Q_Ai x Q_Bi + c_t omega
    adj_Q_a, adj_Q_b, adj_omega, adj_held = lock_vjp(Q_a, Q_b, omega, joint, adj_T)

    # (4) f = k r + c u - (k l + c l' + tau) z
    adj_tau = -dot(z, adj_f)
    adj_k = dot(r, adj_f) + l * adj_tau
    adj_c = dot(u, adj_f) + l_rate * adj_tau
    adj_r, adj_u = scale(joint[K], adj_f), scale(joint[C], adj_f)
    adj_l, adj_l_rate = joint[K] * adj_tau, joint[C] * adj_tau
    adj_z = neg(scale(joint[K] * l + joint[C] * l_rate + tau, adj_f))

    # (3) tau = drive(l, l')
    more_l, more_rate, adj_drive = drive_vjp(l, l_rate, joint[DRIVEN], adj_tau)
    adj_l += more_l
    adj_l_rate += more_rate

    # (2) l = r.z, l' = u.z
    adj_r, adj_u = axpy(adj_l, z, adj_r), axpy(adj_l_rate, z, adj_u)
    adj_z = axpy(adj_l, r, axpy(adj_l_rate, u, adj_z))

    # (1) Q = E F
    adj_Q_a = (adj_Q_a[0], adj_Q_a[1], add(adj_Q_a[2], adj_z))
    adj_E_a, adj_E_b, adj_F = axes_vjp(between, joint, adj_Q_a, adj_Q_b)
    adj_joint = (adj_k, adj_c, *adj_held, *adj_F, *adj_drive)
    return (adj_r, adj_u, adj_omega, adj_E_a, adj_E_b), adj_joint, (adj_tau,)
