"""Pairs that change: what a stepper finds again as the rows of X move.

A force that `changes` has an element for each row of its surfaces, which lies at one place among
other elements. Its pairs lie apart (`adjsim/pairs/near.py`). They are found by `force.find`, and
serve until a row has moved too far: a sweep forward stops there (`watch_phase` of
`adjsim/engine/timeloop.py`), pairs are found again, and it goes on; the reverse sweep finds its
own, from the states that it has. On a GPU see `adjsim/engine/cuda_search.py`.

Tests: `tests/pairs/test_changing.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.layouts import make_table
from adjsim.engine.packing import PackedModels
from adjsim.jit.backend import loop_kernel
from adjsim.model import Model
from adjsim.pairs.near import (
    LEAST,
    N_MEASURED,
    NearPairs,
    make_lists,
    serve_all,
    take_found,
)
from adjsim.pairs.pair_force import N_PARAMS, PAIR
from adjsim.pairs.search import FoundPairs
from adjsim.tiles.assembly import FORCE, N_TILES, PARAMS, ROW, SLOTS, TILE


MOVED = 0.4  # of its allowance, by which a row has moved whose pairs are found again
FEW = 0.3  # of all rows; where more have moved, all pairs are


# Arrays of `NearPairs` that are large and serve until there are more pairs.
BUFFERS = (
    "pair_table", "pair_nodes", "pair_consts", "pair_params", "slots", "listed", "sum_slots",
    "members", "numbers", "leeway",
)  # fmt: skip


class ChangingForce(NamedTuple):
    """A force whose pairs change: its world and name, its rows of X, and where its numbers are."""

    world: int
    name: str
    force: Any
    column: int
    rows: np.ndarray
    places: np.ndarray  # slots of its elements; in patches, rows of the sums
    params: np.ndarray  # where the parameters of its elements begin


def has_changing(models: Sequence[Model]) -> bool:
    """Whether any force has pairs that change."""
    return any(force.changes for model in models for force in model.forces.values())


def changing_forces(models: Sequence[Model], packed: PackedModels) -> list[ChangingForce]:
    """Return the forces of all worlds whose pairs change."""
    forces = []
    groups = np.repeat(np.arange(packed.n_groups), np.diff(packed.group_ends)).tolist()
    for world, (model, columns) in enumerate(zip(models, packed.columns, strict=True)):
        nodes, points, _ = packed.slices(world)
        of_world = np.r_[nodes, points]
        for column, (name, force) in zip(columns, model.forces.items(), strict=True):
            if not force.changes:
                continue
            row = packed.table[groups[world] * len(packed.kinds) + column]
            first = int(packed.element_starts[world, column])
            elements = np.arange(first, first + len(force.nodes))
            places = row[SLOTS] + elements // TILE * 3 * TILE + elements % TILE
            if packed.patches:
                places = row[SLOTS] + elements
            params = row[PARAMS] + elements // TILE * N_PARAMS * TILE + elements % TILE
            rows = of_world[force.nodes[:, 0]]
            forces.append(ChangingForce(world, name, force, column, rows, places, params))
    return forces


class ChangingPairs:
    """The pairs of packed models that were found last, and the lists made of them.

    Parts of a sweep that stand `apart` have a list each, else all have one. A list serves until a
    row has moved by a share of its allowance.
    """

    def __init__(
        self, models: Sequence[Model], packed: PackedModels, n_parts: int, *, apart: bool
    ) -> None:
        self.packed = packed
        self.sets = sets = changing_forces(models, packed)
        world_ends = packed.group_ends if apart else np.array([0, packed.n_worlds])
        set_ptr = np.searchsorted([contact.world for contact in sets], world_ends)
        parts = np.arange(n_parts)
        lists = parts if apart else 0 * parts
        own_sets = [np.arange(*set_ptr[k : k + 2]) for k in lists]
        tiles = np.zeros((sum(map(len, own_sets)), 4), np.int64)
        tiles[:, ROW] = np.concatenate(own_sets)
        tiles[:, FORCE] = np.array([contact.column for contact in sets], np.int64)[tiles[:, ROW]]
        shares = np.stack([lists, parts - lists, 0 * parts + (1 if apart else n_parts)], axis=1)
        self.lay = {
            "set_ptr": set_ptr,
            "part_ptr": np.arange(n_parts + 1) if apart else np.array([0, n_parts]),
            "shares": shares,
            "tile_ptr": np.cumsum([0, *map(len, own_sets)]),
            "tiles": tiles,
            "element_ptr": np.cumsum([0, *(len(contact.rows) for contact in sets)]),
            "rows": np.concatenate([contact.rows for contact in sets]),
            "places": np.concatenate([contact.places for contact in sets]),
            "param_places": np.array([contact.params[0] for contact in sets]),
        }
        self.found_pairs: list[FoundPairs] = []
        self.away: list[np.ndarray] = []  # of x, each row was from where `found_pairs` counts it
        self.changed: list[np.ndarray | None] = []  # rows with new `found_pairs`; None: all
        self.x: Any = None  # positions of all rows where they were found
        self.near: Any = None  # `NearPairs`
        self.reaches: list[float] = []
        self.room: list[int] = []  # how many pairs of each set there is room for

    def serve(self, x: np.ndarray) -> bool:
        """Whether the pairs serve positions of all rows; if so, the lists do too."""
        return self.near is not None and loop_kernel(serve_all)(self.near, x)

    def by_contact(self, x: np.ndarray) -> list[np.ndarray]:
        """Return the positions of the rows of each contact."""
        return [x[contact.rows] for contact in self.sets]

    def find(self, x: np.ndarray) -> None:
        """Find the pairs near positions of all rows: of rows that have moved, if these are few."""
        self.x = np.array(x)
        near, before = self.near, self.found_pairs
        if near is None:
            self.reaches = [c.force.reach(self.x[c.rows]) for c in self.sets]
        rho = np.array([contact.force.thickness for contact in self.sets])
        allowances = 0.5 * (np.array(self.reaches) - rho)
        starts, ways, drifts = [], [], np.zeros((len(self.sets), 3))
        self.found_pairs, self.away, self.changed = [], [], []
        for k, (contact, reach) in enumerate(zip(self.sets, self.reaches, strict=True)):
            at, force = self.x[contact.rows], contact.force
            start, changed = self.moved_rows(k, at)
            if near is None or changed is None:
                room = len(before[k].gaps) * 9 // 8 if before else 0
                self.found_pairs.append(force.find(at, reach, room))
            else:
                drifts[k] = near.found_drifts[k]
                self.found_pairs.append(force.find_changed(before[k], start, reach, changed))
            away = np.sqrt(np.square(at - start - drifts[k]).sum(axis=1))
            sound = np.isfinite(away)
            self.away.append(np.where(sound, away, 0.0))
            ways.append(np.where(sound, away / allowances[k], np.inf))
            self.changed.append(changed)
            starts.append(start)
        counts = [len(pairs.gaps) for pairs in self.found_pairs]
        buffers = self.buffers_for(counts)
        at = self.x[self.lay["rows"]]
        found_at = np.concatenate(starts)
        elements, n_lists = self.packed.arrays.elements, len(self.lay["set_ptr"]) - 1
        none = np.zeros(0, self.packed.params.dtype)
        self.near = NearPairs(
            **elements._asdict(),
            **self.lay,
            **buffers,
            more_slots=none,
            v_slots=none,
            more_params=none,
            pair_ptr=np.cumsum([0, *counts]),
            edges_from=np.zeros(len(counts), np.int64),
            scales=np.stack([rho, allowances, np.square(allowances)], axis=1),
            counts=np.zeros(len(counts), np.int64),
            share=np.full(n_lists, LEAST) if near is None else near.share,
            served=np.zeros(n_lists, np.int64),
            measured=np.zeros((n_lists, N_MEASURED)),
            found_at=found_at,
            listed_at=at,
            found_drifts=drifts,
            listed_drifts=np.zeros((len(counts), 3)),
            paces=np.ones(len(at)) if near is None else near.paces,
            ways=np.concatenate(ways),
            ends=np.zeros(len(at)),
            sum_ptr=np.zeros(len(at) + n_lists, np.int64),
        )
        for k, pairs in enumerate(self.found_pairs):
            loop_kernel(take_found)(self.near, k, pairs)
        loop_kernel(make_lists)(self.near, self.x)

    def buffers_for(self, counts: Sequence[int]) -> dict[str, np.ndarray]:
        """Return arrays with room for so many pairs of each set: the last ones, if they have."""
        if self.near is not None and all(n <= m for n, m in zip(counts, self.room, strict=True)):
            return {name: getattr(self.near, name) for name in BUFFERS}
        self.room = [n * 9 // 8 for n in counts]
        table, dtype = make_table((PAIR,), self.room, [1] * len(counts)), self.packed.params.dtype
        n_lanes, n = int(table[:, N_TILES].sum()) * TILE, sum(self.room)
        arrays = (
            table, np.zeros(4 * n_lanes, np.uint32), np.zeros(2 * n_lanes, dtype),
            self.spread(self.packed.params, table), np.zeros(12 * n_lanes, dtype),
            np.zeros(n, np.int64), np.zeros(4 * n, np.int64),
            np.zeros((n, 4), np.uint32), np.zeros((n, 2)), np.zeros(n),
        )  # fmt: skip
        return dict(zip(BUFFERS, arrays, strict=True))

    def moved_rows(self, k: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the new reference positions of the rows of set k, and which rows have moved.

        None in place of the mask: most rows have moved, and all pairs are found again. Rows that
        have not moved keep their reference, apart from the motion that the whole set shares.
        """
        near: Any = self.near
        if near is None:
            return at, None
        before = near.found_at[near.element_ptr[k] : near.element_ptr[k + 1]]
        relative = at - near.found_drifts[k]
        with np.errstate(over="ignore", invalid="ignore"):
            far = np.square(relative - before).sum(axis=1)
        changed = ~(far <= MOVED**2 * near.scales[k, 2])
        if changed.mean() > FEW:
            return at, None
        return np.where(changed[:, None], relative, before), changed

    def spread(self, params: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Return parameters of all elements, or their tangents, as each pair reads them."""
        tiles = []
        for contact, n_tiles in zip(self.sets, table[:, N_TILES], strict=True):
            values = params[contact.params[0] :: TILE][:N_PARAMS]
            tiles.append(np.broadcast_to(values[:, None], (n_tiles, N_PARAMS, TILE)).ravel())
        return np.concatenate(tiles)

    def with_tangents(self, params: np.ndarray) -> NearPairs:
        """Return the pairs with tangents of parameters, and room for tangents of forces."""
        near: Any = self.near
        pair_params = self.spread(params, near.pair_table)
        return near._replace(more_slots=np.zeros_like(near.slots), more_params=pair_params)

    def with_cotangents(self) -> NearPairs:
        """Return the pairs with room for cotangents."""
        near: Any = self.near
        x, v, params = map(np.zeros_like, (near.slots, near.slots, near.pair_params))
        return near._replace(more_slots=x, v_slots=v, more_params=params)
