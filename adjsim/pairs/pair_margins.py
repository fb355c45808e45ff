r"""How far the pairs of two surfaces are from the events at which their force is not smooth.

The pairs of a vertex with faces, edges and vertices are summed up by the part of the surface where
the closest point lies, its place: a force that acts there has the sum of their weights as a factor.
Where that is 0, as nearly everywhere on a flat patch, nothing acts and nothing happens. Pairs of
edges stand for themselves. With c, u_n and the law of contact as in `adjsim/pairs/pair_force.py`,
the force is not smooth where

    a pair touches       c = 0: a damping k_d jumps, with a dissipation only the slope does
    damping ends         u_n = 0, or u_n = 1/d with a dissipation; not by the cubic law
    it sticks or slips   k_f |u_t| = mu p
    its place changes    the normal is continuous, but turns at another rate: from a face to an
                         edge, or from there to a corner, unless both faces lie in one plane

Two edges touch only where their window is open. It opens smoothly (`adjsim/pairs/window.py`), so no
margin is 0 where it does; but the sign of those with signs changes there, since no function of the
state changes its sign where c = 0 with an open window and nowhere else. The margin of two edges
apart is the larger of d - rho and of how far, in metres, the closest points are outside; edges that
are nearly parallel have hardly any force, and count as outside.

A row of X has many pairs: those of its vertex, and those of edges of which it is the first end of
the first. Its margins are the least of these. The sign of `touch` and `slip` says whether any of
them does so. The sign of other margins changes with the number of pairs that do, so with an event
of any one.

Pairs farther apart than two thicknesses have no margins, wherever a search looks.

Tests: `tests/pairs/test_pair_margins.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjsim.algebra.vec3 import cross, dot, norm, sub
from adjsim.forces.contact_law import GAMMA, K_D, K_E, K_F, MU, D, K
from adjsim.forces.gap import direction
from adjsim.forces.margins import ContactMargins, law_margins
from adjsim.jit.backend import device_fn, loop_kernel, shared_fn
from adjsim.pairs.closest import EDGES, FACE, VERTEX, closest, combine
from adjsim.pairs.near import PARALLEL
from adjsim.pairs.pair_force import R_A, R_B
from adjsim.pairs.search import point, segment_distance


N_SHAPE = 3  # of `ContactMargins.shape`: touch and slip of any one pair, and changes of place
WINDOW = 32  # states that are looked at together at most
FLAT = 1e-6  # sine of the angle between faces that lie in one plane
WEIGHT, DEPTH, LEAVING, DAMPING, SLIP, SIZE = range(6)  # columns of a table of places


class OwnPairs(NamedTuple):
    """Pairs in the order of the rows that have them: row i those from ptr[i] to ptr[i + 1].

    `rows` (n, 4), `numbers` (n, 2) code and weight. Room for the places of one row: `keys` and
    `numbers_of` (n, 6) of each, and `places`, where those of its pairs are; -1 where there is none.
    """

    ptr: Any
    rows: Any
    numbers: Any
    keys: Any
    numbers_of: Any
    places: Any


class RowMargins(NamedTuple):
    """The arrays of a `ContactMargins`, of some frames."""

    touch: Any
    leaving: Any
    damping: Any
    slip: Any
    shape: Any


def surface_margins(force: Any, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> ContactMargins:
    """Return the margins of a `SurfaceContact`; `x` and `v` have all rows of X."""
    rows, rho = force.nodes[:, 0], force.thickness
    shape, first = (len(x), len(rows)), 0
    out = RowMargins(*np.full((4, *shape), np.nan), shape=np.full((*shape, N_SHAPE), np.nan))
    law = force.pack_params()[0]
    while first < len(x):
        positions = x[first : first + WINDOW].take(rows, axis=1)
        candidates = force.find(positions[0], 3.0 * rho)
        n, moved = _served(positions, 0.499 * rho)
        window, close = slice(first, first + n), candidates.gaps <= 2.0 * (rho + moved)
        pairs = _own_pairs(candidates.rows[close], candidates.numbers[close], len(rows))
        parts = RowMargins(*(margin[window] for margin in out))
        loop_kernel(margins_loop)(positions[:n], v[window].take(rows, axis=1), law, pairs, parts)
        first = window.stop
    return ContactMargins(steps, force.counted, *out)


def _served(x: np.ndarray, allowance: float) -> tuple[int, float]:
    """Return in how many states, the first and more, no row moved farther than allowed; how far.

    A motion that all share does not count, since it changes no distance.
    """
    shifts = x - x[0]
    squares = np.square(shifts - shifts.mean(axis=1, keepdims=True)).sum(axis=-1).max(axis=1)
    far = np.flatnonzero(~(squares <= allowance**2))
    n = max(int(far[0]), 1) if far.size else len(x)
    return n, float(np.sqrt(squares[:n].max()))


def _own_pairs(rows: np.ndarray, numbers: np.ndarray, n_rows: int) -> OwnPairs:
    """Return pairs in the order of their first rows."""
    order = np.argsort(rows[:, 0], kind="stable")
    ptr = np.searchsorted(rows[order, 0], np.arange(n_rows + 1))
    most = int(np.diff(ptr).max(initial=1))
    keys, places = np.empty((2, most), np.int64)
    return OwnPairs(ptr, rows[order], numbers[order], keys, np.empty((most, SIZE + 1)), places)


def margins_loop(x, v, params, pairs, out):
    """Write the margins of every row in some frames; all pairs within reach are there."""
    for f in range(x.shape[0]):
        for i in range(pairs.ptr.size - 1):
            if pairs.ptr[i] < pairs.ptr[i + 1]:
                row_margins(x[f], v[f], params, pairs, f, i, out)


@device_fn
def row_margins(x, v, params, pairs, f, i, out):
    """Write the margins of a row."""
    rho = params[R_A] + params[R_B]
    n, least, speed = 0, np.inf, 0.0
    for m in range(pairs.ptr[i], pairs.ptr[i + 1]):
        y, w = relative(x, pairs.rows[m]), relative(v, pairs.rows[m])
        pairs.places[m - pairs.ptr[i]] = -1
        at, c, inside = depth(pairs.numbers[m, 0], y, rho)
        normal, s = direction(at.r)
        if c > 0.0 and s > 0.0 and inside > 0.0:
            u = combine(at.weights, w)
            law = (
                params[K_E], params[K_D], params[D], params[K], params[GAMMA], params[K_F],
                params[MU],
            )  # fmt: skip
            n = put_in(pairs, m, i, n, at, c, law_margins(normal, rho - s, u, law))
        elif c <= 0.0 and max(-c, -inside) < min(least, rho):
            least, speed = max(-c, -inside), dot(normal, combine(at.weights, w))
    write(pairs, f, i, n, least, speed, place_margin(x, pairs, i), out)


@device_fn
def relative(x, rows):
    """Return three rows relative to the first."""
    origin = point(x, rows[0])
    return (
        sub(point(x, rows[1]), origin),
        sub(point(x, rows[2]), origin),
        sub(point(x, rows[3]), origin),
    )


def _depth(code, y, rho):
    """Return the closest points of a pair, c = rho - d, and how far inside of edges they are [m].

    Those of a vertex and a feature are always inside.
    """
    at = closest(code, y)
    if code != EDGES:
        return at, rho - norm(at.r), np.inf
    A, B, C = dot(at.d_1, at.d_1), dot(at.d_1, at.d_2), dot(at.d_2, at.d_2)
    s = min(at.a_1, 1.0 - at.a_1) * np.sqrt(A)
    t = min(at.a_2, 1.0 - at.a_2) * np.sqrt(C)
    g = 1.0 - B * B / (A * C)
    return at, rho - segment_distance(y), min(s, t) - 2.0 * rho * max(0.0, 1.0 - g / PARALLEL)


depth = shared_fn(_depth)  # once, since it takes long to compile


@device_fn
def put_in(pairs, m, i, n, at, c, margins):
    """Add a pair that touches to the places of row i; return how many these are."""
    key, size = place_of(pairs, m, at)
    k = 0
    while k < n and pairs.keys[k] != key:
        k += 1
    row = pairs.numbers_of[k]
    if k == n:
        pairs.keys[k], row[WEIGHT], row[DEPTH], row[SIZE] = key, 0.0, c, size
        row[LEAVING], row[DAMPING], row[SLIP] = margins
        n += 1
    row[WEIGHT] += 1.0 if pairs.numbers[m, 0] == EDGES else pairs.numbers[m, 1]
    pairs.places[m - pairs.ptr[i]] = k
    return n


@device_fn
def place_of(pairs, m, at):
    """Return a number of its own for the place of a pair's closest point, and how many corners.

    Faces and pairs of edges have the negative numbers.
    """
    if pairs.numbers[m, 0] == EDGES:
        return -1 - m, 0
    n, low, high = 0, np.int64(0), np.int64(0)
    for k in range(3):
        if is_corner(at, k):
            row = pairs.rows[m, k + 1]
            low = row if n == 0 else min(low, row)
            high = row if n == 0 else max(high, row)
            n += 1
    return (-1 - m if n == 3 else low << 32 | high), n


@device_fn
def is_corner(at, k):
    """Whether corner k of a feature is one of those between which the closest point lies."""
    return at.e_1[k] != 0.0 or at.e_2[k] != 0.0 or at.weights[k] != 0.0


@device_fn
def place_margin(x, pairs, i):
    """Return how far a row that touches is from a change of place; infinite where none is near."""
    least = np.inf
    for m in range(pairs.ptr[i], pairs.ptr[i + 1]):
        place = pairs.places[m - pairs.ptr[i]]
        if place < 0 or pairs.numbers[m, 0] == VERTEX or pairs.numbers[m, 0] == EDGES:
            continue
        y = relative(x, pairs.rows[m])
        at, _, _ = depth(pairs.numbers[m, 0], y, 0.0)
        acts = pairs.numbers_of[place, WEIGHT] != 0.0
        size = pairs.numbers_of[place, SIZE]
        for k in range(3 if pairs.numbers[m, 0] == FACE else 1):
            a, b = y[k], y[(k + 1) % 3]
            has_a, has_b = is_corner(at, k), is_corner(at, (k + 1) % 3)
            if acts and size < 3 and (has_a or has_b):  # an end of an edge
                along = sub(b, a)
                length = norm(along)
                t = -dot(a, along) / length
                least = min(least, abs(t)) if has_a else least
                least = min(least, abs(length - t)) if has_b else least
            inside = has_a and has_b and pairs.numbers[m, 0] == FACE
            if inside and not goes_on(x, pairs, i, m, k):
                inward = cross(face_normal(y), sub(b, a))
                least = min(least, abs(dot(a, inward)) / norm(inward))
    return least


@device_fn
def face_normal(y):
    """Return a normal of a face."""
    return cross(sub(y[1], y[0]), sub(y[2], y[0]))


@device_fn
def goes_on(x, pairs, i, m, k):
    """Whether another face that the vertex touches goes on in the same plane beyond edge k."""
    a, b = pairs.rows[m, k + 1], pairs.rows[m, (k + 1) % 3 + 1]
    normal = face_normal(relative(x, pairs.rows[m]))
    for q in range(pairs.ptr[i], pairs.ptr[i + 1]):
        if q == m or pairs.numbers[q, 0] != FACE or pairs.places[q - pairs.ptr[i]] < 0:
            continue
        shared = 0
        for corner in range(1, 4):
            shared += pairs.rows[q, corner] == a or pairs.rows[q, corner] == b
        if shared == 2:
            other = face_normal(relative(x, pairs.rows[q]))
            if norm(cross(normal, other)) <= FLAT * norm(normal) * norm(other):
                return True
    return False


@device_fn
def write(pairs, f, i, n, least, speed, place, out):
    """Write the margins of a row with n places where it touches, and a pair apart by `least`."""
    touching, sizes, slipping, damped = 0, 0, 0, 0
    damping, slip, most = np.inf, np.inf, -np.inf
    for k in range(n):
        row = pairs.numbers_of[k]
        if row[WEIGHT] == 0.0:
            continue
        touching, sizes = touching + 1, sizes + np.int64(row[SIZE])
        if row[DEPTH] < least:
            least, speed = row[DEPTH], row[LEAVING]
        damped += row[DAMPING] > 0.0
        damping = abs(row[DAMPING]) if abs(row[DAMPING]) < damping else damping  # which may be NaN
        slipping += row[SLIP] > 0.0
        slip, most = min(slip, abs(row[SLIP])), max(most, row[SLIP])
    if least == np.inf:
        return
    out.touch[f, i], out.leaving[f, i] = least if touching else -least, speed
    if touching:
        out.damping[f, i] = signed(damping, damped)
        out.slip[f, i] = most
        out.shape[f, i, 0] = signed(least, touching)
        out.shape[f, i, 1] = signed(slip, slipping)
        out.shape[f, i, 2] = signed(place, sizes)


@device_fn
def signed(margin, n):
    """Return the least margin of several with a sign that changes with n; NaN for none."""
    if margin == np.inf:
        return np.nan
    return margin if n % 2 else -margin
