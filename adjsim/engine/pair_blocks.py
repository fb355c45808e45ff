r"""The tangent matrix of pairs that change: a block of 12 x 12 for each pair that touches.

The nodes of each pair are taken as its own, so that one product gives a column of all blocks. A
pair that does not touch has no block: which entries there are depends on the state alone, not on
which pairs were found.

Tests: `tests/engine/test_pair_blocks.py`.
"""

from typing import Any

import numpy as np

from adjsim.engine.field_loops import push_pairs_apart_loop
from adjsim.jit.backend import loop_kernel
from adjsim.pairs.near import NearPairs
from adjsim.tiles.assembly import NODES, TILE
from adjsim.tiles.loop_arrays import Elements, States


def pair_blocks(
    calls: Any,
    pairs: NearPairs,
    state: States,
    along: tuple[float, float],
    step: int,
    scratch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of the pairs that touch, (n, 4), and their blocks, (n, 4, 3, 4, 3).

    block[k, a, i, b, j] is the derivative of component i of the force on node a by component j of
    node b: along[0] df/dx + along[1] df/dv. `pairs` have tangents, all 0.
    """
    nodes = pairs.pair_nodes.reshape(-1, 4, TILE)
    elements = Elements(
        pairs.pair_table, np.arange(nodes.size, dtype=np.uint32), pairs.pair_consts,
        pairs.pair_params, pairs.series,
    )  # fmt: skip
    apart = States(state.x[nodes.ravel()], state.v[nodes.ravel()], state.p)
    tan_x, tan_v = (np.zeros((*nodes.shape, 3)) for _ in range(2))
    tangents = States(tan_x.reshape(-1, 3), tan_v.reshape(-1, 3), state.p)
    tile, lane = np.divmod(_lanes(pairs), TILE)
    blocks = np.zeros((len(tile), 4, 3, 4, 3))
    push = loop_kernel(push_pairs_apart_loop)
    for b in range(4):
        for j in range(3):
            tan_x[:, b, :, j], tan_v[:, b, :, j] = along
            push(calls, pairs, elements, step, apart, tangents, scratch)
            tan_x[:, b, :, j] = tan_v[:, b, :, j] = 0.0
            blocks[:, :, :, b, j] = pairs.more_slots.reshape(-1, 4, 3, TILE)[tile, :, :, lane]
    touch = blocks.any(axis=(1, 2, 3, 4))
    return nodes[tile, :, lane][touch].astype(np.int64), blocks[touch]


def _lanes(pairs: NearPairs) -> np.ndarray:
    """Return the lanes of the pairs that are listed, all tiles one after the other."""
    first = pairs.pair_table[:, NODES] // 4
    return np.concatenate([at + np.arange(n) for at, n in zip(first, pairs.counts, strict=True)])
