r"""The reverse sweep and the tangent on a GPU: twins of `adjsim/cuda_timeloop.py`.

Same lanes, same node functions as on the CPU; one cooperative launch per segment of steps.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from adjoint.assembly import JVP_LOOP, REST_JVP_LOOP, REST_VJP_LOOP, VJP_LOOP
from adjoint.element import TwinKind
from adjoint.rigid.points import add_body_frame, add_points, tangent_body, undo_body_step
from adjoint.timeloop import (
    add_all_slots,
    add_frame,
    add_inverse_mass,
    tangent_node,
    undo_euler_step,
)
from adjsim.assembly import FORCE_LOOP, Loop
from adjsim.backend import (
    cuda_module,
    device_fn,
    is_hashed,
    launch_cooperative,
    specialise,
    to_host,
)
from adjsim.cuda_timeloop import make_chain, make_lane, named, no_lanes
from adjsim.rigid.points import step_body
from adjsim.timeloop import step_node


# Bound by `specialise`.
CHAIN = FORCE_CHAIN = REST_CHAIN = no_lanes
CUDA: Any = None


def reverse_on_grid(args):
    """Undo n steps, the last one first; `rows` = (k0, with_forces, rows of n states)."""
    packed, loads, bodies, slots, frames, adj, numbers, rows, fields = args
    table, nodes, own = packed[0], packed[1], (packed[2], packed[3], packed[4])
    X, V, P = fields
    f_slots, adj_x_slots, adj_v_slots = slots
    frame_of, adj_f, adj_consts = frames[0], adj[2], adj[7]
    out = (adj_x_slots, adj_v_slots, adj[5], adj[6])
    start, stride = CUDA.grid(1), CUDA.gridsize(1)
    grid = CUDA.cg.this_grid()
    dt, k0, with_forces, n_steps = numbers[0], rows[0], rows[1] > 0, rows.size - 2
    for back in range(n_steps + 1):
        k = n_steps - back  # the step that this pass undoes; the first pass undoes none
        row = rows[k + 2] if back > 0 else 0
        if back > 0:
            begin_on_grid(
                start, stride, dt, frame_of[k], with_forces, loads, bodies, f_slots, frames,
                P[row], adj,
            )  # fmt: skip
            grid.sync()
            read = (X[row], V[row], adj_f)
            CHAIN(start, stride, k0 + k, table, nodes, read, own, out)
            REST_CHAIN(start, stride, k0 + k, table, nodes, read, own, (adj_consts,))
        if with_forces and k > 0:  # of the step that is undone next: NVVM inlines each call
            before = rows[k + 1]
            read = (X[before], V[before])
            FORCE_CHAIN(start, stride, k0 + k - 1, table, nodes, read, own, (f_slots,))
        grid.sync()
        if back > 0:
            end_on_grid(start, stride, loads, bodies, adj_x_slots, adj_v_slots, P[row], adj)


@device_fn
def begin_on_grid(
    start, stride, dt, frame, with_forces, loads, bodies, slots, frames, p, adj
):  # fmt: skip
    """Go from the adjoint of the new state to adj_f, on this thread's nodes and bodies."""
    w, ptr, slots_of = loads[0:3]
    _, adj_frames_x, adj_frames_v, adj_frames_p = frames
    adj_x, adj_v, adj_f, adj_gravity, adj_w = adj[:5]
    adj_p, adj_bodies, adj_arms = adj[8:]
    for i in range(start, w.size, stride):
        n = np.uint64(i)
        if frame >= 0:
            add_frame(n, adj_frames_x[frame], adj_frames_v[frame], adj_x, adj_v)
        undo_euler_step(n, dt, w, adj_x, adj_v, adj_f, adj_gravity)
        if with_forces:
            add_inverse_mass(n, dt, ptr, slots_of, slots, adj_v, adj_w)
    for b in range(start, bodies[0].size - 1, stride):
        if frame >= 0:
            add_body_frame(b, adj_frames_p[frame], adj_p)
        own = (adj_p, adj_f, adj_gravity, adj_bodies, adj_arms)
        undo_body_step(b, w.size + b, dt, ptr, slots_of, slots, bodies, p, own)


@device_fn
def end_on_grid(start, stride, loads, bodies, adj_x_slots, adj_v_slots, p, adj):
    """Add up what the elements wrote, for this thread's nodes and bodies."""
    w, ptr, slots_of, v_ptr, v_slots_of = loads
    for i in range(start, w.size, stride):
        n = np.uint64(i)
        add_all_slots(n, ptr, slots_of, v_ptr, v_slots_of, adj_x_slots, adj_v_slots, adj[0], adj[1])
    for b in range(start, bodies[0].size - 1, stride):
        add_points(b, loads[1:5], adj_x_slots, adj_v_slots, bodies, p, adj[8], adj[10])


def tangent_on_grid(args):
    """Run state and tangent together; `rows` = (k0, rows...), `finite` as in `advance_on_grid`."""
    packed, tan_packed, loads, tan_loads, bodies, slots, numbers, rows, states, finite = args
    table, nodes, own = packed[0], packed[1], (packed[2], packed[3], packed[4])
    with_tangents, with_rest = (*own, tan_packed[0], tan_packed[1]), (*own, tan_packed[2])
    w, gravity, ptr, slots_of, world_of = loads
    tan_w, tan_gravity, tan_bodies, tan_arms = tan_loads
    f_slots, tan_slots = slots
    X, V, P, TX, TV, TP = states
    start, stride = CUDA.grid(1), CUDA.gridsize(1)
    grid = CUDA.cg.this_grid()
    dt, k0 = numbers[0], rows[0]
    for k in range(rows.size - 2):
        a, b = rows[k + 1], rows[k + 2]
        read, both = (X[a], V[a]), (X[a], V[a], TX[a], TV[a])
        FORCE_CHAIN(start, stride, k0 + k, table, nodes, read, own, (f_slots,))
        CHAIN(start, stride, k0 + k, table, nodes, both, with_tangents, (tan_slots,))
        REST_CHAIN(start, stride, k0 + k, table, nodes, read, with_rest, (tan_slots,))
        grid.sync()
        for i in range(start, w.size, stride):
            n, world = np.uint64(i), world_of[i]
            g, tan_g = gravity[world], tan_gravity[world]
            bad = step_node(n, dt, w, g, ptr, slots_of, f_slots, X[a], V[a], X[b], V[b])
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
            tangent_node(
                n, dt, w, tan_w, tan_g, ptr, slots_of, f_slots, tan_slots,
                TX[a], TV[a], TX[b], TV[b],
            )  # fmt: skip
        for i in range(start, bodies[0].size - 1, stride):
            world = world_of[w.size + i]
            g, tan_g = gravity[world], tan_gravity[world]
            bad = step_body(i, dt, g, ptr, slots_of, f_slots, bodies, P[a], P[b], X[b], V[b])
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
            tangent_body(
                i, dt, tan_g, ptr, slots_of, f_slots, tan_slots, bodies, tan_bodies, tan_arms,
                P[a], P[b], TP[a], TP[b], TX[b], TV[b],
            )  # fmt: skip
        grid.sync()


@cache
def grid_kernel(template: Callable, twins: tuple[TwinKind, ...], *, with_rest: bool) -> Callable:
    """Return `reverse_on_grid` or `tangent_on_grid` for a model with these kinds of force."""
    loop, rest_loop = LOOPS[template.__name__]

    def chain(loop: Loop, twins: tuple[TwinKind, ...]) -> Callable:
        return make_chain(
            tuple(make_lane(loop, twin.kind, getattr(twin, loop.name)) for twin in twins)
        )

    forces = tuple(make_lane(FORCE_LOOP, twin.kind, twin.kind.force) for twin in twins)
    chains = {
        "CHAIN": chain(loop, twins),
        "FORCE_CHAIN": make_chain(forces),
        "REST_CHAIN": chain(rest_loop, twins if with_rest else ()),
    }
    rest = "_with_rest" if with_rest else ""
    name = named(f"{template.__name__}{rest}", [twin.kind for twin in twins])
    return specialise(template, name, CUDA=cuda_module(), **chains)


def are_hashed(twins: tuple[TwinKind, ...]) -> bool:
    """Whether the sources of all element functions are part of the key of the cache."""
    functions: list[Callable | None] = []
    for twin in twins:
        functions += twin.kind.force, twin.jvp, twin.vjp, twin.jvp_consts, twin.vjp_consts
    return all(is_hashed(fn) for fn in functions if fn is not None)


LOOPS = {"reverse_on_grid": (VJP_LOOP, REST_VJP_LOOP), "tangent_on_grid": (JVP_LOOP, REST_JVP_LOOP)}


def undo_on_gpu(twins: tuple[TwinKind, ...], args: tuple) -> None:
    """Run `reverse_on_grid`; the arrays of `args` live on the device and are updated."""
    kernel = grid_kernel(reverse_on_grid, twins, with_rest=args[5][7].size > 0)
    launch_cooperative(kernel, args[3][0].size // 3, args, cached=are_hashed(twins))


def advance_tangent_on_gpu(twins: tuple[TwinKind, ...], args: tuple) -> np.ndarray:
    """Run `tangent_on_grid`; return `finite`, the last of `args`: finite steps of each world."""
    kernel = grid_kernel(tangent_on_grid, twins, with_rest=args[1][-1].size > 0)
    width, cached = args[5][0].size // 3, are_hashed(twins)
    launch_cooperative(kernel, width, args, cached=cached)
    return to_host(args[-1])
