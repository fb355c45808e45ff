"""The force field in compiled code: the phases of a step without the step.

    forces   elements -> slots -> sums at nodes
    push     the same, and the tangents of the slots -> sums at nodes

and both with pairs that change (`adjsim/pairs/near.py`), whose sums are slots.

They call the functions of the time loops, in the same order: the bits of a force are those that a
rollout has. Adjoint: `adjoint/engine/field_loops.py`. Tests: `tests/test_field.py`.
"""

import numpy as np

from adjsim.engine.tangents import TangentWork, part_tangents
from adjsim.engine.timeloop import part_forces
from adjsim.jit.backend import device_fn
from adjsim.pairs.near import near_elements, near_tiles, near_vector, sum_pairs
from adjsim.tiles.loop_arrays import Work
from adjsim.tiles.node_sum import node_sum


def forces_loop(calls, elements, nodes, parts, work, step, state, out):
    """Write the sums of the forces at all nodes."""
    for i_part in range(work.scratch.shape[0]):
        part_forces(i_part, calls.forces, elements, parts, step, state, work)
    add_up(nodes, work.slots, out)


def forces_and_pairs_loop(calls, pairs, nodes, parts, work, step, state, out):
    """Write the sums of the forces at all nodes, including the forces of pairs."""
    pair_work = Work(pairs.slots, work.scratch)
    for part_index in range(work.scratch.shape[0]):
        part_forces(part_index, calls.forces, pairs, parts, step, state, work)
        part_forces(
            part_index, calls.forces, near_elements(pairs), near_tiles(pairs), step, state,
            pair_work,
        )  # fmt: skip
    for part_index in range(work.scratch.shape[0]):
        sum_pairs(part_index, pairs, pairs.slots, work.slots)
    add_up(nodes, work.slots, out)


def push_loop(calls, elements, nodes, tan, parts, work, step, state, tan_state, out):
    """Write the sums of the tangents of the forces at all nodes."""
    for i_part in range(work.scratch.shape[0]):
        part_tangents(i_part, calls, elements, tan, parts, step, state, tan_state, work)
    add_up(nodes, work.tan_slots, out)


def push_pairs_loop(calls, pairs, nodes, tan, parts, work, step, state, tan_state, out):
    """Write the sums of the tangents of the forces at all nodes, including pairs."""
    pair_work = TangentWork(pairs.slots, pairs.more_slots, work.scratch)
    for part_index in range(work.scratch.shape[0]):
        part_tangents(part_index, calls, pairs, tan, parts, step, state, tan_state, work)
        part_tangents(
            part_index, calls, near_elements(pairs), near_vector(pairs), near_tiles(pairs), step,
            state, tan_state, pair_work,
        )  # fmt: skip
    for part_index in range(work.scratch.shape[0]):
        sum_pairs(part_index, pairs, pairs.more_slots, work.tan_slots)
    add_up(nodes, work.tan_slots, out)


def push_pairs_apart_loop(calls, pairs, elements, step, state, tan_state, scratch):
    """Write the tangents of the forces of all pairs, in their slots; `elements` are the pairs."""
    work = TangentWork(pairs.slots, pairs.more_slots, scratch)
    for i_part in range(scratch.shape[0]):
        part_tangents(
            i_part, calls, elements, near_vector(pairs), near_tiles(pairs), step, state, tan_state,
            work,
        )  # fmt: skip


@device_fn
def add_up(nodes, slots, out):
    """Write the sums of slots at all nodes."""
    for i in range(out.shape[0]):
        n = np.uint64(i)
        out[n, 0], out[n, 1], out[n, 2] = node_sum(n, nodes.ptr, nodes.slots_of, slots)
