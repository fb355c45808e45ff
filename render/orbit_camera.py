r"""A camera that circles a point: distance, elevation and azimuth.

    outward o = (cos e sin a, sin e, cos e cos a),  eye = target + distance o
    forward = -o,  right = (cos a, 0, -sin a),  up = (-sin e sin a, cos e, -sin e cos a)

Azimuth 0 looks along -z, 90 along -x; elevation 90 looks straight down, where the azimuth
still says what is up: no pose is degenerate.

Adjoint: `adjoint/render/orbit_camera.py`. Tests: `tests/render/test_orbit_camera.py`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from render.camera import AnyCamera
from render.lenses import Intrinsics, Orthographic


DEGREE = np.pi / 180.0


def orbit(elevation: float, azimuth: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes right, up and outward [-] at two angles [deg]."""
    e, a = DEGREE * elevation, DEGREE * azimuth  # (1)
    right = np.array([np.cos(a), 0.0, -np.sin(a)])  # (2)
    up = np.array([-np.sin(e) * np.sin(a), np.cos(e), -np.sin(e) * np.cos(a)])  # (3)
    outward = np.array([np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)])  # (4)
    return right, up, outward


@dataclass(frozen=True, eq=False)
class OrbitCamera(AnyCamera):
    """A camera on a sphere around the point it looks at, y up.

    Parameters
    ----------
    distance : float
        From the target to the eye [m], positive.
    elevation : float
        Of the eye above the horizon [deg].
    azimuth : float
        Of the eye [deg]: 0 in the direction +z of the target, 90 in the direction +x.
    target : array_like
        Point that falls on the middle of the image, (3,) [m].
    fov_y : float, optional
        Vertical field of view [deg], between 0 and 180; 45 if there is no lens.
    near, far : float
        Depths [m] between which a face is drawn.
    lens : Intrinsics or Orthographic, optional
        In place of a field of view.

    Raises
    ------
    ValueError
        If the distance is not positive or a number is out of range.

    Notes
    -----
    Parameters that differentiate: `camera.distance`, `.elevation`, `.azimuth` (per degree),
    `.target` and `.fov_y` (per degree), or those of the lens in its place.
    """

    distance: Any
    elevation: Any
    azimuth: Any
    target: Any = (0.0, 0.0, 0.0)
    fov_y: Any = None
    near: float = 0.1
    far: float = 100.0
    lens: Intrinsics | Orthographic | None = None
    POSE = ("distance", "elevation", "azimuth", "target")

    def __post_init__(self) -> None:
        for name in ("distance", "elevation", "azimuth"):
            value = float(checks.array(f"camera.{name}", getattr(self, name), ()))
            object.__setattr__(self, name, value)
        checks.positive(
            "camera.distance", self.distance, hint="At 0 the eye would be at the target."
        )
        checks.freeze(self, "target", checks.array("camera.target", self.target, (3,)))
        self._check_common()

    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the eye, (3,) [m], and the axes right, up and forward, one a row (3, 3)."""
        right, up, outward = orbit(self.elevation, self.azimuth)
        return self.target + self.distance * outward, np.stack([right, up, -outward])  # (5)
