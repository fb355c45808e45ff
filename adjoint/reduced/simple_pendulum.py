r"""Adjoint of `adjsim/reduced/simple_pendulum.py`: read the two files side by side."""

import math

from adjoint.reduced.pendulum_loop import PendulumTwinKind
from adjsim.engine.jit.backend import device_fn
from adjsim.reduced.simple_pendulum import SIMPLE_PENDULUM


@device_fn
def simple_pendulum_jvp(q, u, params, torque, tan_q, tan_u, tan_params, tan_torque):
    """Push tangents through `simple_pendulum_acceleration`."""
    l, m, b, g = params
    tan_l, tan_m, tan_b, tan_g = tan_params
    s = math.sin(q[0])  # (1)
    tan_s = math.cos(q[0]) * tan_q[0]
    fall = g * s / l  # (2)
    tan_fall = (tan_g * s + g * tan_s - fall * tan_l) / l
    drag = b * u[0] / m  # (3)
    tan_drag = (tan_b * u[0] + b * tan_u[0] - drag * tan_m) / m
    inertia = m * l * l
    push = torque[0] / inertia  # (4)
    tan_push = tan_torque[0] / inertia - push * (tan_m / m + (tan_l + tan_l) / l)
    return (tan_push - tan_fall - tan_drag,)  # (5)


@device_fn
def simple_pendulum_vjp(q, u, params, torque, adj_a):
    """Pull adj_a back through `simple_pendulum_acceleration`."""
    l, m, b, g = params
    s = math.sin(q[0])  # (1) replayed
    fall = g * s / l  # (2) replayed
    drag = b * u[0] / m  # (3) replayed
    inertia = m * l * l
    push = torque[0] / inertia  # (4) replayed

    # (5) a = push - fall - drag
    adj_push = adj_a[0]
    adj_fall = -adj_a[0]
    adj_drag = -adj_a[0]

    # (4) push = T / (m l^2)
    adj_torque = adj_push / inertia
    adj_m = -push / m * adj_push
    adj_l = -(push + push) / l * adj_push

    # (3) drag = b u / m
    adj_b = u[0] / m * adj_drag
    adj_u = b / m * adj_drag
    adj_m -= drag / m * adj_drag

    # (2) fall = g s / l
    adj_g = s / l * adj_fall
    adj_s = g / l * adj_fall
    adj_l -= fall / l * adj_fall

    # (1) s = sin q
    adj_q = math.cos(q[0]) * adj_s
    return (adj_q,), (adj_u,), (adj_l, adj_m, adj_b, adj_g), (adj_torque,)


TWIN = PendulumTwinKind(SIMPLE_PENDULUM, simple_pendulum_jvp, simple_pendulum_vjp)
