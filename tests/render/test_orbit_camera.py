import numpy as np
import pytest

from render.camera import Camera
from render.orbit_camera import OrbitCamera
from tests.render.cameras import check_camera


@pytest.mark.parametrize("elevation", [25.0, -70.0, 90.0])
def test_the_twins_of_an_orbit_are_its_derivatives(rng, elevation):
    check_camera(rng, OrbitCamera(3.5, elevation, -130.0, (0.2, 0.1, -0.1), fov_y=38.0))


def test_azimuth_0_is_on_the_side_of_z_and_90_on_that_of_x():
    np.testing.assert_allclose(OrbitCamera(2.0, 0.0, 0.0, (1, 1, 1)).pose()[0], [1, 1, 3])
    np.testing.assert_allclose(OrbitCamera(2.0, 0.0, 90.0, (1, 1, 1)).pose()[0], [3, 1, 1])
    np.testing.assert_allclose(OrbitCamera(2.0, 90.0, 77.0, (1, 1, 1)).pose()[0], [1, 3, 1])


def test_away_from_the_poles_it_looks_at_its_target_with_y_up():
    orbit = OrbitCamera(2.5, 35.0, 160.0, (0.3, -0.2, 0.1), fov_y=30.0)
    same = Camera(orbit.pose()[0], orbit.target, fov_y=30.0)
    np.testing.assert_allclose(orbit.view(), same.view(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distance": 0.0}, r"`camera.distance` must be positive, got 0. At 0 the eye would be"),
        ({"elevation": np.inf}, r"`camera.elevation` must be finite"),
        ({"azimuth": (1.0, 2.0)}, r"`camera.azimuth` must have shape \(\), got \(2,\)"),
        ({"near": 0.0}, r"0 < near < far, got near=0, far=100"),
    ],
)
def test_an_orbit_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        OrbitCamera(**{"distance": 2.0, "elevation": 10.0, "azimuth": 0.0, **changes})
