r"""What a joint does: the force f and the torque T on body A by what lies between A and B.

r = p_B - p_A, u its rate as A sees it, omega = omega_B - omega_A; Q = E F are the axes of the
joint in the world by either body, F those in the body, z the third. All act at p_B, on both bodies.

    f = k r + c u                                       a ball joint, a hinge and a weld hold points
    T = k_t/2 sum Q_Ai x Q_Bi + c_t omega               a weld and a slider hold all axes
    T = k_t z_A x z_B + c_t (omega - w z_A) - tau z_A   a hinge holds one, w = omega.z_A
    f = k (r - l z_A) + c (u - l' z_A) - tau z_A        a slider a line, l = r.z_A, l' = u.z_A

tau is what drives the joint (`adjsim/joints/drive.py`), by the angle phi = atan2(y_A.x_B, x_A.x_B)
of a hinge, in (-pi, pi], with the rate w, or by l and l' of a slider.

So what is elastic is the gradient of

    U = k/2 |r|^2  or  k/2 (|r|^2 - l^2),   k_t (1 - z_A.z_B)  or  k_t/2 sum (1 - Q_Ai.Q_Bi),

and dampers take the power c |u|^2 and c_t |omega|^2 of what they hold. A spring or limit of a hinge
is that of phi about z_A to second order in the angle between the axes.

Adjoint: `adjoint/joints/laws.py`. Tests: `tests/joints/test_laws.py`.
Source: ours; a stiff joint in the place of a constraint.
"""

from adjsim.algebra.mat3 import matmul, matmul_add
from adjsim.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.jit.backend import device_fn, lit
from adjsim.joints.angle import angle_of
from adjsim.joints.drive import drive, drive_jvp
from adjsim.rigid.frames import spins


K, C, K_T, C_T = range(4)  # what a law reads of its joint: the first so many of
F_A, F_B, DRIVEN = slice(4, 13), slice(13, 22), slice(22, 30)
R, U, OMEGA, E_A, E_B = range(5)  # what lies between two bodies


@device_fn
def columns(joint):
    """Return nine numbers as the columns of a matrix."""
    return (joint[0:3], joint[3:6], joint[6:9])


@device_fn
def hold(r, u, joint):
    """Return the force that holds two points together; `joint` begins with k and c."""
    return axpy(joint[K], r, scale(joint[C], u))


@device_fn
def hold_jvp(r, u, joint, tan_r, tan_u, tan_joint):
    """Push tangents through `hold`."""
    moved = axpy(joint[K], tan_r, scale(joint[C], tan_u))
    return axpy(tan_joint[K], r, axpy(tan_joint[C], u, moved))


@device_fn
def axes(between, joint):
    """Return the joint's axes in the world by both bodies, Q_A and Q_B."""
    return matmul(between[E_A], columns(joint[F_A])), matmul(between[E_B], columns(joint[F_B]))


@device_fn
def axes_jvp(between, joint, tan, tan_joint):
    """Push tangents through `axes`."""
    F_a, F_b = columns(joint[F_A]), columns(joint[F_B])
    tan_F_a, tan_F_b = columns(tan_joint[F_A]), columns(tan_joint[F_B])
    return (
        matmul_add(tan[E_A], F_a, matmul(between[E_A], tan_F_a)),
        matmul_add(tan[E_B], F_b, matmul(between[E_B], tan_F_b)),
    )


@device_fn
def lock(Q_a, Q_b, omega, joint):
    """Return the torque that holds all axes; `joint` has k_t and c_t behind k and c."""
    return axpy(lit(0.5, joint[K_T]) * joint[K_T], spins(Q_a, Q_b), scale(joint[C_T], omega))


@device_fn
def lock_jvp(Q_a, Q_b, omega, joint, tan_Q_a, tan_Q_b, tan_omega, tan_joint):
    """Push tangents through `lock`."""
    half = lit(0.5, joint[K_T])
    tan_spins = add(spins(tan_Q_a, Q_b), spins(Q_a, tan_Q_b))
    fixed = axpy(half * joint[K_T], tan_spins, scale(joint[C_T], tan_omega))
    return axpy(half * tan_joint[K_T], spins(Q_a, Q_b), axpy(tan_joint[C_T], omega, fixed))


@device_fn
def ball(between, joint, series):
    """Return f and T = 0 of a ball joint; `between` is (r, u, omega, E_A, E_B)."""
    zero = lit(0, joint[K])
    return hold(between[R], between[U], joint), (zero, zero, zero)  # (1)


@device_fn
def ball_jvp(between, joint, series, tan, tan_joint, tan_series):
    """Push tangents through `ball`."""
    zero = lit(0, joint[K])
    tan_f = hold_jvp(between[R], between[U], joint, tan[R], tan[U], tan_joint)  # (1)
    return tan_f, (zero, zero, zero)


@device_fn
def weld(between, joint, series):
    """Return f and T of a weld."""
    f = hold(between[R], between[U], joint)  # (1)
    Q_a, Q_b = axes(between, joint)  # (2)
    return f, lock(Q_a, Q_b, between[OMEGA], joint)  # (3)


@device_fn
def weld_jvp(between, joint, series, tan, tan_joint, tan_series):
    """Push tangents through `weld`."""
    tan_f = hold_jvp(between[R], between[U], joint, tan[R], tan[U], tan_joint)  # (1)
    Q_a, Q_b = axes(between, joint)  # (2)
    tan_Q_a, tan_Q_b = axes_jvp(between, joint, tan, tan_joint)
    return tan_f, lock_jvp(
        Q_a, Q_b, between[OMEGA], joint, tan_Q_a, tan_Q_b, tan[OMEGA], tan_joint
    )  # (3)


@device_fn
def hinge(between, joint, series):
    """Return f and T of a hinge."""
    omega = between[OMEGA]
    f = hold(between[R], between[U], joint)  # (1)
    Q_a, Q_b = axes(between, joint)  # (2)
    z = Q_a[2]
    across, along = dot(Q_a[1], Q_b[0]), dot(Q_a[0], Q_b[0])  # (3)
    phi = angle_of(along, across)  # (4)
    w = dot(omega, z)  # (5)
    tau = drive(phi, w, joint[DRIVEN], series[0])  # (6)
    held = axpy(joint[K_T], cross(z, Q_b[2]), scale(joint[C_T], omega))  # (7)
    return f, axpy(-(joint[C_T] * w + tau), z, held)  # (8)


@device_fn
def hinge_jvp(between, joint, series, tan, tan_joint, tan_series):
    """Push tangents through `hinge`."""
    omega, tan_omega = between[OMEGA], tan[OMEGA]
    tan_f = hold_jvp(between[R], between[U], joint, tan[R], tan[U], tan_joint)  # (1)
    Q_a, Q_b = axes(between, joint)  # (2)
    tan_Q_a, tan_Q_b = axes_jvp(between, joint, tan, tan_joint)
    z, tan_z = Q_a[2], tan_Q_a[2]
    across, along = dot(Q_a[1], Q_b[0]), dot(Q_a[0], Q_b[0])  # (3)
    tan_across = dot(tan_Q_a[1], Q_b[0]) + dot(Q_a[1], tan_Q_b[0])
    tan_along = dot(tan_Q_a[0], Q_b[0]) + dot(Q_a[0], tan_Q_b[0])
    phi = angle_of(along, across)  # (4)
    tan_phi = (along * tan_across - across * tan_along) / (along * along + across * across)
    w = dot(omega, z)  # (5)
    tan_w = dot(tan_omega, z) + dot(omega, tan_z)
    tau = drive(phi, w, joint[DRIVEN], series[0])  # (6)
    tan_tau = drive_jvp(
        phi, w, joint[DRIVEN], series[0], tan_phi, tan_w, tan_joint[DRIVEN], tan_series[0]
    )
    turn = cross(z, Q_b[2])  # (7)
    tan_turn = add(cross(tan_z, Q_b[2]), cross(z, tan_Q_b[2]))
    tan_held = axpy(joint[K_T], tan_turn, axpy(tan_joint[K_T], turn, scale(tan_joint[C_T], omega)))
    tan_held = axpy(joint[C_T], tan_omega, tan_held)
    tan_pull = tan_joint[C_T] * w + joint[C_T] * tan_w + tan_tau  # (8)
    return tan_f, axpy(-tan_pull, z, axpy(-(joint[C_T] * w + tau), tan_z, tan_held))


@device_fn
def slider(between, joint, series):
    """Return f and T of a slider."""
    r, u, omega = between[R], between[U], between[OMEGA]
    Q_a, Q_b = axes(between, joint)  # (1)
    z = Q_a[2]
    l, l_rate = dot(r, z), dot(u, z)  # (2)
    tau = drive(l, l_rate, joint[DRIVEN], series[0])  # (3)
    f = axpy(-(joint[K] * l + joint[C] * l_rate + tau), z, hold(r, u, joint))  # (4)
    return f, lock(Q_a, Q_b, omega, joint)  # (5)


@device_fn
def slider_jvp(between, joint, series, tan, tan_joint, tan_series):
    """Push tangents through `slider`."""
    r, u, omega = between[R], between[U], between[OMEGA]
    Q_a, Q_b = axes(between, joint)  # (1)
    tan_Q_a, tan_Q_b = axes_jvp(between, joint, tan, tan_joint)
    z, tan_z = Q_a[2], tan_Q_a[2]
    l, l_rate = dot(r, z), dot(u, z)  # (2)
    tan_l, tan_l_rate = dot(tan[R], z) + dot(r, tan_z), dot(tan[U], z) + dot(u, tan_z)
    tau = drive(l, l_rate, joint[DRIVEN], series[0])  # (3)
    tan_tau = drive_jvp(
        l, l_rate, joint[DRIVEN], series[0], tan_l, tan_l_rate, tan_joint[DRIVEN], tan_series[0]
    )
    pull = joint[K] * l + joint[C] * l_rate + tau  # (4)
    tan_pull = (
        tan_joint[K] * l
        + joint[K] * tan_l
        + tan_joint[C] * l_rate
        + joint[C] * tan_l_rate
        + tan_tau
    )
    tan_f = axpy(-tan_pull, z, axpy(-pull, tan_z, hold_jvp(r, u, joint, tan[R], tan[U], tan_joint)))
    return tan_f, lock_jvp(Q_a, Q_b, omega, joint, tan_Q_a, tan_Q_b, tan[OMEGA], tan_joint)  # (5)
