"""The force field in compiled code: the phases of a step without the step.

    forces   elements -> slots -> sums at nodes
    push     the same, and the tangents of the slots -> sums at nodes

They call the functions of the time loops, in the same order: the bits of a force are those that a
rollout has. Adjoint: `adjoint/engine/field_loops.py`. Tests: `tests/test_field.py`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from adjsim.engine.jit.backend import cpu_kernel
from adjsim.engine.node_sum import node_sum
from adjsim.engine.tangents import part_tangents
from adjsim.engine.timeloop import part_forces


def forces_loop(calls, elements, nodes, parts, work, step, state, out):
    """Write the sums of the forces at all nodes."""
    for part in range(work.scratch.shape[0]):
        part_forces(part, calls.forces, elements, parts, step, state, work)
    for i in range(out.shape[0]):
        n = np.uint64(i)
        out[n, 0], out[n, 1], out[n, 2] = node_sum(n, nodes.ptr, nodes.slots_of, work.slots)


def push_loop(calls, elements, nodes, tan, parts, work, step, state, tan_state, out):
    """Write the sums of the tangents of the forces at all nodes."""
    for part in range(work.scratch.shape[0]):
        part_tangents(part, calls, elements, tan, parts, step, state, tan_state, work)
    for i in range(out.shape[0]):
        n = np.uint64(i)
        out[n, 0], out[n, 1], out[n, 2] = node_sum(n, nodes.ptr, nodes.slots_of, work.tan_slots)


@cache
def field_kernel(loop: Callable) -> Callable:
    """Return a compiled loop of this file."""
    return cpu_kernel(loop)
