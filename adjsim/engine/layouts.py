"""Where everything of a batch of worlds lies in flat arrays: all that whole numbers decide.

Worlds are packed in groups of a few hundred elements, so that a thread can carry a group
through a whole rollout without leaving its cache. Forces are put in columns, one kind each, so
that every world has its forces in its own order; the elements of a group's forces of one column
are tiled together. Each world has its own range of nodes, of bodies and of body points:

    rows of X and V    nodes of world 0, of world 1, ... then body points of world 0, 1, ...
    rows of P          bodies of world 0, of world 1, ...

A block of threads of a GPU works on one world. For these the worlds stand `apart`: each is a group,
its body points lie right behind its nodes, and it counts rows and slots from its own first one, so
that it works on slices of the arrays as if it were alone. `starts` says where they begin.

A search runs models of the same nodes and elements again and again with other numbers: of small
ones the layout is kept, found again by the nodes of their elements.

Tests: `tests/engine/test_layouts.py`, `tests/test_worlds.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from adjsim.engine.patches import Patches, cut_patches, morton_order
from adjsim.forces.element import Force
from adjsim.model import Model
from adjsim.tiles.assembly import CONSTS, N_TILES, NODES, PARAMS, SERIES, SERIES_STRIDE, SLOTS, TILE
from adjsim.tiles.by_tiles import join, to_tiles
from adjsim.tiles.element_kind import ElementKind


K = TypeVar("K")
T = TypeVar("T")
GROUP = 1000  # elements at most in a group, unless one world has more
# Columns of `starts`: of X, of nodes, of bodies, slots, entries of two lists of slots.
ROW, NODE, BODY, SLOT, SUM, VELOCITY_SUM = range(6)
KEPT_SIZE = 15_000  # elements and nodes of all worlds: to lay out more takes no time beside steps
KEPT_LAYOUTS = 16
_kept: dict[Any, "Layout"] = {}  # the oldest first
_lock = Lock()  # of `_kept`: rollouts run in several threads


@dataclass(frozen=True)
class Layout:
    """Where worlds lie in flat arrays.

    `kinds` of the columns and `columns`, those of the forces of each world;
    `table` (n_groups n_columns, 7) int64, the row of column c of group g is g n_columns + c;
    `nodes` uint32, flat by tiles; `node_ptr`, `node_slots`: the slots each row of X adds up, in
    order; `velocity_ptr`, `velocity_slots`: the same for the forces that read velocities;
    `world_of` (n_nodes + n_bodies,): the world of each node, then of each body; `group_ends`
    (n_groups + 1,): the worlds of each group; `node_ends`, `point_ends`, `body_ends`
    (n_worlds + 1,): nodes, points, bodies of each world; `element_starts` (n_worlds, n_columns):
    where its elements begin among its group's; `starts` (n_worlds + 1, 6) where the parts of each
    world begin, if they stand apart, and else (0, 6); `orders`, by world and force: which element
    lies where, None if they lie as they are. Where a whole GPU works in `patches` (else None)
    `nodes` uint16 are numbers within a patch, and slots those of nodes of patches.
    """

    kinds: tuple[ElementKind, ...]
    columns: tuple[tuple[int, ...], ...]
    table: np.ndarray
    nodes: np.ndarray
    node_ptr: np.ndarray
    node_slots: np.ndarray
    velocity_ptr: np.ndarray
    velocity_slots: np.ndarray
    world_of: np.ndarray
    group_ends: np.ndarray
    node_ends: np.ndarray
    point_ends: np.ndarray
    body_ends: np.ndarray
    element_starts: np.ndarray
    starts: np.ndarray
    orders: tuple[tuple[np.ndarray | None, ...], ...]
    patches: Patches | None
    n_slots: int

    @property
    def slot_shape(self) -> tuple[int, ...]:
        """The shape of an array of slots; with patches, a row per node of a patch."""
        return (self.n_slots // 3 + 1, 3) if self.patches else (self.n_slots + 1,)

    @property
    def stands_apart(self) -> bool:
        """Whether every world works on slices of its own."""
        return self.starts.shape[0] > 0


def count_elements(model: Model) -> int:
    """Return how many elements all forces of a model have."""
    return sum(len(force.nodes) for force in model.forces.values())


def align(worlds: Sequence[Sequence[K]]) -> tuple[tuple[K, ...], tuple[tuple[int, ...], ...]]:
    """Return columns that hold the kinds of each world in order, and where each lies in them."""
    kinds: list[K] = []
    different = dict.fromkeys(map(tuple, worlds))
    for world in different:
        at = 0
        for kind in world:
            if kind in kinds[at:]:
                at = kinds.index(kind, at)
            else:
                kinds.insert(at, kind)
            at += 1
    places = {}
    for world in different:
        columns: list[int] = []
        for kind in world:
            columns.append(kinds.index(kind, columns[-1] + 1 if columns else 0))
        places[world] = tuple(columns)
    return tuple(kinds), tuple(places[tuple(world)] for world in worlds)


def permuted(rows: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    """Return (..., n_elements, k) rows of elements in an order; None: as they are."""
    return rows if order is None else rows[..., order, :]


def spread(of_world: Sequence[T], columns: Sequence[int], absent: Sequence[T]) -> list[T]:
    """Return what a world has by force as it has it by column, of `absent` where it has none."""
    by_column = list(absent)
    for column, value in zip(columns, of_world, strict=True):
        by_column[column] = value
    return by_column


def lay_out(
    models: Sequence[Model], n_rows: Sequence[Sequence[int]], n_parts: int, *, apart: bool = False
) -> Layout:
    """Return the layout of worlds whose series have so many rows, in `n_parts` groups or more.

    0 is one group, whatever its size, if it can be, in patches for the whole of a GPU; `apart` is
    for its blocks. `n_rows` are by world and force.
    """
    in_patches = n_parts == 0 and not apart
    forces = [tuple(model.forces.values()) for model in models]
    orders = tuple(tuple(morton_order(f) if in_patches else None for f in fs) for fs in forces)
    if sum(count_elements(model) + model.n_rows for model in models) > KEPT_SIZE:
        return _lay_out(models, forces, orders, n_rows, n_parts, apart=apart)
    worlds = [
        (model.n_nodes, model.n_rows, model.n_bodies, *map(_content, world_forces, own_orders))
        for model, world_forces, own_orders in zip(models, forces, orders, strict=True)
    ]
    key = (n_parts, apart, GROUP, tuple(worlds), tuple(map(tuple, n_rows)))
    with _lock:
        layout = _kept.pop(key, None)
    if layout is None:
        layout = _lay_out(models, forces, orders, n_rows, n_parts, apart=apart)
    with _lock:
        _kept[key] = layout  # now the youngest
        if len(_kept) > KEPT_LAYOUTS:
            del _kept[next(iter(_kept))]
    return layout


def _content(force: Force, order: np.ndarray | None) -> tuple[ElementKind, bytes, bytes]:
    """Return what the layout of a force depends on."""
    order_bytes = b"" if order is None else order.tobytes()
    return force.kind, np.asarray(force.nodes, np.int64).tobytes(), order_bytes


def _lay_out(
    models: Sequence[Model],
    forces: Sequence[Sequence[Force]],
    orders: tuple[tuple[np.ndarray | None, ...], ...],
    n_rows: Sequence[Sequence[int]],
    n_parts: int,
    *,
    apart: bool,
) -> Layout:
    placement = Placement(models, apart=apart)
    kinds, columns = align([[force.kind for force in world] for world in forces])
    none = [np.zeros((0, kind.n_nodes), np.int64) for kind in kinds]
    n_rows = [spread(rows, at, [1] * len(kinds)) for rows, at in zip(n_rows, columns, strict=True)]
    group_ends = np.arange(len(models) + 1)
    if not apart:
        group_ends = group_worlds([count_elements(model) for model in models], n_rows, n_parts)
    nodes = [
        spread(
            [
                placement.rows(w, permuted(f.nodes, o))
                for f, o in zip(world, orders[w], strict=True)
            ],
            columns[w],
            none,
        )
        for w, world in enumerate(forces)
    ]
    joined = join(nodes, group_ends)
    rows_of = [n for first in group_ends[:-1] for n in n_rows[first]]  # of each row of the table
    table = make_table(kinds, [len(elements) for elements in joined], rows_of)
    kinds_of = [kinds[row % len(kinds)] for row in range(len(joined))]
    moves = [kind.uses_velocity for kind in kinds_of]
    owners = [elements.ravel() for elements in joined]
    own_slots = [_slots(*pair) for pair in zip(table[:, SLOTS], joined, strict=True)]
    n_slots = sum(
        3 * TILE * n * kinds[row % len(kinds)].n_nodes
        for row, n in enumerate(table[:, N_TILES].tolist())
    )
    patches, number = None, np.uint32
    if n_parts == 0 and not apart:
        patches, joined, owners = cut_patches(joined, kinds_of, placement.n_rows)
        own_slots = _patch_slots(owners, [kind.pairs is not None for kind in kinds_of], table)
        n_slots, number = 3 * sum(map(len, owners)), np.uint16
    sums = _slot_lists(owners, own_slots, placement.n_rows)
    moving, moving_slots = (list(compress(by_row, moves)) for by_row in (owners, own_slots))
    velocity_sums = _slot_lists(moving, moving_slots, placement.n_rows)
    starts = np.zeros((0, 6), np.int64)
    if apart:
        slots = np.append(table[:: len(kinds), SLOTS] if kinds else 0 * group_ends[1:], n_slots)
        rows = placement.node_ends + placement.point_ends
        starts = np.stack(
            [
                rows,
                placement.node_ends,
                placement.body_ends,
                slots,
                sums[0][rows],
                velocity_sums[0][rows],
            ],
            axis=1,
        )
        table[:, SLOTS] -= np.repeat(slots[:-1], len(kinds))
        joined = [elements - rows[row // len(kinds)] for row, elements in enumerate(joined)]
        sums, velocity_sums = (_own_sums(*lists, rows, slots) for lists in (sums, velocity_sums))
    (node_ptr, node_slots), (velocity_ptr, velocity_slots) = sums, velocity_sums
    flat = [to_tiles(elements, np.dtype(number)) for elements in joined]
    return Layout(
        kinds=kinds,
        columns=columns,
        table=table,
        nodes=np.concatenate([*flat, np.zeros(0, number)]),
        node_ptr=node_ptr,
        node_slots=node_slots,
        velocity_ptr=velocity_ptr,
        velocity_slots=velocity_slots,
        world_of=placement.world_of(),
        group_ends=group_ends,
        node_ends=placement.node_ends,
        point_ends=placement.point_ends,
        body_ends=placement.body_ends,
        element_starts=_element_starts(nodes, group_ends),
        starts=starts,
        orders=orders,
        patches=patches,
        n_slots=n_slots,
    )


def group_worlds(sizes: Sequence[int], n_rows: Sequence[Sequence[int]], n_parts: int) -> np.ndarray:
    """Return which worlds share a group, (n_groups + 1,) ends; `n_parts` or more if it can be.

    `sizes`: elements of each world; `n_rows`: rows of each of its series, alike in one group,
    since a row of the table has one stride.
    """
    limit = min(GROUP, -(-sum(sizes) // n_parts)) if n_parts else sum(sizes)
    ends, filled = [0], 0
    for world, size in enumerate(sizes):
        if world > ends[-1] and (filled + size > limit or n_rows[world] != n_rows[world - 1]):
            ends.append(world)
            filled = 0
        filled += size
    return np.array([*ends, len(sizes)])


class Placement:
    """Where each world's nodes, body points and bodies are among those of all worlds."""

    def __init__(self, models: Sequence[Model], *, apart: bool) -> None:
        def ends(counts: list[int]) -> np.ndarray:
            return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

        self.node_ends = ends([model.n_nodes for model in models])
        self.point_ends = ends([model.n_rows - model.n_nodes for model in models])
        self.body_ends = ends([model.n_bodies for model in models])
        self.apart = apart

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
        node_rows, points = own_rows(world, self.node_ends, self.point_ends, apart=self.apart)
        n_nodes = node_rows.stop - node_rows.start
        return nodes + np.where(nodes < n_nodes, node_rows.start, points.start - n_nodes)


def own_rows(
    world: int, node_ends: np.ndarray, point_ends: np.ndarray, *, apart: bool
) -> tuple[slice, slice]:
    """Return the rows of X of a world's nodes and of its body points."""
    n0, n1, k0, k1 = (
        *node_ends[world : world + 2].tolist(),
        *point_ends[world : world + 2].tolist(),
    )
    first = n0 + k0 if apart else n0
    points = first + n1 - n0 if apart else int(node_ends[-1]) + k0
    return slice(first, first + n1 - n0), slice(points, points + k1 - k0)


def make_table(
    kinds: Sequence[ElementKind], n_elements: Sequence[int], n_rows: Sequence[int]
) -> np.ndarray:
    """Return the table: where the blocks of each force of each group begin."""
    row_kinds = [kinds[row % len(kinds)] for row in range(len(n_elements))]
    n_tiles = np.array([-(-n // TILE) for n in n_elements], np.int64)
    widths = {
        NODES: [kind.n_nodes for kind in row_kinds],
        CONSTS: [kind.n_consts for kind in row_kinds],
        PARAMS: [kind.n_params for kind in row_kinds],
        SERIES: [n * kind.n_series for n, kind in zip(n_rows, row_kinds, strict=True)],
    }
    table = np.zeros((len(row_kinds), 7), np.int64)
    for column, width in widths.items():
        sizes = n_tiles * TILE * np.array(width, np.int64)
        table[:, column] = np.cumsum(sizes) - sizes
    table[:, N_TILES] = n_tiles
    table[:, SLOTS] = 3 * table[:, NODES]
    strides = [kind.n_series if n > 1 else 0 for n, kind in zip(n_rows, row_kinds, strict=True)]
    table[:, SERIES_STRIDE] = n_tiles * TILE * np.array(strides, np.int64)
    return table


def _slots(start: int, nodes: np.ndarray) -> np.ndarray:
    """Return the slots of the nodes of elements, (n_elements k,), whose tiles' begin at `start`."""
    n, k = nodes.shape
    e, a = np.divmod(np.arange(n * k), k)
    return start + (e // TILE * k + a) * 3 * TILE + e % TILE


def _patch_slots(
    owners: Sequence[np.ndarray], have_pairs: Sequence[bool], table: np.ndarray
) -> list[np.ndarray]:
    """Return where the sums of the nodes of patches lie; elements with pairs come after them.

    Where these begin is written to the table.
    """
    lengths, behind = np.array([*map(len, owners)], np.int64), np.array(have_pairs, bool)
    order = np.argsort(behind, kind="stable")
    firsts = np.zeros_like(lengths)
    firsts[order] = np.cumsum(lengths[order]) - lengths[order]
    table[behind, SLOTS] = firsts[behind]
    return [first + np.arange(n) for first, n in zip(firsts, lengths, strict=True)]


def _slot_lists(
    owners: Sequence[np.ndarray], slots: Sequence[np.ndarray], n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which slots each row of X adds up, in their order here.

    `owners`: the row that each slot is for. Only forces of one group touch a node.
    """
    owner, slot = (np.concatenate([*arrays, np.zeros(0, np.int64)]) for arrays in (owners, slots))
    order = np.argsort(owner, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_rows))])
    return ptr.astype(np.uint32), slot[order].astype(np.uint32)


def _own_sums(
    ptr: np.ndarray, slots_of: np.ndarray, rows: np.ndarray, slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of slots with each world's own numbers, and one entry of `ptr` more for each."""
    worlds = np.repeat(np.arange(len(rows) - 1), np.diff(rows) + 1)
    firsts = ptr[rows].astype(np.int64)
    own_ptr = ptr[np.arange(len(worlds)) - worlds] - firsts[worlds]
    own_slots = slots_of - np.repeat(slots[:-1], np.diff(firsts))
    return own_ptr.astype(np.uint32), own_slots.astype(np.uint32)


def _element_starts(nodes: Sequence[Sequence[np.ndarray]], group_ends: np.ndarray) -> np.ndarray:
    """Return where each world's elements begin among its group's, (n_worlds, n_columns)."""
    counts = np.array([[len(elements) for elements in world] for world in nodes], np.int64)
    for first, last in pairwise(group_ends):
        in_group = counts[first:last]
        counts[first:last] = np.cumsum(in_group, axis=0) - in_group
    return counts
