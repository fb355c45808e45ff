"""Pairs that change: forces whose elements are found again as the rows of X move.

Such a force has no element until it is asked for those near a state, `force.with_pairs(x)`. A list
serves until a row has moved by more than the force's `allowance`. A sweep forward stops there
(`watch_phase` of `adjsim/engine/timeloop.py`), pairs are found again, and it goes on; the reverse
sweep finds its own, from the states that it has. All lists that serve a state give the same bits:
pairs come in one order, and those that do not touch add exactly nothing.

Tests: `tests/pairs/test_changing.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.assembly import CONSTS, PARAMS, SERIES
from adjsim.engine.packing import PackedModels
from adjsim.engine.partition import ROW, Parts
from adjsim.model import Model


class Watch(NamedTuple):
    """Where the rows of X were when pairs were found, and the squares of how far each may move."""

    x: Any
    limits: Any


class WatchedParts(NamedTuple):
    """`Parts` with a `Watch`."""

    tile_ptr: Any
    tiles: Any
    range_ptr: Any
    ranges: Any
    x: Any
    limits: Any


class SummedParts(NamedTuple):
    """`Parts`, with what is added up of the cotangents of the parameters of pairs.

    `sums` (n, 6), for each force with pairs: where its rows begin, its number of parameters, its
    first lane and the end of its lanes, its row of `totals`, and its row of the table. `sum_ptr`
    says which of them belong to each part.
    """

    tile_ptr: Any
    tiles: Any
    range_ptr: Any
    ranges: Any
    sum_ptr: Any
    sums: Any
    totals: Any


def has_changing(models: Sequence[Model]) -> bool:
    """Whether any force has pairs that change."""
    return any(force.changes for model in models for force in model.forces.values())


def changing_forces(model: Model) -> list[tuple[str, Any]]:
    """Return the forces whose pairs change, by name."""
    return [(name, force) for name, force in model.forces.items() if force.changes]


def own_rows(packed: PackedModels, world: int, x: np.ndarray) -> np.ndarray:
    """Return a world's nodes and then the points of its bodies, of all rows of X."""
    nodes, points, _ = packed.slices(world)
    return np.concatenate([x[nodes], x[points]])


def with_pairs(models: Sequence[Model], packed: PackedModels, x: np.ndarray) -> tuple[Model, ...]:
    """Return the models with the pairs near positions of all rows."""
    found = []
    for world, model in enumerate(models):
        own = own_rows(packed, world, x)
        forces: dict[str, Any] = dict(model.forces)
        for name, force in changing_forces(model):
            forces[name] = force.with_pairs(own)
        found.append(model.with_forces(forces))
    return tuple(found)


def limits_of(models: Sequence[Model], packed: PackedModels, dtype: np.dtype) -> np.ndarray:
    """Return the square of how far each row may move before pairs are looked for again."""
    limits = np.full(packed.n_rows, np.inf, dtype)
    for world, model in enumerate(models):
        own = np.full(model.n_rows, np.inf)
        for _, force in changing_forces(model):
            rows = force.surface_rows()
            own[rows] = np.minimum(own[rows], force.allowance**2)
        nodes, points, _ = packed.slices(world)
        limits[nodes], limits[points] = own[: model.n_nodes], own[model.n_nodes :]
    return limits


def serves_from(x: np.ndarray, rows: np.ndarray, watch: Watch) -> int:
    """Return the first of several states, `x[rows]`, from which on these pairs serve."""
    bounded = np.flatnonzero(np.isfinite(watch.limits))
    at, limits = watch.x[bounded], watch.limits[bounded]
    for k in range(len(rows) - 2, -1, -1):
        if not (np.square(x[rows[k], bounded] - at).sum(axis=1) <= limits).all():
            return k + 1
    return 0


def pair_ranges(models: Sequence[Model], packed: PackedModels) -> np.ndarray:
    """Return the `sums` of `SummedParts`."""
    table, n_columns = packed.table, len(packed.kinds)
    groups = np.repeat(np.arange(packed.n_groups), np.diff(packed.group_ends))
    found = []
    for out, (world, column, force) in enumerate(changing_columns(models, packed)):
        row = int(groups[world]) * n_columns + column
        start = int(packed.element_starts[world, column])
        lanes = (start, start + force.n_pairs)
        found.append((int(table[row, PARAMS]), packed.kinds[column].n_params, *lanes, out, row))
    return np.array(found, np.int64).reshape(-1, 6)


def summed(parts: Parts, ranges: np.ndarray, table: np.ndarray, totals: np.ndarray) -> SummedParts:
    """Return parts with sums, each in the last part that has tiles of its row of the table."""
    part_of = np.zeros(len(table), np.int64)
    owners = np.repeat(np.arange(len(parts.tile_ptr) - 1), np.diff(parts.tile_ptr))
    part_of[parts.tiles[:, ROW]] = owners
    own = part_of[ranges[:, -1]]
    order = np.argsort(own, kind="stable")
    ptr = np.searchsorted(own[order], np.arange(len(parts.tile_ptr)))
    return SummedParts(*parts, ptr, ranges[order], totals)


def changing_columns(models: Sequence[Model], packed: PackedModels) -> list[tuple[int, int, Any]]:
    """Return world, column and force of every force whose pairs change."""
    return [
        (world, column, force)
        for world, (model, columns) in enumerate(zip(models, packed.columns, strict=True))
        for column, force in zip(columns, model.forces.values(), strict=True)
        if force.changes
    ]


def carried(
    flat: Any, column: int, before: PackedModels, after: PackedModels, changing: set[int]
) -> Any:
    """Return the cotangents of rows in the layout with new pairs; those of pairs are 0."""
    name = {CONSTS: "consts", PARAMS: "params", SERIES: "series"}[column]
    out = np.zeros_like(getattr(after, name))
    old, new = ([*p.table[:, column].tolist(), None] for p in (before, after))
    for row in range(len(after.table)):
        if row % len(after.kinds) not in changing:
            out[new[row] : new[row + 1]] = flat[old[row] : old[row + 1]]
    return out
