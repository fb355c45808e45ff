import dataclasses

import numpy as np
import pytest

from render.camera import Camera
from render.lenses import Intrinsics, Orthographic
from render.projection import project, unpack_view
from tests.render.cameras import check_camera


def screen(camera, point):
    """Screen position and depth of a point."""
    eye, frame = unpack_view(tuple(camera.view()))
    return np.array(project(tuple(point), eye, *frame))


def test_the_target_falls_on_the_middle_of_the_image():
    camera = Camera((1.0, 2.0, 5.0), (0.5, -0.5, 0.25))
    x, y, z = screen(camera, camera.target)
    assert abs(x) < 1e-15
    assert abs(y) < 1e-15
    assert z == pytest.approx(np.linalg.norm(camera.target - camera.eye), rel=1e-15)


def test_right_is_forward_cross_up_and_y_points_up():
    camera = Camera((0.0, 0.0, 4.0), (0.0, 0.0, 0.0))  # looks along -z: x is to the right
    assert screen(camera, (1.0, 0.0, 0.0))[0] > 0
    assert screen(camera, (0.0, 1.0, 0.0))[1] > 0


def test_the_upper_edge_is_half_the_field_of_view_away():
    camera = Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), fov_y=60.0)
    height = 2.0 * np.tan(np.radians(30.0))
    assert screen(camera, (0.0, height, 0.0))[1] == pytest.approx(1.0, rel=1e-14)


def test_up_need_not_be_orthogonal_to_the_view():
    straight = screen(Camera((0, 0, 3), (0, 0, 0)), (0.3, 0.2, 0.1))
    tilted = screen(Camera((0, 0, 3), (0, 0, 0), up=(0, 2.0, 1.7)), (0.3, 0.2, 0.1))
    np.testing.assert_allclose(straight, tilted, rtol=1e-14)


def test_the_twins_of_a_camera_are_its_derivatives(rng):
    check_camera(rng, Camera((0.3, 0.5, 3.0), (0.1, -0.2, 0.3), (0.2, 1.1, 0.1), 38.0))


def test_a_lens_takes_the_place_of_the_field_of_view():
    camera = Camera((0, 0, 3), (0, 0, 0))
    assert camera.fov_y == 45.0
    assert list(camera.parameters()) == ["eye", "target", "up", "fov_y"]
    flat = Camera((0, 0, 3), (0, 0, 0), lens=Orthographic(2.0))
    assert flat.fov_y is None
    assert list(flat.parameters()) == ["eye", "target", "up", "height"]
    changed = dataclasses.replace(camera, fov_y=None, lens=Intrinsics((9, 9), (4, 4), (8, 8)))
    assert list(changed.parameters())[3:] == ["focal", "principal_point", "skew"]
    with pytest.raises(ValueError, match=r"`camera.fov_y` must be None where `camera.lens` is"):
        dataclasses.replace(camera, lens=Orthographic(2.0))
    with pytest.raises(TypeError, match=r"`camera.lens` must be an Intrinsics.*got float"):
        Camera((0, 0, 3), (0, 0, 0), lens=2.0)  # pyright: ignore[reportArgumentType]


def test_other_values_reach_pose_and_lens():
    camera = Camera((0, 0, 3), (0, 0, 0), lens=Orthographic(2.0))
    changed = camera.with_values({"eye": (0, 1, 3), "height": 3.0})
    np.testing.assert_array_equal(changed.eye, (0, 1, 3))
    assert changed.lens.height == 3.0
    assert Camera((0, 0, 3), (0, 0, 0)).with_values({"fov_y": 30.0}).fov_y == 30.0
    with pytest.raises(ValueError, match=r"parameter of `camera` `eyes`. Did you mean `eye`"):
        camera.with_values({"eyes": (0, 1, 3)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eye": (0, 0, 0)}, r"`camera.eye` must differ from `camera.target`"),
        ({"up": (0, 0, -2)}, r"`camera.up` must not be along the view"),
        ({"up": (0, 0, 0)}, r"`camera.up` must not be along the view"),
        (
            {"eye": (0, 0, 1e-200)},
            r"`camera.target - camera.eye` must have a length between 1e-100 and 1e\+100, got",
        ),
        ({"eye": (0, 0, 1e200)}, r"`camera.target - camera.eye` must have a length .* in metres"),
        (
            {"eye": (0, 0, 1e308), "target": (0, 0, -1e308)},
            r"`camera.target - camera.eye` must have a length .*, got \[0.0, 0.0, -inf\]",
        ),
        ({"up": (0, 1e-200, 0)}, r"`camera.up` must have a length .*, got .* Give a unit vector"),
        ({"up": (0, 1e200, 0)}, r"`camera.up` must have a length .*, got .* Give a unit vector"),
        ({"fov_y": 180.0}, r"`camera.fov_y` must be between 0 and 180 degrees, got 180"),
        ({"fov_y": 0.0}, r"`camera.fov_y` must be between 0 and 180 degrees, got 0"),
        ({"near": 0.0}, r"0 < near < far, got near=0, far=100"),
        ({"near": 5.0, "far": 2.0}, r"0 < near < far, got near=5, far=2"),
        ({"eye": (0, np.nan, 3)}, r"`camera.eye` must be finite, got nan at index \(1,\)"),
        ({"target": (0, 0)}, r"`camera.target` must have shape \(3,\), got \(2,\)"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Camera(**{"eye": (0, 0, 3), "target": (0, 0, 0), **changes})


@pytest.mark.parametrize("size", [1e-99, 1e99])
def test_vectors_of_a_camera_may_be_very_short_or_long(size):
    camera = Camera((0, 0, size), (0, 0, 0), (0, size, 0))
    np.testing.assert_array_equal(camera.pose()[1], [[1, 0, 0], [0, 1, 0], [0, 0, -1]])
