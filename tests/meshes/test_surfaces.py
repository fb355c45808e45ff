import numpy as np
import pytest

from adjsim.meshes.surfaces import blocks, prism, tube, turned


def polygon(n):
    """Area of a regular polygon with n corners on the unit circle."""
    return 0.5 * n * np.sin(2.0 * np.pi / n)


def test_a_turned_rectangle_is_a_cylinder():
    for profile in ([(0, 0), (2, 0), (2, 3), (0, 3)], [(0, 3), (2, 3), (2, 0), (0, 0)]):
        mesh = turned(profile, 16)
        mesh.require_closed()
        assert mesh.volume == pytest.approx(4.0 * polygon(16) * 3.0, rel=1e-14)
        assert (len(mesh.points), len(mesh.faces)) == (2 + 2 * 16, 4 * 16)


def test_a_turned_square_off_the_axis_is_a_ring():
    mesh = turned([(1, 0), (2, 0), (2, 1), (1, 1)], 12)
    mesh.require_closed()
    assert mesh.volume == pytest.approx((4.0 - 1.0) * polygon(12), rel=1e-14)
    assert len(mesh.points) - len(mesh.edges) + len(mesh.faces) == 0


def test_a_prism_has_its_outline_times_its_thickness():
    mesh = prism([(0, 0), (4, 0), (1.5, 1.5), (0, 4)], 0.5)
    mesh.require_closed()
    # An arrowhead: two triangles of base 4 and height 1.5.
    assert mesh.volume == pytest.approx(6.0 * 0.5, rel=1e-14)


def test_a_straight_tube_is_a_cylinder_with_tips():
    mesh = tube([(0, 0), (1, 0), (3, 0), (4, 0)], [0.5, 0.5], 8)
    mesh.require_closed()
    assert mesh.volume == pytest.approx(0.25 * polygon(8) * (2.0 + 2.0 / 3.0), rel=1e-14)


def test_blocks_have_the_volume_of_their_cells():
    there = np.ones((2, 2, 1), bool)
    there[1, 1] = False  # an L
    mesh = blocks([(0, 1, 3), (0, 2, 3), (0, 0.5)], there)
    mesh.require_closed()
    assert mesh.volume == pytest.approx(0.5 * (9 - 2), rel=1e-14)
    assert len(mesh.points) == 2 * 8


def test_blocks_that_touch_in_an_edge_only_are_refused():
    with pytest.raises(ValueError, match="`filled` must be manifold, but 1 of its"):
        blocks([(0, 1, 2), (0, 1, 2), (0, 1)], np.eye(2, dtype=bool)[..., None])


@pytest.mark.parametrize("filled", [np.ones((2, 1, 1)), np.zeros((1, 1, 1))])
def test_blocks_need_a_mask_of_their_cells(filled):
    with pytest.raises(ValueError, match=r"`filled` must have one entry per cell, \(1, 1, 1\)"):
        blocks([(0, 1)] * 3, filled)


def test_a_profile_across_the_axis_is_refused():
    with pytest.raises(ValueError, match="`profile` must keep a positive distance"):
        turned([(0, 0), (1, 0), (-1, 2), (0, 3)], 8)
    with pytest.raises(ValueError, match="`profile` must have at least three points, got 2"):
        turned([(1, 0), (2, 0)], 8)
    for n_around in (2, 4.5):
        with pytest.raises(ValueError, match=f"`n_around` .* of at least 3, got {n_around}"):
            turned([(0, 0), (1, 0), (0, 3)], n_around)


def test_an_outline_that_hides_a_side_is_refused():
    with pytest.raises(ValueError, match="the side from corner 4 is not"):
        prism([(0, 0), (9, 0), (9, 9), (0, 9), (0, 8), (8, 8), (8, 1), (0, 1)], 1.0)


def test_an_outline_must_have_an_area_and_a_thickness():
    corners = [(0, 0), (1, 0), (0, 1)]
    for bad in (corners[::-1], [(0, 0), (1, 0), (2, 0)]):
        with pytest.raises(ValueError, match="`outline` must run counter-clockwise"):
            prism(bad, 1.0)
    with pytest.raises(ValueError, match="`outline` must have at least three points, got 2"):
        prism(corners[:2], 1.0)
    with pytest.raises(ValueError, match=r"`thickness` must have shape \(\), got \(2,\)"):
        prism(corners, [1.0, 2.0])


def test_a_path_that_turns_back_is_refused():
    with pytest.raises(ValueError, match=r"`path` .* points 0 and 2 are both at \[0.0, 0.0\]"):
        tube([(0, 0), (1, 0), (0, 0)], [0.1], 6)
    with pytest.raises(ValueError, match="`path` must have at least three points, got 1"):
        tube([(0, 0)], [], 6)
    with pytest.raises(ValueError, match="`radii` must be positive, got 0"):
        tube([(0, 0), (1, 0), (2, 0)], [0.0], 6)


@pytest.mark.parametrize("axes", [[(0, 1)] * 2, [(1, 0)] * 3, [(0, 0)] * 3])
def test_the_planes_of_blocks_must_increase_along_three_axes(axes):
    with pytest.raises(
        ValueError, match=r"`axes` must (be three sequences|have one entry per direction)"
    ):
        blocks(axes, np.ones((1, 1, 1)))
