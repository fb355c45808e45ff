r"""Finds the pairs of features that are near each other, on a grid of whole numbers.

Each feature has a box. Those of the one set are entered in all cells of the grid that they touch,
in a hash table of lists; the boxes of the other set look into theirs. Two boxes that overlap are
found in the cell where their common part begins, and so once. The distance of the features decides
then. Pairs come in the order of the first set, and then of the second.

A pair beyond the sum of the radii has no force, exactly: all lists that hold the nearer ones, in
the same order, give the same bits. What is found at one state therefore serves as long as no row
has moved farther than half of what was added to the reach.

Tests: `tests/pairs/test_search.py`.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from adjsim.engine.algebra.vec3 import cross, dot, neg, norm, sub
from adjsim.engine.jit.backend import cpu_kernel, device_fn, shared_fn
from adjsim.pairs.closest import EDGES, FACE, closest


PIERCED = 4  # the code of an edge and a face that it goes through
PARALLEL = 1e-6  # square of the sine of two lines whose distance is not known well
LARGEST = 32.0  # extents of a feature, in cells
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


class Found(NamedTuple):
    """Pairs: their rows of X, (n, 4), code and weight, (n, 2), and distances, (n,)."""

    rows: np.ndarray
    numbers: np.ndarray
    gaps: np.ndarray


class Grid(NamedTuple):
    """The boxes of both sets, the size of a cell, the table of lists and their entries."""

    lower: np.ndarray
    upper: np.ndarray
    cell: float
    table: np.ndarray
    lists: np.ndarray


def find_pairs(
    sets: tuple[PairSet, ...], x: np.ndarray, reach: float, rest: tuple[np.ndarray, float] | None
) -> Found:
    """Return the pairs within reach.

    `rest`, if given, are positions and a distance: pairs that are closer there are left out, as are
    those that share a row.
    """
    found = [np.zeros((0, 4), np.int64)], [np.zeros((0, 2))], [np.zeros(0)]
    near = Near(x, reach, *((x, -1.0) if rest is None else rest))
    for part in sets:
        if len(part.first) == 0 or len(part.second) == 0:
            continue
        lower, upper = boxes(x, part.first, 0.0), boxes(x, part.second, reach)
        sizes = [np.nan_to_num((box[1] - box[0]), posinf=0.0) for box in (lower, upper)]
        extent = max(float(size.mean()) for size in sizes)
        largest = max(float(size.max()) for size in sizes)
        cell = max(extent, largest / LARGEST, 1e-300)
        n = 8 * len(part.first)
        while True:
            rows, numbers, gaps = np.empty((n, 4), np.int64), np.empty((n, 2)), np.empty(n)
            entries = 16 * len(part.second)
            count = -1
            while count < 0:
                table = np.full(1 << (2 * entries - 1).bit_length(), -1, np.int64)
                lists = np.empty((entries, 5), np.int64)
                grid = Grid(lower, upper, cell, table, lists)
                count = _search_kernel()(part, near, grid, rows, numbers, gaps)
                entries *= 2
            if count <= n:
                break
            n = count
        for own, new in zip(found, (rows, numbers, gaps), strict=True):
            own.append(new[:count])
    return Found(*map(np.concatenate, found))


def boxes(x: np.ndarray, rows: np.ndarray, margin: float) -> np.ndarray:
    """Return the boxes of features, (2, n, 3)."""
    found = np.empty((2, len(rows), 3))
    _boxes_kernel()(x, rows, margin, found)
    return found


@cache
def _boxes_kernel() -> Callable:
    return cpu_kernel(write_boxes)


def write_boxes(x, rows, margin, found):
    """Write the boxes of features."""
    for i in range(rows.shape[0]):
        for c in range(3):
            low = high = np.float64(x[rows[i, 0], c])
            for k in range(1, rows.shape[1]):
                value = np.float64(x[rows[i, k], c])
                # Not min and max, which lose what is no number.
                low = value if not value >= low else low
                high = value if not value <= high else high
            found[0, i, c], found[1, i, c] = low - margin, high + margin


@device_fn
def cell_of(value, cell):
    """Return the number of the cell that a coordinate lies in."""
    return np.int64(math.floor(value / cell))


@device_fn
def bucket_of(i, j, k, n):
    """Return the list of a cell in a table of n, a power of two."""
    return ((i * FIRST) ^ (j * SECOND) ^ (k * THIRD)) & (n - 1)


@device_fn
def is_finite_box(box, i):
    """Whether a box has finite ends."""
    total = 0.0
    for c in range(3):
        total += box[0, i, c] + box[1, i, c]
    return total - total == 0.0


@device_fn
def cells_of(box, i, cell):
    """Return the first and the last cell of a box along each axis."""
    return (
        (cell_of(box[0, i, 0], cell), cell_of(box[0, i, 1], cell), cell_of(box[0, i, 2], cell)),
        (cell_of(box[1, i, 0], cell), cell_of(box[1, i, 1], cell), cell_of(box[1, i, 2], cell)),
    )


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


def _distance(code, y, far):
    """Return the distance of two features, or of more than `far` something between the two."""
    at = closest(code, y)
    s = norm(at.r)
    if code != EDGES or (0.0 <= at.a_1 <= 1.0 and 0.0 <= at.a_2 <= 1.0):
        return s
    A, B, C = dot(at.d_1, at.d_1), dot(at.d_1, at.d_2), dot(at.d_2, at.d_2)
    if s > far and A * C - B * B > PARALLEL * A * C:  # even the lines are farther
        return s
    end, y_1, y_2 = y
    return min(
        norm(closest(1.0, (y_1, y_2, y_2)).r),
        norm(closest(1.0, (sub(y_1, end), sub(y_2, end), y_2)).r),
        norm(closest(1.0, (neg(y_1), sub(end, y_1), y_2)).r),
        norm(closest(1.0, (neg(y_2), sub(end, y_2), y_2)).r),
    )


distance = shared_fn(_distance)


@device_fn
def distance_of(code, a, b, x, far):
    """Return the distance of two features; 0 of an edge and a face that it goes through."""
    origin, last = point(x, a[0]), b.shape[0] - 1
    y_1, y_2 = sub(point(x, b[0]), origin), sub(point(x, b[min(1, last)]), origin)
    y_3 = sub(point(x, b[last]), origin)
    if code == PIERCED:
        through = pierces(origin, point(x, a[1]), point(x, b[0]), point(x, b[1]), point(x, b[last]))
        return 0.0 if through else np.inf
    if code == EDGES:
        return distance(3.0, (sub(point(x, a[1]), origin), y_1, y_2), far)
    return distance(np.float64(code), (y_1, y_2, y_3), far)


@device_fn
def fill(part, p, begin, end, rows, numbers):
    """Write rows, code and weight of pairs of a feature; one of fewer corners repeats its last."""
    a, last = part.first[p], part.second.shape[1] - 1
    for m in range(begin, end):
        q = np.int64(numbers[m, 1])
        b = part.second[q]
        rows[m, 0] = a[0]
        if part.code == EDGES:
            rows[m, 1], rows[m, 2], rows[m, 3] = a[1], b[0], b[1]
        else:
            rows[m, 1], rows[m, 2], rows[m, 3] = b[0], b[min(1, last)], b[last]
        numbers[m, 0], numbers[m, 1] = part.code, part.weights[q]


def sides(rows: np.ndarray, numbers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return on which side of its face a vertex is, of one edge another: 1, -1, or 0 for no other.

    0 is for those that lie beside each other, and for other pairs.
    """
    found = np.zeros(len(rows), np.int8)
    _sides_kernel()(rows, numbers, x, found)
    return found


@cache
def _sides_kernel() -> Callable:
    return cpu_kernel(write_sides)


def write_sides(rows, numbers, x, found):
    """Write the side of each pair."""
    for m in range(rows.shape[0]):
        if numbers[m, 0] != FACE and numbers[m, 0] != EDGES:
            continue
        p = point(x, rows[m, 0])
        a, b, c = point(x, rows[m, 1]), point(x, rows[m, 2]), point(x, rows[m, 3])
        at = closest(numbers[m, 0], (sub(a, p), sub(b, p), sub(c, p)))
        if numbers[m, 0] == FACE:
            inside = dot(at.d_2, at.d_2) > 0.0
            normal, away = cross(sub(b, a), sub(c, a)), sub(p, a)
        else:
            inside = 0.0 < at.a_1 < 1.0 and 0.0 < at.a_2 < 1.0
            normal, away = cross(sub(a, p), sub(c, b)), sub(p, b)
        if inside:
            found[m] = 1 if dot(normal, away) > 0.0 else -1


@cache
def _search_kernel() -> Callable:
    return cpu_kernel(search)


def search(part, near, grid, rows, numbers, gaps):
    """Write the pairs, and return how many there are, or -1 if the lists have too little room.

    Of more pairs than `rows` has room for only the number is right.
    """
    if enter_all(grid, part.weights) < 0:
        return -1
    lower, n, table, lists = grid.lower, 0, grid.table, grid.lists
    for p in range(part.first.shape[0]):
        if not is_finite_box(lower, p):
            continue
        begin = n
        (i0, j0, k0), (i1, j1, k1) = cells_of(lower, p, grid.cell)
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                for k in range(k0, k1 + 1):
                    at = table[bucket_of(i, j, k, table.shape[0])]
                    while at >= 0:
                        q, begins = begins_in(lists[at], grid, p, i, j, k)
                        at = lists[at, 4]
                        if not begins or (part.same and q <= p):
                            continue
                        gap = gap_of(part.code, part.first[p], part.second[q], near)
                        if gap <= near.reach:
                            put_in_order(q, gap, begin, n, numbers, gaps)
                            n += 1
        fill(part, p, begin, min(n, rows.shape[0]), rows, numbers)
    return n


@device_fn
def enter_all(grid, weights):
    """Enter the boxes that count; return how many entries there are, or -1 for too many."""
    n = 0
    for q in range(weights.shape[0]):
        if n >= 0 and weights[q] != 0.0 and is_finite_box(grid.upper, q):
            n = enter(q, grid, n)
    return n


@device_fn
def enter(q, grid, n):
    """Enter a box in the lists of its cells; return how many entries there are, -1 for too many."""
    table, lists = grid.table, grid.lists
    (i0, j0, k0), (i1, j1, k1) = cells_of(grid.upper, q, grid.cell)
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            for k in range(k0, k1 + 1):
                if n >= lists.shape[0]:
                    return -1
                bucket = bucket_of(i, j, k, table.shape[0])
                entry = lists[n]
                entry[0], entry[1], entry[2], entry[3], entry[4] = q, i, j, k, table[bucket]
                table[bucket] = n
                n += 1
    return n


@device_fn
def begins_in(entry, grid, p, i, j, k):
    """Return the box of an entry, and whether what it shares with box p begins in a cell."""
    q, lower, upper, cell = entry[0], grid.lower, grid.upper, grid.cell
    if entry[1] != i or entry[2] != j or entry[3] != k:
        return q, False
    for c in range(3):
        if lower[1, p, c] < upper[0, q, c] or upper[1, q, c] < lower[0, p, c]:
            return q, False
    return q, (
        cell_of(max(lower[0, p, 0], upper[0, q, 0]), cell) == i
        and cell_of(max(lower[0, p, 1], upper[0, q, 1]), cell) == j
        and cell_of(max(lower[0, p, 2], upper[0, q, 2]), cell) == k
    )


@device_fn
def gap_of(code, a, b, near):
    """Return the distance of features that pair up, infinite for others.

    They share no row, are within reach, and are no neighbours at rest.
    """
    if share_row(a, b):
        return np.inf
    found = distance_of(code, a, b, near.x, near.reach)
    if not found <= near.reach:
        return np.inf
    if near.closer > 0.0 and distance_of(code, a, b, near.at_rest, near.closer) <= near.closer:
        return np.inf
    return found


@device_fn
def put_in_order(q, gap, begin, n, numbers, gaps):
    """Put q among those from `begin` to n, if there is room."""
    if n < numbers.shape[0]:
        while n > begin and numbers[n - 1, 1] > q:
            numbers[n, 1], gaps[n] = numbers[n - 1, 1], gaps[n - 1]
            n -= 1
        numbers[n, 1], gaps[n] = q, gap
