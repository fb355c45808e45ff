r"""The search for pairs on a GPU: the lists of `adjsim/pairs/search.py`, to the bit, in any order.

    boxes and cells of features -> keys, sorted -> how many pairs each first feature has -> sums
    of these -> pairs -> keys (row, entry), sorted -> what each row of a surface adds up

The features of all contacts lie one after the other, by the elements of their surfaces: the second
ones of all sets of pairs, then the first ones. A thread takes a feature. It runs the functions that
the CPU runs: pairs of a first feature are put in order by the second, so no list depends on the
order of threads, nor on the grid. Its cells are fixed with the first positions: what has grown much
larger since lies in one cell that all look into.

The host reads one number of a search: how many pairs there are. Where edges go through faces, or
pairs have changed sides since the last search, it has more than 40 bits, and the host looks for
what to say. The first search also reads the positions.

Tests: `tests/cuda/emulate/lists.py`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from adjsim.algebra.vec3 import dot, sub
from adjsim.engine.changing import ChangingForce, changing_forces
from adjsim.engine.cuda_pairs import CORNERS, TeamPairs
from adjsim.engine.layouts import make_table
from adjsim.engine.packing import PackedModels
from adjsim.jit.backend import device_fn
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import bare, leaves, on_device
from adjsim.jit.devices import Device, array_module
from adjsim.model import Model
from adjsim.pairs.near import MOST
from adjsim.pairs.pair_force import N_PARAMS, PAIR
from adjsim.pairs.search import (
    MOST_CELLS,
    PIERCED,
    FoundPairs,
    HashGrid,
    Near,
    PairSet,
    bucket_of,
    fill,
    is_finite_box,
    key_of,
    level_of,
    middle,
    point,
    search_feature,
    side_of,
    write_box,
)
from adjsim.tiles.assembly import N_TILES, TILE


WIDER = 1.5  # than on the CPU: pairs cost a GPU little
ROOM = 1.5  # how much larger a feature may grow before it lies in larger cells
FINER = 4.0  # cells of the next level are this many times as large
ALL = 1e308  # the width of the last cell [m]
HALF = 32  # bits of a key
LOWER = (1 << HALF) - 1
TROUBLE = 1 << 40


class SearchTables(NamedTuple):
    """What does not change from search to search; `features` by elements, the last one repeated."""

    features: Any  # (n_seconds + n_firsts, 3)
    weights: Any  # of the second ones
    set_of: Any  # the set of pairs of each feature

    # Of sets of pairs, those last that tell where edges go through faces.
    codes: Any
    same: Any
    first_ptr: Any  # among the features
    second_ptr: Any
    bucket_ptr: Any
    reach: Any
    closer: Any
    origins: Any
    widths: Any  # (n_sets, n_levels)
    levels: Any  # (n_levels,) 1: any level may have boxes

    # Of elements.
    at_rest: Any
    guides: Any
    limits: Any  # square of how far one may move between searches unseen by a check [m^2]


class Entries(NamedTuple):
    """The boxes of the second features by cells, as `HashGrid` has them, of all sets."""

    starts: Any
    order: Any
    keys: Any
    boxes: Any


class Cells(NamedTuple):
    """What `level_of` and `middle` read of a `HashGrid`."""

    origin: Any
    widths: Any


@device_fn
def place_of(tables, boxes, q):
    """Return the cell of a second feature and its bucket: the one behind all if it has none."""
    k, extent = tables.set_of[q], 0.0
    for c in range(3):
        extent = max(extent, boxes[1, q, c] - boxes[0, q, c])
    if not (is_finite_box(boxes, q) and extent <= ALL):
        return np.int64(0), tables.bucket_ptr[tables.bucket_ptr.size - 1]
    cells = Cells(tables.origins[k], tables.widths[k])
    level = level_of(cells, extent)
    x, y, z = middle(cells, level, boxes, q)
    first, last = tables.bucket_ptr[k], tables.bucket_ptr[k + 1]
    return key_of(level, x, y, z), first + bucket_of(level, x, y, z, last - first)


@device_fn
def box_thread(i, args):
    """Write the box of a feature; of a second one also the key: its bucket, and its number."""
    tables, at, boxes, keys = args
    is_second = i < keys.size
    margin = tables.reach[tables.set_of[i]] if is_second else 0.0
    write_box(at, tables.features[i], margin, boxes[0, i], boxes[1, i])
    if is_second:
        _, bucket = place_of(tables, boxes, i)
        keys[i] = bucket << HALF | i


@device_fn
def enter_thread(at, args):
    """Write an entry of the grid."""
    tables, boxes, sorted_keys, entries = args
    q = sorted_keys[at] & LOWER
    entries.order[at] = q - tables.second_ptr[tables.set_of[q]]
    entries.keys[at], _ = place_of(tables, boxes, q)
    for c in range(3):
        entries.boxes[at, c], entries.boxes[at, 3 + c] = boxes[0, q, c], boxes[1, q, c]


@device_fn
def pairs_of(i, search, begin, members, numbers, gaps):
    """Write the pairs of a first feature from `begin` on, if there is room; return their end."""
    tables, entries, at, boxes = search
    k = tables.set_of[i]
    p, lower = i - tables.first_ptr[k], boxes[:, tables.first_ptr[k] : tables.first_ptr[k + 1]]
    first, last = tables.second_ptr[k], tables.second_ptr[k + 1]
    pair_set = PairSet(
        tables.codes[k], tables.features[tables.first_ptr[k] : tables.first_ptr[k + 1]],
        tables.features[first:last], tables.weights[first:last], tables.same[k] != 0,
    )  # fmt: skip
    starts = entries.starts[tables.bucket_ptr[k] : tables.bucket_ptr[k + 1] + 1]
    grid = HashGrid(
        entries.boxes, tables.origins[k], tables.widths[k], starts, entries.keys, entries.order,
        tables.levels,
    )  # fmt: skip
    near = Near(at, tables.reach[k], tables.at_rest, tables.closer[k])
    end = search_feature(pair_set, near, lower, grid, p, begin, numbers, gaps)
    fill(pair_set, p, begin, min(end, members.shape[0]), members, numbers)
    return end


@device_fn
def count_thread(i, args):
    """Count the pairs of a first feature; an edge that goes through a face is trouble."""
    search, none, counts = args
    first = i + search[0].weights.size
    n = pairs_of(first, search, np.int64(0), none.rows, none.numbers, none.gaps)
    is_through = search[0].codes[search[0].set_of[first]] == PIERCED
    counts[i] = min(n, 1) * TROUBLE if is_through else n


@device_fn
def trouble_thread(i, args):
    """Look whether a pair found before has changed sides, or an element has moved too far.

    A pair that is not among them may have, where an element has moved by half of the reach.
    """
    tables, pairs, before, at, counts = args
    n, is_trouble = pairs.rows.shape[0], False
    if i < n:
        first, r_first = side_of(pairs.numbers[i, 0], pairs.rows[i], before)
        then, r_then = side_of(pairs.numbers[i, 0], pairs.rows[i], at)
        is_trouble = first * then < 0 and dot(r_first, r_then) < 0.0
    else:
        e = i - n
        guide = tables.guides[e]
        shared = sub(point(at, guide), point(before, guide))
        moved = sub(sub(point(at, e), point(before, e)), shared)
        is_trouble = dot(moved, moved) > tables.limits[e]
    counts[i] = TROUBLE if is_trouble else 0


@device_fn
def write_thread(i, args):
    """Write the pairs of a first feature where the sums of counts say."""
    search, pairs, total = args
    first = i + search[0].weights.size
    pairs_of(first, search, total[i], pairs.rows, pairs.numbers, pairs.gaps)


@device_fn
def spread(lane, places, members, source, out):
    """Write the parameters of a lane, taken from the first element of its pair."""
    n, tile, q = members.shape[0], lane // TILE, lane % TILE
    place = places[members[lane if lane < n else tile * TILE, 0]]
    for column in range(N_PARAMS):
        out[(tile * N_PARAMS + column) * TILE + q] = source[place + column * TILE]


@device_fn
def spread_thread(lane, args):
    """Write tangents of parameters as a lane reads them."""
    spread(lane, *args)


@device_fn
def lane_thread(lane, args):
    """Write what a lane reads, and the keys of its entries: row of a surface, entry.

    Lanes behind the last pair repeat the first of their tile, and count for nothing.
    """
    searched, pairs, params, keys = args
    members, n = searched.rows, searched.rows.shape[0]
    tile, q, is_pair = lane // TILE, lane % TILE, lane < n
    m = lane if is_pair else tile * TILE
    for a in range(CORNERS):
        at = (tile * CORNERS + a) * TILE + q
        pairs.pair_nodes[at] = pairs.rows[members[m, a]]
        if is_pair:
            keys[CORNERS * m + a] = members[m, a] << HALF | (CORNERS * m + a)
        else:
            pairs.entries[at] = CORNERS * n
    for a in range(2):
        number = searched.numbers[m, a] if is_pair else 0.0
        pairs.pair_consts[(tile * 2 + a) * TILE + q] = number
    spread(lane, pairs.param_places, members, params, pairs.pair_params)


@device_fn
def entry_thread(k, args):
    """Write which slot an entry of the sums is of, without a mark, and where that of a slot is."""
    pairs, keys = args
    entry = keys[k] & LOWER
    m, a = entry // CORNERS, entry % CORNERS
    row, q = m // TILE * CORNERS + a, m % TILE
    pairs.sum_slots[k], pairs.marks[k] = row * 3 * TILE + q, 0
    pairs.entries[row * TILE + q] = k


class ServedSteps(NamedTuple):
    """Which steps pairs served, from `first` to before `stop`, and the positions they count."""

    first: int
    stop: int
    pairs: Any
    found_at: Any


class KeptPairs:
    """The pairs that served steps of a run forward, for the sweep back over them.

    Where they would take more bytes than there is room for, those kept first are dropped.
    """

    def __init__(self) -> None:
        self.kept: list[ServedSteps] = []

    def add(self, steps: ServedSteps, room: int) -> None:
        """Keep the pairs of these steps; they replace those kept for the same steps.

        At the first step of a run all others are dropped.
        """
        if steps.first == 0:
            self.kept = []
        if self.kept and self.kept[-1].pairs is steps.pairs and self.kept[-1].stop == steps.first:
            steps = steps._replace(first=self.kept.pop().first)
        inside = [steps.first <= old.first and old.stop <= steps.stop for old in self.kept]
        self.kept = [old for old, is_again in zip(self.kept, inside, strict=True) if not is_again]
        self.kept.append(steps)
        sizes = [
            sum(array.nbytes for array in leaves((old.pairs, old.found_at))) for old in self.kept
        ]
        while sizes and sum(sizes) > room:
            del sizes[0], self.kept[0]

    def of_step(self, step: int) -> ServedSteps | None:
        """Return the pairs that served a step last; None: there are none any more."""
        return next((old for old in self.kept[::-1] if old.first <= step < old.stop), None)


class PairSearch:
    """The pairs of packed models that were found last, on the device.

    `found_pairs` has the elements of pairs in place of rows of X, `pairs` what steps take.
    """

    def __init__(self, models: Sequence[Model], packed: PackedModels, params: Any) -> None:
        self.sets = changing_forces(models, packed)
        self.dtype, self.params = packed.params.dtype, params
        self.element_ptr = np.cumsum([0, *(len(contact.rows) for contact in self.sets)])
        columns = zip(*((c.rows, c.places, c.params) for c in self.sets), strict=True)
        self.rows, self.places, self.param_places = on_device(tuple(map(np.concatenate, columns)))
        self.reaches: list[float] = []
        self.tables: Any = None
        self.found_pairs: Any = None
        self.found_at: Any = None  # positions of elements where they were found
        self.pairs: Any = None
        self.kept = KeptPairs()
        self.moved_on = False  # whether a sweep has ended since the pairs no longer serve

    def begin(self, x: np.ndarray) -> None:
        """Choose reaches, cells and guides by the first positions of all rows."""
        for contact in self.sets:
            rho, reach = contact.force.thickness, contact.force.reach(x[contact.rows])
            self.reaches.append(rho + WIDER * (reach - rho))
        n = np.diff(self.element_ptr)
        reach = np.array(self.reaches)
        rho = np.array([contact.force.thickness for contact in self.sets])
        limits = np.square((1.0 - MOST) * 0.5 * (reach - rho)).repeat(n).astype(self.dtype)
        at = np.concatenate([x[contact.rows] for contact in self.sets]).astype(np.float64)
        tables, self.n_own = search_tables(self.sets, self.element_ptr, self.reaches, at)
        first_keys, row_keys = (
            np.arange(size + 1) << HALF for size in (tables.bucket_ptr[-1], len(at))
        )
        self.tables, self.limits, self.first_keys, self.row_keys, self.no_sums = on_device(
            (tables, limits, first_keys, row_keys, 0 * row_keys)
        )

    def find(self, x: Any, *, checked: bool, since_last: bool) -> bool:
        """Find the pairs near positions of all rows; return whether there may be trouble.

        That is looked for where it is `checked`: in these positions, and `since_last` on the way
        from the last ones.
        """
        xp, tables = array_module(Device.CUDA), self.tables
        n_features, n_seconds = tables.features.shape[0], tables.weights.size
        at, boxes = on_device((x[bare(self.rows)], xp.empty((2, n_features, 3))))
        keys = xp.empty(n_seconds, np.int64)
        launch(box_thread, n_features, (tables, at, boxes, *on_device((keys,))))
        keys = xp.sort(keys)
        order, cells = (xp.empty(n_seconds, np.int64) for _ in range(2))
        starts = xp.searchsorted(keys, bare(self.first_keys))
        entries = on_device(Entries(starts, order, cells, xp.empty((n_seconds, 6))))
        launch(enter_thread, n_seconds, (tables, boxes, *on_device((keys,)), entries))
        search = tables, entries, at, boxes
        n = n_features - n_seconds if checked else self.n_own
        n_more = self.found_pairs.rows.shape[0] + at.shape[0] if checked and since_last else 0
        counts = xp.zeros(1 + n + n_more, np.int64)
        launch(count_thread, n, (search, room_for(xp, 0), *on_device((counts[1 : n + 1],))))
        if n_more:
            args = (tables, self.found_pairs, self.found_at, at, *on_device((counts[n + 1 :],)))
            launch(trouble_thread, n_more, args)
        total = xp.cumsum(counts)
        last = int(total[-1])  # the host waits
        pairs = room_for(xp, last % TROUBLE)
        launch(write_thread, self.n_own, (search, pairs, *on_device((total,))))
        self.use(pairs, at)
        return last >= TROUBLE

    def use(self, found_pairs: FoundPairs, found_at: Any) -> None:
        """Have pairs that were found at positions of elements serve."""
        is_new = found_pairs is not self.found_pairs
        self.found_pairs, self.found_at, self.moved_on = found_pairs, found_at, False
        if is_new:
            self.pairs = self.team_pairs()

    def by_contact(self, at: np.ndarray) -> list[np.ndarray]:
        """Return the positions of elements, split by contact."""
        return np.split(at, self.element_ptr[1:-1])

    def find_on_host(self, positions: Sequence[np.ndarray]) -> tuple[list[FoundPairs], list]:
        """Return the pairs near positions of each contact, as the CPU finds them, and 0 away."""
        each = zip(self.sets, positions, self.reaches, strict=True)
        return [contact.force.find(x, reach) for contact, x, reach in each], [0.0] * len(self.sets)

    def team_pairs(self) -> TeamPairs:
        """Return the pairs that were found as elements, and what each row of a surface adds up."""
        xp, n = array_module(Device.CUDA), self.found_pairs.rows.shape[0]
        table, n_entries = make_table((PAIR,), [n], [1]), CORNERS * n
        n_lanes = int(table[0, N_TILES]) * TILE
        keys, none, ptr = xp.empty(n_entries, np.int64), xp.empty(0, self.dtype), self.no_sums
        pairs = TeamPairs(
            table, xp.empty(4 * n_lanes, np.uint32), xp.empty(2 * n_lanes, self.dtype),
            xp.empty(N_PARAMS * n_lanes, self.dtype), none, xp.zeros(12 * n_lanes, self.dtype),
            none, none, none, self.rows, self.places, self.param_places, ptr,
            xp.empty(n_entries, np.int64), xp.empty(n_entries, np.uint32),
            xp.empty(4 * n_lanes, np.uint32), self.found_at, self.tables.guides, self.limits,
            xp.empty(1, np.int64),
        )  # fmt: skip
        pairs = on_device(pairs)
        launch(lane_thread, n_lanes, (self.found_pairs, pairs, self.params, *on_device((keys,))))
        if n > 0:
            keys = xp.sort(keys)
            (ptr,) = on_device((xp.searchsorted(keys, bare(self.row_keys)),))
        launch(entry_thread, n_entries, (pairs, *on_device((keys,))))
        return pairs._replace(sum_ptr=ptr)

    def with_tangents(self, pairs: TeamPairs, params: Any) -> TeamPairs:
        """Return the pairs with tangents of parameters, and room for tangents of forces."""
        xp, n = array_module(Device.CUDA), pairs.pair_params.size
        spread, more = on_device((xp.empty(n, self.dtype), xp.zeros(pairs.slots.size, self.dtype)))
        args = (self.param_places, self.found_pairs.rows, *on_device((params,)), spread)
        launch(spread_thread, n // N_PARAMS, args)
        return pairs._replace(more_slots=more, more_params=spread)


def room_for(xp: Any, n: int) -> FoundPairs:
    """Return room for n pairs, without the keys of the CPU."""
    rows, numbers, gaps = xp.empty((n, 4), np.int64), xp.empty((n, 2)), xp.empty(n)
    return on_device(FoundPairs(rows, numbers, gaps, xp.empty(0)))


def search_tables(
    sets: Sequence[ChangingForce], element_ptr: np.ndarray, reaches: Sequence[float], x: np.ndarray
) -> tuple[SearchTables, int]:
    """Return the tables of contacts, and how many first features belong to their own pairs.

    `x`: the first positions of their elements.
    """
    searches, checks = [], []
    at_rest, guides, limits = np.zeros_like(x), np.zeros(len(x), np.int64), np.zeros(len(x))
    for contact, reach, (lo, hi) in zip(sets, reaches, pairwise(element_ptr), strict=True):
        force = contact.force
        closer = -1.0 if force.rest is None else force.thickness
        at_rest[lo:hi] = 0.0 if force.rest is None else force.rest
        guides[lo:hi] = lo + np.argmin(np.square(x[lo:hi] - x[lo:hi].mean(axis=0)).sum(axis=1))
        limits[lo:hi] = (0.5 * reach) ** 2
        searches += [(pair_set, lo, reach, closer) for pair_set in force.pair_sets()]
        checks += [(pair_set, lo, 0.0, -1.0) for pair_set in force.piercing_sets()]
    pair_sets, starts, reach, closer = map(list, zip(*searches, *checks, strict=True))
    counting = [np.flatnonzero(pair_set.weights) for pair_set in pair_sets]
    both = list(zip(pair_sets, counting, starts, strict=True))
    seconds = [_elements_of(pair_set.second[which], start) for pair_set, which, start in both]
    firsts = [_elements_of(pair_set.first, start) for pair_set, _, start in both]
    n_seconds, n_firsts = ([len(rows) for rows in features] for features in (seconds, firsts))
    cells = [_cells(x[rows], margin) for rows, margin in zip(seconds, reach, strict=True)]
    n_levels, widths, origins = map(np.array, zip(*cells, strict=True))
    widths = widths[:, None] * FINER ** np.arange(n_levels.max() + 1)
    widths[:, -1] = ALL
    numbers, n_buckets = np.arange(len(pair_sets)), [1 << (2 * n).bit_length() for n in n_seconds]
    return SearchTables(
        features=np.concatenate([*seconds, *firsts]),
        weights=np.concatenate([p.weights[which] for p, which, _ in both]),
        set_of=np.concatenate([numbers.repeat(n_seconds), numbers.repeat(n_firsts)]),
        codes=np.array([pair_set.code for pair_set in pair_sets]),
        same=np.array([pair_set.same for pair_set in pair_sets], np.int64),
        first_ptr=np.cumsum([sum(n_seconds), *n_firsts]),
        second_ptr=np.cumsum([0, *n_seconds]),
        bucket_ptr=np.cumsum([0, *n_buckets]),
        reach=np.array(reach),
        closer=np.array(closer),
        origins=origins,
        widths=widths,
        levels=np.ones(widths.shape[1], np.int64),
        at_rest=at_rest,
        guides=guides,
        limits=limits,
    ), sum(n_firsts[: len(searches)])


def _elements_of(rows: np.ndarray, start: int) -> np.ndarray:
    """Return the elements of features, (n, 3), of which the first is `start`."""
    return start + rows[:, np.minimum(np.arange(3), rows.shape[1] - 1)]


def _cells(corners: np.ndarray, margin: float) -> tuple[int, float, np.ndarray]:
    """Return how many levels features need, the width of the first, and where cells begin.

    `corners`: (n, 3, 3), of features that may turn.
    """
    sides = np.square(corners - corners[:, [1, 2, 0]]).sum(axis=2).max(axis=1, initial=0.0)
    extents = np.sqrt(sides) + 2.0 * margin
    largest, mean = extents.max(initial=0.0), extents.mean() if len(extents) else 0.0
    width = ROOM * max(min(largest, 2.0 * mean), 1e-300)
    n_levels = 2 + int(np.ceil(np.log(max(ROOM * largest / width, 1.0)) / np.log(FINER)))
    middle = corners.reshape(-1, 3).mean(axis=0) if len(corners) else np.zeros(3)
    return n_levels, width, middle - 0.5 * MOST_CELLS * width
