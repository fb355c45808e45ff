r"""The time loop of a pendulum, one or two angles, in one piece of compiled code.

    a  = a(q, u, theta, T)
    u' = u + dt a,   q' = q + dt u'        semi-implicit (symplectic) Euler

The same source is a loop on the CPU and a kernel of one thread on a GPU. `rows[k]` names the
row of the angles Q and the rates U, (n_rows, n_angles), that holds state k0 + k.

Adjoint: `adjoint/reduced/pendulum_loop.py`. Tests: `tests/reduced/test_pendulum_loop.py`.
Source: gradSim (ICLR 2021) eq. 4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device
from adjsim.jit.devices import Device


@dataclass(frozen=True)
class PendulumKind:
    """One kind of pendulum: its element function, and how many numbers that reads.

        acceleration(q, u, params, torque) -> one angular acceleration [rad/s2] per angle

    with flat tuples of `n_angles` angles, rates and torques, and of `n_params` parameters.
    """

    name: str
    acceleration: Callable
    n_angles: int
    n_params: int


@device_fn
def read_0(rows, r):
    """Return no numbers."""
    return ()


@cache
def make_read(n: int) -> Callable:
    """Return the reader of the n numbers of one row, as a flat tuple."""
    if n == 0:
        return read_0
    head, last = make_read(n - 1), n - 1

    @device_fn
    def read(rows, r):
        return (*head(rows, r), rows[r, last])

    return read


@device_fn
def write_0(rows, r, values):
    """Write no numbers."""


@cache
def make_write(n: int) -> Callable:
    """Return the writer of the n numbers of one row."""
    if n == 0:
        return write_0
    head, last = make_write(n - 1), n - 1

    @device_fn
    def write(rows, r, values):
        head(rows, r, values)
        rows[r, last] = values[last]

    return write


@device_fn
def axpy_1(s, a, b):
    """Return s a + b of one number."""
    return (s * a[0] + b[0],)


@device_fn
def axpy_2(s, a, b):
    """Return s a + b of two numbers."""
    return (s * a[0] + b[0], s * a[1] + b[1])


AXPY = {1: axpy_1, 2: axpy_2}

# Bound by `specialise`, once per kind.
ACCELERATION: Any = None
READ = READ_PARAMS = read_0
WRITE = write_0
STEP = axpy_1


def advance(index, args):
    """Run rows.size - 2 steps, rows = (k0, rows...); `finite[0]` counts those that stay finite."""
    params, series, numbers, rows, states, finite = args
    Q, U = states
    p, dt, k0 = READ_PARAMS(params, 0), numbers[0], rows[0]
    for k in range(rows.size - 2):
        before, after = rows[k + 1], rows[k + 2]
        q, u = READ(Q, before), READ(U, before)
        torque = READ(series, min(k0 + k, series.shape[0] - 1))
        a = ACCELERATION(q, u, p, torque)  # (1)
        u_new = STEP(dt, a, u)  # (2)
        q_new = STEP(dt, u_new, q)  # (3)
        WRITE(U, after, u_new)
        WRITE(Q, after, q_new)
        for value in q_new:
            if value - value != lit(0, value) and finite[0] > k:
                finite[0] = k
        if finite[0] <= k:
            return


def bindings(kind: PendulumKind) -> dict[str, Callable]:
    """Return what the loops of a kind are bound to."""
    return {
        "ACCELERATION": kind.acceleration,
        "READ": make_read(kind.n_angles),
        "READ_PARAMS": make_read(kind.n_params),
        "WRITE": make_write(kind.n_angles),
        "STEP": AXPY[kind.n_angles],
    }


@cache
def advance_loop(kind: PendulumKind, device: Device) -> Callable[[tuple], None]:
    """Return `advance` of one kind on a device, a function of its arguments."""
    loop = specialise(advance, f"advance_{kind.name}", **bindings(kind))
    return runner(loop, device)


def runner(loop: Callable, device: Device) -> Callable[[tuple], None]:
    """Return what runs a loop of (index, args) on a device, where the arrays of args live."""
    if device is Device.CUDA:
        body = device_fn(loop)
        return lambda args: launch(body, 1, on_device(args))
    kernel = cpu_kernel(loop)
    return lambda args: kernel(0, args)


def loop_rows(k0: int, rows: np.ndarray) -> np.ndarray:
    """Return k0 and the rows in one array."""
    return np.concatenate([[k0], rows]).astype(np.int64)
