r"""The phases of a step in compiled code: semi-implicit (symplectic) Euler.

    v' = v + dt (w f(x, v, theta) + [w > 0] g)        w = 1/m, 0 pins a node
    x' = x + dt v'

but of nodes that a grip leads, which go where it says (`adjsim/forces/grip.py`). Rigid bodies take
their own step beside the nodes, by `adjsim/rigid/points.py`; each thread advances its share of the
nodes and of the bodies.

They are compiled once per dtype, not once per model: the forces come as tables of addresses.
`Steps.rows[k]` names the row of X, V and P that holds state first + k, so the loop keeps
every state, only the frames, or two at a time.

A turn of the sweep is a step, and has two phases (`adjsim/engine/phases.py`): the forces of
elements, then the step of nodes and bodies. Pairs that change (`adjsim/pairs/near.py`) add two: the
sums of their forces, and at the end a look at how far they have moved.

Adjoint: `adjoint/engine/timeloop.py`. Tests: `tests/engine/test_timeloop.py`.
Source: gradSim (ICLR 2021) eq. 4.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import prange

from adjsim.engine.packing import PackedModels
from adjsim.engine.partition import BODY_HI, BODY_LO, NODE_HI, NODE_LO, WORLD
from adjsim.engine.phases import STALE
from adjsim.forces.grip import is_led, led_step, place_of
from adjsim.jit.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.jit.calls import function_table, make_call
from adjsim.pairs.near import makes_lists, near_elements, near_tiles, serve, sum_pairs
from adjsim.rigid.points import advance_body, body_load, call_place, place_kernel
from adjsim.tiles.assembly import (
    DTYPES,
    FORCE,
    FORCE_LOOP,
    ROW,
    TILE_HI,
    TILE_LO,
    call_of,
    tile_kernel,
)
from adjsim.tiles.loop_arrays import Bodies, Nodes, Span, States, Work, types_of
from adjsim.tiles.node_sum import node_sum


@device_fn
def euler_step(x, v, f, w, gravity, dt):
    """Advance one node by one step: its new x [m] and v [m/s]."""
    free = lit(1, w) if w > lit(0, w) else lit(0, w)
    a = (w * f[0] + free * gravity[0], w * f[1] + free * gravity[1], w * f[2] + free * gravity[2])
    v_new = (v[0] + dt * a[0], v[1] + dt * a[1], v[2] + dt * a[2])  # (1)
    x_new = (x[0] + dt * v_new[0], x[1] + dt * v_new[1], x[2] + dt * v_new[2])  # (2)
    return x_new, v_new


@device_fn
def euler_step_jvp(tan_x, tan_v, f, tan_f, w, tan_w, tan_gravity, dt):
    """Push tangents through `euler_step`: tangents of the new x and v."""
    free = lit(1, w) if w > lit(0, w) else lit(0, w)
    tan_a = (
        w * tan_f[0] + tan_w * f[0] + free * tan_gravity[0],
        w * tan_f[1] + tan_w * f[1] + free * tan_gravity[1],
        w * tan_f[2] + tan_w * f[2] + free * tan_gravity[2],
    )
    tv = (tan_v[0] + dt * tan_a[0], tan_v[1] + dt * tan_a[1], tan_v[2] + dt * tan_a[2])  # (1)
    tx = (tan_x[0] + dt * tv[0], tan_x[1] + dt * tv[1], tan_x[2] + dt * tv[2])  # (2)
    return tx, tv


@device_fn
def node_step(n, step, x, v, f, nodes, gravity, dt, series):
    """Return the new x [m] and v [m/s] of node n: where its grip leads it, or by its forces."""
    if is_led(n, nodes):
        return led_step(place_of(n, step, nodes.led), x, dt, series)
    return euler_step(x, v, f, nodes.w[n], gravity, dt)


@device_fn
def step_node(n, step, dt, gravity, series, nodes, slots, before, after):
    """Sum the forces on node n and advance it; return 1 if that is not finite."""
    f = node_sum(n, nodes.ptr, nodes.slots_of, slots)
    x, v = before.x, before.v
    xn, vn = node_step(
        n, step, (x[n, 0], x[n, 1], x[n, 2]), (v[n, 0], v[n, 1], v[n, 2]), f, nodes,
        (gravity[0], gravity[1], gravity[2]), dt, series,
    )  # fmt: skip
    after.x[n, 0], after.x[n, 1], after.x[n, 2] = xn
    after.v[n, 0], after.v[n, 1], after.v[n, 2] = vn
    total = xn[0] + xn[1] + xn[2]
    return 0 if total - total == lit(0, total) else 1


def step_rows(span, step, dt, gravity, series, nodes, bodies, slots, before, after):
    """Advance the nodes and bodies of a span; return how many are not finite now."""
    bad = 0
    for i in range(span.node_lo, span.node_hi):
        bad += step_node(np.uint64(i), step, dt, gravity, series, nodes, slots, before, after)
    for b in range(span.body_lo, span.body_hi):
        load = body_load(b, bodies, nodes.ptr, nodes.slots_of, slots)
        bad += advance_body(b, dt, gravity, load, bodies, before.p, after.p)
    return bad


def step_signature(dtype: np.dtype) -> Any:
    """Return the signature of `step_rows`."""
    real, of = numba.from_dtype(dtype), types_of(dtype)
    a = real[::1]
    heads = (of[Span], numba.int64, real, a, a, of[Nodes], of[Bodies], a)
    return numba.int64(*heads, of[States], of[States])


STEP, PLACE = range(2)  # in the table of what a step does after its forces
call_force = call_of(FORCE_LOOP)
call_step = make_call([step_signature(dtype) for dtype in DTYPES])


class Calls(NamedTuple):
    """Tables of compiled functions: of the forces, and of what a step does after them."""

    forces: Any
    steps: Any


@device_fn
def state_at(states, row):
    """Return one row of states."""
    return States(states.x[row], states.v[row], states.p[row])


@device_fn
def span_of(ranges, r, last):
    """Return the nodes and bodies from range r to range `last`."""
    return Span(
        ranges[r, NODE_LO], ranges[last, NODE_HI], ranges[r, BODY_LO], ranges[last, BODY_HI]
    )


@device_fn
def part_forces(i_part, forces, elements, parts, step, state, work):
    """Write the force slots of a part's elements."""
    rows = (elements.consts, elements.params, elements.series)
    tiles = parts.tiles
    for t in range(parts.tile_ptr[i_part], parts.tile_ptr[i_part + 1]):
        args = (
            tiles[t, TILE_LO], tiles[t, TILE_HI], tiles[t, ROW], step,
            elements.table, elements.nodes, (state.x, state.v), rows, (work.slots,),
            work.scratch[i_part],
        )  # fmt: skip
        call_force(forces, tiles[t, FORCE], args)


@device_fn
def part_step(i_part, k, calls, elements, nodes, bodies, parts, steps, slots, states, finite):
    """Advance a part's nodes and bodies by step k; return how many are not finite now.

    `finite[world]` becomes at most k where a node or body of that world is not finite. A function
    of its own places the points of bodies: where a state is kept without them, it is called again
    and gives the same bits.
    """
    ranges, dt, rows = parts.ranges, steps.dt, steps.rows
    before, after = state_at(states, rows[k]), state_at(states, rows[k + 1])
    bad = 0
    for r in range(parts.range_ptr[i_part], parts.range_ptr[i_part + 1]):
        world, span = ranges[r, WORLD], span_of(ranges, r, r)
        head = (span, steps.first + k, dt, nodes.gravity[world], elements.series)
        lost = call_step(calls, STEP, (*head, nodes, bodies, slots, before, after))
        if span.body_lo < span.body_hi:
            call_place(calls, PLACE, (span.body_lo, span.body_hi, bodies, after))
        if lost > 0 and finite[world] > k:
            finite[world] = k
        bad += lost
    return bad


@device_fn
def force_phase(i_part, k, job):
    """Write the force slots of a part in step k of a job."""
    state = state_at(job.states, job.steps.rows[k])
    part_forces(
        i_part, job.calls.forces, job.elements, job.parts, job.steps.first + k, state, job.work
    )
    return 0


@device_fn
def step_phase(i_part, k, job):
    """Advance a part's nodes and bodies by step k of a job."""
    return part_step(
        i_part, k, job.calls.steps, job.elements, job.nodes, job.bodies, job.parts, job.steps,
        job.work.slots, job.states, job.finite,
    )  # fmt: skip


@device_fn
def near_forces(i_part, k, job):
    """Write the force slots of a part's pairs in step k of a job."""
    state, pairs = state_at(job.states, job.steps.rows[k]), job.elements
    work = Work(pairs.slots, job.work.scratch)
    part_forces(
        i_part, job.calls.forces, near_elements(pairs), near_tiles(pairs), job.steps.first + k,
        state, work,
    )  # fmt: skip


@device_fn
def force_and_pair_phase(i_part, k, job):
    """Write the force slots of a part's elements and pairs in step k of a job."""
    force_phase(i_part, k, job)
    near_forces(i_part, k, job)
    return 0


@device_fn
def pair_sum_phase(i_part, k, job):
    """Add up the forces of the pairs."""
    sum_pairs(i_part, job.elements, job.elements.slots, job.work.slots)
    return 0


@device_fn
def watch_phase(i_part, k, job):
    """Make a part's list serve the state after step k; return `STALE` if its pairs do not."""
    pairs = job.elements
    if not makes_lists(i_part, pairs) or serve(
        pairs, pairs.shares[i_part, 0], job.states.x[job.steps.rows[k + 1]]
    ):
        return 0
    return STALE


ADVANCE = (force_phase, step_phase)
ADVANCE_PAIRS = (force_and_pair_phase, pair_sum_phase, step_phase, watch_phase)


@cache
def step_kernel(dtype: np.dtype) -> Callable:
    """Return the compiled `step_rows`."""
    return cpu_kernel(specialise(step_rows, f"step_rows_{dtype.name}"), [step_signature(dtype)])


@cache
def step_table(dtype: np.dtype) -> Any:
    """Return the table of what a step does after its forces."""
    return function_table([step_kernel(dtype), place_kernel(dtype)])


def place_states(steps, bodies, rows, states):
    """Write the points of all bodies from their states, in some rows."""
    for k in prange(rows.size):
        call_place(steps, PLACE, (0, states.p.shape[1], bodies, state_at(states, rows[k])))


@cache
def place_states_kernel(threads: int) -> Callable:
    """Return the compiled `place_states`."""
    name = f"place_states_{'parallel' if threads > 1 else 'serial'}"
    return cpu_kernel(specialise(place_states, name), parallel=threads > 1)


def force_table(packed: PackedModels, dtype: np.dtype) -> Any:
    """Return the table of the packed models' force kernels."""
    kinds = [kind.pairs or kind for kind in packed.kinds]
    return function_table([tile_kernel(FORCE_LOOP, kind, kind.force, dtype) for kind in kinds])
