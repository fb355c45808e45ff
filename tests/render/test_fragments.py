import numpy as np
import pytest

from render.fragments import RUN, count_bands, fill_bands, list_fragments, sort_body
from render.packing import pack
from render.soft_raster import Fragments, empty_fragments, setup_frame
from tests.render.scenes import camera, soft, two_tetrahedra


@pytest.mark.parametrize("n", [0, 1, 2, RUN, RUN + 1, 2 * RUN, 5 * RUN + 3, 300])
def test_lists_of_any_length_are_sorted_by_depth_and_ties_stay_in_order(rng, n):
    z = rng.integers(0, max(1, n // 3), n).astype(float)  # every depth about three times
    order, spare = np.arange(n + 4, dtype=np.int32), np.zeros(n + 4, np.int32)
    sort_body(2, 2 + n, np.concatenate([[9.0, 9.0], z, [0.0, 0.0]]), order, spare)
    np.testing.assert_array_equal(order[2 : 2 + n], 2 + np.argsort(z, kind="stable"))
    np.testing.assert_array_equal(order[[0, 1, -2, -1]], [0, 1, n + 2, n + 3])


def test_every_pixel_lists_its_fragments_in_their_order():
    row, column = np.array([[5, 4, 5, 4, 5, 4], [1, 0, 1, 1, 1, 0]], np.int32)
    nothing, room = np.empty(0), np.zeros(6, np.int32)
    start = np.full(6, 9, np.int32)
    fragments = Fragments(
        row, column, nothing, nothing, nothing, nothing, room, room, start, nothing, nothing
    )
    list_fragments(6, 4, 2, 4, fragments)
    np.testing.assert_array_equal(start[:5], [0, 2, 3, 3, 6])
    np.testing.assert_array_equal(room, [1, 5, 3, 0, 2, 4])


def test_bands_hold_the_faces_that_reach_into_them_in_order():
    box = np.array([[0, 5, 0, 2], [3, 3, 0, 0], [4, 9, 1, 4], [8, 10, 0, 1]])
    start, capacity = np.empty(4, np.int64), np.empty(3, np.int64)
    count_bands(box, 4, start, capacity)
    faces = np.empty(start[-1], np.int64)
    fill_bands(box, 4, start, faces)
    np.testing.assert_array_equal(start, [0, 1, 3, 5])
    np.testing.assert_array_equal(faces, [0, 0, 2, 2, 3])
    np.testing.assert_array_equal(capacity, [8, 2 + 12, 3 + 2])


def test_there_is_room_for_every_fragment_of_a_band(rng):
    scene, vertices = two_tetrahedra(rng)
    frame = setup_frame(pack(scene, [camera()], soft(), vertices, (40, 30))[0], 0)
    assert len(frame.bands.capacity) == 3
    fragments = empty_fragments(frame, 0, 3)
    assert len(fragments.y) == frame.bands.capacity.max()
    assert len(fragments.pair) == np.diff(frame.bands.start).max() + 1
