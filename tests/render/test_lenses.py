import numpy as np
import pytest

from render.camera import Camera
from render.lenses import Intrinsics, Orthographic, Perspective
from tests.render.cameras import check_camera


K = ((31.0, 1.5, 12.5), (0.0, 37.0, 9.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize("lens", [None, Intrinsics.from_matrix(K, (24, 30)), Orthographic(2.5)])
def test_the_twins_of_a_lens_are_its_derivatives(rng, lens):
    check_camera(rng, Camera((0.3, 0.5, 3.0), (0.1, -0.2, 0.3), (0.2, 1.1, 0.1), lens=lens))


def test_a_field_of_view_is_an_intrinsics_matrix_with_its_center_in_the_middle():
    height, width = size = (24, 30)
    focal = height / 2 / np.tan(np.radians(20.0))
    lens = Intrinsics((focal, focal), ((width - 1) / 2, (height - 1) / 2), size)
    np.testing.assert_allclose(lens.numbers(), Perspective(40.0).numbers(), rtol=0, atol=1e-15)


def intrinsics(**changes):
    return Intrinsics(
        **{"focal": (31.0, 37.0), "principal_point": (12.5, 9.0), "size": (24, 30), **changes}
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Perspective(180.0), r"`camera.fov_y` must be between 0 and 180 degrees, got 180"),
        (lambda: Orthographic(0.0), r"`camera.height` must be positive, got 0. The metres"),
        (lambda: intrinsics(focal=30.0), r"`camera.focal` must have shape \(2,\), got \(\)"),
        (lambda: intrinsics(focal=(30, -1)), r"`camera.focal` must be positive, got -1. Two"),
        (
            lambda: intrinsics(principal_point=(np.nan, 0)),
            r"`camera.principal_point` must be finite, got nan at index \(0,\)",
        ),
        (lambda: intrinsics(size=(24, 0)), r"`size` must be \(height, width\), two positive"),
        (
            lambda: Intrinsics.from_matrix(2.0 * np.array(K), (24, 30)),
            r"`matrix` must be \(\(f_u, skew, c_u\).* Divide it by its last entry",
        ),
        (
            lambda: Intrinsics.from_matrix(np.eye(4), (24, 30)),
            r"`matrix` must have shape \(3, 3\), got \(4, 4\)",
        ),
    ],
)
def test_a_lens_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
