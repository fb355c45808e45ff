import numpy as np
import pytest

from adjoint.render.camera import (
    camera_frame_jvp,
    camera_frame_vjp,
    project_jvp,
    project_vjp,
)
from render.camera import Camera, camera_frame, pixel_centers, project, unpack_camera
from tests.render.elements import check_element


def screen(camera, point):
    """Screen position and depth of a point."""
    eye, target, up, fov_y = unpack_camera(camera.packed(np.dtype(np.float64)))
    return np.array(project(tuple(point), eye, *camera_frame(eye, target, up, fov_y)))


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


def test_pixels_are_isotropic_and_centred():
    x, y = pixel_centers(2, 6, np.dtype(np.float64))
    np.testing.assert_allclose(y, [0.5, -0.5])
    np.testing.assert_allclose(x, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])


def test_the_twins_of_the_camera_frame_are_its_derivatives(rng):
    args = ((0.3, 0.5, 3.0), (0.1, -0.2, 0.3), (0.2, 1.1, 0.1), 38.0)
    check_element(
        rng,
        camera_frame,
        lambda a, t: camera_frame_jvp(*a, *t)[4:],
        lambda a, c: camera_frame_vjp(*a, *c),
        args,
        step=1e-4,
    )


def test_the_twins_of_the_projection_are_its_derivatives(rng):
    frame = camera_frame((0.3, 0.5, 3.0), (0.1, -0.2, 0.3), (0.2, 1.1, 0.1), 38.0)
    args = ((0.4, -0.3, 0.2), (0.3, 0.5, 3.0), *frame)

    def vjp(a, c):
        adj_x, *adj_frame = project_vjp(a[0], a[1], a[2:], *c)
        return (adj_x, tuple(-number for number in adj_x), *adj_frame)

    check_element(
        rng,
        project,
        lambda a, t: project_jvp(a[0], a[1], a[2:], t[0], t[1], t[2:])[3:],
        vjp,
        args,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eye": (0, 0, 0)}, r"`camera.eye` must differ from `camera.target`"),
        ({"up": (0, 0, -2)}, r"`camera.up` must not be along the view"),
        ({"up": (0, 0, 0)}, r"`camera.up` must not be along the view"),
        ({"fov_y": 180.0}, r"`camera.fov_y` must be between 0 and 180 degrees, got 180"),
        ({"fov_y": 0.0}, r"`camera.fov_y` must be between 0 and 180 degrees, got 0"),
        ({"near": 0.0}, r"0 < near < far, got near=0, far=100"),
        ({"near": 5.0, "far": 2.0}, r"0 < near < far, got near=5, far=2"),
        ({"eye": (0, np.nan, 3)}, r"`camera.eye` must be finite, got nan at index \(1,\)"),
        ({"target": (0, 0)}, r"`camera.target` must have shape \(3\), got \(2,\)"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Camera(**{"eye": (0, 0, 3), "target": (0, 0, 0), **changes})
