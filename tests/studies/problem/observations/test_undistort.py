import numpy as np
import pytest

from studies.problem.observations.undistort import (
    intrinsics,
    source_pixels,
    undistorted_picture,
    undistorted_points,
)
from studies.runs.errors import StudyError
from studies.scene.declared import Camera


SIZE = (48, 64)
K = ((80.0, 0.5, 30.0), (0.0, 82.0, 25.0), (0.0, 0.0, 1.0))
EYE = np.eye(3).tolist()


def camera(k1, k2):
    return Camera(K=K, R=EYE, t=(0, 0, 1), distortion=(k1, k2))


def distorted(points, k1, k2):
    """Return OpenCV's model, written out for one point after another."""
    out = []
    for u, v in points:
        x, y, w = np.linalg.inv(K) @ [u, v, 1.0]
        r2 = (x * x + y * y) / w**2
        factor = 1 + k1 * r2 + k2 * r2**2
        out.append((np.array(K) @ [factor * x, factor * y, 1.0])[:2])
    return np.array(out)


def test_points_come_back():
    ideal = np.array([[0.0, 0.0], [63.0, 47.0], [30.0, 25.0], [12.5, 40.25]])
    film = distorted(ideal, -0.3, 0.1)
    assert np.abs(film - ideal).max() > 1.0
    np.testing.assert_allclose(undistorted_points(film, camera(-0.3, 0.1), SIZE), ideal, atol=1e-9)


def test_missing_points_stay_missing():
    points = np.array([[np.nan, np.nan], [1.0, 2.0]])
    back = undistorted_points(points, camera(-0.1, 0.0), SIZE)
    assert np.isnan(back[0]).all()
    assert np.isfinite(back[1]).all()


def test_a_picture_is_looked_up_where_the_lens_puts_it():
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]].astype(float)
    film = np.stack([columns, rows], axis=-1)  # each pixel holds its own place
    ideal = undistorted_picture(film, source_pixels(camera(-0.2, 0.05), SIZE, "cameras.a"))
    pixels = np.array([[10, 20], [40, 30], [30, 25]])
    want = distorted(pixels, -0.2, 0.05)
    np.testing.assert_allclose(ideal[pixels[:, 1], pixels[:, 0]], want, atol=1e-9)


def test_without_distortion_nothing_is_touched():
    picture, points = np.ones((4, 4, 3)), np.ones((2, 2))
    assert source_pixels(camera(0.0, 0.0), SIZE, "cameras.a") is None
    assert undistorted_picture(picture, None) is picture
    assert undistorted_points(points, camera(0.0, 0.0), SIZE) is points


def test_intrinsics_of_a_field_of_view():
    matrix = intrinsics(Camera(eye=(0, 0, 1), target=(0, 0, 0), fov_y=90.0), SIZE)
    np.testing.assert_allclose(matrix, [[24.0, 0, 31.5], [0, 24.0, 23.5], [0, 0, 1]], atol=1e-12)


def test_a_distortion_that_folds_is_refused():
    with pytest.raises(StudyError, match=r"`cameras\.a\.distortion` folds"):
        source_pixels(camera(-3.0, 0.0), SIZE, "cameras.a")
