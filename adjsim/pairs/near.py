r"""The pairs that may touch before long, out of those within reach: short lists, made in the loop.

A search (`adjsim/pairs/search.py`) finds all pairs within reach of a state, more than touch by far.
Its pairs are good until a row has moved by its allowance, half of what was added to the reach. A
list has those of them that may touch before a row has moved by a small share of its allowance. Only
the pairs of a list are elements of the steps, packed by tiles like the elements of other forces.
The share is halved where lists last long, and doubled where they do not. A row that is slow beside
the others may move by a part of the share only, its pace, so that few of its pairs are listed.

Each row has a way: how far it has moved from list to list since pairs were found, in allowances A,
as if all these moves led the same way. Where a pair of thickness rho was d apart when the rows of
its features had ways of at least a and b, it cannot touch while the sum of a way of the one and of
the other is below its leeway

    a + b + (d - rho)/A

and no distance is computed until then; edges that do not cross wait longer. A pair that does not
touch has no force, exactly, and the others keep their order: no bit depends on which lists were
made, or when.

An element of a surface is one row of X. Its force is the sum over its pairs, in their order; all
that other loops see of a contact are these elements.

Tests: `tests/pairs/test_near.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjsim.algebra.vec3 import add, dot, sub
from adjsim.jit.backend import cpu_kernel, device_fn, lit, shared_fn
from adjsim.pairs.closest import EDGES
from adjsim.pairs.pair_force import N_PARAMS
from adjsim.pairs.search import ROUNDING, inlined_distance, point
from adjsim.tiles.assembly import CONSTS, NODES, PARAMS, SLOTS, TILE, TILE_HI, TILE_LO
from adjsim.tiles.loop_arrays import Elements
from adjsim.tiles.node_sum import node_sum


LEAST, MOST = 1.0 / 64.0, 0.125  # shares of the allowance
LAST = 1.0 / 32.0  # the least share for which pairs that were found make one more list
SHORT, LONG = 8, 32  # states that a list serves
SLOWEST, EASE = 0.125, 2.0  # the least pace, and how much faster than it was a row may become
CODES, LEFT, N_MEASURED = 9 * TILE, 10 * TILE, 11 * TILE  # in the tile of pairs being measured
LANES = np.uint64(TILE)
PARALLEL = 1e-4  # square of the sine between edges whose closest points are not known well


class NearPairs(NamedTuple):
    """The pairs of all surface contacts of some worlds, behind the fields of `Elements`.

    A set has the pairs of one force in one world. A list has the sets of one part of a sweep, or of
    all parts. An element is a row of X that is in a surface.
    """

    table: Any  # to `series`: as `Elements`
    nodes: Any
    consts: Any
    params: Any
    series: Any

    # The pairs that may touch soon, packed as `Elements` and `Parts` are, with room for all.
    pair_table: Any
    pair_nodes: Any
    pair_consts: Any
    pair_params: Any
    tile_ptr: Any
    tiles: Any

    # What the element functions write for them.
    slots: Any  # forces
    more_slots: Any  # tangents of forces, or cotangents of positions
    v_slots: Any  # cotangents of velocities
    more_params: Any  # tangents or cotangents of parameters

    # Lists.
    set_ptr: Any  # their sets
    part_ptr: Any  # their parts
    shares: Any  # (n_parts, 3) list of a part, which share of its work, of how many

    # Sets.
    pair_ptr: Any  # their pairs
    edges_from: Any  # the first of these that is of two edges: so are all after it
    element_ptr: Any  # their elements
    scales: Any  # (n_sets, 3) thickness, allowance and its square
    param_places: Any  # where their parameters begin
    counts: Any  # how many of their pairs may touch soon

    # Pairs.
    listed: Any  # of each set, the pairs that may touch soon
    members: Any  # (n_pairs, 4) elements
    numbers: Any  # (n_pairs, 2) code of the feature, and weight
    leeway: Any  # sum of the ways of its features below which they cannot touch

    # Lists again: how far rows may move before a list is made again, and how many states it served.
    share: Any
    served: Any
    measured: Any  # (n_lists, 11 TILE) the tile of pairs whose distance is being measured

    # Elements.
    rows: Any  # of X
    places: Any  # slots among the slots of other forces
    found_at: Any  # positions when pairs were found
    listed_at: Any  # positions when the list was made
    found_drifts: Any  # (n_sets, 3) motion that a set has in common since then
    listed_drifts: Any
    paces: Any  # the part of the share by which each may move before a list is made again
    ways: Any  # how far each has moved since pairs were found, from list to list, in allowances
    ends: Any  # its longest way while the list serves
    sum_ptr: Any  # element i of list k adds up sum_slots[sum_ptr[i + k]:sum_ptr[i + k + 1]]
    sum_slots: Any


class NearVector(NamedTuple):
    """Tangents or cotangents of what pairs read, in the form of a `PackedVector`."""

    params: Any
    series: Any
    consts: Any


class Tiles(NamedTuple):
    """Which tiles each part runs, as `Parts` has them."""

    tile_ptr: Any
    tiles: Any


@device_fn
def near_elements(pairs):
    """Return the pairs that may touch as `Elements`."""
    return Elements(
        pairs.pair_table, pairs.pair_nodes, pairs.pair_consts, pairs.pair_params, pairs.series
    )  # fmt: skip


@device_fn
def near_vector(pairs):
    """Return the `NearVector` of the pairs that may touch; they have no series."""
    none = pairs.more_params[:0]
    return NearVector(pairs.more_params, none, none)


@device_fn
def near_tiles(pairs):
    """Return the `Tiles` of the pairs that may touch."""
    return Tiles(pairs.tile_ptr, pairs.tiles)


@device_fn
def makes_lists(i_part, pairs):
    """Whether a part is the first of its list."""
    return pairs.shares[i_part, 1] == 0


@device_fn
def own_share(pairs, i_part, first, last):
    """Return a part's share of the numbers from first to last."""
    i, n = pairs.shares[i_part, 1], pairs.shares[i_part, 2]
    return first + (last - first) * i // n, first + (last - first) * (i + 1) // n


def _serve(pairs, k, x):
    """Make list k serve positions of all rows; return False if its pairs no longer do."""
    pairs.served[k] += 1
    if keeps_pace(pairs, k, x):
        return True
    far = far_from_found(pairs, k, x)
    if far > 1.0 - LAST:
        return False
    if pairs.served[k] < SHORT:
        pairs.share[k] = min(2.0 * pairs.share[k], MOST)
    elif pairs.served[k] > LONG:
        pairs.share[k] = max(0.5 * pairs.share[k], LEAST)
    pairs.share[k] = min(pairs.share[k], 1.0 - far)
    pairs.served[k] = 0
    moved = farthest(pairs, k, pairs.listed_at, pairs.listed_drifts, x)
    follow(pairs, k, x, moved)
    first, last = pairs.element_ptr[pairs.set_ptr[k]], pairs.element_ptr[pairs.set_ptr[k + 1]]
    for i in range(first, last):
        for c in range(3):
            pairs.listed_at[i, c] = x[pairs.rows[i], c]
    pairs.listed_drifts[pairs.set_ptr[k] : pairs.set_ptr[k + 1]] = 0.0
    make_list(pairs, k, x)
    return True


@device_fn
def keeps_pace(pairs, k, x):
    """Whether no row of list k has moved farther since it was made than its pace allows."""
    limit, most = pairs.share[k] * pairs.share[k], 0.0
    for s in range(pairs.set_ptr[k], pairs.set_ptr[k + 1]):
        drift = pairs.listed_drifts[s, 0], pairs.listed_drifts[s, 1], pairs.listed_drifts[s, 2]
        by, n, common = 1.0 / pairs.scales[s, 2], 0, (0.0, 0.0, 0.0)
        for i in range(pairs.element_ptr[s], pairs.element_ptr[s + 1]):
            moved = shift(pairs, i, pairs.listed_at, x)
            relative = sub(moved, drift)
            square = by * dot(relative, relative)
            far = square - limit * pairs.paces[i] * pairs.paces[i]
            most = far if far > most else most  # max may return what is no number
            if square - square == 0.0:  # finite
                n, common = n + 1, add(common, moved)
        for c in range(3):
            pairs.listed_drifts[s, c] = common[c] / max(n, 1)
    return most <= 0.0


@device_fn
def follow(pairs, k, x, most):
    """Add to the ways of list k how far rows have moved since it was made, and set their paces.

    `most`: how far one of them has.
    """
    for s in range(pairs.set_ptr[k], pairs.set_ptr[k + 1]):
        drift = pairs.listed_drifts[s, 0], pairs.listed_drifts[s, 1], pairs.listed_drifts[s, 2]
        for i in range(pairs.element_ptr[s], pairs.element_ptr[s + 1]):
            relative = sub(shift(pairs, i, pairs.listed_at, x), drift)
            moved = np.sqrt(dot(relative, relative) / pairs.scales[s, 2])
            pairs.ways[i] += moved if moved - moved == 0.0 else np.inf
            pace = EASE * moved / most
            pairs.paces[i] = min(pace, 1.0) if pace > SLOWEST else SLOWEST


@device_fn
def farthest(pairs, k, before, drifts, x):
    """Return how far a row of list k has moved at most, in allowances.

    A motion that all rows of a set share does not count, since it changes no distance. `drifts`
    holds the shared motion of the call before, and is updated.
    """
    most = 0.0
    for s in range(pairs.set_ptr[k], pairs.set_ptr[k + 1]):
        drift = drifts[s, 0], drifts[s, 1], drifts[s, 2]
        n, common = 0, (0.0, 0.0, 0.0)
        for i in range(pairs.element_ptr[s], pairs.element_ptr[s + 1]):
            moved = shift(pairs, i, before, x)
            relative = sub(moved, drift)
            square = dot(relative, relative) / pairs.scales[s, 2]
            most = square if square > most else most  # max may return what is no number
            if square - square == 0.0:  # finite
                n, common = n + 1, add(common, moved)
        for c in range(3):
            drifts[s, c] = common[c] / max(n, 1)
    return np.sqrt(most)


@device_fn
def far_from_found(pairs, k, x):
    """Return the motion since pairs were found beside the mean one, whatever came before."""
    farthest(pairs, k, pairs.found_at, pairs.found_drifts, x)
    return farthest(pairs, k, pairs.found_at, pairs.found_drifts, x)


@device_fn
def shift(pairs, i, before, x):
    """Return by how much element i has moved."""
    n = pairs.rows[i]
    return (
        np.float64(x[n, 0]) - before[i, 0],
        np.float64(x[n, 1]) - before[i, 1],
        np.float64(x[n, 2]) - before[i, 2],
    )


def _make_list(pairs, k, x):
    """Make list k: of its pairs those that may touch before a row has moved by its share."""
    begin, end = pairs.set_ptr[k], pairs.set_ptr[k + 1]
    for s in range(begin, end):
        edges, last = list_within_ways(pairs, s, pairs.share[k])
        n = keep_near(pairs, s, k, pairs.pair_ptr[s], edges, x, 0)
        n = keep_near(pairs, s, k, edges, last, x, n)
        pairs.counts[s] = n
        pad(pairs, s, n)
        for part_index in range(pairs.part_ptr[k], pairs.part_ptr[k + 1]):
            tile = pairs.tiles[pairs.tile_ptr[part_index] + s - begin]
            tile[TILE_LO], tile[TILE_HI] = own_share(pairs, part_index, 0, (n + TILE - 1) // TILE)
    list_sums(pairs, k)


@device_fn
def list_within_ways(pairs, s, share):
    """List the pairs of set s whose ways may come to their leeway.

    Return the index of the first pair of edges, and the length of the list.
    Nothing branches: which pairs these are is hard to predict.
    """
    far, listed = pairs.ends, pairs.listed
    for i in range(pairs.element_ptr[s], pairs.element_ptr[s + 1]):
        far[i] = pairs.ways[i] + share * pairs.paces[i]
    at, end = pairs.pair_ptr[s], pairs.pair_ptr[s + 1]
    for m in range(at, pairs.edges_from[s]):
        a = pairs.members[m]
        most = far[a[0]] + max(far[a[1]], far[a[2]], far[a[3]])
        listed[at] = m
        at += 0 if pairs.leeway[m] > most else 1
    edges = at
    for m in range(pairs.edges_from[s], end):
        a = pairs.members[m]
        most = max(far[a[0]], far[a[1]]) + max(far[a[2]], far[a[3]])
        listed[at] = m
        at += 0 if pairs.leeway[m] > most else 1
    return edges, at


@device_fn
def keep_near(pairs, s, k, begin, end, x, n):
    """Append the listed pairs that may touch soon to the n of set s; return the new count.

    They are all of edges, or none is. Each counts its leeway from where it is now.
    """
    share, by, left = pairs.share[k], 1.0 / pairs.scales[s, 1], pairs.measured[k]
    far, ways = pairs.paces, pairs.ways
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        are_edges = pairs.numbers[pairs.listed[first], 0] == EDGES
        measure_tile(pairs, first, last, x, left, pairs.scales[s, 0], are_edges)
        for i in range(first, last):
            m = pairs.listed[i]
            a, leeway = pairs.members[m], by * left[LEFT + i - first]
            if are_edges:
                gone = min(ways[a[0]], ways[a[1]]) + min(ways[a[2]], ways[a[3]])
                pace = max(far[a[0]], far[a[1]]) + max(far[a[2]], far[a[3]])
            else:
                gone = ways[a[0]] + min(ways[a[1]], ways[a[2]], ways[a[3]])
                pace = far[a[0]] + max(far[a[1]], far[a[2]], far[a[3]])
            pairs.leeway[m] = gone + leeway
            if not leeway > share * pace:
                put_in(pairs, s, m, n)
                n += 1
    return n


@device_fn
def measure_tile(pairs, first, last, x, tile, thickness, are_edges):
    """Write how far the rows of listed pairs must move together before these may touch.

    `tile` has the vectors of the pairs, their codes and the results, each a row of lanes. Gathering
    apart from computing, and unsigned numbers, let LLVM vectorise the loops that compute.
    """
    for q in range(TILE):
        m = pairs.listed[min(first + q, last - 1)]
        a = pairs.members[m]
        origin = point(x, pairs.rows[a[0]])
        for c in range(3):
            y = sub(point(x, pairs.rows[a[c + 1]]), origin)
            for d in range(3):
                tile[(3 * c + d) * TILE + q] = y[d]
        tile[CODES + q] = pairs.numbers[m, 0]
    if are_edges:
        for q in range(LANES):
            y = tile_vectors(tile, q)
            left = until_near(inlined_distance(float(EDGES), y), thickness)
            across = until_across(y, thickness)
            # max may return what is no number
            tile[q + np.uint64(LEFT)] = across if across > left else left
    else:
        for q in range(LANES):
            y = tile_vectors(tile, q)
            code = tile[q + np.uint64(CODES)]
            tile[q + np.uint64(LEFT)] = until_near(inlined_distance(code, y), thickness)


@device_fn
def tile_vectors(tile, q):
    """Return the vectors of lane q of a tile."""
    return (
        (tile[q], tile[q + np.uint64(TILE)], tile[q + np.uint64(2 * TILE)]),
        (
            tile[q + np.uint64(3 * TILE)],
            tile[q + np.uint64(4 * TILE)],
            tile[q + np.uint64(5 * TILE)],
        ),
        (
            tile[q + np.uint64(6 * TILE)],
            tile[q + np.uint64(7 * TILE)],
            tile[q + np.uint64(8 * TILE)],
        ),
    )


@device_fn
def until_across(y, thickness):
    """Return how far rows must move before two edges within reach may have a window, at least.

    The closest points of their lines, at s* and t*, must both come to lie in the edges. Where rows
    of the one have moved by g, of the other by h, and the points are at s and t, r . e = 0 and
    |r| < rho. Now the vector between the points at s and t, and so its product with e, differ from
    that:

        |r . e| <= (g + h) |e| + 2 g rho,   |r . f| <= (g + h) |f| + 2 h rho
        s - s* = (C r . e - B r . f)/det,   t - t* = (B r . e - A r . f)/det

    with A, B, C = e . e, e . f, f . f, det = A C - B^2. So g + h is bounded by how far s* or t*
    lies outside of (0, 1).
    """
    e, start, end = y
    f = sub(end, start)
    A, B, C, p, q = dot(e, e), dot(e, f), dot(f, f), dot(e, start), dot(f, start)
    det = A * C - B * B
    if not det > PARALLEL * A * C:
        return 0.0
    s, t = (C * p - B * q) / det, (B * p - A * q) / det
    wrong = ROUNDING * A * C / det
    by_e, by_f = np.sqrt(A) + 2.0 * thickness, np.sqrt(C) + 2.0 * thickness
    first = (max(s - 1.0, -s) - wrong) * det / (C * by_e + abs(B) * by_f)
    second = (max(t - 1.0, -t) - wrong) * det / (abs(B) * by_e + A * by_f)
    return max(first, second)


@device_fn
def until_near(gap, thickness):
    """Return how far the rows of two features must move together before these may touch."""
    return gap - (1.0 + ROUNDING) * thickness


@device_fn
def put_in(pairs, s, m, n):
    """Make pair m lane n of set s."""
    tile, q = n // TILE, n % TILE
    nodes, consts = pairs.pair_table[s, NODES], pairs.pair_table[s, CONSTS]
    for a in range(4):
        pairs.pair_nodes[nodes + (4 * tile + a) * TILE + q] = pairs.rows[pairs.members[m, a]]
    for a in range(2):
        pairs.pair_consts[consts + (2 * tile + a) * TILE + q] = pairs.numbers[m, a]
    pairs.listed[pairs.pair_ptr[s] + n] = m


@device_fn
def pad(pairs, s, n):
    """Fill the last tile of n lanes of set s with pairs that are none."""
    if n % TILE == 0:
        return
    tile = n // TILE
    nodes, consts = pairs.pair_table[s, NODES], pairs.pair_table[s, CONSTS]
    for q in range(n % TILE, TILE):
        for a in range(4):
            at = nodes + (4 * tile + a) * TILE
            pairs.pair_nodes[at + q] = pairs.pair_nodes[at]
        for a in range(2):
            pairs.pair_consts[consts + (2 * tile + a) * TILE + q] = 0.0


@device_fn
def list_sums(pairs, k):
    """List the slots that each element of list k adds up, in the order of the pairs."""
    begin, end = pairs.set_ptr[k], pairs.set_ptr[k + 1]
    first, last = pairs.element_ptr[begin] + k, pairs.element_ptr[end] + k
    ptr = pairs.sum_ptr
    for i in range(first, last + 1):
        ptr[i] = 0
    for s in range(begin, end):
        for n in range(pairs.counts[s]):
            m = pairs.listed[pairs.pair_ptr[s] + n]
            for a in range(4):
                ptr[pairs.members[m, a] + k] += 1
    total = 4 * pairs.pair_ptr[begin]
    for i in range(first, last + 1):
        total += ptr[i]
        ptr[i] = total  # where the slots of i end; filled from there, it is where they begin
    for s in range(end - 1, begin - 1, -1):
        slots = pairs.pair_table[s, SLOTS]
        for n in range(pairs.counts[s] - 1, -1, -1):
            m = pairs.listed[pairs.pair_ptr[s] + n]
            for a in range(3, -1, -1):
                i = pairs.members[m, a] + k
                ptr[i] -= 1
                pairs.sum_slots[ptr[i]] = slots + (n // TILE * 4 + a) * 3 * TILE + n % TILE


# One copy of each, whatever calls it: they take long to compile.
serve, make_list = shared_fn(_serve), shared_fn(_make_list)


@device_fn
def sum_pairs(i_part, pairs, slots, out):
    """Add up what the pairs wrote in `slots` for a part's share of the elements."""
    k = pairs.shares[i_part, 0]
    first, last = pairs.element_ptr[pairs.set_ptr[k]], pairs.element_ptr[pairs.set_ptr[k + 1]]
    lo, hi = own_share(pairs, i_part, first, last)
    for i in range(lo, hi):
        f = node_sum(np.uint64(i + k), pairs.sum_ptr, pairs.sum_slots, slots)
        at = pairs.places[i]
        out[at], out[at + TILE], out[at + 2 * TILE] = f


@device_fn
def sum_params(i_part, pairs, adj_params):
    """Add what the pairs wrote for parameters in a step, in their order, for a part's sets.

    Pairs that do not touch add exactly nothing: the sum does not depend on which of them there are.
    """
    k, flat = pairs.shares[i_part, 0], pairs.more_params
    for s in range(pairs.set_ptr[k], pairs.set_ptr[k + 1]):
        if s % pairs.shares[i_part, 2] != pairs.shares[i_part, 1]:
            continue
        start, at = pairs.pair_table[s, PARAMS], pairs.param_places[s]
        for column in range(N_PARAMS):
            total = lit(0, flat[0])
            for n in range(pairs.counts[s]):
                p = np.uint64(start + (n // TILE * N_PARAMS + column) * TILE + n % TILE)
                total += flat[p]
                flat[p] = lit(0, flat[0])
            adj_params[at + column * TILE] += total


def serve_all(pairs, x):
    """Make all lists serve positions of all rows; return False if the pairs of one do not."""
    served = True
    for k in range(pairs.share.size):
        served &= serve(pairs, k, x)
    return served


def take_found(pairs, s, new):
    """Write the pairs of a search into set s."""
    thickness, allowance = pairs.scales[s, 0], pairs.scales[s, 1]
    begin, first = pairs.pair_ptr[s], pairs.element_ptr[s]
    pairs.edges_from[s] = pairs.pair_ptr[s + 1]
    for n in range(new.gaps.size - 1, -1, -1):
        m = begin + n
        for a in range(4):
            pairs.members[m, a] = new.rows[n, a] + first
        pairs.numbers[m, 0], pairs.numbers[m, 1] = new.numbers[n, 0], new.numbers[n, 1]
        pairs.leeway[m] = until_near(new.gaps[n], thickness) / allowance
        if new.numbers[n, 0] == EDGES:
            pairs.edges_from[s] = m


def make_lists(pairs, x):
    """Make all lists of pairs that were found."""
    for k in range(pairs.share.size):
        make_list(pairs, k, x)


@cache
def serves_from_kernel() -> Callable:
    """Return `serves_from`, compiled."""
    return cpu_kernel(serves_from)


def serves_from(pairs, x, rows):
    """Return the first of several states, `x[rows]`, from which on the pairs serve."""
    for n in range(rows.size - 2, -1, -1):
        for k in range(pairs.share.size):
            if far_from_found(pairs, k, x[rows[n]]) > 1.0 - LAST:
                return n + 1
    return 0
