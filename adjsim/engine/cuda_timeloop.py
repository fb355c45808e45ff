r"""The time loop on a GPU: one thread per element, then one per node, in one kernel.

A tile is half a warp: lane q of tile t is element 16 t + q, so reads of rows and writes of
slots are coalesced. The whole rollout is one cooperative launch; the grid synchronises
between elements and nodes, so no step costs a launch. The CPU runs the same element
functions, readers and `step_node`.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.assembly import (
    FORCE_LOOP,
)
from adjsim.engine.cuda_patches import (
    END,
    ZERO,
    V,
    X,
    load_state,
    make_chain,
    make_lanes,
    no_lanes,
    sum_nodes,
)
from adjsim.engine.jit.backend import (
    Device,
    array_module,
    cuda_module,
    is_hashed,
    launch_cooperative,
    specialise,
    to_host,
)
from adjsim.engine.loop_arrays import ModelArrays, States
from adjsim.engine.packing import PackedModels
from adjsim.engine.patches import Patches
from adjsim.engine.timeloop import state_at, step_node
from adjsim.forces.element import ElementKind
from adjsim.rigid.points import step_body


# Bound by `specialise`.
CHAIN = no_lanes
CUDA: Any = None


class GridAdvance(NamedTuple):
    """What `advance_on_grid` is given.

    `numbers` has dt; `rows` k0 and then the rows of n + 1 states; `finite` n for each world, and
    ends as how many of its steps stayed finite.
    """

    model: ModelArrays
    patches: Patches
    slots: Any
    numbers: Any
    rows: Any
    states: States
    finite: Any


def advance_on_grid(args):
    """Run n steps."""
    elements, nodes, bodies = args.model.elements, args.model.nodes, args.model.bodies
    own = (elements.consts, elements.params, elements.series)
    slots, rows, finite = args.slots, args.rows, args.finite
    start, stride = CUDA.grid(1), CUDA.gridsize(1)
    grid = CUDA.cg.this_grid()
    dt, k0 = args.numbers[0], rows[0]
    patches, thread, n_threads = args.patches, CUDA.threadIdx.x, CUDA.blockDim.x
    shared = CUDA.shared.array(0, args.numbers.dtype)
    for k in range(rows.size - 2):
        before, after = state_at(args.states, rows[k + 1]), state_at(args.states, rows[k + 2])
        for patch in range(CUDA.blockIdx.x, patches.table.shape[0] - 1, CUDA.gridDim.x):
            at = (thread, n_threads, patch)
            load_state(*at, patches, before, shared, (X, V))
            CUDA.syncthreads()
            CHAIN(*at, k0 + k, patches, elements, shared, (X, V), (ZERO, ZERO), own, (shared,))
            CUDA.syncthreads()
            sum_nodes(*at, patches, shared, slots)
        grid.sync()
        for n in range(start, nodes.w.size, stride):
            world = nodes.world_of[n]
            bad = step_node(np.uint64(n), dt, nodes.gravity[world], nodes, slots, before, after)
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
        for body in range(start, bodies.point_ptr.size - 1, stride):
            world = nodes.world_of[nodes.w.size + body]
            bad = step_body(body, dt, nodes.gravity[world], nodes, bodies, slots, before, after)
            if bad > 0:
                CUDA.atomic.min(finite, world, k)
        grid.sync()


@cache
def advance_grid_kernel(kinds: tuple[ElementKind, ...]) -> Callable:
    """Return the forward kernel of a model with these kinds of force."""
    chain = make_chain(tuple(make_lanes(FORCE_LOOP, kind, kind.force) for kind in kinds))
    name = named("advance_on_grid", kinds)
    return specialise(advance_on_grid, name, CHAIN=chain, CUDA=cuda_module())


def named(name: str, kinds: Sequence[ElementKind]) -> str:
    """Return the name of a kernel with these kinds of force: compiled code is found by it."""
    names = " ".join(kind.name for kind in kinds)
    return f"{name}_{hashlib.sha256(names.encode()).hexdigest()[:16]}"


def advance_on_gpu(
    packed: PackedModels, dt: float, slots: Any, k0: int, rows: np.ndarray, fields: tuple
) -> np.ndarray:
    """Advance on the GPU; return how many of the steps stayed finite, of each world.

    `rows` as in `adjsim.engine.loop_arrays.Steps`; the arrays live on the device.
    """
    finite = array_module(Device.CUDA).full(packed.n_worlds, len(rows) - 1, np.int64)
    args = GridAdvance(
        packed.arrays,
        packed.patches,
        slots,
        np.array([dt], slots.dtype),
        np.concatenate([[k0], rows]).astype(np.int64),
        States(*fields),
        finite,
    )
    width = max(packed.n_slots // 3, len(packed.w), packed.n_bodies)
    cached = all(is_hashed(kind.force) for kind in packed.kinds)
    launch_cooperative(
        advance_grid_kernel(packed.kinds),
        width,
        args,
        cached=cached,
        shared=END[0] * slots.dtype.itemsize,
    )
    return to_host(finite)
