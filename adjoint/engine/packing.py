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
    lanes = {column: _lanes(part, packed.kinds, table, column) for column, part in flat.items()}
    found, n_columns = [], len(packed.kinds)
    groups = np.repeat(np.arange(packed.n_groups), np.diff(packed.group_ends))
    for world, (model, group) in enumerate(zip(models, groups.tolist(), strict=True)):
        (nodes, points), (_, _, bodies) = packed.numbers(world), packed.slices(world)
        own: dict[int, list[np.ndarray]] = {column: [] for column in lanes}
        by_force = zip(
            packed.columns[world], packed.orders[world], model.forces.values(), strict=True
        )
        for c, order, force in by_force:
            start = int(packed.element_starts[world, c])
            places = slice(None) if order is None else np.argsort(order)
            for column, rows in lanes.items():
                part = rows[group * n_columns + c][..., start : start + len(force.nodes), :]
                own[column].append(part[..., places, :])
        if packed.stands_apart:
            gravity = host.gravity[nodes.start + bodies.start : nodes.stop + bodies.stop]
        else:
            gravity = np.concatenate([host.gravity[nodes], host.gravity[packed.n_nodes :][bodies]])
        of_bodies = (host.p[bodies], host.bodies[bodies], host.arms[points])
        columns = (own[PARAMS], own[SERIES], own[CONSTS])
        found.append(
            Rows(host.x[nodes], host.v[nodes], gravity, host.w[nodes], *columns, *of_bodies)
        )
    return found


def _lanes(
    flat: np.ndarray, kinds: Sequence[ElementKind], table: np.ndarray, column: int
) -> list[np.ndarray]:
    """Return the rows of every lane, by row of the table; of a series (n_rows, n_lanes, n)."""
    found = []
    for row, entry in enumerate(table):
        kind, n_lanes = kinds[row % len(kinds)], int(entry[N_TILES]) * TILE
        n = {PARAMS: kind.n_params, SERIES: kind.n_series, CONSTS: kind.n_consts}[column]
        end = table[row + 1, column] if row + 1 < len(table) else flat.size
        part = flat[entry[column] : end]
        if column == SERIES:
            n_rows = max(1, part.size // max(1, n_lanes * n))
            steps = part.reshape(n_rows, -1)
            found.append(np.stack([from_tiles(step, n_lanes, n) for step in steps]))
        else:
            found.append(from_tiles(part, n_lanes, n) if part.size else np.zeros((n_lanes, n)))
    return found
