"""Pairs that change: what a stepper finds again as the rows of X move.

A force that `changes` has an element for each row of its surfaces, which lies at one place among
other elements. Its pairs lie apart (`adjsim/pairs/near.py`). They are found by `force.find`, and
serve until a row has moved too far: a sweep forward stops there (`watch_phase` of
`adjsim/engine/timeloop.py`), pairs are found again, and it goes on; the reverse sweep finds its
own, from the states that it has.

Tests: `tests/pairs/test_changing.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.layouts import make_table
from adjsim.engine.packing import PackedModels
from adjsim.model import Model
from adjsim.pairs.near import LEAST, NearPairs, make_lists_kernel, serve_kernel
from adjsim.pairs.pair_force import N_PARAMS, PAIR
from adjsim.pairs.search import FoundPairs
from adjsim.tiles.assembly import FORCE, N_TILES, PARAMS, ROW, SLOTS, TILE


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
    row has moved by a `share` of its allowance, at first. `wider` scales the allowances.
    """

    def __init__(
        self,
        models: Sequence[Model],
        packed: PackedModels,
        n_parts: int,
        *,
        apart: bool,
        share: float = LEAST,
        wider: float = 1.0,
    ) -> None:
        self.packed = packed
        self.share, self.wider = share, wider
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
        self.found: list[FoundPairs] = []
        self.x: Any = None  # positions of all rows where they were found
        self.near: NearPairs | None = None
        self.moved_on = False  # whether a sweep has ended since the pairs no longer serve
        self.reaches: list[float] = []

    def serve(self, x: np.ndarray) -> bool:
        """Whether the pairs serve positions of all rows; if so, the lists do too."""
        return self.near is not None and not self.moved_on and serve_kernel()(self.near, x)

    def find(self, x: np.ndarray) -> None:
        """Find the pairs near positions of all rows."""
        self.x, self.moved_on = np.array(x), False
        if self.near is None:
            self.reaches = [self.reach(contact) for contact in self.sets]
        self.found = [
            contact.force.find(self.x[contact.rows], reach)
            for contact, reach in zip(self.sets, self.reaches, strict=True)
        ]
        rho = np.array([contact.force.thickness for contact in self.sets])
        allowances = 0.5 * (np.array(self.reaches) - rho)
        counts = [len(pairs.gaps) for pairs in self.found]
        table = make_table((PAIR,), counts, [1] * len(counts))
        n_lanes = int(table[:, N_TILES].sum()) * TILE
        first = self.lay["element_ptr"][:-1]
        at = self.x[self.lay["rows"]]
        gaps = np.concatenate([pairs.gaps for pairs in self.found])
        elements, dtype = self.packed.arrays.elements, self.packed.params.dtype
        n_lists, none = len(self.lay["set_ptr"]) - 1, np.zeros(0, dtype)
        members = [pairs.rows + k for pairs, k in zip(self.found, first, strict=True)]
        self.near = NearPairs(
            **elements._asdict(),
            **self.lay,
            pair_table=table,
            pair_nodes=np.zeros(4 * n_lanes, np.uint32),
            pair_consts=np.zeros(2 * n_lanes, dtype),
            pair_params=self.spread(self.packed.params, table),
            slots=np.zeros(12 * n_lanes, dtype),
            more_slots=none,
            v_slots=none,
            more_params=none,
            pair_ptr=np.cumsum([0, *counts]),
            scales=np.stack([rho, allowances, np.square(allowances)], axis=1),
            counts=np.zeros(len(counts), np.int64),
            listed=np.zeros(len(gaps), np.int64),
            members=np.concatenate(members),
            numbers=np.concatenate([pairs.numbers for pairs in self.found]),
            gaps=gaps,
            due=np.empty(len(gaps)),
            clock=np.zeros(n_lists),
            share=np.full(n_lists, self.share),
            served=np.zeros(n_lists, np.int64),
            found_at=at,
            listed_at=at.copy(),
            found_drifts=np.zeros((len(counts), 3)),
            listed_drifts=np.zeros((len(counts), 3)),
            shifts=np.zeros(len(at)),
            sum_ptr=np.zeros(len(at) + n_lists, np.int64),
            sum_slots=np.zeros(4 * len(gaps), np.int64),
        )
        make_lists_kernel()(self.near, self.x)

    def reach(self, own: ChangingForce) -> float:
        """Return the distance within which the pairs of a force are looked for [m]."""
        rho = own.force.thickness
        return rho + self.wider * (own.force.reach(self.x[own.rows]) - rho)

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
        own = self.spread(params, near.pair_table)
        return near._replace(more_slots=np.zeros_like(near.slots), more_params=own)

    def with_cotangents(self) -> NearPairs:
        """Return the pairs with room for cotangents."""
        near: Any = self.near
        x, v, params = map(np.zeros_like, (near.slots, near.slots, near.pair_params))
        return near._replace(more_slots=x, v_slots=v, more_params=params)
