"""The pairs that may touch before long: none that touches is missing, none is out of order."""

from itertools import pairwise

import numpy as np
import pytest

from adjoint.verify.contract import relative, vectors
from adjsim.forces.acted_rows import ActedRows
from adjsim.jit.backend import cpu_kernel
from adjsim.pairs.closest import EDGE, EDGES, FACE, VERTEX, closest
from adjsim.pairs.near import serves_from_kernel, sum_pairs, until_across
from adjsim.pairs.search import distance, find_pairs
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.system import RunSettings, make_stepper
from adjsim.tiles.assembly import TILE
from tests.pairs.scenes import DT, nets
from tests.pairs.test_search import brute


def changing(threads=1, **law):
    """The pairs of two nets, and where these are."""
    model, state = nets(**law)
    return make_stepper(model, RunSettings(DT, 1, threads=threads)).changing, state.x


def add_up():
    """`sum_pairs`, for Python."""

    def kernel(thread, pairs, slots, out):
        sum_pairs(thread, pairs, slots, out)

    return cpu_kernel(kernel, cached=False)


def listed(pairs):
    """The numbers of the pairs in the one list."""
    near = pairs.near
    return near.listed[: near.counts[0]]


def crosses(ends):
    """Whether the closest points of the lines of two edges lie in both."""
    at = closest(float(EDGES), vectors(relative(ends)))
    return 0.0 < at.a_1 < 1.0 and 0.0 < at.a_2 < 1.0


def touching(pairs, x):
    """The pairs that touch, among those that were found."""
    (pair_set,), listing = pairs.sets, pairs.found_pairs[0]
    now = find_pairs(pair_set.force.pair_sets(), x[pair_set.rows], pair_set.force.thickness, None)
    across = [
        code != EDGES or crosses(x[pair_set.rows][row])
        for row, (code, _) in zip(*now[:2], strict=True)
    ]
    rows = np.column_stack([listing.rows, listing.numbers])
    numbers_of = {tuple(row): m for m, row in enumerate(rows)}
    return [numbers_of[tuple(row)] for row in np.column_stack([now.rows, now.numbers])[across]]


@pytest.mark.parametrize(("step", "fast"), [(1e-3, 1.0), (5e-3, 1.0), (5e-3, 0.1)])
def test_lists_have_all_pairs_that_touch_in_order(rng, step, fast):
    """Where all rows move alike, and where few are fast, so that only their pairs are new."""
    pairs, x = changing(skin=0.03)
    above = x[:, 2] > 0.03
    x = x - np.where(above[:, None], [0.0, 0.0, 0.02], 0.0)
    pairs.find(x)
    paces = np.where(rng.random(len(x)) < fast, step, 0.05 * step)[:, None]
    searches, n_touching, short, of_few = 0, 0, [], 0
    for k in range(120):
        moved = paces * rng.standard_normal(x.shape)
        moved[above, 0] += 0.3 * paces[above, 0]
        x = x + moved
        if not pairs.serve(x):
            searches += 1
            pairs.find(x)
            of_few += pairs.changed[0] is not None
        in_list = listed(pairs)
        assert all(a < b for a, b in pairwise(in_list))
        own_touching = touching(pairs, x)
        assert set(own_touching) <= set(in_list.tolist()), k
        n_touching += len(own_touching)
        short.append(len(in_list) < len(pairs.found_pairs[0].gaps))
    assert searches > 0
    assert of_few > 0 or fast == 1.0
    assert n_touching > 0
    assert any(short)


def test_what_all_rows_move_by_needs_no_search(rng):
    pairs, x = changing()
    pairs.find(x)
    near = pairs.near
    for k in range(200):
        assert pairs.serve(x + 0.003 * k * np.array([1.0, -2.0, 0.5]))
    assert pairs.near is near
    bent = x.copy()
    bent[0] += 0.2
    assert not pairs.serve(bent)


def test_a_row_that_is_no_number_does_not_hide_others():
    pairs, x = changing()
    pairs.find(x)
    x = x.copy()
    x[3] = np.nan
    assert pairs.serve(x)
    x[30] += 0.2
    assert not pairs.serve(x)


def test_nothing_is_looked_for_farther_away_once_edges_have_grown():
    """Positions on their way to infinity do not make all pairs near ones."""
    pairs, x = changing()
    pairs.find(x)
    n = len(pairs.found_pairs[0].gaps)
    x = x.copy()
    x[3] = 1e9
    pairs.find(x)
    assert len(pairs.found_pairs[0].gaps) < 2 * n


@pytest.mark.parametrize("threads", [1, 2])
def test_elements_add_up_what_their_pairs_wrote(rng, threads):
    pairs, x = changing(threads, skin=0.1)
    x = x.copy()
    x[x[:, 2] > 0.03, 2] -= 0.03
    pairs.find(x)
    near = pairs.near
    near.slots[:] = rng.standard_normal(near.slots.size)
    places = near.places
    out, expected = np.zeros(places.max() + 3 * TILE), np.zeros((len(near.rows), 3))
    for n, m in enumerate(listed(pairs)):
        for a in range(4):
            at = (n // TILE * 4 + a) * 3 * TILE + n % TILE
            expected[near.members[m, a]] += near.slots[[at, at + TILE, at + 2 * TILE]]
    for thread in range(threads):
        add_up()(thread, near, near.slots, out)
    sums = np.stack([out[places + c * TILE] for c in range(3)], axis=1)
    np.testing.assert_array_equal(sums, expected)
    assert len(listed(pairs)) > TILE


def test_distances_of_edges_beside_each_other_and_across():
    start, end = np.zeros(3), np.array([1.0, 0.0, 0.0])
    cases = [
        ([0.2, -1.0, 0.3], [0.4, 1.0, 0.3], 0.3),  # across
        ([0.0, 0.5, 0.0], [1.0, 0.5, 0.0], 0.5),  # parallel
        ([2.0, 0.0, 0.0], [3.0, 0.0, 0.0], 1.0),  # in one line
        ([2.0, 1.0, 0.0], [3.0, 5.0, 1.0], np.sqrt(2.0)),  # corner to corner
        ([0.5, 0.2, 0.0], [0.5, 3.0, 0.0], 0.2),  # corner to the inside
        ([0.5, 0.2, 0.0], [0.5, 0.2, 0.0], 0.2),  # no edge, a point
    ]
    for p, q, expected in cases:
        for pair in ((start, end, p, q), (p, q, end, start)):
            y = vectors(relative(np.array(pair, float)))
            assert distance(float(EDGES), y) == pytest.approx(expected, abs=2e-4)
    y = vectors(relative(np.array([[0.3, 0.2, 0.7], *np.eye(3)])))
    for code in (VERTEX, EDGE, FACE):
        assert distance(float(code), y) > 0.0


def test_edges_have_no_window_before_their_time(rng):
    """However their ends move, together by less than what is said, closer than the thickness."""
    n_said = n_across = 0
    for _ in range(4000):
        ends = rng.standard_normal((4, 3)) * [1.0, 1.0, 0.1]
        h = until_across(vectors(relative(ends)), 0.3)
        if not 0.0 < h < 0.3:
            continue
        n_said += 1
        for size in (0.99, 3.0):
            step = rng.standard_normal((20, 4, 3))
            share = rng.random(20)
            share = np.stack([share, share, 1.0 - share, 1.0 - share], axis=1)[:, :, None]
            step *= size * h * share / np.linalg.norm(step, axis=2, keepdims=True)
            for moved in ends + step:
                at = closest(float(EDGES), vectors(relative(moved)))
                across = crosses(moved) and np.linalg.norm(at.r) < 0.3
                assert not (across and size < 1.0)
                n_across += across
    assert n_said > 300
    assert n_across > 10


def test_features_of_all_sizes_find_each_other(rng):
    """Large triangles among small ones, which lie in grids of other cells."""
    sizes = np.repeat(10.0 ** np.arange(-3, 3), 3)
    x = (sizes[:, None, None] * rng.standard_normal((18, 3, 3))).reshape(-1, 3)
    faces = np.arange(54).reshape(-1, 3)
    touch = SurfaceContact(triangles=faces, radius=1e-4).bind(ActedRows.of_nodes(54), "touch")
    sets = touch.pair_sets()
    for reach in (1e-3, 0.1, 1.0):
        pairs, expected = find_pairs(sets, x, reach, None), brute(sets, x, reach)
        listing = np.column_stack([pairs.rows, pairs.numbers]).tolist()
        wanted = np.column_stack(expected).tolist()
        assert [pair for pair in listing if pair in wanted] == wanted
        assert len(listing) <= len(brute(sets, x, reach + 0.01)[0])  # what float32 may be wrong by
    assert len(listing) > 100


def test_a_state_of_a_world_that_is_lost_is_no_trouble():
    model, state = nets()
    stepper = make_stepper(model, RunSettings(DT, 1))
    stepper.changing.find(state.x)
    force, pairs = model.forces["touch"], stepper.changing.found_pairs[0]
    rows = stepper.changing.sets[0].rows
    lost = np.full_like(state.x, np.nan)
    assert force.passed(pairs, state.x[rows], lost[rows]) is None
    lost = state.x.copy()
    lost[3] = 1e200
    force.passed(pairs, state.x[rows], lost[rows])  # and warns of no overflow


def test_pairs_serve_back_over_states_that_have_moved_as_a_whole():
    """How far a state is from where they were found depends on no state looked at before."""
    pairs, first = changing()
    pairs.find(first)
    reach, allowance = pairs.reaches[0], pairs.near.scales[0, 1]
    turned = np.random.default_rng(4).standard_normal(first.shape)
    turned *= 0.3 * allowance / np.linalg.norm(turned, axis=1).max()
    states = np.stack([first + k * (2.0 * reach + turned) for k in (1.0, 0.5, 0.0)])
    assert serves_from_kernel()(pairs.near, states, np.arange(3)) == 0
    assert pairs.serve(first + turned)
