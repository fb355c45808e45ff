r"""Adjoint of `adjsim/reduced/double_pendulum.py`: read the two files side by side.

The accelerations solve M a = r, and so do their derivatives, by the implicit function theorem:

    tangent   M tan_a = tan_r - tan_M a
    adjoint   M^T adj_r = adj_a,   adj_M = -adj_r a^T

M is symmetric: the adjoint is one more solve with the same matrix, and neither the inverse nor
the determinant is ever differentiated.
"""

import math

from adjoint.reduced.pendulum_loop import PendulumTwinKind
from adjsim.engine.jit.backend import device_fn
from adjsim.reduced.double_pendulum import DOUBLE_PENDULUM, mass_matrix, solve


@device_fn
def double_pendulum_jvp(q, u, params, torque, tan_q, tan_u, tan_params, tan_torque):
    """Push tangents through `double_pendulum_acceleration`."""
    l1, l2, m1, m2, b1, b2, g = params
    tan_l1, tan_l2, tan_m1, tan_m2, tan_b1, tan_b2, tan_g = tan_params
    s, c, p, M, det = mass_matrix(q, params)
    tan_D = tan_q[0] - tan_q[1]
    tan_s, tan_c = c * tan_D, -s * tan_D  # (1)
    tan_p = tan_m2 * l1 * l2 + m2 * (tan_l1 * l2 + l1 * tan_l2)  # (2)
    total, tan_total = m1 + m2, tan_m1 + tan_m2
    tan_M0 = (tan_total * l1 + total * (tan_l1 + tan_l1)) * l1  # (3)
    tan_M1 = (tan_m2 * l2 + m2 * (tan_l2 + tan_l2)) * l2
    tan_M2 = tan_p * c + p * tan_c
    w1, w2 = total * g * l1, m2 * g * l2  # (4)
    tan_w1 = tan_total * g * l1 + total * (tan_g * l1 + g * tan_l1)
    tan_w2 = tan_m2 * g * l2 + m2 * (tan_g * l2 + g * tan_l2)
    h = p * s  # (5)
    tan_h = tan_p * s + p * tan_s
    sin1, sin2 = math.sin(q[0]), math.sin(q[1])
    tan_sin1, tan_sin2 = math.cos(q[0]) * tan_q[0], math.cos(q[1]) * tan_q[1]
    r1 = torque[0] - b1 * u[0] - h * u[1] * u[1] - w1 * sin1  # (6)
    tan_r1 = tan_torque[0] - tan_b1 * u[0] - b1 * tan_u[0] - tan_w1 * sin1 - w1 * tan_sin1
    tan_r1 -= (tan_h * u[1] + h * (tan_u[1] + tan_u[1])) * u[1]
    r2 = torque[1] - b2 * u[1] + h * u[0] * u[0] - w2 * sin2  # (7)
    tan_r2 = tan_torque[1] - tan_b2 * u[1] - b2 * tan_u[1] - tan_w2 * sin2 - w2 * tan_sin2
    tan_r2 += (tan_h * u[0] + h * (tan_u[0] + tan_u[0])) * u[0]
    a1, a2 = solve(M, det, (r1, r2))  # (8) M a = r
    rest1 = tan_r1 - tan_M0 * a1 - tan_M2 * a2
    rest2 = tan_r2 - tan_M2 * a1 - tan_M1 * a2
    return solve(M, det, (rest1, rest2))


@device_fn
def mass_matrix_vjp(q, params, adj_s, adj_p, adj_M):
    """Pull cotangents of sin D, p and M back through `mass_matrix`: adj_q, adj of l and m."""
    l1, l2, m1, m2 = params[0:4]
    s, c, p, _, _ = mass_matrix(q, params)  # (1), (2) replayed
    total = m1 + m2

    # (3) M = ((m1 + m2) l1^2, m2 l2^2, p c)
    adj_total = l1 * l1 * adj_M[0]
    adj_l1 = total * (l1 + l1) * adj_M[0]
    adj_m2 = l2 * l2 * adj_M[1]
    adj_l2 = m2 * (l2 + l2) * adj_M[1]
    adj_p += c * adj_M[2]
    adj_c = p * adj_M[2]

    # (2) p = m2 l1 l2
    adj_m2 += l1 * l2 * adj_p
    adj_l1 += m2 * l2 * adj_p
    adj_l2 += m2 * l1 * adj_p

    # (1) s, c = sin D, cos D,  D = q1 - q2
    adj_D = c * adj_s - s * adj_c
    return (adj_D, -adj_D), (adj_l1, adj_l2, adj_total, adj_total + adj_m2)


@device_fn
def double_pendulum_vjp(q, u, params, torque, adj_a):
    """Pull adj_a back through `double_pendulum_acceleration`."""
    l1, l2, m1, m2, b1, b2, g = params
    s, _, p, M, det = mass_matrix(q, params)  # (1), (2), (3) replayed
    total = m1 + m2
    w1, w2 = total * g * l1, m2 * g * l2  # (4) replayed
    h = p * s  # (5) replayed
    sin1, sin2 = math.sin(q[0]), math.sin(q[1])
    r1 = torque[0] - b1 * u[0] - h * u[1] * u[1] - w1 * sin1  # (6) replayed
    r2 = torque[1] - b2 * u[1] + h * u[0] * u[0] - w2 * sin2  # (7) replayed
    a1, a2 = solve(M, det, (r1, r2))  # (8) replayed

    # (8) M a = r
    adj_r1, adj_r2 = solve(M, det, adj_a)
    adj_M0 = -adj_r1 * a1
    adj_M1 = -adj_r2 * a2
    adj_M2 = -(adj_r1 * a2 + adj_r2 * a1)

    # (7) r2 = T2 - b2 u2 + h u1^2 - w2 sin q2
    adj_b2 = -u[1] * adj_r2
    adj_u2 = -b2 * adj_r2
    adj_h = u[0] * u[0] * adj_r2
    adj_u1 = h * (u[0] + u[0]) * adj_r2
    adj_w2 = -sin2 * adj_r2
    adj_q2 = -w2 * math.cos(q[1]) * adj_r2

    # (6) r1 = T1 - b1 u1 - h u2^2 - w1 sin q1
    adj_b1 = -u[0] * adj_r1
    adj_u1 -= b1 * adj_r1
    adj_h -= u[1] * u[1] * adj_r1
    adj_u2 -= h * (u[1] + u[1]) * adj_r1
    adj_w1 = -sin1 * adj_r1
    adj_q1 = -w1 * math.cos(q[0]) * adj_r1

    # (5) h = p s
    adj_p = s * adj_h
    adj_s = p * adj_h

    # (4) w1 = (m1 + m2) g l1, w2 = m2 g l2
    adj_total = g * l1 * adj_w1
    adj_m2 = g * l2 * adj_w2
    adj_g = total * l1 * adj_w1 + m2 * l2 * adj_w2
    adj_l1 = total * g * adj_w1
    adj_l2 = m2 * g * adj_w2

    # (3), (2), (1): s, p and M are functions of q, l and m
    adj_of_q, adj_of_params = mass_matrix_vjp(q, params, adj_s, adj_p, (adj_M0, adj_M1, adj_M2))
    adj_q1 += adj_of_q[0]
    adj_q2 += adj_of_q[1]
    adj_l1 += adj_of_params[0]
    adj_l2 += adj_of_params[1]
    adj_m1 = adj_total + adj_of_params[2]
    adj_m2 += adj_total + adj_of_params[3]
    adj_params = (adj_l1, adj_l2, adj_m1, adj_m2, adj_b1, adj_b2, adj_g)
    return (adj_q1, adj_q2), (adj_u1, adj_u2), adj_params, (adj_r1, adj_r2)


TWIN = PendulumTwinKind(DOUBLE_PENDULUM, double_pendulum_jvp, double_pendulum_vjp)
