r"""A camera whose pose is a rotation vector and a translation.

    x_c = exp([theta]x) N x + t      x_c: x right, y up, z towards the viewer

N is a fixed rotation, the nominal one; theta turns what is seen from there, so the camera by
-theta in its own axes, and is 0 where a search starts. Then R = exp([theta]x) N has the rows
right, up and -forward, and the eye is at -R^T t. `adjsim/rotations.py` has exp([theta]x).

Adjoint: `adjoint/render/posed_camera.py`. Tests: `tests/render/test_posed_camera.py`.
Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., sec. 6.1 and app. 4.3.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.rotations import rotation_matrix
from render.camera import TO_VISION, AnyCamera
from render.lenses import Intrinsics, Orthographic


ORTHOGONAL = 1e-6  # how far R R^T may be from the identity


@dataclass(frozen=True, eq=False)
class PosedCamera(AnyCamera):
    """A camera at a pose, such as a calibration or a search gives it.

    Parameters
    ----------
    rotation : array_like
        Rotation vector theta, in the axes of the camera, that turns what its nominal rotation
        sees: the camera turns by -theta, (3,) [rad].
    translation : array_like
        Place of the origin of the world in the axes of the camera, (3,) [m]: what is seen
        lies at negative z.
    nominal : array_like
        Rotation N from the axes of the world to those of the camera (x right, y up, z towards
        the viewer), (3, 3) [-]; not differentiated.
    fov_y : float, optional
        Vertical field of view [deg], between 0 and 180; 45 if there is no lens.
    near, far : float
        Depths [m] between which a face is drawn.
    lens : Intrinsics or Orthographic, optional
        In place of a field of view.

    Raises
    ------
    ValueError
        If `nominal` is no rotation or a number is out of range.

    Notes
    -----
    Parameters that differentiate: `camera.rotation`, `.translation` and `.fov_y` (per
    degree), or those of the lens in its place.
    """

    rotation: Any
    translation: Any
    nominal: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    fov_y: Any = None
    near: float = 0.1
    far: float = 100.0
    lens: Intrinsics | Orthographic | None = None
    POSE = ("rotation", "translation")

    def __post_init__(self) -> None:
        for name in self.POSE:
            checks.freeze(self, name, checks.array(f"camera.{name}", getattr(self, name), (3,)))
        if np.abs(self.rotation).max() > checks.LENGTHS[1]:
            raise ValueError(
                f"`camera.rotation` must be below {checks.LENGTHS[1]:g} rad, for its square is "
                f"taken, got {self.rotation.tolist()}. Take off full turns."
            )
        nominal = checks.array("camera.nominal", self.nominal, (3, 3))
        _check_rotation("camera.nominal", nominal)
        checks.freeze(self, "nominal", nominal)
        self._check_common()

    @classmethod
    def from_extrinsics(cls, matrix: Any, **changes: Any) -> "PosedCamera":
        """Return the camera of an extrinsics matrix, with the rotation vector 0.

        Parameters
        ----------
        matrix : array_like
            (R | t), (3, 4) or with a last row (0, 0, 0, 1) (4, 4) [m]: from the world to axes
            x right, y down, z ahead, as calibrations give it.
        **changes
            `fov_y`, `near`, `far`, `lens`.

        Raises
        ------
        ValueError
            If the matrix has another form, or R is no rotation.
        """
        M = checks.array("matrix", matrix)
        if M.shape == (4, 4) and np.array_equal(M[3], [0.0, 0.0, 0.0, 1.0]):
            M = M[:3]
        if M.shape != (3, 4):
            raise ValueError(
                "`matrix` must be (R | t), (3, 4), or (4, 4) with the last row (0, 0, 0, 1), got "
                f"shape {M.shape}: {M.tolist()}."
            )
        _check_rotation("matrix[:, :3]", M[:, :3])
        return cls(np.zeros(3), TO_VISION @ M[:, 3], TO_VISION @ M[:, :3], **changes)

    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the eye, (3,) [m], and the axes right, up and forward, one a row (3, 3)."""
        R = rotation_matrix(self.rotation) @ self.nominal  # (1)
        eye = -R.T @ self.translation  # (2)
        return eye, R * [[1.0], [1.0], [-1.0]]  # (3)


def _check_rotation(name: str, R: np.ndarray) -> None:
    """Raise unless R is a rotation: orthogonal, and no reflection."""
    error = float(np.abs(R @ R.T - np.eye(3)).max())
    if error > ORTHOGONAL or np.linalg.det(R) < 0.0:
        raise ValueError(
            f"`{name}` must be a rotation, got R R^T off the identity by {error:.1e} and the "
            f"determinant {np.linalg.det(R):g}. Check the order of its rows and the signs of "
            "its axes."
        )
