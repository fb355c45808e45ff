r"""Finds the pairs of features that are near each other, on a grid of whole numbers.

Each feature has a box. Those of the one set are entered in the cell of their middle, in a hash
table; large ones in a grid of larger cells. A box of the other set looks into all cells where boxes
may lie that overlap it. The distance of the features decides then. Pairs come in the order of the
first set, and then of the second.

A pair beyond the sum of the radii has no force, exactly: all lists that hold the nearer ones, in
the same order, give the same bits. What is found at one state therefore serves as long as no row
has moved farther than half of what was added to the reach. If few rows have, only pairs with one of
these are found again: `find_pairs` of the rows that moved, `merge_pairs` with the others.

Tests: `tests/pairs/test_search.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from adjsim.algebra.vec3 import axpy, cross, dot, neg, norm, scale, sub
from adjsim.jit.backend import device_fn, loop_kernel, shared_fn
from adjsim.pairs.closest import EDGES, FACE, closest


PIERCED = 4  # the code of an edge and a face that it goes through
MOST_CELLS = 2.0**19 - 1.0  # along an axis
KEY_BITS = 29  # of the number of a feature in a key
LAST = np.iinfo(np.int64).max  # behind all keys
ROUNDING = 1e-5  # of the extents of a pair: more than float32 makes of it
FIRST, SECOND, THIRD = 73856093, 19349663, 83492791  # of Teschner et al. 2003


class PairSet(NamedTuple):
    """What may touch what: the rows of features, (n, k), and how each second one counts."""

    code: int
    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray
    same: bool  # two edges of one set: each pair once


class Near(NamedTuple):
    """Positions and reach, and the positions at rest with the distance of neighbours there."""

    x: np.ndarray
    reach: float
    at_rest: np.ndarray
    closer: float


class FoundPairs(NamedTuple):
    """Pairs: their rows of X, (n, 4), code and weight, (n, 2), and distances, (n,).

    They are in the order of `keys`, (n,), which count sets, first and second features.
    """

    rows: np.ndarray
    numbers: np.ndarray
    gaps: np.ndarray
    keys: np.ndarray


class HashGrid(NamedTuple):
    """The boxes of the second set, each in the cell of its middle.

    Cells of a level have its width, from `origin` on, and boxes in them at most that. `levels`: how
    many boxes each has. `starts`: where the lists of a hash table begin in `keys`, `order` and
    `boxes`, the cells of the boxes, the numbers of their features, and their ends, (n, 6).
    """

    boxes: np.ndarray
    origin: np.ndarray
    widths: np.ndarray
    starts: np.ndarray
    keys: np.ndarray
    order: np.ndarray
    levels: np.ndarray


def find_pairs(
    sets: tuple[PairSet, ...],
    x: np.ndarray,
    reach: float,
    rest: tuple[np.ndarray, float] | None,
    changed: np.ndarray | None = None,
    room: int = 0,
) -> FoundPairs:
    """Return the pairs within reach.

    `rest`, if given, are positions and a distance: pairs that are closer there are left out, as are
    those that share a row. `changed` says of each row whether pairs with it are found; None: all
    are. `room`: how many pairs to expect; more make the search begin again.
    """
    near = Near(x, reach, *((x, -1.0) if rest is None else rest))
    expected = room or (16 if changed is None else 1) * sum(len(each.first) for each in sets)
    parts, buffers, n = [], _pair_buffers(expected), 0
    for number, pair_set in enumerate(sets):
        lower, upper = boxes(x, pair_set.first, 0.0), boxes(x, pair_set.second, reach)
        searches = [(lower, pair_set.weights)]
        if changed is not None:
            others, changed_weights = np.empty_like(lower), np.empty(len(pair_set.weights))
            loop_kernel(split)(pair_set, changed, lower, others, changed_weights)
            searches.append((others, changed_weights))
        for of_first, weights in searches:
            grid = grid_of(upper, weights)
            if len(of_first[0]) == 0 or len(grid.keys) == 0:
                continue
            while True:
                rest_of = [buffer[n:] for buffer in buffers]
                count = loop_kernel(search)(number, pair_set, near, of_first, grid, *rest_of)
                if n + count <= len(buffers.gaps):
                    break
                parts.append(FoundPairs(*(buffer[:n].copy() for buffer in buffers)))
                n, buffers = 0, _pair_buffers(max(count, expected))
            n += count
    parts.append(FoundPairs(*(buffer[:n] for buffer in buffers)))
    pairs = parts[0]
    if len(parts) > 1:
        pairs = FoundPairs(*map(np.concatenate, zip(*parts, strict=True)))
    return pairs


def split(pair_set, changed, lower, others, weights):
    """Leave out the boxes of first features without a row that changed, in `others` those with one.

    The weights of second features without one are 0. A box that is no number is left out.
    """
    for p in range(pair_set.first.shape[0]):
        is_changed = has_any(changed, pair_set.first[p])
        for end in range(2):
            for c in range(3):
                value = lower[end, p, c]
                lower[end, p, c] = value if is_changed else np.nan
                others[end, p, c] = np.nan if is_changed else value
    for q in range(weights.size):
        weights[q] = pair_set.weights[q] if has_any(changed, pair_set.second[q]) else 0.0


@device_fn
def has_any(changed, rows):
    """Whether a feature has a row that has changed."""
    has = False
    for k in range(rows.shape[0]):
        has |= changed[rows[k]]
    return has


def merge_pairs(before: FoundPairs, changed: np.ndarray, new: FoundPairs) -> FoundPairs:
    """Return the pairs without a row that has changed and the new ones, by their keys."""
    merged = _pair_buffers(len(before.keys) + len(new.keys))
    n = loop_kernel(merge)(before, changed, new, np.argsort(new.keys), merged)
    return FoundPairs(*(column[:n] for column in merged))


def merge(before, changed, new, order, merged):
    """Write pairs, of which `new` have rows that changed, by their keys; return how many."""
    n, k = 0, 0
    following = new.keys[order[0]] if order.size else LAST
    for m in range(before.keys.size):
        a = before.rows[m]
        if changed[a[0]] | changed[a[1]] | changed[a[2]] | changed[a[3]]:
            continue
        while following < before.keys[m]:
            copy_pair(new, order[k], merged, n)
            k, n = k + 1, n + 1
            following = new.keys[order[k]] if k < order.size else LAST
        copy_pair(before, m, merged, n)
        n += 1
    for m in range(k, order.size):
        copy_pair(new, order[m], merged, n)
        n += 1
    return n


@device_fn
def copy_pair(pairs, m, merged, n):
    """Write pair m as number n of others."""
    for a in range(4):
        merged.rows[n, a] = pairs.rows[m, a]
    for a in range(2):
        merged.numbers[n, a] = pairs.numbers[m, a]
    merged.gaps[n], merged.keys[n] = pairs.gaps[m], pairs.keys[m]


def _pair_buffers(n: int) -> FoundPairs:
    return FoundPairs(
        np.empty((n, 4), np.int64), np.empty((n, 2)), np.empty(n), np.empty(n, np.int64)
    )


def grid_of(corners: np.ndarray, weights: np.ndarray) -> HashGrid:
    """Return the grid of the boxes that are finite and count."""
    counting, extents = np.empty(len(weights), np.int64), np.empty(len(weights))
    origin = np.full(3, np.inf)
    n, largest, total = loop_kernel(measure)(corners, weights, counting, extents, origin)
    counting, extents = counting[:n], extents[:n]
    size = max(min(largest, 2.0 * total / max(n, 1)), 1e-300)
    n_levels = 1
    while size * 2.0 ** (n_levels - 1) < largest:
        n_levels += 1
    grid = HashGrid(
        boxes=np.empty((n, 6)),
        origin=origin,
        widths=size * 2.0 ** np.arange(n_levels),
        starts=np.zeros((1 << (2 * n).bit_length()) + 1, np.int64),
        keys=np.empty(n, np.int64),
        order=np.empty(n, np.int64),
        levels=np.zeros(n_levels, np.int64),
    )
    loop_kernel(enter_all)(grid, corners, counting, extents)
    return grid


def boxes(x: np.ndarray, rows: np.ndarray, margin: float) -> np.ndarray:
    """Return the boxes of features, (2, n, 3)."""
    corners = np.empty((2, len(rows), 3))
    loop_kernel(write_boxes)(x, rows, margin, corners)
    return corners


def write_boxes(x, rows, margin, corners):
    """Write the boxes of features."""
    for i in range(rows.shape[0]):
        write_box(x, rows[i], margin, corners[0, i], corners[1, i])


@device_fn
def write_box(x, rows, margin, lower, upper):
    """Write the box of a feature."""
    for c in range(3):
        low = high = np.float64(x[rows[0], c])
        for k in range(1, rows.shape[0]):
            value = np.float64(x[rows[k], c])
            # Not min and max, which lose what is no number.
            low = value if not value >= low else low
            high = value if not value <= high else high
        lower[c], upper[c] = low - margin, high + margin


def measure(corners, weights, counting, extents, origin):
    """Write which boxes are finite and count, their largest extents, and their origin.

    Return how many they are, their largest extent, and the sum of all.
    """
    n, largest, total = 0, 0.0, 0.0
    for q in range(weights.size):
        if weights[q] != 0.0 and is_finite_box(corners, q):
            extent = 0.0
            for c in range(3):
                extent = max(extent, corners[1, q, c] - corners[0, q, c])
                origin[c] = min(origin[c], corners[0, q, c])
            counting[n], extents[n] = q, extent
            n, largest, total = n + 1, max(largest, extent), total + extent
    return n, largest, total


@device_fn
def cell_of(value, origin, width):
    """Return the number of the cell that a coordinate lies in; all beyond the ends share one."""
    return np.int64(min(max(math.floor((value - origin) / width), 0.0), MOST_CELLS))


@device_fn
def key_of(level, i, j, k):
    """Return a number for each cell."""
    return ((level << 19 | i) << 19 | j) << 19 | k


@device_fn
def bucket_of(level, i, j, k, n):
    """Return the list of a cell in a table of n, a power of two."""
    return ((i * FIRST) ^ (j * SECOND) ^ (k * THIRD) ^ level) & (n - 1)


@device_fn
def is_finite_box(box, i):
    """Whether a box has finite ends."""
    total = 0.0
    for c in range(3):
        total += box[0, i, c] + box[1, i, c]
    return total - total == 0.0


@device_fn
def share_row(a, b):
    """Whether two features share a row."""
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            if a[i] == b[j]:
                return True
    return False


@device_fn
def point(x, row):
    """Return a row of X as float64."""
    return (np.float64(x[row, 0]), np.float64(x[row, 1]), np.float64(x[row, 2]))


@device_fn
def pierces(p, q, a, b, c):
    """Whether the edge from p to q goes through the inside of the triangle of a, b and c."""
    normal = cross(sub(b, a), sub(c, a))
    above, below = dot(normal, sub(p, a)), dot(normal, sub(q, a))
    if not above * below < 0.0:
        return False
    along = sub(q, p)
    sides = (
        dot(along, cross(sub(a, p), sub(b, p))),
        dot(along, cross(sub(b, p), sub(c, p))),
        dot(along, cross(sub(c, p), sub(a, p))),
    )
    return min(sides) > 0.0 or max(sides) < 0.0


def _distance(code, y):
    """Return the distance of two features, less what it may be wrong by in float32."""
    (a, b, c), (d, e, f), (g, h, i) = y
    extent = abs(a) + abs(b) + abs(c) + abs(d) + abs(e) + abs(f) + abs(g) + abs(h) + abs(i)
    return exact_distance(code, y) - ROUNDING * extent


@device_fn
def exact_distance(code, y):
    """Return the distance of two features."""
    return segment_distance(y) if code == EDGES else norm(closest(code, y).r)


@device_fn
def segment_distance(y):
    """Return the distance of two edges."""
    e, start, end = y  # the one edge from the origin to e, the other from start to end
    f = sub(end, start)
    A, B, C, p, q = dot(e, e), dot(e, f), dot(f, f), dot(e, start), dot(f, start)
    det = A * C - B * B
    s = inside((p * C - B * q) / det) if det > 0.0 else 0.0
    t = inside((B * s - q) / C) if C > 0.0 else 0.0
    s = inside((B * t + p) / A) if A > 0.0 else 0.0
    return norm(sub(axpy(s, e, neg(start)), scale(t, f)))


@device_fn
def inside(t):
    """Return the number from 0 to 1 that is the nearest; no number if it is none."""
    return 0.0 if t < 0.0 else (1.0 if t > 1.0 else t)


distance, inlined_distance = shared_fn(_distance), device_fn(_distance)


@device_fn
def distance_of(code, a, b, x):
    """Return the distance of two features; 0 of an edge and a face that it goes through."""
    origin, last = point(x, a[0]), b.shape[0] - 1
    y_1, y_2 = sub(point(x, b[0]), origin), sub(point(x, b[min(1, last)]), origin)
    y_3 = sub(point(x, b[last]), origin)
    if code == PIERCED:
        through = pierces(origin, point(x, a[1]), point(x, b[0]), point(x, b[1]), point(x, b[last]))
        return 0.0 if through else np.inf
    if code == EDGES:
        return distance(3.0, (sub(point(x, a[1]), origin), y_1, y_2))
    return distance(np.float64(code), (y_1, y_2, y_3))


@device_fn
def fill(pair_set, p, begin, end, rows, numbers):
    """Write rows, code and weight of pairs of a feature; one of fewer corners repeats its last."""
    a, last = pair_set.first[p], pair_set.second.shape[1] - 1
    for m in range(begin, end):
        q = np.int64(numbers[m, 1])
        b = pair_set.second[q]
        rows[m, 0] = a[0]
        if pair_set.code == EDGES:
            rows[m, 1], rows[m, 2], rows[m, 3] = a[1], b[0], b[1]
        else:
            rows[m, 1], rows[m, 2], rows[m, 3] = b[0], b[min(1, last)], b[last]
        numbers[m, 0], numbers[m, 1] = pair_set.code, pair_set.weights[q]


def within(pairs: FoundPairs, far: np.ndarray) -> np.ndarray:
    """Return which pairs are closer than their rows can come where each moves so `far`, (n,)."""
    close = np.zeros(len(pairs.gaps), bool)
    loop_kernel(write_within)(pairs, far, close)
    return close


def write_within(pairs, far, close):
    """Write whether the rows of each pair can meet."""
    for m in range(close.size):
        a = pairs.rows[m]
        most = max(far[a[0]], far[a[1]], far[a[2]], far[a[3]])
        close[m] = pairs.gaps[m] <= 2.0 * most


def sides(rows: np.ndarray, numbers: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return on which side of its face a vertex is, of one edge another: 1, -1, or 0 for no other.

    0 is for those that lie beside each other, and for other pairs. Also the vectors between their
    closest points: the side of edges that are parallel is an accident of rounding, and changes
    while these do not turn.
    """
    signs, between = np.zeros(len(rows), np.int8), np.zeros((len(rows), 3))
    loop_kernel(write_sides)(rows, numbers, x, signs, between)
    return signs, between


def write_sides(rows, numbers, x, signs, between):
    """Write the side of each pair, and the vector between its closest points."""
    for m in range(rows.shape[0]):
        signs[m], (between[m, 0], between[m, 1], between[m, 2]) = side_of(numbers[m, 0], rows[m], x)


@device_fn
def side_of(code, rows, x):
    """Return on which side the features of a pair are, and the vector between closest points."""
    p = point(x, rows[0])
    a, b, c = point(x, rows[1]), point(x, rows[2]), point(x, rows[3])
    at = closest(code, (sub(a, p), sub(b, p), sub(c, p)))
    if code == FACE:
        inside = dot(at.d_2, at.d_2) > 0.0
        normal, away = cross(sub(b, a), sub(c, a)), sub(p, a)
    elif code == EDGES:
        inside = 0.0 < at.a_1 < 1.0 and 0.0 < at.a_2 < 1.0
        normal, away = cross(sub(a, p), sub(c, b)), sub(p, b)
    else:
        return 0, (0.0, 0.0, 0.0)
    if not inside:
        return 0, (0.0, 0.0, 0.0)
    return 1 if dot(normal, away) > 0.0 else -1, at.r


def search(number, pair_set, near, lower, grid, rows, numbers, gaps, keys):
    """Write the pairs of set `number`, and return how many there are.

    Of more pairs than `rows` has room for only the number is right.
    """
    n = 0
    for p in range(pair_set.first.shape[0]):
        begin, n = n, search_feature(pair_set, near, lower, grid, p, n, numbers, gaps)
        end = min(n, rows.shape[0])
        for m in range(begin, end):
            keys[m] = (number << KEY_BITS | p) << KEY_BITS | np.int64(numbers[m, 1])
        fill(pair_set, p, begin, end, rows, numbers)
    return n


@device_fn
def search_feature(pair_set, near, lower, grid, p, begin, numbers, gaps):
    """Write the pairs of feature p from `begin` on, if there is room; return where they end."""
    n, first, last = begin, grid.starts[0], grid.starts[grid.starts.size - 1]
    if not is_finite_box(lower, p):
        return n
    if cells_around(lower, p, grid) > last - first:
        for at in range(first, last):
            n = try_pair(pair_set, near, lower, grid, p, at, begin, n, numbers, gaps)
    else:
        for level in range(grid.levels.size):
            if grid.levels[level] > 0:
                n = search_level(pair_set, near, lower, grid, p, level, begin, n, numbers, gaps)
    return n


@device_fn
def cells_of(box, p, grid, level):
    """Return the first and the last cell of a level where boxes may lie that overlap box p."""
    width, o = grid.widths[level], grid.origin
    half = 0.5 * width
    return (
        (
            cell_of(box[0, p, 0] - half, o[0], width),
            cell_of(box[0, p, 1] - half, o[1], width),
            cell_of(box[0, p, 2] - half, o[2], width),
        ),
        (
            cell_of(box[1, p, 0] + half, o[0], width),
            cell_of(box[1, p, 1] + half, o[1], width),
            cell_of(box[1, p, 2] + half, o[2], width),
        ),
    )


@device_fn
def cells_around(box, p, grid):
    """Return how many cells there are to look into for box p."""
    n = 0.0
    for level in range(grid.levels.size):
        if grid.levels[level] > 0:
            (i0, j0, k0), (i1, j1, k1) = cells_of(box, p, grid, level)
            n += (i1 - i0 + 1.0) * (j1 - j0 + 1.0) * (k1 - k0 + 1.0)
    return n


@device_fn
def search_level(pair_set, near, lower, grid, p, level, begin, n, numbers, gaps):
    """Try the boxes of a level that may overlap box p; return how many pairs there are now."""
    starts = grid.starts
    (i0, j0, k0), (i1, j1, k1) = cells_of(lower, p, grid, level)
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            for k in range(k0, k1 + 1):
                key = key_of(level, i, j, k)
                bucket = bucket_of(level, i, j, k, starts.size - 1)
                for at in range(starts[bucket], starts[bucket + 1]):
                    if grid.keys[at] == key:
                        n = try_pair(pair_set, near, lower, grid, p, at, begin, n, numbers, gaps)
    return n


@device_fn
def try_pair(pair_set, near, lower, grid, p, at, begin, n, numbers, gaps):
    """Put feature p and that of an entry among the pairs if they are one; return their number."""
    q, other = grid.order[at], grid.boxes[at]
    if pair_set.same and q <= p:
        return n
    for c in range(3):
        if lower[1, p, c] < other[c] or other[3 + c] < lower[0, p, c]:
            return n
    gap = gap_of(pair_set.code, pair_set.first[p], pair_set.second[q], near)
    if gap > near.reach:
        return n
    put_in_order(q, gap, begin, n, numbers, gaps)
    return n + 1


def enter_all(grid, corners, counting, extents):
    """Enter boxes of these extents, each in the list of its cell."""
    starts, n = grid.starts, grid.starts.size - 1
    for m in range(counting.size):
        level = level_of(grid, extents[m])
        grid.levels[level] += 1
        starts[bucket_of(level, *middle(grid, level, corners, counting[m]), n)] += 1
    for bucket in range(1, n + 1):
        starts[bucket] += starts[bucket - 1]  # where each list ends; filled from there, it begins
    for m in range(counting.size - 1, -1, -1):
        level = level_of(grid, extents[m])
        q = counting[m]
        i, j, k = middle(grid, level, corners, q)
        bucket = bucket_of(level, i, j, k, n)
        starts[bucket] -= 1
        at = starts[bucket]
        grid.keys[at], grid.order[at] = key_of(level, i, j, k), q
        for c in range(3):
            grid.boxes[at, c], grid.boxes[at, 3 + c] = corners[0, q, c], corners[1, q, c]


@device_fn
def level_of(grid, extent):
    """Return the level of a box."""
    level = 0
    while extent > grid.widths[level]:
        level += 1
    return level


@device_fn
def middle(grid, level, box, q):
    """Return the cell of the middle of a box."""
    width, o = grid.widths[level], grid.origin
    return (
        cell_of(0.5 * (box[0, q, 0] + box[1, q, 0]), o[0], width),
        cell_of(0.5 * (box[0, q, 1] + box[1, q, 1]), o[1], width),
        cell_of(0.5 * (box[0, q, 2] + box[1, q, 2]), o[2], width),
    )


@device_fn
def gap_of(code, a, b, near):
    """Return the distance of features that pair up, infinite for others.

    They share no row, are within reach, and are no neighbours at rest.
    """
    if share_row(a, b):
        return np.inf
    distance = distance_of(code, a, b, near.x)
    if not distance <= near.reach:
        return np.inf
    if near.closer > 0.0 and not are_apart(a, b, near.at_rest, 2.0 * near.closer):
        return np.inf if distance_of(code, a, b, near.at_rest) <= near.closer else distance
    return distance


@device_fn
def are_apart(a, b, x, width):
    """Whether the boxes of two features are farther apart than a width, along an axis."""
    for c in range(3):
        low = high = x[a[0], c]
        for k in range(1, a.shape[0]):
            low, high = min(low, x[a[k], c]), max(high, x[a[k], c])
        other_low = other_high = x[b[0], c]
        for k in range(1, b.shape[0]):
            other_low, other_high = min(other_low, x[b[k], c]), max(other_high, x[b[k], c])
        if other_low - high > width or low - other_high > width:
            return True
    return False


@device_fn
def put_in_order(q, gap, begin, n, numbers, gaps):
    """Put q among those from `begin` to n, if there is room."""
    if n < numbers.shape[0]:
        while n > begin and numbers[n - 1, 1] > q:
            numbers[n, 1], gaps[n] = numbers[n - 1, 1], gaps[n - 1]
            n -= 1
        numbers[n, 1], gaps[n] = q, gap
