"""Every camera sends points where matrices in other axes send them, to rounding.

Pixels are of the size 40 and screen coordinates of the size 1 with eps = 2.2e-16.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from render.camera import Camera
from render.lenses import Intrinsics, Orthographic
from render.posed_camera import PosedCamera
from render.projection import pixel_centers, project, unpack_view
from tests.reference import cameras


SIZE = (30, 44)
K = np.array([[41.0, 0.7, 20.5], [0.0, 38.0, 16.25], [0.0, 0.0, 1.0]])
NOMINAL = Rotation.from_rotvec([0.4, -0.3, 0.2]).as_matrix()
POSES = {
    "look-at": (
        lambda **lens: Camera((1.0, 0.8, 3.0), (0.1, -0.2, 0.3), (0.1, 1.0, 0.2), **lens),
        cameras.looking((1.0, 0.8, 3.0), (0.1, -0.2, 0.3), (0.1, 1.0, 0.2)),
    ),
    "from above": (
        lambda **lens: Camera((0.2, 3.6, -0.1), (0.2, 0.1, -0.1), (-0.5, 0.0, -0.9), **lens),
        cameras.looking((0.2, 3.6, -0.1), (0.2, 0.1, -0.1), (-0.5, 0.0, -0.9)),
    ),
    "posed": (
        lambda **lens: PosedCamera((0.5, -1.1, 0.7), (0.3, -0.2, -4.0), NOMINAL, **lens),
        cameras.posed((0.5, -1.1, 0.7), (0.3, -0.2, -4.0), NOMINAL),
    ),
    "at its nominal pose": (
        lambda **lens: PosedCamera((0.0, 0.0, 0.0), (0.3, -0.2, -4.0), NOMINAL, **lens),
        cameras.posed((0.0, 0.0, 0.0), (0.3, -0.2, -4.0), NOMINAL),
    ),
}


def drawn(camera, points):
    """Columns, rows and depths at which the renderer draws points on an image of SIZE."""
    eye, frame = unpack_view(tuple(camera.view()))
    s_x, s_y, z = np.array([project(tuple(point), eye, *frame) for point in points]).T
    x, y = pixel_centers(*SIZE, np.dtype(np.float64))
    return (s_x - x[0]) / (x[1] - x[0]), (s_y - y[0]) / (y[1] - y[0]), z


@pytest.mark.parametrize("pose", POSES)
def test_a_pinhole_sends_points_where_the_matrices_do(rng, pose):
    make, extrinsics = POSES[pose]
    points = 0.7 * rng.normal(size=(20, 3))
    expected = cameras.pixels(points, extrinsics, cameras.wide(38.0, SIZE))
    np.testing.assert_allclose(drawn(make(fov_y=38.0), points), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pose", POSES)
def test_a_calibrated_camera_sends_points_where_the_matrices_do(rng, pose):
    make, extrinsics = POSES[pose]
    points = 0.7 * rng.normal(size=(20, 3))
    camera = make(lens=Intrinsics.from_matrix(K, SIZE))
    expected = cameras.pixels(points, extrinsics, K)
    np.testing.assert_allclose(drawn(camera, points), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(camera.lens.matrix(), K)


@pytest.mark.parametrize("pose", POSES)
def test_an_orthographic_view_sends_points_where_the_matrices_do(rng, pose):
    make, extrinsics = POSES[pose]
    points = 0.7 * rng.normal(size=(20, 3))
    expected = cameras.flat_pixels(points, extrinsics, 2.5, SIZE)
    camera = make(lens=Orthographic(2.5))
    np.testing.assert_allclose(drawn(camera, points), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pose", POSES)
def test_extrinsics_go_out_and_come_back(rng, pose):
    make, extrinsics = POSES[pose]
    camera = make(lens=Intrinsics.from_matrix(K, SIZE))
    np.testing.assert_allclose(camera.extrinsics(), extrinsics[:3], rtol=0, atol=1e-14)
    for matrix in (camera.extrinsics(), extrinsics):
        same = PosedCamera.from_extrinsics(matrix, lens=camera.lens)
        points = 0.7 * rng.normal(size=(20, 3))
        np.testing.assert_allclose(drawn(same, points), drawn(camera, points), rtol=0, atol=1e-12)
