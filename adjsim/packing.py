r"""Models as flat arrays: a batch of worlds that do not touch, or one model, a batch of one.

Worlds are packed in groups of a few hundred elements, so that a thread can carry a group
through a whole rollout without leaving its cache. The elements of a group's forces of one name
are tiled together; each world has its own range of nodes, of bodies and of body points:

    rows of X and V    nodes of world 0, of world 1, ... then body points of world 0, 1, ...
    rows of P          bodies of world 0, of world 1, ...

Tiles always run whole and every node adds up its own slots in the order force, element,
local node, so what a world gets does not depend, to the bit, on the worlds beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar
from weakref import finalize

import numpy as np

from adjsim.assembly import (
    CONSTS,
    N_TILES,
    NODES,
    PARAMS,
    SERIES,
    SERIES_STRIDE,
    SLOTS,
    TILE,
)
from adjsim.element import ElementKind, Force
from adjsim.model import Model
from adjsim.rigid.bodies import pack_bodies


T = TypeVar("T")
GROUP = 1000  # elements at most in a group, unless one world has more
KEPT = 10_000  # elements of a force whose rows are kept: packing more takes no time beside steps
_kept_rows: dict[int, dict[int, np.ndarray]] = {}  # by the id of a force, as long as it lives


@dataclass(frozen=True)
class PackedModels:
    """Worlds as flat arrays of one dtype, shared by forward and reverse.

    `table` (n_groups n_forces, 7) int64, the row of force f of group g is g n_forces + f;
    `nodes` uint32; `consts`, `params`, `series` flat by tiles; `node_ptr`, `node_slots`: the
    slots each row of X adds up, in order; `velocity_ptr`, `velocity_slots`: the same for the
    forces that read velocities; `w` (n_nodes,) 1/kg; `gravity` (n_worlds, 3); `world_of`
    (n_nodes + n_bodies,): the world of each node, then of each body; `bodies` as
    `adjsim/rigid/rows.py` has them. `group_ends` (n_groups + 1,): the worlds of each group;
    `node_ends`, `point_ends`, `body_ends` (n_worlds + 1,): nodes, points, bodies of each world;
    `element_starts` (n_worlds, n_forces): where its elements begin among its group's.
    """

    kinds: tuple[ElementKind, ...]
    table: np.ndarray
    nodes: np.ndarray
    consts: np.ndarray
    params: np.ndarray
    series: np.ndarray
    node_ptr: np.ndarray
    node_slots: np.ndarray
    velocity_ptr: np.ndarray
    velocity_slots: np.ndarray
    w: np.ndarray
    gravity: np.ndarray
    world_of: np.ndarray
    bodies: tuple[np.ndarray, np.ndarray, np.ndarray]
    group_ends: np.ndarray
    node_ends: np.ndarray
    point_ends: np.ndarray
    body_ends: np.ndarray
    element_starts: np.ndarray
    n_slots: int

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What every tile function reads of the model, in its order."""
        return (self.table, self.nodes, self.consts, self.params, self.series)

    @property
    def n_groups(self) -> int:
        """Number of groups of worlds."""
        return len(self.group_ends) - 1

    @property
    def n_worlds(self) -> int:
        """Number of worlds."""
        return len(self.node_ends) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all worlds."""
        return int(self.node_ends[-1])

    @property
    def n_rows(self) -> int:
        """Number of nodes and body points of all worlds: the rows of X."""
        return self.n_nodes + int(self.point_ends[-1])

    @property
    def n_bodies(self) -> int:
        """Number of bodies of all worlds: the rows of P."""
        return int(self.body_ends[-1])

    @property
    def scratch_size(self) -> int:
        """Numbers of scratch that one thread needs in any tile loop."""
        return TILE * 3 * 5 * max((kind.n_nodes for kind in self.kinds), default=1)

    def slices(self, world: int) -> tuple[slice, slice, slice]:
        """Return a world's rows: its nodes and its body points in X and V, its bodies in P."""
        (n0, n1), (k0, k1), (b0, b1) = (
            ends[world : world + 2].tolist()
            for ends in (self.node_ends, self.n_nodes + self.point_ends, self.body_ends)
        )
        return slice(n0, n1), slice(k0, k1), slice(b0, b1)

    def moved(self, xp: Any) -> "PackedModels":
        """Return a copy whose arrays that loops read belong to the array module `xp`."""
        host = ("group_ends", "node_ends", "point_ends", "body_ends", "element_starts")
        arrays: dict[str, Any] = {
            f.name: xp.asarray(getattr(self, f.name))
            for f in fields(self)
            if f.name not in host and isinstance(getattr(self, f.name), np.ndarray)
        }
        arrays["bodies"] = tuple(xp.asarray(part) for part in self.bodies)
        return replace(self, **arrays)


def to_tiles(rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return (..., n, k) rows by tiles, flat; the last tile repeats the last element."""
    *steps, n, k = rows.shape
    n_tiles = -(-n // TILE)
    padded = rows[..., np.minimum(np.arange(n_tiles * TILE), n - 1), :]
    return padded.reshape(*steps, n_tiles, TILE, k).swapaxes(-1, -2).astype(dtype, "C").ravel()


def from_tiles(flat: np.ndarray, n: int, k: int) -> np.ndarray:
    """Return (n, k) rows of a flat array by tiles; what padding lanes hold is dropped."""
    n_tiles = -(-n // TILE)
    rows = flat.reshape(n_tiles, k, TILE).transpose(0, 2, 1).reshape(n_tiles * TILE, k)[:n]
    return np.ascontiguousarray(rows)  # of one tile it is a view, whose sums have another order


def count_elements(model: Model) -> int:
    """Return how many elements all forces of a model have."""
    return sum(len(force.nodes) for force in model.forces.values())


def group_worlds(sizes: Sequence[int], n_rows: Sequence[Sequence[int]], n_parts: int) -> np.ndarray:
    """Return which worlds share a group, (n_groups + 1,) ends; `n_parts` groups if it can be.

    `sizes`: elements of each world; `n_rows`: rows of each of its series, alike in one group,
    since a row of the table has one stride.
    """
    limit = min(GROUP, -(-sum(sizes) // max(n_parts, 1)))
    ends, filled = [0], 0
    for world, size in enumerate(sizes):
        if world > ends[-1] and (filled + size > limit or n_rows[world] != n_rows[world - 1]):
            ends.append(world)
            filled = 0
        filled += size
    return np.array([*ends, len(sizes)])


class Placement:
    """Where each world's nodes, body points and bodies are among those of all worlds."""

    def __init__(self, models: Sequence[Model]) -> None:
        def ends(counts: list[int]) -> np.ndarray:
            return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

        self.node_ends = ends([model.n_nodes for model in models])
        self.point_ends = ends([model.n_rows - model.n_nodes for model in models])
        self.body_ends = ends([model.n_bodies for model in models])

    @property
    def n_rows(self) -> int:
        """Number of nodes and body points of all worlds."""
        return int(self.node_ends[-1] + self.point_ends[-1])

    def world_of(self) -> np.ndarray:
        """Return the world of each node, then of each body, (n_nodes + n_bodies,) int64."""
        worlds = np.arange(len(self.node_ends) - 1)
        return np.concatenate(
            [np.repeat(worlds, np.diff(ends)) for ends in (self.node_ends, self.body_ends)]
        )

    def rows(self, world: int, nodes: np.ndarray) -> np.ndarray:
        """Return rows of X for a world's own numbers of nodes and body points."""
        first, last = self.node_ends[world], self.node_ends[world + 1]
        points = self.node_ends[-1] + self.point_ends[world] + first - last
        return nodes + np.where(nodes < last - first, first, points)

    def bodies(self, models: Sequence[Model], dtype: np.dtype) -> tuple:
        """Return the bodies of all worlds: point_ptr, arms, params."""
        firsts = self.node_ends[-1] + self.point_ends
        parts = [
            pack_bodies(model.bodies, int(first), dtype)
            for model, first in zip(models, firsts[:-1], strict=True)
        ]
        ptr = np.concatenate([*(part[0][:-1] for part in parts), firsts[-1:]])
        arms, params = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return ptr, arms, params


def pack(models: Sequence[Model], n_steps: int, dtype: np.dtype, n_parts: int = 1) -> PackedModels:
    """Pack models of one layout of parameters, each a world, into flat arrays by tiles.

    In `n_parts` groups or more, if there are so many worlds.

    Raises
    ------
    ValueError
        If a series has neither one row nor `n_steps` rows.
    """
    placement = Placement(models)
    forces = [list(model.forces.values()) for model in models]
    kinds = tuple(force.kind for force in forces[0])
    packed = _each_once(models, lambda name, force: _pack_force(name, force, n_steps))
    series = [[part[SERIES] for part in own] for own in packed]
    n_rows = [[len(part) for part in own] for own in series]
    group_ends = group_worlds([count_elements(model) for model in models], n_rows, n_parts)
    nodes = [[placement.rows(w, f.nodes) for f in own] for w, own in enumerate(forces)]
    rows = {NODES: nodes, SERIES: series} | {
        column: [[part[column] for part in own] for own in packed] for column in (CONSTS, PARAMS)
    }
    joined = {column: join(part, group_ends) for column, part in rows.items()}
    table, flat, n_slots = _lay_out(joined, dtype)
    moving = [
        part if kinds[row % len(kinds)].uses_velocity else part[:0]
        for row, part in enumerate(joined[NODES])
    ]
    node_ptr, node_slots = _slot_lists(joined[NODES], table, placement.n_rows)
    velocity_ptr, velocity_slots = _slot_lists(moving, table, placement.n_rows)
    return PackedModels(
        kinds=kinds,
        table=table,
        nodes=flat[NODES],
        consts=flat[CONSTS],
        params=flat[PARAMS],
        series=flat[SERIES],
        node_ptr=node_ptr,
        node_slots=node_slots,
        velocity_ptr=velocity_ptr,
        velocity_slots=velocity_slots,
        w=np.concatenate([model.inverse_mass for model in models]).astype(dtype),
        gravity=np.stack([model.gravity for model in models]).astype(dtype),
        world_of=placement.world_of(),
        bodies=placement.bodies(models, dtype),
        group_ends=group_ends,
        node_ends=placement.node_ends,
        point_ends=placement.point_ends,
        body_ends=placement.body_ends,
        element_starts=_element_starts(nodes, group_ends),
        n_slots=n_slots,
    )


def _pack_force(name: str, force: Force, n_steps: int) -> dict[int, np.ndarray]:
    """Return the rows of a force by column; a force never changes, so a small one's are kept.

    Not those of a series: they are many, and depend on the number of steps.
    """
    force.check_steps(n_steps, name)
    rows = _kept_rows.get(id(force))
    if rows is None:
        rows = {CONSTS: force.pack_consts(), PARAMS: force.pack_params()}
        if len(force.nodes) <= KEPT:
            _kept_rows[id(force)] = rows
            finalize(force, _kept_rows.pop, id(force), None)  # two threads may both keep them
    if SERIES in rows:
        return rows
    series = force.pack_series(n_steps)
    if n_steps > 1 and len(series) == 1:  # of one step a series has one row too
        rows[SERIES] = series
    return {**rows, SERIES: series}


def _each_once(models: Sequence[Model], make: Callable[[str, Force], T]) -> list[list[T]]:
    """Return `make(name, force)` of every force of every model; worlds that share one, share it."""
    made: dict[int, T] = {}
    for model in models:
        for name, force in model.forces.items():
            if id(force) not in made:
                made[id(force)] = make(name, force)
    return [[made[id(force)] for force in model.forces.values()] for model in models]


def join(rows: Sequence[Sequence[np.ndarray]], group_ends: np.ndarray) -> list[np.ndarray]:
    """Join `rows[world][force]`, (..., n_elements, n), along elements: one array per table row."""
    return [
        np.concatenate([own[f] for own in rows[first:last]], axis=-2)
        for first, last in pairwise(group_ends)
        for f in range(len(rows[first]))
    ]


def flat_tiles(joined: Sequence[np.ndarray], dtype: np.dtype) -> list[np.ndarray]:
    """Return joined rows by tiles, flat, the rows of a series one after the other."""
    return [to_tiles(part, dtype) for part in joined]


def _lay_out(
    joined: dict[int, list[np.ndarray]], dtype: np.dtype
) -> tuple[np.ndarray, dict[int, np.ndarray], int]:
    """Return the table, the flat array of each of its columns, and the number of slots."""
    dtypes = dict.fromkeys(joined, dtype) | {NODES: np.dtype(np.uint32)}
    blocks = {column: flat_tiles(part, dtypes[column]) for column, part in joined.items()}
    table = np.zeros((len(joined[NODES]), 7), np.int64)
    for column, parts in blocks.items():
        sizes = np.array([part.size for part in parts], np.int64)
        table[:, column] = np.cumsum(sizes) - sizes
    table[:, N_TILES] = [-(-len(part) // TILE) for part in joined[NODES]]
    table[:, SLOTS] = 3 * table[:, NODES]
    for row, (part, tiles) in enumerate(zip(joined[SERIES], blocks[SERIES], strict=True)):
        table[row, SERIES_STRIDE] = tiles.size // len(part) if len(part) > 1 else 0
    flat = {c: np.concatenate([*parts, np.zeros(0, dtypes[c])]) for c, parts in blocks.items()}
    return table, flat, 3 * flat[NODES].size


def _slot_lists(
    nodes: Sequence[np.ndarray], table: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which slots each row of X adds up, ordered by force, element and local node.

    `nodes` by row of the table. Only forces of one group touch a node.
    """
    owners, slots = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start, part in zip(table[:, SLOTS], nodes, strict=True):
        n, k = part.shape
        e, a = np.divmod(np.arange(n * k), k)
        owners.append(part.ravel())
        slots.append(start + (e // TILE * k + a) * 3 * TILE + e % TILE)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_rows))])
    return ptr.astype(np.uint32), np.concatenate(slots)[order].astype(np.uint32)


def _element_starts(nodes: Sequence[Sequence[np.ndarray]], group_ends: np.ndarray) -> np.ndarray:
    """Return where each world's elements begin among its group's, (n_worlds, n_forces)."""
    counts = np.array([[len(part) for part in own] for own in nodes], np.int64)
    for first, last in pairwise(group_ends):
        own = counts[first:last]
        counts[first:last] = np.cumsum(own, axis=0) - own
    return counts
