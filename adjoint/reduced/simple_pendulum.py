r"""Adjoint of `adjsim/reduced/simple_pendulum.py`: read the two files side by side."""

import math

from adjoint.reduced.joint_friction import smooth_sign_vjp
from adjoint.reduced.pendulum_loop import PendulumTwinKind
from adjsim.jit.backend import device_fn
from adjsim.reduced.joint_friction import smooth_sign, smooth_sign_jvp
from adjsim.reduced.simple_pendulum import SIMPLE_PENDULUM


@device_fn
def simple_pendulum_jvp(q, u, params, torque, tan_q, tan_u, tan_params, tan_torque):
    """Push tangents through `simple_pendulum_acceleration`."""
    l, m, c, I, b, f, eps, g = params
    tan_l, tan_m, tan_c, tan_I, tan_b, tan_f, tan_eps, tan_g = tan_params
    s = math.sin(q[0])  # (1)
    tan_s = math.cos(q[0]) * tan_q[0]
    J = I + m * c * c  # (2)
    tan_J = tan_I + (tan_m * c + m * (tan_c + tan_c)) * c
    fall = m * g * c * s  # (3)
    tan_fall = (tan_m * g + m * tan_g) * c * s + m * g * (tan_c * s + c * tan_s)
    drag = b * l * l * u[0]  # (4)
    tan_drag = ((tan_b * l + b * (tan_l + tan_l)) * u[0] + b * l * tan_u[0]) * l
    sign = smooth_sign(u[0], eps)
    dry = f * sign  # (5)
    tan_dry = tan_f * sign + f * smooth_sign_jvp(u[0], eps, tan_u[0], tan_eps)
    a = (torque[0] - fall - drag - dry) / J  # (6)
    return ((tan_torque[0] - tan_fall - tan_drag - tan_dry - tan_J * a) / J,)


@device_fn
def simple_pendulum_vjp(q, u, params, torque, adj_a):
    """Pull adj_a back through `simple_pendulum_acceleration`."""
    l, m, c, I, b, f, eps, g = params
    s = math.sin(q[0])  # (1) replayed
    J = I + m * c * c  # (2) replayed
    fall = m * g * c * s  # (3) replayed
    drag = b * l * l * u[0]  # (4) replayed
    sign = smooth_sign(u[0], eps)
    dry = f * sign  # (5) replayed
    a = (torque[0] - fall - drag - dry) / J  # (6) replayed

    # (6) a = (T - fall - drag - dry) / J
    adj_torque = adj_a[0] / J
    adj_fall = adj_drag = adj_dry = -adj_torque
    adj_J = -a * adj_torque

    # (5) dry = f s(u)
    adj_f = sign * adj_dry
    adj_u, adj_eps = smooth_sign_vjp(u[0], eps, f * adj_dry)

    # (4) drag = b l^2 u
    adj_b = l * l * u[0] * adj_drag
    adj_l = b * (l + l) * u[0] * adj_drag
    adj_u += b * l * l * adj_drag

    # (3) fall = m g c s
    adj_m = g * c * s * adj_fall
    adj_g = m * c * s * adj_fall
    adj_c = m * g * s * adj_fall
    adj_s = m * g * c * adj_fall

    # (2) J = I + m c^2
    adj_m += c * c * adj_J
    adj_c += m * (c + c) * adj_J

    # (1) s = sin q
    adj_q = math.cos(q[0]) * adj_s
    adj_params = (adj_l, adj_m, adj_c, adj_J, adj_b, adj_f, adj_eps, adj_g)
    return (adj_q,), (adj_u,), adj_params, (adj_torque,)


TWIN = PendulumTwinKind(SIMPLE_PENDULUM, simple_pendulum_jvp, simple_pendulum_vjp)
