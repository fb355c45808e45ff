"""Adjoint of `adjsim/engine/field_loops.py`: what a cotangent of the forces gives.

    pull     adj_f at nodes -> elements -> slots of adj_x and adj_v -> sums at nodes

It calls the functions of the reverse sweep. Tests: `tests/test_field.py`.
"""

import numpy as np

from adjoint.engine.timeloop import add_all_slots, part_adjoints


def pull_loop(calls, elements, nodes, parts, work, step, state, adj):
    """Add what `work.adj_f` gives to positions, velocities and rows."""
    for part in range(work.scratch.shape[0]):
        part_adjoints(part, calls, elements, parts, step, state, work, adj)
    for i in range(adj.x.shape[0]):
        add_all_slots(np.uint64(i), nodes, work, adj)
