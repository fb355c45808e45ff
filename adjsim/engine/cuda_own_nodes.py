r"""Patches that advance their own nodes on a GPU: the grid waits once in a step, not twice.

    elements of a patch -> a sum for each of its nodes in global memory
    the grid waits
    each patch adds up the sums of all patches at each of its nodes, and advances it

A node that several patches share is advanced by each of them, from the same numbers in the same
order: all copies have the same bits. Positions and velocities stay in shared memory; the first
patch of a node stores its states. Blocks that are through with a step write the sums of the next
one while others still read: these have two places in turn.

It needs a block for each patch, all at once, and is for nodes alone (`owns_nodes`). A barrier of
the grid takes 1.3 to 1.7 us. In return more is read: the sums of a node by each of its patches, 110
bytes a tetrahedron, which is 0.7 us for 33 000 (two blocks on each multiprocessor of an H200).

Tests: `tests/cuda`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from adjsim.engine.cuda_patches import V0, X0, ZERO, load_nodes, load_rest, sum_nodes, vector_at
from adjsim.engine.packing import PackedModels
from adjsim.engine.patches import NODE_LO
from adjsim.engine.timeloop import node_step
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.devices import cuda_module
from adjsim.rigid.rows import read_3
from adjsim.tiles.node_sum import node_sum


U1, U2, U3 = np.uint64(1), np.uint64(2), np.uint64(3)
MOST_BLOCKS = 2  # on one multiprocessor: with more, reading takes as long as a barrier
FORCES: Any = None  # bound by `team_kernel`


def owns_nodes(packed: PackedModels) -> bool:
    """Whether patches may advance their nodes: these are all rows of X, and no pairs change.

    There are no more patches than `MOST_BLOCKS` on each multiprocessor.
    """
    patches = packed.patches
    if patches is None or packed.n_bodies or any(kind.pairs for kind in packed.kinds):
        return False
    device = cuda_module().get_current_device()
    most = MOST_BLOCKS * getattr(device, "MULTIPROCESSOR_COUNT", 0)  # the simulator has one block
    have_sums = np.diff(packed.node_ptr.astype(np.int64)) > 0
    return len(patches.table) - 1 <= most and bool(have_sums.all())


@device_fn
def advance_nodes(team, k, args, sums, shared):
    """Advance the nodes of this block's patch by step k; store what is first its own."""
    thread, stride, patch, _ = team.threads
    patches, nodes = args.patches, args.model.nodes
    x, v = args.states.x[args.rows[k + 2]], args.states.v[args.rows[k + 2]]
    lo, hi = patches.table[patch, NODE_LO], patches.table[patch + 1, NODE_LO]
    j = lo + thread
    while j < hi:
        n, o = np.uint64(patches.nodes[np.uint64(j)]), U3 * np.uint64(j - lo)
        world = nodes.world_of[n]
        f = node_sum(n, nodes.ptr, nodes.slots_of, sums)
        xn, vn = node_step(
            n, args.rows[0] + k, vector_at(shared, X0, j - lo), vector_at(shared, V0, j - lo), f,
            nodes, read_3(nodes.gravity, world, 0), args.numbers[0], args.model.elements.series,
        )  # fmt: skip
        write_vector(shared, X0 + o, xn)
        write_vector(shared, V0 + o, vn)
        if nodes.slots_of[nodes.ptr[n]] == j:
            x[n, 0], x[n, 1], x[n, 2] = xn
            v[n, 0], v[n, 1], v[n, 2] = vn
            total = xn[0] + xn[1] + xn[2]
            if total - total != lit(0, total):
                team.lower(args.finite, world, k)
        j += stride


@device_fn
def write_vector(shared, o, vector):
    """Write a vector to shared memory."""
    shared[o], shared[o + U1], shared[o + U2] = vector


def own_nodes_phase(turn, team, args):
    """Advance by the step before this turn's, and write the sums of forces for this one."""
    thread, stride, patch, _ = team.threads
    patches, shared, n_steps = args.patches, team.memory, args.rows.size - 2
    if patch < patches.table.shape[0] - 1:
        if turn == 0:
            load_rest(thread, stride, patch, patches, shared)
            load_nodes(thread, stride, patch, patches, args.states.x[args.rows[1]], shared, X0)
            load_nodes(thread, stride, patch, patches, args.states.v[args.rows[1]], shared, V0)
        else:
            advance_nodes(team, turn - 1, args, args.slots[(turn - 1) % 2], shared)
        team.wait()
        if turn < n_steps:
            sums, elements = args.slots[turn % 2], args.model.elements
            FORCES(team.threads, team.wait, args.rows[0] + turn, patches, elements, shared, sums)
    return turn < n_steps


def make_forces_of_own_patch(chain: Callable) -> Callable:
    """Return the function that writes the sums of forces of a block's patch, which is loaded."""

    @device_fn
    def forces(team, wait, step, patches, elements, shared, slots):
        thread, stride, patch, _ = team
        chain(
            thread, stride, patch, step, patches, elements, shared, (X0, V0), (ZERO, ZERO),
            (elements.consts, elements.params, elements.series), (shared,),
        )  # fmt: skip
        wait()
        sum_nodes(thread, stride, patch, patches, shared, slots)

    return forces
