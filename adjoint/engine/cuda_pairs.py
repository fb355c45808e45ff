"""The adjoint of `adjsim/engine/cuda_pairs.py`: what pairs add to the gradient of parameters."""

import numpy as np

from adjsim.jit.backend import device_fn, lit
from adjsim.pairs.pair_force import N_PARAMS, PAIR
from adjsim.tiles.assembly import TILE


N, ROW_OF_TILE, ROWS_OF_TILE = np.int64(N_PARAMS), np.int64(3 * TILE), np.int64(PAIR.n_nodes)


@device_fn
def sum_pair_params(team, pairs, adj_params):
    """Add what the pairs wrote for parameters in a step to the row that comes first in each.

    A thread takes one parameter of a row, and its pairs in their order.
    """
    flat, tile = pairs.more_params, np.int64(TILE)
    for j in range(team.start, pairs.rows.size * N, team.stride):
        i, column = j // N, j % N
        total = lit(0, flat[0])
        for k in range(pairs.sum_ptr[i], pairs.sum_ptr[i + 1]):
            slot = pairs.sum_slots[k]
            row = slot // ROW_OF_TILE
            if pairs.marks[k] != 0 and row % ROWS_OF_TILE == 0:
                o = (row // ROWS_OF_TILE * N + column) * tile + slot % tile
                total += flat[o]
                flat[o] = lit(0, total)
        adj_params[pairs.param_places[i] + column * tile] += total
