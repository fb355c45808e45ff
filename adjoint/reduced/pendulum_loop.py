r"""Adjoint and tangent of `adjsim/reduced/pendulum_loop.py`: the step undone, last line first.

    (3) q' = q + dt u'        adj_u' += dt adj_q'
    (2) u' = u + dt a         adj_a = dt adj_u'
    (1) a = a(q, u, p, T)     adj_q += (da/dq)^T adj_a, and adj_u, adj_p, adj_T alike

A frame's cotangent is added when the sweep reaches its state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from adjsim.jit.backend import device_fn, lit, specialise
from adjsim.jit.devices import Device
from adjsim.reduced.pendulum_loop import PendulumKind, axpy_1, bindings, read_0, runner, write_0


@dataclass(frozen=True)
class PendulumTwinKind:
    """The tangent and the adjoint of one kind of pendulum.

    jvp(q, u, params, torque, tan_q, tan_u, tan_params, tan_torque) -> tan_a
    vjp(q, u, params, torque, adj_a) -> adj_q, adj_u, adj_params, adj_torque
    """

    kind: PendulumKind
    jvp: Callable
    vjp: Callable


@cache
def make_add(n: int) -> Callable:
    """Return the function that adds n numbers to one row."""
    if n == 0:
        return write_0
    head, last = make_add(n - 1), n - 1

    @device_fn
    def add(rows, r, values):
        head(rows, r, values)
        rows[r, last] += values[last]

    return add


@device_fn
def sum_1(a, b):
    """Return a + b of one number."""
    return (a[0] + b[0],)


@device_fn
def sum_2(a, b):
    """Return a + b of two numbers."""
    return (a[0] + b[0], a[1] + b[1])


@device_fn
def scale_1(s, a):
    """Return s a of one number."""
    return (s * a[0],)


@device_fn
def scale_2(s, a):
    """Return s a of two numbers."""
    return (s * a[0], s * a[1])


SUM, SCALE = {1: sum_1, 2: sum_2}, {1: scale_1, 2: scale_2}

# Bound by `specialise`, once per kind.
ACCELERATION: Any = None
JVP: Any = None
VJP: Any = None
READ = READ_PARAMS = read_0
WRITE = ADD = ADD_PARAMS = write_0
STEP = axpy_1
PLUS, TIMES = sum_1, scale_1


def tangent(index, args):
    """Run states and their tangents together; `rows` and `finite` as in `advance`."""
    params, series, tan_params, tan_series, numbers, rows, states, finite = args
    Q, U, tan_Q, tan_U = states
    p, tan_p = READ_PARAMS(params, 0), READ_PARAMS(tan_params, 0)
    dt, k0 = numbers[0], rows[0]
    for k in range(rows.size - 2):
        before, after = rows[k + 1], rows[k + 2]
        step = min(k0 + k, series.shape[0] - 1)
        q, u, torque = READ(Q, before), READ(U, before), READ(series, step)
        tan_q, tan_u = READ(tan_Q, before), READ(tan_U, before)
        tan_torque = READ(tan_series, step)
        a = ACCELERATION(q, u, p, torque)  # (1)
        tan_a = JVP(q, u, p, torque, tan_q, tan_u, tan_p, tan_torque)
        u_new = STEP(dt, a, u)  # (2)
        tan_u_new = STEP(dt, tan_a, tan_u)
        q_new = STEP(dt, u_new, q)  # (3)
        tan_q_new = STEP(dt, tan_u_new, tan_q)
        WRITE(U, after, u_new)
        WRITE(Q, after, q_new)
        WRITE(tan_U, after, tan_u_new)
        WRITE(tan_Q, after, tan_q_new)
        for value in q_new:
            if value - value != lit(0, value) and finite[0] > k:
                finite[0] = k
        if finite[0] <= k:
            return


def reverse(index, args):
    """Undo rows.size - 1 steps, rows = (k0, rows...), the last one first.

    `frames` = (index of the frame that shows state k0 + k + 1, or -1; adj_Q, adj_U). The
    cotangents in `adj` are added to.
    """
    params, series, numbers, rows, states, frames, adj = args
    Q, U = states
    frame_of, adj_frames_q, adj_frames_u = frames
    adj_Q, adj_U, adj_params, adj_series = adj
    p, dt, k0 = READ_PARAMS(params, 0), numbers[0], rows[0]
    for back in range(rows.size - 1):
        k = rows.size - 2 - back
        row, step = rows[k + 1], min(k0 + k, series.shape[0] - 1)
        if frame_of[k] >= 0:
            ADD(adj_Q, 0, READ(adj_frames_q, frame_of[k]))
            ADD(adj_U, 0, READ(adj_frames_u, frame_of[k]))
        adj_q_new, adj_u_new = READ(adj_Q, 0), READ(adj_U, 0)

        # (3) q' = q + dt u'
        adj_u_new = STEP(dt, adj_q_new, adj_u_new)
        # (2) u' = u + dt a
        adj_a = TIMES(dt, adj_u_new)
        # (1) a = a(q, u, p, T)
        adj_q, adj_u, adj_p, adj_torque = VJP(
            READ(Q, row), READ(U, row), p, READ(series, step), adj_a
        )
        WRITE(adj_Q, 0, PLUS(adj_q_new, adj_q))
        WRITE(adj_U, 0, PLUS(adj_u_new, adj_u))
        ADD_PARAMS(adj_params, 0, adj_p)
        ADD(adj_series, step, adj_torque)


@cache
def tangent_loop(twin: PendulumTwinKind, device: Device) -> Callable[[tuple], None]:
    """Return `tangent` of one kind on a device, a function of its arguments."""
    loop = specialise(tangent, f"tangent_{twin.kind.name}", JVP=twin.jvp, **bindings(twin.kind))
    return runner(loop, device)


@cache
def reverse_loop(twin: PendulumTwinKind, device: Device) -> Callable[[tuple], None]:
    """Return `reverse` of one kind on a device, a function of its arguments."""
    kind = twin.kind
    loop = specialise(
        reverse,
        f"reverse_{kind.name}",
        VJP=twin.vjp,
        ADD=make_add(kind.n_angles),
        ADD_PARAMS=make_add(kind.n_params),
        PLUS=SUM[kind.n_angles],
        TIMES=SCALE[kind.n_angles],
        **bindings(kind),
    )
    return runner(loop, device)
