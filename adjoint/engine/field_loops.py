"""Adjoint of `adjsim/engine/field_loops.py`: what a cotangent of the forces gives.

    pull     adj_f at nodes -> elements -> slots of adj_x and adj_v -> sums at nodes

It calls the functions of the reverse sweep. Tests: `tests/test_field.py`.
"""

import numpy as np

from adjoint.engine.timeloop import ReverseWork, add_all_slots, part_adjoints
from adjoint.rigid.points import add_points
from adjsim.jit.backend import device_fn
from adjsim.pairs.near import near_elements, near_tiles, near_vector, sum_pairs, sum_params


def pull_loop(calls, elements, nodes, bodies, parts, work, step, state, adj):
    """Add what `work.adj_f` gives to positions, velocities and rows."""
    for i_part in range(work.scratch.shape[0]):
        part_adjoints(i_part, calls, elements, parts, step, state, work, adj)
    add_all_rows(nodes, bodies, work, state, adj)


def pull_pairs_loop(calls, pairs, nodes, bodies, parts, work, step, state, adj):
    """Add what `work.adj_f` gives to positions, velocities and rows, through pairs too."""
    pair_work = ReverseWork(pairs.slots, pairs.more_slots, pairs.v_slots, work.adj_f, work.scratch)
    for part_index in range(work.scratch.shape[0]):
        part_adjoints(part_index, calls, pairs, parts, step, state, work, adj)
        part_adjoints(
            part_index, calls, near_elements(pairs), near_tiles(pairs), step, state, pair_work,
            near_vector(pairs),
        )  # fmt: skip
    for part_index in range(work.scratch.shape[0]):
        sum_pairs(part_index, pairs, pairs.more_slots, work.adj_x_slots)
        sum_pairs(part_index, pairs, pairs.v_slots, work.adj_v_slots)
        sum_params(part_index, pairs, adj.params)
    add_all_rows(nodes, bodies, work, state, adj)


@device_fn
def add_all_rows(nodes, bodies, work, state, adj):
    """Add up what the elements wrote for all nodes and bodies."""
    for i in range(adj.x.shape[0]):
        add_all_slots(np.uint64(i), nodes, work, adj)
    for b in range(adj.p.shape[0]):
        add_points(b, nodes, bodies, work, state.p, adj)
