r"""The whole time loop in compiled code: semi-implicit (symplectic) Euler.

    v' = v + dt (w f(x, v, theta) + [w > 0] g)        w = 1/m, 0 pins a node
    x' = x + dt v'

Rigid bodies take their own step beside the nodes, by `adjsim/rigid/points.py`; each thread
advances its share of the nodes and of the bodies.

It is compiled once per dtype, not once per model: the forces come as tables of addresses.
`rows[k]` names the row of X, V and P that holds state k0 + k, so the same loop keeps every
state, only the frames, or two at a time.

The work is cut in parts, `adjsim/parts.py`. Those that touch nothing in common, groups of worlds,
each run through all steps alone; those of one large world run together, step by step. Either
way the functions called on elements, nodes and bodies are the same, and so are the bits.

Adjoint: `adjoint/timeloop.py`. Tests: `tests/test_timeloop.py`.
Source: gradSim (ICLR 2021) eq. 4.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import prange

from adjsim.assembly import DTYPES, FORCE_LOOP, call_of, tile_kernel
from adjsim.backend import cpu_kernel, device_fn, lit, shared_fn, specialise
from adjsim.calls import function_table, make_call
from adjsim.node_sum import node_sum
from adjsim.packing import PackedModels
from adjsim.parts import BODY_HI, BODY_LO, FORCE, NODE_HI, NODE_LO, ROW, TILE_HI, TILE_LO, WORLD
from adjsim.rigid.points import advance_body, place_points


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
        bad += advance_body(b, dt, gravity, ptr, slots_of, slots, bodies, p, p_new)
    return bad


def place_rows(first, last, bodies, p, x, v):
    """Write positions and velocities of the points of bodies first to last from their states."""
    for b in range(first, last):
        place_points(b, bodies, p, x, v)


def body_types(dtype: np.dtype) -> Any:
    """Return the type of `bodies`: point_ptr, arms, params."""
    m = numba.from_dtype(dtype)[:, ::1]
    return numba.types.Tuple((numba.int64[::1], m, m))


def step_signature(dtype: np.dtype) -> Any:
    """Return the signature of `step_rows`."""
    a, m, u = (numba.from_dtype(dtype)[::1], numba.from_dtype(dtype)[:, ::1], numba.uint32[::1])
    i, real = numba.int64, numba.from_dtype(dtype)
    return i(i, i, i, i, real, a, a, u, u, a, body_types(dtype), *(m,) * 6)


def place_signature(dtype: np.dtype) -> Any:
    """Return the signature of `place_rows`."""
    m = numba.from_dtype(dtype)[:, ::1]
    return numba.void(numba.int64, numba.int64, body_types(dtype), m, m, m)


STEP, PLACE = range(2)  # in the table of what a step does after its forces
call_force = call_of(FORCE_LOOP)
call_step = make_call([step_signature(dtype) for dtype in DTYPES])
call_place = make_call([place_signature(dtype) for dtype in DTYPES])


@device_fn
def part_forces(part, forces, packed, parts, step, x, v, slots, scratch):
    """Write the force slots of a part's elements."""
    table, nodes, consts, params, series = packed
    tile_ptr, tiles = parts[0], parts[1]
    for t in range(tile_ptr[part], tile_ptr[part + 1]):
        args = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step,
            table, nodes, (x, v), (consts, params, series), (slots,), scratch[part],
        )  # fmt: skip
        call_force(forces, tiles[t, FORCE], args)


@device_fn
def part_step(
    part, steps, loads, bodies, parts, dt, slots, x, v, p, x_new, v_new, p_new, k, finite
):  # fmt: skip
    """Advance a part's nodes and bodies by step k; return how many are not finite now.

    Of a world that has such, `finite` becomes k if it was more. Points of bodies are placed by a
    function of its own, so that they can be placed again, to the bit, where a state is kept
    without them.
    """
    w, gravity, ptr, slots_of = loads
    range_ptr, ranges = parts[2], parts[3]
    bad = 0
    for r in range(range_ptr[part], range_ptr[part + 1]):
        args = (
            ranges[r, NODE_LO], ranges[r, NODE_HI], ranges[r, BODY_LO], ranges[r, BODY_HI],
            dt, w, gravity[ranges[r, WORLD]], ptr, slots_of, slots, bodies,
            x, v, p, x_new, v_new, p_new,
        )  # fmt: skip
        lost = call_step(steps, STEP, args)
        first, last = ranges[r, BODY_LO], ranges[r, BODY_HI]
        if first < last:
            call_place(steps, PLACE, (first, last, bodies, p_new, x_new, v_new))
        if lost > 0 and finite[ranges[r, WORLD]] > k:
            finite[ranges[r, WORLD]] = k
        bad += lost
    return bad


def advance_part(
    part, calls, packed, loads, bodies, parts, slots, scratch, dt, k0, rows, X, V, P, finite, stops
):  # fmt: skip
    """Run a part through rows.size - 1 steps, or, if it `stops`, until a world is not finite."""
    for k in range(rows.size - 1):
        a, b = rows[k], rows[k + 1]
        part_forces(part, calls[0], packed, parts, k0 + k, X[a], V[a], slots, scratch)
        bad = part_step(
            part, calls[1], loads, bodies, parts, dt, slots,
            X[a], V[a], P[a], X[b], V[b], P[b], k, finite,
        )  # fmt: skip
        if bad > 0 and stops:
            return


PART = shared_fn(advance_part)


def advance_alone(
    calls, packed, loads, bodies, parts, slots, scratch, dt, k0, rows, X, V, P, finite, stops
):  # fmt: skip
    """Run every part alone from state k0.

    `finite` has for each world the number of steps, and ends as how many of them stayed finite:
    exactly, or, if a part `stops` as soon as a world of it does not, for the first such world.
    """
    for part in prange(scratch.shape[0]):
        PART(
            part, calls, packed, loads, bodies, parts, slots, scratch, dt, k0, rows, X, V, P,
            finite, stops,
        )  # fmt: skip


def advance_together(
    calls, packed, loads, bodies, parts, slots, scratch, dt, k0, rows, X, V, P, finite, stops
):  # fmt: skip
    """Run all parts step by step; `finite` and `stops` as in `advance_alone`."""
    n_parts = scratch.shape[0]
    for k in range(rows.size - 1):
        a, b = rows[k], rows[k + 1]
        for part in prange(n_parts):
            part_forces(part, calls[0], packed, parts, k0 + k, X[a], V[a], slots, scratch)
        bad = 0
        for part in prange(n_parts):
            bad += part_step(
                part, calls[1], loads, bodies, parts, dt, slots,
                X[a], V[a], P[a], X[b], V[b], P[b], k, finite,
            )  # fmt: skip
        if bad > 0 and stops:
            break


@cache
def step_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `step_rows`."""
    return cpu_kernel(specialise(step_rows, f"step_rows_{dtype.name}"), [step_signature(dtype)])


@cache
def place_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `place_rows`."""
    return cpu_kernel(specialise(place_rows, f"place_rows_{dtype.name}"), [place_signature(dtype)])


def step_table(dtype: np.dtype) -> Any:
    """Return the table of what a step does after its forces."""
    return function_table([step_kernel(dtype), place_kernel(dtype)])


def place_states(steps, bodies, rows, X, V, P):
    """Write the points of all bodies from their states, in some rows."""
    for k in prange(rows.size):
        r = rows[k]
        call_place(steps, PLACE, (0, P.shape[1], bodies, P[r], X[r], V[r]))


@cache
def place_states_kernel(threads: int) -> Callable:
    """Return the compiled `place_states`."""
    name = f"place_states_{'parallel' if threads > 1 else 'serial'}"
    return cpu_kernel(specialise(place_states, name), parallel=threads > 1)


@cache
def loop_kernel(alone: Callable, together: Callable, *, threads: int, apart: bool) -> Callable:
    """Return a compiled loop: parts that stand apart run alone, others together."""
    loop = alone if apart or threads == 1 else together
    name = f"{loop.__name__}_{'parallel' if threads > 1 else 'serial'}"
    return cpu_kernel(specialise(loop, name), parallel=threads > 1)


def force_table(packed: PackedModels, dtype: np.dtype) -> Any:
    """Return the table of the packed models' force kernels."""
    return function_table(
        [tile_kernel(FORCE_LOOP, kind, kind.force, dtype) for kind in packed.kinds]
    )
