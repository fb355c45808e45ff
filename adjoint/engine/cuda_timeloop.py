r"""The reverse sweep and the tangent on a GPU: twins of `adjsim/engine/cuda_timeloop.py`.

Same lanes, same node functions as on the CPU; one cooperative launch per segment of steps.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjoint.engine.assembly import JVP_LOOP, REST_JVP_LOOP, REST_VJP_LOOP, VJP_LOOP
from adjoint.engine.packing import PackedVector
from adjoint.engine.timeloop import (
    Frames,
    ReverseWork,
    TangentWork,
    add_all_slots,
    add_frame,
    add_inverse_mass,
    tangent_node,
    undo_euler_step,
)
from adjoint.forces.element import TwinKind
from adjoint.rigid.points import add_body_frame, add_points, tangent_body, undo_body_step
from adjsim.engine.assembly import FORCE_LOOP, Loop
from adjsim.engine.cuda_patches import (
    END,
    SLOTS2,
    V2,
    X2,
    ZERO,
    V,
    X,
    load_nodes,
    load_state,
    make_chain,
    make_lanes,
    no_lanes,
    sum_moving,
    sum_nodes,
)
from adjsim.engine.cuda_timeloop import named
from adjsim.engine.jit.backend import (
    cuda_module,
    device_fn,
    is_hashed,
    launch_cooperative,
    specialise,
    to_host,
)
from adjsim.engine.loop_arrays import ModelArrays, States
from adjsim.engine.patches import Patches
from adjsim.engine.timeloop import state_at, step_node
from adjsim.rigid.points import step_body


# Bound by `specialise`.
CHAIN = FORCE_CHAIN = REST_CHAIN = no_lanes
CUDA: Any = None


class GridReverse(NamedTuple):
    """What `reverse_on_grid` is given; `rows` = (k0, with_forces, rows of n states)."""

    model: ModelArrays
    patches: Patches
    work: ReverseWork
    frames: Frames
    adj: PackedVector
    numbers: Any
    rows: Any
    states: States


class GridTangent(NamedTuple):
    """What `tangent_on_grid` is given; `rows` and `finite` as in `GridAdvance`."""

    model: ModelArrays
    patches: Patches
    tan: PackedVector
    work: TangentWork
    numbers: Any
    rows: Any
    states: States
    tan_states: States
    finite: Any


def reverse_on_grid(args):
    """Undo n steps, the last one first."""
    elements, work, adj, rows = args.model.elements, args.work, args.adj, args.rows
    own = (elements.consts, elements.params, elements.series)
    start, stride = CUDA.grid(1), CUDA.gridsize(1)
    grid = CUDA.cg.this_grid()
    dt, k0, with_forces, n_steps = args.numbers[0], rows[0], rows[1] > 0, rows.size - 2
    patches, thread, n_threads = args.patches, CUDA.threadIdx.x, CUDA.blockDim.x
    shared = CUDA.shared.array(0, args.numbers.dtype)
    out = (shared, shared, adj.params, adj.series)
    for back in range(n_steps + 1):
        k = n_steps - back  # the step that this pass undoes; the first pass undoes none
        undoes, replays = back > 0, with_forces and k > 0  # the forces of the step undone next
        state = state_at(args.states, rows[k + 2] if undoes else 0)
        before = state_at(args.states, rows[k + 1] if replays else 0)
        if undoes:
            begin_on_grid(start, stride, dt, args.frames.of_step[k], with_forces, args, state.p)
            grid.sync()
        for patch in range(CUDA.blockIdx.x, patches.table.shape[0] - 1, CUDA.gridDim.x):
            at = (thread, n_threads, patch)
            if undoes:
                load_state(*at, patches, state, shared, (X, V))
                load_nodes(*at, patches, work.adj_f, shared, X2)
                CUDA.syncthreads()
                CHAIN(*at, k0 + k, patches, elements, shared, (X, V, X2), (ZERO, SLOTS2), own, out)
                REST_CHAIN(
                    *at,
                    k0 + k,
                    patches,
                    elements,
                    shared,
                    (X, V, X2),
                    (ZERO, ZERO),
                    own,
                    (adj.consts,),
                )
                CUDA.syncthreads()
                sum_nodes(*at, patches, shared, work.adj_x_slots)
                sum_moving(*at, patches, shared[SLOTS2:], work.adj_v_slots)
            if replays:
                load_state(*at, patches, before, shared, (X, V))
                CUDA.syncthreads()
                FORCE_CHAIN(
                    *at, k0 + k - 1, patches, elements, shared, (X, V), (ZERO, ZERO), own, (shared,)
                )
                CUDA.syncthreads()
                sum_nodes(*at, patches, shared, work.slots)
        grid.sync()
        if undoes:
            end_on_grid(start, stride, args, state.p)


@device_fn
def begin_on_grid(start, stride, dt, frame, with_forces, args, p):
    """Go from the adjoint of the new state to adj_f, on this thread's nodes and bodies."""
    nodes, bodies, work, adj = args.model.nodes, args.model.bodies, args.work, args.adj
    adj_frame = state_at(args.frames, max(frame, 0))
    for i in range(start, nodes.w.size, stride):
        n = np.uint64(i)
        if frame >= 0:
            add_frame(n, adj_frame, adj)
        undo_euler_step(n, dt, nodes.w, adj, work.adj_f)
        if with_forces:
            add_inverse_mass(n, dt, nodes, work.slots, adj)
    for b in range(start, bodies.point_ptr.size - 1, stride):
        if frame >= 0:
            add_body_frame(b, adj_frame.p, adj.p)
        undo_body_step(b, dt, nodes, bodies, work, p, adj)


@device_fn
def end_on_grid(start, stride, args, p):
    """Add up what the elements wrote, for this thread's nodes and bodies."""
    nodes, bodies, work, adj = args.model.nodes, args.model.bodies, args.work, args.adj
    for i in range(start, nodes.w.size, stride):
        add_all_slots(np.uint64(i), nodes, work, adj)
    for b in range(start, bodies.point_ptr.size - 1, stride):
        add_points(b, nodes, bodies, work, p, adj)


def tangent_on_grid(args):
    """Run state and tangent together."""
    elements, nodes, bodies = args.model.elements, args.model.nodes, args.model.bodies
    tan, work, rows, finite = args.tan, args.work, args.rows, args.finite
    own = (elements.consts, elements.params, elements.series)
    with_tangents, with_rest = (*own, tan.params, tan.series), (*own, tan.consts)
    start, stride = CUDA.grid(1), CUDA.gridsize(1)
    grid = CUDA.cg.this_grid()
    dt, k0 = args.numbers[0], rows[0]
    patches, thread, n_threads = args.patches, CUDA.threadIdx.x, CUDA.blockDim.x
    shared = CUDA.shared.array(0, args.numbers.dtype)
    for k in range(rows.size - 2):
        a, b = rows[k + 1], rows[k + 2]
        before, after = state_at(args.states, a), state_at(args.states, b)
        tan_before, tan_after = state_at(args.tan_states, a), state_at(args.tan_states, b)
        for patch in range(CUDA.blockIdx.x, patches.table.shape[0] - 1, CUDA.gridDim.x):
            at = (thread, n_threads, patch)
            load_state(*at, patches, before, shared, (X, V))
            load_state(*at, patches, tan_before, shared, (X2, V2))
            CUDA.syncthreads()
            own_at = (thread, n_threads, patch, k0 + k, patches, elements, shared)
            FORCE_CHAIN(*own_at, (X, V), (ZERO, ZERO), own, (shared,))
            CHAIN(*own_at, (X, V, X2, V2), (SLOTS2, ZERO), with_tangents, (shared,))
            REST_CHAIN(*own_at, (X, V), (SLOTS2, ZERO), with_rest, (shared,))
            CUDA.syncthreads()
            sum_nodes(thread, n_threads, patch, patches, shared, work.slots)
            sum_nodes(thread, n_threads, patch, patches, shared[SLOTS2:], work.tan_slots)
        grid.sync()
        for i in range(start, nodes.w.size, stride):
            n, world = np.uint64(i), nodes.world_of[i]
            bad = step_node(n, dt, nodes.gravity[world], nodes, work.slots, before, after)
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
            tangent_node(n, dt, tan.gravity[world], nodes, tan.w, work, tan_before, tan_after)
        for i in range(start, bodies.point_ptr.size - 1, stride):
            world = nodes.world_of[nodes.w.size + i]
            g = nodes.gravity[world]
            bad = step_body(i, dt, g, nodes, bodies, work.slots, before, after)
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
            tangent_body(
                i, dt, tan.gravity[world], nodes, bodies, tan, work,
                before, after, tan_before, tan_after,
            )  # fmt: skip
        grid.sync()


@cache
def grid_kernel(template: Callable, twins: tuple[TwinKind, ...], *, with_rest: bool) -> Callable:
    """Return `reverse_on_grid` or `tangent_on_grid` for a model with these kinds of force."""
    loop, rest_loop = LOOPS[template.__name__]

    def chain(loop: Loop, twins: tuple[TwinKind, ...]) -> Callable:
        return make_chain(
            tuple(make_lanes(loop, twin.kind, getattr(twin, loop.name)) for twin in twins)
        )

    forces = tuple(make_lanes(FORCE_LOOP, twin.kind, twin.kind.force) for twin in twins)
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


def undo_on_gpu(twins: tuple[TwinKind, ...], args: GridReverse) -> None:
    """Run `reverse_on_grid`; the arrays of `args` live on the device and are updated."""
    kernel = grid_kernel(reverse_on_grid, twins, with_rest=args.adj.consts.size > 0)
    width = args.work.slots.size // 3
    moves = any(twin.kind.uses_velocity for twin in twins)
    shared = END[moves] * args.numbers.dtype.itemsize
    launch_cooperative(kernel, width, args, cached=are_hashed(twins), shared=shared)


def advance_tangent_on_gpu(twins: tuple[TwinKind, ...], args: GridTangent) -> np.ndarray:
    """Run `tangent_on_grid`; return how many of the steps stayed finite, of each world."""
    kernel = grid_kernel(tangent_on_grid, twins, with_rest=args.tan.consts.size > 0)
    width = args.work.slots.size // 3
    shared = END[1] * args.numbers.dtype.itemsize
    launch_cooperative(kernel, width, args, cached=are_hashed(twins), shared=shared)
    return to_host(args.finite)
