r"""Pinhole camera: where a point of the world falls on the screen.

    forward f = (target - eye)/|target - eye|,  right r = f x up / |f x up|,  u = r x f
    d = x - eye,  z = f.d,  s = (r.d, u.d)/(z tan(fov/2))

Screen coordinates are isotropic: y in [-1, 1], x in [-aspect, aspect], aspect =
width/height. The camera is packed as ten numbers: eye, target, up, fov_y [deg].

Adjoint: `adjoint/render/camera.py`. Tests: `tests/render/test_camera.py`.
Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., sec. 6.1.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.backend import device_fn, lit
from adjsim.vec3 import cross, dot, norm, scale, sub


HALF_DEGREE = math.pi / 360.0  # radians in half a degree
PARALLEL = 1e-9  # sine of the angle below which `up` counts as along the view


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera, right-handed, looking along its own -z.

    Parameters
    ----------
    eye : array_like
        Centre of projection, (3,) [m].
    target : array_like
        Point that falls on the middle of the image, (3,) [m].
    up : array_like
        Direction that is up in the image, (3,) [-]; need not be orthogonal to the view.
    fov_y : float
        Vertical field of view [deg], between 0 and 180.
    near, far : float
        Depths [m] between which a face is drawn; not differentiated.

    Raises
    ------
    ValueError
        If the eye is at the target, `up` is along the view, or a number is out of range.

    Notes
    -----
    Parameters that differentiate: `camera.eye`, `.target`, `.up`, `.fov_y` (per degree).
    """

    eye: Any
    target: Any
    up: Any = (0.0, 1.0, 0.0)
    fov_y: float = 45.0
    near: float = 0.1
    far: float = 100.0

    def __post_init__(self) -> None:
        for name in ("eye", "target", "up"):
            value = checks.array(f"camera.{name}", getattr(self, name), (3,)).copy()
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        for name in ("fov_y", "near", "far"):
            value = float(checks.array(f"camera.{name}", getattr(self, name), ()))
            object.__setattr__(self, name, value)
        if not 0.0 < self.fov_y < 180.0:
            raise ValueError(
                f"`camera.fov_y` must be between 0 and 180 degrees, got {self.fov_y:g}."
            )
        if not 0.0 < self.near < self.far:
            raise ValueError(
                "`camera.near` and `camera.far` must satisfy 0 < near < far, "
                f"got near={self.near:g}, far={self.far:g}."
            )
        view = self.target - self.eye
        if not np.any(view):
            raise ValueError(
                f"`camera.eye` must differ from `camera.target`, got {self.eye} for both. "
                "Move the eye away from the point it looks at."
            )
        side = np.linalg.norm(np.cross(view, self.up))
        if not side > PARALLEL * np.linalg.norm(view) * np.linalg.norm(self.up):
            raise ValueError(
                f"`camera.up` must not be along the view, got up={self.up} and "
                f"target - eye={view}. Choose another `up`."
            )

    def packed(self, dtype: np.dtype) -> np.ndarray:
        """Return eye, target, up and fov_y as ten numbers of `dtype`."""
        return np.concatenate([self.eye, self.target, self.up, [self.fov_y]]).astype(dtype)


def pixel_centers(height: int, width: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the screen x of each column, (width,), and y of each row, (height,) [-]."""
    columns, rows = np.arange(width), np.arange(height)
    pixel_x = width / height * ((2 * columns + 1) / width - 1.0)
    pixel_y = 1.0 - (2 * rows + 1) / height
    return pixel_x.astype(dtype), pixel_y.astype(dtype)


@device_fn
def camera_frame(eye, target, up, fov_y):
    """Axes right, true up, forward [-] and the focal length 1/tan(fov/2) [-].

    Once for an image: on a GPU its tangent of an angle would need double precision.
    """
    view = sub(target, eye)  # (1)
    forward = scale(lit(1.0, fov_y) / norm(view), view)  # (2)
    side = cross(forward, up)  # (3)
    right = scale(lit(1.0, fov_y) / norm(side), side)  # (4)
    true_up = cross(right, forward)  # (5)
    focal = lit(1.0, fov_y) / math.tan(lit(HALF_DEGREE, fov_y) * fov_y)  # (6)
    return right, true_up, forward, focal


@device_fn
def project(x, eye, right, true_up, forward, focal):
    """Screen position s_x, s_y [-] and depth z [m] of the point x."""
    d = sub(x, eye)  # (1)
    x_c = dot(right, d)  # (2)
    y_c = dot(true_up, d)  # (3)
    z = dot(forward, d)  # (4)
    s_x = focal * x_c / z  # (5)
    s_y = focal * y_c / z  # (6)
    return s_x, s_y, z


@device_fn
def unpack_camera(camera):
    """Eye, target, up and fov_y of a camera packed as ten numbers."""
    return (
        (camera[0], camera[1], camera[2]),
        (camera[3], camera[4], camera[5]),
        (camera[6], camera[7], camera[8]),
        camera[9],
    )


@device_fn
def project_body(i, x, eye, frame, screen):
    """Vertex i: write its screen position and depth."""
    right, true_up, forward, focal = frame
    point = (x[i, 0], x[i, 1], x[i, 2])
    screen[i, 0], screen[i, 1], screen[i, 2] = project(point, eye, right, true_up, forward, focal)
