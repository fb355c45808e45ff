import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from render.posed_camera import PosedCamera
from tests.render.cameras import check_camera


NOMINAL = Rotation.from_rotvec([0.4, -0.3, 0.2]).as_matrix()
MIRROR = np.diag([1.0, 1.0, -1.0])


@pytest.mark.parametrize("rotation", [(0.5, -1.1, 0.7), (0.0, 0.0, 0.0), (1e-3, 2e-3, -1e-3)])
def test_the_twins_of_a_pose_are_its_derivatives(rng, rotation):
    check_camera(rng, PosedCamera(rotation, (0.3, -0.2, -4.0), NOMINAL, fov_y=38.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PosedCamera((0, 0), (0, 0, -4)), r"`camera.rotation` must have shape \(3,\)"),
        (
            lambda: PosedCamera((1e200, 0, 0), (0, 0, -4)),
            r"`camera.rotation` must be below 1e\+100",
        ),
        (
            lambda: PosedCamera((0, 0, 0), (0, 0, -4), MIRROR),
            r"`camera.nominal` must be a rotation.*determinant -1. Check the order of its rows",
        ),
        (
            lambda: PosedCamera((0, 0, 0), (0, 0, -4), 2.0 * NOMINAL),
            r"`camera.nominal` must be a rotation, got R R\^T off the identity by 3.0e\+00",
        ),
        (
            lambda: PosedCamera.from_extrinsics(np.eye(3)),
            r"`matrix` must be \(R \| t\), \(3, 4\), or \(4, 4\).* got shape \(3, 3\)",
        ),
        (
            lambda: PosedCamera.from_extrinsics(2.0 * np.eye(4)),
            r"`matrix` must be \(R \| t\).* with the last row \(0, 0, 0, 1\), got shape \(4, 4\)",
        ),
        (
            lambda: PosedCamera.from_extrinsics(np.eye(4)[:3] @ np.diag([1, 1, -1, 1])),
            r"`matrix\[:, :3\]` must be a rotation",
        ),
    ],
)
def test_a_pose_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
