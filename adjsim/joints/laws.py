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


@device_fn
def columns(own):
    """Return nine numbers as the columns of a matrix."""
    return (own[0:3], own[3:6], own[6:9])


@device_fn
def hold(r, u, own):
    """Return the force that holds two points together; `own` begins with k and c."""
    return axpy(own[0], r, scale(own[1], u))


@device_fn
def hold_jvp(r, u, own, tan_r, tan_u, tan_own):
    """Push tangents through `hold`."""
    moved = axpy(own[0], tan_r, scale(own[1], tan_u))
    return axpy(tan_own[0], r, axpy(tan_own[1], u, moved))


@device_fn
def axes(between, own):
    """Return the joint's axes in the world by both bodies, Q_A and Q_B."""
    return matmul(between[3], columns(own[4:13])), matmul(between[4], columns(own[13:22]))


@device_fn
def axes_jvp(between, own, tan, tan_own):
    """Push tangents through `axes`."""
    F_a, F_b = columns(own[4:13]), columns(own[13:22])
    tan_F_a, tan_F_b = columns(tan_own[4:13]), columns(tan_own[13:22])
    return (
        matmul_add(tan[3], F_a, matmul(between[3], tan_F_a)),
        matmul_add(tan[4], F_b, matmul(between[4], tan_F_b)),
    )


@device_fn
def lock(Q_a, Q_b, omega, own):
    """Return the torque that holds all axes; `own` has k_t and c_t behind k and c."""
    return axpy(lit(0.5, own[2]) * own[2], spins(Q_a, Q_b), scale(own[3], omega))


@device_fn
def lock_jvp(Q_a, Q_b, omega, own, tan_Q_a, tan_Q_b, tan_omega, tan_own):
    """Push tangents through `lock`."""
    half = lit(0.5, own[2])
    tan_spins = add(spins(tan_Q_a, Q_b), spins(Q_a, tan_Q_b))
    fixed = axpy(half * own[2], tan_spins, scale(own[3], tan_omega))
    return axpy(half * tan_own[2], spins(Q_a, Q_b), axpy(tan_own[3], omega, fixed))


@device_fn
def ball(between, own, series):
    """Return f and T = 0 of a ball joint; `between` is (r, u, omega, E_A, E_B)."""
    zero = lit(0, own[0])
    return hold(between[0], between[1], own), (zero, zero, zero)  # (1)


@device_fn
def ball_jvp(between, own, series, tan, tan_own, tan_series):
    """Push tangents through `ball`."""
    zero = lit(0, own[0])
    tan_f = hold_jvp(between[0], between[1], own, tan[0], tan[1], tan_own)  # (1)
    return tan_f, (zero, zero, zero)


@device_fn
def weld(between, own, series):
    """Return f and T of a weld."""
    f = hold(between[0], between[1], own)  # (1)
    Q_a, Q_b = axes(between, own)  # (2)
    return f, lock(Q_a, Q_b, between[2], own)  # (3)


@device_fn
def weld_jvp(between, own, series, tan, tan_own, tan_series):
    """Push tangents through `weld`."""
    tan_f = hold_jvp(between[0], between[1], own, tan[0], tan[1], tan_own)  # (1)
    Q_a, Q_b = axes(between, own)  # (2)
    tan_Q_a, tan_Q_b = axes_jvp(between, own, tan, tan_own)
    return tan_f, lock_jvp(Q_a, Q_b, between[2], own, tan_Q_a, tan_Q_b, tan[2], tan_own)  # (3)


@device_fn
def hinge(between, own, series):
    """Return f and T of a hinge."""
    omega = between[2]
    f = hold(between[0], between[1], own)  # (1)
    Q_a, Q_b = axes(between, own)  # (2)
    z = Q_a[2]
    across, along = dot(Q_a[1], Q_b[0]), dot(Q_a[0], Q_b[0])  # (3)
    phi = angle_of(along, across)  # (4)
    w = dot(omega, z)  # (5)
    tau = drive(phi, w, own[22:30], series[0])  # (6)
    held = axpy(own[2], cross(z, Q_b[2]), scale(own[3], omega))  # (7)
    return f, axpy(-(own[3] * w + tau), z, held)  # (8)


@device_fn
def hinge_jvp(between, own, series, tan, tan_own, tan_series):
    """Push tangents through `hinge`."""
    omega, tan_omega = between[2], tan[2]
    tan_f = hold_jvp(between[0], between[1], own, tan[0], tan[1], tan_own)  # (1)
    Q_a, Q_b = axes(between, own)  # (2)
    tan_Q_a, tan_Q_b = axes_jvp(between, own, tan, tan_own)
    z, tan_z = Q_a[2], tan_Q_a[2]
    across, along = dot(Q_a[1], Q_b[0]), dot(Q_a[0], Q_b[0])  # (3)
    tan_across = dot(tan_Q_a[1], Q_b[0]) + dot(Q_a[1], tan_Q_b[0])
    tan_along = dot(tan_Q_a[0], Q_b[0]) + dot(Q_a[0], tan_Q_b[0])
    phi = angle_of(along, across)  # (4)
    tan_phi = (along * tan_across - across * tan_along) / (along * along + across * across)
    w = dot(omega, z)  # (5)
    tan_w = dot(tan_omega, z) + dot(omega, tan_z)
    tau = drive(phi, w, own[22:30], series[0])  # (6)
    tan_tau = drive_jvp(
        phi, w, own[22:30], series[0], tan_phi, tan_w, tan_own[22:30], tan_series[0]
    )
    turn = cross(z, Q_b[2])  # (7)
    tan_turn = add(cross(tan_z, Q_b[2]), cross(z, tan_Q_b[2]))
    tan_held = axpy(own[2], tan_turn, axpy(tan_own[2], turn, scale(tan_own[3], omega)))
    tan_held = axpy(own[3], tan_omega, tan_held)
    tan_pull = tan_own[3] * w + own[3] * tan_w + tan_tau  # (8)
    return tan_f, axpy(-tan_pull, z, axpy(-(own[3] * w + tau), tan_z, tan_held))


@device_fn
def slider(between, own, series):
    """Return f and T of a slider."""
    r, u, omega = between[0], between[1], between[2]
    Q_a, Q_b = axes(between, own)  # (1)
    z = Q_a[2]
    l, l_rate = dot(r, z), dot(u, z)  # (2)
    tau = drive(l, l_rate, own[22:30], series[0])  # (3)
    f = axpy(-(own[0] * l + own[1] * l_rate + tau), z, hold(r, u, own))  # (4)
    return f, lock(Q_a, Q_b, omega, own)  # (5)


@device_fn
def slider_jvp(between, own, series, tan, tan_own, tan_series):
    """Push tangents through `slider`."""
    r, u, omega = between[0], between[1], between[2]
    Q_a, Q_b = axes(between, own)  # (1)
    tan_Q_a, tan_Q_b = axes_jvp(between, own, tan, tan_own)
    z, tan_z = Q_a[2], tan_Q_a[2]
    l, l_rate = dot(r, z), dot(u, z)  # (2)
    tan_l, tan_l_rate = dot(tan[0], z) + dot(r, tan_z), dot(tan[1], z) + dot(u, tan_z)
    tau = drive(l, l_rate, own[22:30], series[0])  # (3)
    tan_tau = drive_jvp(
        l, l_rate, own[22:30], series[0], tan_l, tan_l_rate, tan_own[22:30], tan_series[0]
    )
    pull = own[0] * l + own[1] * l_rate + tau  # (4)
    tan_pull = tan_own[0] * l + own[0] * tan_l + tan_own[1] * l_rate + own[1] * tan_l_rate + tan_tau
    tan_f = axpy(-tan_pull, z, axpy(-pull, tan_z, hold_jvp(r, u, own, tan[0], tan[1], tan_own)))
    return tan_f, lock_jvp(Q_a, Q_b, omega, own, tan_Q_a, tan_Q_b, tan[2], tan_own)  # (5)
