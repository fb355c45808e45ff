r"""Adjoint of `adjsim/reduced/double_pendulum.py`: read the two files side by side.

The accelerations solve M a = r, and so do their derivatives, by the implicit function theorem:

    tangent   M tan_a = tan_r - tan_M a
    adjoint   M^T adj_r = adj_a,   adj_M = -adj_r a^T

M is symmetric: the adjoint is one more solve with the same matrix, and neither the inverse nor
the determinant is ever differentiated.
"""

import math

from adjoint.reduced.joint_friction import smooth_sign_vjp
from adjoint.reduced.pendulum_loop import PendulumTwinKind
from adjsim.jit.backend import device_fn, lit
from adjsim.reduced.double_pendulum import (
    DOUBLE_PENDULUM,
    JOINTS,
    LINKS,
    WITH_MOMENTS,
    mass_matrix,
    solve,
)
from adjsim.reduced.joint_friction import smooth_sign, smooth_sign_jvp


@device_fn
def mass_matrix_jvp(q, params, tan_q, tan_params):
    """Push tangents through `mass_matrix`: tan_s, tan_p and tan_M."""
    l1, _, m1, m2, c1, c2 = params[LINKS]
    tan_l1, _, tan_m1, tan_m2, tan_c1, tan_c2, tan_I1, tan_I2 = tan_params[WITH_MOMENTS]
    s, cos, p, _, _ = mass_matrix(q, params)
    tan_D = tan_q[0] - tan_q[1]
    tan_s, tan_cos = cos * tan_D, -s * tan_D  # (1)
    tan_p = tan_m2 * l1 * c2 + m2 * (tan_l1 * c2 + l1 * tan_c2)  # (2)
    tan_J1 = tan_I1 + (tan_m1 * c1 + m1 * (tan_c1 + tan_c1)) * c1  # (3)
    tan_J2 = tan_I2 + (tan_m2 * c2 + m2 * (tan_c2 + tan_c2)) * c2
    tan_carried = (tan_m2 * l1 + m2 * (tan_l1 + tan_l1)) * l1
    return tan_s, tan_p, (tan_J1 + tan_carried, tan_J2, tan_p * cos + p * tan_cos)  # (4)


@device_fn
def double_pendulum_jvp(q, u, params, torque, tan_q, tan_u, tan_params, tan_torque):
    """Push tangents through `double_pendulum_acceleration`."""
    l1, _, m1, m2, c1, c2 = params[LINKS]
    b1, b2, f1, f2, eps, g = params[JOINTS]
    tan_l1, _, tan_m1, tan_m2, tan_c1, tan_c2 = tan_params[LINKS]
    tan_b1, tan_b2, tan_f1, tan_f2, tan_eps, tan_g = tan_params[JOINTS]
    s, _, p, M, det = mass_matrix(q, params)
    tan_s, tan_p, tan_M = mass_matrix_jvp(q, params, tan_q, tan_params)
    w1, w2 = (m1 * c1 + m2 * l1) * g, m2 * c2 * g  # (5)
    tan_w1 = (tan_m1 * c1 + m1 * tan_c1 + tan_m2 * l1 + m2 * tan_l1) * g
    tan_w1 += (m1 * c1 + m2 * l1) * tan_g
    tan_w2 = (tan_m2 * c2 + m2 * tan_c2) * g + m2 * c2 * tan_g
    h = p * s  # (6)
    tan_h = tan_p * s + p * tan_s
    between, tan_between = u[1] - u[0], tan_u[1] - tan_u[0]
    sign1, sign2 = smooth_sign(u[0], eps), smooth_sign(between, eps)
    dry1, dry2 = f1 * sign1, f2 * sign2  # (7)
    tan_dry1 = tan_f1 * sign1 + f1 * smooth_sign_jvp(u[0], eps, tan_u[0], tan_eps)
    tan_dry2 = tan_f2 * sign2 + f2 * smooth_sign_jvp(between, eps, tan_between, tan_eps)
    sin1, sin2 = math.sin(q[0]), math.sin(q[1])
    tan_sin1, tan_sin2 = math.cos(q[0]) * tan_q[0], math.cos(q[1]) * tan_q[1]
    r1 = torque[0] - b1 * u[0] - dry1 + dry2 - h * u[1] * u[1] - w1 * sin1  # (8)
    tan_r1 = tan_torque[0] - tan_b1 * u[0] - b1 * tan_u[0] - tan_w1 * sin1 - w1 * tan_sin1
    tan_r1 -= (tan_h * u[1] + h * (tan_u[1] + tan_u[1])) * u[1] + tan_dry1 - tan_dry2
    r2 = torque[1] - b2 * u[1] - dry2 + h * u[0] * u[0] - w2 * sin2  # (9)
    tan_r2 = tan_torque[1] - tan_b2 * u[1] - b2 * tan_u[1] - tan_w2 * sin2 - w2 * tan_sin2
    tan_r2 += (tan_h * u[0] + h * (tan_u[0] + tan_u[0])) * u[0] - tan_dry2
    a1, a2 = solve(M, det, (r1, r2))  # (10) M a = r
    rest1 = tan_r1 - tan_M[0] * a1 - tan_M[2] * a2
    rest2 = tan_r2 - tan_M[2] * a1 - tan_M[1] * a2
    return solve(M, det, (rest1, rest2))


@device_fn
def mass_matrix_vjp(q, params, adj_s, adj_p, adj_M):
    """Pull cotangents of sin D, p and M back through `mass_matrix`: adj_q, adj of l1, m, c, I."""
    l1, _, m1, m2, c1, c2 = params[LINKS]
    s, cos, p, _, _ = mass_matrix(q, params)  # (1), (2), (3) replayed

    # (4) M = (J1 + m2 l1^2, J2, p cos D)
    adj_J1, adj_J2 = adj_M[0], adj_M[1]
    adj_m2 = l1 * l1 * adj_M[0]
    adj_l1 = m2 * (l1 + l1) * adj_M[0]
    adj_p += cos * adj_M[2]
    adj_cos = p * adj_M[2]

    # (3) J = I + m c^2
    adj_m1 = c1 * c1 * adj_J1
    adj_c1 = m1 * (c1 + c1) * adj_J1
    adj_m2 += c2 * c2 * adj_J2
    adj_c2 = m2 * (c2 + c2) * adj_J2

    # (2) p = m2 l1 c2
    adj_m2 += l1 * c2 * adj_p
    adj_l1 += m2 * c2 * adj_p
    adj_c2 += m2 * l1 * adj_p

    # (1) s, cos = sin D, cos D,  D = q1 - q2
    adj_D = cos * adj_s - s * adj_cos
    return (adj_D, -adj_D), (adj_l1, adj_m1, adj_m2, adj_c1, adj_c2, adj_J1, adj_J2)


@device_fn
def double_pendulum_vjp(q, u, params, torque, adj_a):
    """Pull adj_a back through `double_pendulum_acceleration`."""
    l1, _, m1, m2, c1, c2 = params[LINKS]
    b1, b2, f1, f2, eps, g = params[JOINTS]
    s, _, p, M, det = mass_matrix(q, params)  # (1), (2), (3), (4) replayed
    w1, w2 = (m1 * c1 + m2 * l1) * g, m2 * c2 * g  # (5) replayed
    h = p * s  # (6) replayed
    between = u[1] - u[0]
    sign1, sign2 = smooth_sign(u[0], eps), smooth_sign(between, eps)
    dry1, dry2 = f1 * sign1, f2 * sign2  # (7) replayed
    sin1, sin2 = math.sin(q[0]), math.sin(q[1])
    r1 = torque[0] - b1 * u[0] - dry1 + dry2 - h * u[1] * u[1] - w1 * sin1  # (8) replayed
    r2 = torque[1] - b2 * u[1] - dry2 + h * u[0] * u[0] - w2 * sin2  # (9) replayed
    a1, a2 = solve(M, det, (r1, r2))  # (10) replayed

    # (10) M a = r
    adj_r1, adj_r2 = solve(M, det, adj_a)
    adj_M0 = -adj_r1 * a1
    adj_M1 = -adj_r2 * a2
    adj_M2 = -(adj_r1 * a2 + adj_r2 * a1)

    # (9) r2 = T2 - b2 u2 - dry2 + h u1^2 - w2 sin q2
    adj_b2 = -u[1] * adj_r2
    adj_u2 = -b2 * adj_r2
    adj_dry2 = -adj_r2
    adj_h = u[0] * u[0] * adj_r2
    adj_u1 = h * (u[0] + u[0]) * adj_r2
    adj_w2 = -sin2 * adj_r2
    adj_q2 = -w2 * math.cos(q[1]) * adj_r2

    # (8) r1 = T1 - b1 u1 - dry1 + dry2 - h u2^2 - w1 sin q1
    adj_b1 = -u[0] * adj_r1
    adj_u1 -= b1 * adj_r1
    adj_dry1 = -adj_r1
    adj_dry2 += adj_r1
    adj_h -= u[1] * u[1] * adj_r1
    adj_u2 -= h * (u[1] + u[1]) * adj_r1
    adj_w1 = -sin1 * adj_r1
    adj_q1 = -w1 * math.cos(q[0]) * adj_r1

    # (7) dry1, dry2 = f1 s(u1), f2 s(u2 - u1)
    adj_f1, adj_f2 = sign1 * adj_dry1, sign2 * adj_dry2
    adj_rate, adj_eps1 = smooth_sign_vjp(u[0], eps, f1 * adj_dry1)
    adj_between, adj_eps2 = smooth_sign_vjp(between, eps, f2 * adj_dry2)
    adj_u1 += adj_rate - adj_between
    adj_u2 += adj_between

    # (6) h = p s
    adj_p = s * adj_h
    adj_s = p * adj_h

    # (4) to (1): s, p and M are functions of q, l1, m, c and I
    adj_q, adj_own = mass_matrix_vjp(q, params, adj_s, adj_p, (adj_M0, adj_M1, adj_M2))
    adj_l1, adj_m1, adj_m2, adj_c1, adj_c2, adj_I1, adj_I2 = adj_own

    # (5) w1, w2 = (m1 c1 + m2 l1) g, m2 c2 g
    adj_m1 += c1 * g * adj_w1
    adj_c1 += m1 * g * adj_w1
    adj_m2 += l1 * g * adj_w1 + c2 * g * adj_w2
    adj_l1 += m2 * g * adj_w1
    adj_c2 += m2 * g * adj_w2
    adj_g = (m1 * c1 + m2 * l1) * adj_w1 + m2 * c2 * adj_w2

    adj_links = (adj_l1, lit(0, adj_l1), adj_m1, adj_m2, adj_c1, adj_c2, adj_I1, adj_I2)
    adj_params = (*adj_links, adj_b1, adj_b2, adj_f1, adj_f2, adj_eps1 + adj_eps2, adj_g)
    adj_q = (adj_q1 + adj_q[0], adj_q2 + adj_q[1])
    return adj_q, (adj_u1, adj_u2), adj_params, (adj_r1, adj_r2)


TWIN = PendulumTwinKind(DOUBLE_PENDULUM, double_pendulum_jvp, double_pendulum_vjp)
