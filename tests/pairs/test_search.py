"""The pairs that are found are those of a search through all, in order."""

import numpy as np
import pytest

from adjoint.verify.contract import relative, vectors
from adjsim.forces.acted_rows import ActedRows
from adjsim.pairs.closest import EDGE, EDGES, VERTEX, closest
from adjsim.pairs.search import find_pairs, merge_pairs
from adjsim.pairs.surface_contact import SurfaceContact


N = 24


def contact(rng, *, self_contact=False):
    """Random triangles over random rows, bound: one surface or two."""
    faces = np.array([rng.choice(N, 3, replace=False) for _ in range(20)])
    other = {} if self_contact else {"other_triangles": faces[10:], "other_radius": 0.02}
    triangles = faces if self_contact else faces[:10]
    touch = SurfaceContact(triangles=triangles, radius=0.02, **other)
    return touch.bind(ActedRows.of_nodes(N), "touch")


def gap(code, a, b, x):
    """The distance of two features."""
    if code != EDGES:
        corners = x[[*a, *b, *b[-1:].repeat(3 - len(b))]]
        return np.linalg.norm(closest(float(code), vectors(relative(corners))).r)
    ends = [gap(EDGE, v[None], e, x) for edge, e in ((a, b), (b, a)) for v in edge]
    at = closest(float(EDGES), vectors(relative(x[[*a, *b]])))
    if 0 < at.a_1 < 1 and 0 < at.a_2 < 1:
        ends.append(np.linalg.norm(at.r))
    return min(ends)


def brute(sets, x, reach, rest=None):
    """All pairs within reach, by trying all."""
    rows, numbers = [], []
    for pair_set in sets:
        for p, a in enumerate(pair_set.first):
            for q, b in enumerate(pair_set.second):
                left_out = pair_set.weights[q] == 0 or (pair_set.same and q <= p) or set(a) & set(b)
                if left_out or gap(pair_set.code, a, b, x) > reach:
                    continue
                if rest is not None and gap(pair_set.code, a, b, rest[0]) < rest[1]:
                    continue
                rows.append(
                    [*a, *b] if pair_set.code == EDGES else [*a, *b, *[b[-1]] * (3 - len(b))]
                )
                numbers.append((pair_set.code, pair_set.weights[q]))
    return np.array(rows), np.array(numbers)


@pytest.mark.parametrize("self_contact", [False, True])
@pytest.mark.parametrize("reach", [0.01, 0.1, 0.5])
def test_pairs_are_those_of_a_search_through_all(rng, self_contact, reach):
    sets = contact(rng, self_contact=self_contact).pair_sets()
    for size in (0.3, 1.0):
        x = size * rng.standard_normal((N, 3))
        rows, numbers, *_ = find_pairs(sets, x, reach, None)
        expected, expected_numbers = brute(sets, x, reach)
        np.testing.assert_array_equal(rows, expected.reshape(-1, 4))
        np.testing.assert_array_equal(numbers, expected_numbers.reshape(-1, 2))
    assert len(rows) > 0 or reach < 0.1


def test_pairs_that_are_near_at_rest_are_left_out(rng):
    sets = contact(rng, self_contact=True).pair_sets()
    x, rest = 0.3 * rng.standard_normal((2, N, 3))
    rows, *_ = find_pairs(sets, x, 0.3, (rest, 0.1))
    expected, _ = brute(sets, x, 0.3, (rest, 0.1))
    np.testing.assert_array_equal(rows, expected)
    assert 0 < len(rows) < len(find_pairs(sets, x, 0.3, None)[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_positions_that_are_not_finite_do_no_harm(rng, bad):
    sets = contact(rng).pair_sets()
    x = 0.3 * rng.standard_normal((N, 3))
    whole, *_ = find_pairs(sets, x, 0.1, None)
    x[3, 1] = bad
    rows, *_ = find_pairs(sets, x, 0.1, None)
    np.testing.assert_array_equal(rows, whole[~(whole == 3).any(axis=1)])


def test_one_set_of_features_in_two_places_is_found_far_from_the_origin(rng):
    sets = contact(rng).pair_sets()
    x = 0.3 * rng.standard_normal((N, 3))
    near, *_ = find_pairs(sets, x, 0.1, None)
    far, *_ = find_pairs(sets, x - 1e4, 0.1, None)
    np.testing.assert_array_equal(near, far)
    assert {VERTEX, EDGE} <= {pair_set.code for pair_set in sets}


@pytest.mark.parametrize("self_contact", [False, True])
def test_pairs_of_rows_that_moved_and_the_others_are_all(rng, self_contact):
    sets = contact(rng, self_contact=self_contact).pair_sets()
    x = 0.3 * rng.standard_normal((N, 3))
    rest = x + 0.05 * rng.standard_normal((N, 3)), 0.05
    before = find_pairs(sets, x, 0.1, rest)
    for share in (0.0, 0.1, 0.5, 1.0):
        changed = rng.random(N) < share
        moved = x + 0.2 * changed[:, None] * rng.standard_normal((N, 3))
        new = find_pairs(sets, moved, 0.1, rest, changed)
        expected = find_pairs(sets, moved, 0.1, rest, room=1)
        merged = merge_pairs(before, changed, new)
        assert len(merged.keys) > 0
        assert (np.diff(merged.keys) > 0).all()
        for column, other in zip(merged, expected, strict=True):
            np.testing.assert_array_equal(column, other)
