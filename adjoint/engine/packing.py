"""Tangents and cotangents of what rollouts read: by worlds and rows, and packed for the loops.

The twin of `adjsim/engine/packing.py`: what it joins is joined, and taken apart again.
"""

from collections.abc import Sequence

import numpy as np

from adjsim.engine.packing import PackedModels
from adjsim.engine.tangent_packing import PackedVector, Rows
from adjsim.jit.device_arrays import to_host
from adjsim.model import Model
from adjsim.tiles.assembly import CONSTS, N_TILES, PARAMS, SERIES, TILE
from adjsim.tiles.by_tiles import from_tiles
from adjsim.tiles.element_kind import ElementKind


def part_rows(vector: PackedVector, packed: PackedModels, models: Sequence[Model]) -> list[Rows]:
    """Return the cotangents of each world."""
    host, table = to_host((vector, packed.table))
    flat = {PARAMS: host.params, SERIES: host.series, CONSTS: host.consts}
    lanes = {column: _lanes(values, packed.kinds, table, column) for column, values in flat.items()}
    by_world, n_columns = [], len(packed.kinds)
    groups = np.repeat(np.arange(packed.n_groups), np.diff(packed.group_ends))
    for world, (model, group) in enumerate(zip(models, groups.tolist(), strict=True)):
        (nodes, points), (_, _, bodies) = packed.numbers(world), packed.slices(world)
        by_column: dict[int, list[np.ndarray]] = {column: [] for column in lanes}
        by_force = zip(
            packed.columns[world], packed.orders[world], model.forces.values(), strict=True
        )
        for c, order, force in by_force:
            start = int(packed.element_starts[world, c])
            places = slice(None) if order is None else np.argsort(order)
            for column, rows in lanes.items():
                block = rows[group * n_columns + c][..., start : start + len(force.nodes), :]
                by_column[column].append(block[..., places, :])
        if packed.stands_apart:
            gravity = host.gravity[nodes.start + bodies.start : nodes.stop + bodies.stop]
        else:
            gravity = np.concatenate([host.gravity[nodes], host.gravity[packed.n_nodes :][bodies]])
        of_bodies = (host.p[bodies], host.bodies[bodies], host.arms[points])
        columns = (by_column[PARAMS], by_column[SERIES], by_column[CONSTS])
        by_world.append(
            Rows(host.x[nodes], host.v[nodes], gravity, host.w[nodes], *columns, *of_bodies)
        )
    return by_world


def _lanes(
    flat: np.ndarray, kinds: Sequence[ElementKind], table: np.ndarray, column: int
) -> list[np.ndarray]:
    """Return the rows of every lane, by row of the table; of a series (n_rows, n_lanes, n)."""
    lanes = []
    for row, entry in enumerate(table):
        kind, n_lanes = kinds[row % len(kinds)], int(entry[N_TILES]) * TILE
        n = {PARAMS: kind.n_params, SERIES: kind.n_series, CONSTS: kind.n_consts}[column]
        end = table[row + 1, column] if row + 1 < len(table) else flat.size
        values = flat[entry[column] : end]
        if column == SERIES:
            n_rows = max(1, values.size // max(1, n_lanes * n))
            steps = values.reshape(n_rows, -1)
            lanes.append(np.stack([from_tiles(step, n_lanes, n) for step in steps]))
        else:
            lanes.append(from_tiles(values, n_lanes, n) if values.size else np.zeros((n_lanes, n)))
    return lanes
