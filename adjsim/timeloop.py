r"""The whole time loop in compiled code: semi-implicit (symplectic) Euler.

    v' = v + dt (w f(x, v, theta) + [w > 0] g)        w = 1/m, 0 pins a node
    x' = x + dt v'

Rigid bodies take their own step beside the nodes, by `adjsim/rigid/points.py`; each thread
advances its share of the nodes and of the bodies.

It is compiled once per dtype, serial and parallel, not once per model: the forces come as
first-class functions in a tuple of fixed length. `rows[k]` names the row of X, V and P that
holds state k0 + k, so the same loop keeps every state, only the frames, or two at a time.

Adjoint: `adjoint/timeloop.py`. Tests: `tests/test_timeloop.py`.
Source: gradSim (ICLR 2021) eq. 4.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import prange

from adjsim.assembly import FORCE_LAYOUT, PackedModel, force_kernel, tile_signature
from adjsim.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.node_sum import node_sum
from adjsim.rigid.points import step_body


# Each function in the tuple costs 0.1 ms per call of the loop, so it is no longer than needed.
MAX_FORCES = 4


@device_fn
def euler_step(x, v, f, w, gravity, dt):
    """Advance one node by one step: its new x [m] and v [m/s]."""
    free = lit(1, w) if w > lit(0, w) else lit(0, w)
    a = (
        w * f[0] + free * gravity[0],
        w * f[1] + free * gravity[1],
        w * f[2] + free * gravity[2],
    )
    v_new = (v[0] + dt * a[0], v[1] + dt * a[1], v[2] + dt * a[2])  # (1)
    x_new = (x[0] + dt * v_new[0], x[1] + dt * v_new[1], x[2] + dt * v_new[2])  # (2)
    return x_new, v_new


@device_fn
def step_node(n, dt, w, gravity, ptr, slots_of, slots, x, v, x_new, v_new):
    """Sum the forces on node n and advance it; return 1 if that is not finite."""
    f = node_sum(n, ptr, slots_of, slots)
    g = (gravity[0], gravity[1], gravity[2])
    xn, vn = euler_step((x[n, 0], x[n, 1], x[n, 2]), (v[n, 0], v[n, 1], v[n, 2]), f, w[n], g, dt)
    x_new[n, 0], x_new[n, 1], x_new[n, 2] = xn
    v_new[n, 0], v_new[n, 1], v_new[n, 2] = vn
    total = xn[0] + xn[1] + xn[2]
    return 0 if total - total == lit(0, total) else 1


def step_rows(
    lo, hi, first, last, dt, w, gravity, ptr, slots_of, slots, bodies,
    x, v, p, x_new, v_new, p_new,
):  # fmt: skip
    """Advance nodes lo to hi and bodies first to last; return how many are not finite now."""
    bad = 0
    for i in range(lo, hi):
        bad += step_node(np.uint64(i), dt, w, gravity, ptr, slots_of, slots, x, v, x_new, v_new)
    for b in range(first, last):
        bad += step_body(b, dt, gravity, ptr, slots_of, slots, bodies, p, p_new, x_new, v_new)
    return bad


def no_tiles(lo, hi, row, step, table, nodes, consts, params, series, x, v, slots, scratch):
    """Fill the tuple of forces to its fixed length."""


def advance(
    forces, step_range, packed, w, gravity, ptr, slots_of, bodies, slots, scratch,
    dt, k0, rows, X, V, P, tile_cuts, row_cuts,
):  # fmt: skip
    """Run rows.size - 1 steps from state k0; return how many of them stayed finite.

    `step_range` comes in a tuple of one: a bare kernel would be part of the type of this
    loop, which would then never be found in the cache.
    """
    table, nodes, consts, params, series = packed
    for k in range(rows.size - 1):
        x, v, p = X[rows[k]], V[rows[k]], P[rows[k]]
        x_new, v_new, p_new = X[rows[k + 1]], V[rows[k + 1]], P[rows[k + 1]]
        for c in prange(row_cuts.shape[1] - 1):
            for r in range(table.shape[0]):
                forces[r](
                    tile_cuts[r, c], tile_cuts[r, c + 1], r, k0 + k,
                    table, nodes, consts, params, series, x, v, slots, scratch[c],
                )  # fmt: skip
        bad = 0
        for c in prange(row_cuts.shape[1] - 1):
            bad += step_range[0](
                row_cuts[0, c], row_cuts[0, c + 1], row_cuts[1, c], row_cuts[1, c + 1],
                dt, w, gravity, ptr, slots_of, slots, bodies, x, v, p, x_new, v_new, p_new,
            )  # fmt: skip
        if bad > 0:
            return k
    return rows.size - 1


@cache
def step_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `step_rows`."""
    a, m, u = (numba.from_dtype(dtype)[::1], numba.from_dtype(dtype)[:, ::1], numba.uint32[::1])
    i, real = numba.int64, numba.from_dtype(dtype)
    states = (m,) * 6
    signature = i(i, i, i, i, real, a, a, u, u, a, body_types(dtype), *states)
    return cpu_kernel(specialise(step_rows, f"step_rows_{dtype.name}"), [signature])


def body_types(dtype: np.dtype) -> Any:
    """Return the type of `bodies`: point_ptr, arms, params."""
    m = numba.from_dtype(dtype)[:, ::1]
    return numba.types.Tuple((numba.int64[::1], m, m))


@cache
def idle_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `no_tiles`."""
    loop = specialise(no_tiles, f"no_tiles_{dtype.name}")
    return cpu_kernel(loop, [tile_signature(dtype, FORCE_LAYOUT)])


@cache
def advance_kernel(*, parallel: bool) -> Callable:
    """Return the compiled `advance`."""
    name = "advance_parallel" if parallel else "advance_serial"
    return cpu_kernel(specialise(advance, name), parallel=parallel)


def padded(kernels: list[Callable], idle: Callable) -> tuple[Callable, ...]:
    """Return the kernels in a tuple whose length is a multiple of `MAX_FORCES`."""
    length = max(1, -(-len(kernels) // MAX_FORCES)) * MAX_FORCES
    return (*kernels, *[idle] * (length - len(kernels)))


def force_kernels(packed: PackedModel, dtype: np.dtype) -> tuple[Callable, ...]:
    """Return the padded tuple of a packed model's force kernels."""
    return padded([force_kernel(kind, dtype) for kind in packed.kinds], idle_kernel(dtype))


def cuts(n: int, n_chunks: int) -> np.ndarray:
    """Return the ends of n_chunks nearly equal parts of range(n)."""
    return np.arange(n_chunks + 1, dtype=np.int64) * n // n_chunks
