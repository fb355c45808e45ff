import numpy as np
import pytest

from render.faces.fragment_lists import (
    RUN,
    count_tiles,
    fill_tiles,
    list_fragments,
    order_faces,
    sort_body,
)
from tests.render.elements import empty_list


@pytest.mark.parametrize("n", [0, 1, 2, RUN, RUN + 1, 2 * RUN, 5 * RUN + 3, 300])
def test_lists_of_any_length_are_sorted_by_depth_and_ties_go_by_face(rng, n):
    z = rng.integers(0, max(1, n // 3), n).astype(float)  # every depth about three times
    face = rng.permutation(n).astype(np.int32)
    order, spare = np.arange(-2, n + 2, dtype=np.int32), np.zeros(n + 4, np.int32)
    sort_body(2, 2 + n, z, face, order, spare)
    np.testing.assert_array_equal(order[2 : 2 + n], np.lexsort((face, z)))
    np.testing.assert_array_equal(order[[0, 1, -2, -1]], [-2, -1, n, n + 1])


def test_rounding_does_not_decide_between_equal_depths():
    z = 3.0 * (1.0 + np.array([1e-15, 0.0, -1e-15, 1e-6]))
    face, spare = np.array([0, 1, 2, 3], np.int32), np.zeros(4, np.int32)
    order = np.array([2, 3, 1, 0], np.int32)
    sort_body(0, 4, z, face, order, spare)
    np.testing.assert_array_equal(order, [0, 1, 2, 3])


def test_every_pixel_lists_its_fragments_in_their_order():
    fragments = empty_list(6)._replace(
        pixel=np.array([3, 0, 3, 1, 3, 0], np.int32), start=np.full(6, 9, np.int32)
    )
    list_fragments(6, 4, fragments)
    np.testing.assert_array_equal(fragments.start[:5], [0, 2, 3, 3, 6])
    np.testing.assert_array_equal(fragments.order, [1, 5, 3, 0, 2, 4])


def test_tiles_hold_the_faces_that_reach_into_them_from_near_to_far():
    box = np.array([[0, 5, 0, 2], [3, 3, 0, 0], [4, 9, 1, 6], [8, 10, 0, 1]])
    start, capacity = np.empty(7, np.int64), np.empty(6, np.int64)
    count_tiles(box, 2, 2, start, capacity)  # of 4 pixels, two across
    faces = np.empty(start[-1], np.int64)
    fill_tiles(box, 2, 2, np.array([2, 0, 3]), start.copy(), faces)
    np.testing.assert_array_equal(start, [0, 1, 1, 3, 4, 6, 7])
    np.testing.assert_array_equal(faces, [0, 2, 0, 2, 2, 3, 2])
    np.testing.assert_array_equal(capacity, [8, 0, 2 + 12, 8, 3 + 2, 2])


@pytest.mark.parametrize("n_bins", [1, 2, 64])
def test_faces_are_ordered_by_depth_up_to_a_bin_and_stay_in_order_within_it(rng, n_bins):
    depth = rng.uniform(1.0, 5.0, 40)
    corners = np.concatenate([np.zeros((40, 6)), np.tile(depth[:, None], 3)], axis=1)
    box = np.tile([0, 2, 0, 2], (40, 1))
    box[::5, 1] = 0  # not drawn
    order = np.empty(40, np.int64)
    order = order[: order_faces(corners, box, np.empty(n_bins + 1, np.int64), order)]
    np.testing.assert_array_equal(np.sort(order), np.flatnonzero(box[:, 1]))
    assert (np.diff(depth[order]) > -5.0 / max(1, n_bins - 1)).all() or n_bins == 1
    if n_bins == 1:
        np.testing.assert_array_equal(order, np.flatnonzero(box[:, 1]))


def test_faces_of_one_depth_or_none_are_ordered_too():
    corners, box = np.ones((3, 9)), np.tile([0, 2, 0, 2], (3, 1))
    order = np.empty(3, np.int64)
    assert order_faces(corners, box, np.empty(5, np.int64), order) == 3
    np.testing.assert_array_equal(order, [0, 1, 2])
    assert order_faces(corners[:0], box[:0], np.empty(5, np.int64), order[:0]) == 0
