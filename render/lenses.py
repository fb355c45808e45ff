r"""Lenses: how camera coordinates become places on the screen.

    Perspective     f = 1/tan(fov/2)                                      s = f (x_c, y_c)/z
    Intrinsics      u = (f_u x_c - skew y_c)/z + c_u,   v = c_v - f_v y_c/z       [pixels]
                    s_x = (2 u + 1 - W)/H,   s_y = (H - 1 - 2 v)/H
    Orthographic    s = 2 (x_c, y_c)/height

u counts columns to the right and v rows down, whole numbers at the centres of pixels, as
calibrations give them: pixel (row i, column j) is seen along u = j, v = i. y_c points up.

Adjoint: `adjoint/render/lenses.py`. Tests: `tests/render/test_lenses.py`.
Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., sec. 6.1 and 6.3.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from render.projection import image_size


HALF_DEGREE = math.pi / 360.0  # radians in half a degree


class Lens(ABC):
    """What a camera has in front of it; the camera has its parameters."""

    PARAMETERS: ClassVar[tuple[str, ...]]
    is_orthographic: ClassVar[bool] = False

    @abstractmethod
    def numbers(self) -> np.ndarray:
        """Return f_x, k, c_x, f_y, c_y [-] of `render/projection.py`, (5,)."""


@dataclass(frozen=True, eq=False)
class Perspective(Lens):
    """A pinhole with the target in the middle of the image.

    Parameters
    ----------
    fov_y : float
        Vertical field of view [deg], between 0 and 180.
    """

    fov_y: Any
    PARAMETERS = ("fov_y",)

    def __post_init__(self) -> None:
        value = float(checks.array("camera.fov_y", self.fov_y, ()))
        if not 0.0 < value < 180.0:
            raise ValueError(
                f"`camera.fov_y` must be between 0 and 180 degrees, got {value:g}. It is measured "
                "in degrees, from the lower edge of the image to the upper."
            )
        object.__setattr__(self, "fov_y", value)

    def numbers(self) -> np.ndarray:
        """Return f, 0, 0, f, 0."""
        focal = 1.0 / math.tan(HALF_DEGREE * self.fov_y)  # (1)
        return np.array([focal, 0.0, 0.0, focal, 0.0])


@dataclass(frozen=True, eq=False)
class Intrinsics(Lens):
    """The pinhole of a calibrated camera.

    Parameters
    ----------
    focal : array_like
        f_u and f_v, (2,) [pixels], positive.
    principal_point : array_like
        c_u and c_v, where the axis of the camera meets the image, (2,) [pixels]: column and
        row, whole numbers at the centres of pixels.
    size : tuple of int
        Height and width [pixels] of the image that was calibrated. An image drawn at another
        size shows the same, if its aspect is the same.
    skew : float
        Of the axes of the image [pixels].

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite, or a focal length is not positive.
    """

    focal: Any
    principal_point: Any
    size: Any
    skew: Any = 0.0
    PARAMETERS = ("focal", "principal_point", "skew")

    def __post_init__(self) -> None:
        focal = checks.array("camera.focal", self.focal, (2,))
        checks.positive("camera.focal", focal, hint="Two focal lengths in pixels.")
        checks.freeze(self, "focal", focal)
        center = checks.array("camera.principal_point", self.principal_point, (2,))
        checks.freeze(self, "principal_point", center)
        object.__setattr__(self, "size", image_size(self.size))
        object.__setattr__(self, "skew", float(checks.array("camera.skew", self.skew, ())))

    @classmethod
    def from_matrix(cls, matrix: Any, size: Any) -> "Intrinsics":
        """Return the lens of an intrinsics matrix.

        Parameters
        ----------
        matrix : array_like
            ((f_u, skew, c_u), (0, f_v, c_v), (0, 0, 1)), (3, 3) [pixels].
        size : tuple of int
            Height and width [pixels] of the image that was calibrated.

        Raises
        ------
        ValueError
            If the matrix has another form.
        """
        K = checks.array("matrix", matrix, (3, 3))
        if not np.array_equal([K[1, 0], *K[2]], [0.0, 0.0, 0.0, 1.0]):
            raise ValueError(
                "`matrix` must be ((f_u, skew, c_u), (0, f_v, c_v), (0, 0, 1)) in pixels, got "
                f"{K.tolist()}. Divide it by its last entry."
            )
        return cls(np.diag(K)[:2], K[:2, 2], size, K[0, 1])

    def matrix(self) -> np.ndarray:
        """Return the intrinsics matrix, (3, 3) [pixels]."""
        (f_u, f_v), (c_u, c_v) = self.focal, self.principal_point
        return np.array([[f_u, self.skew, c_u], [0.0, f_v, c_v], [0.0, 0.0, 1.0]])

    def numbers(self) -> np.ndarray:
        """Return the lens in units of the screen."""
        (f_u, f_v), (c_u, c_v), (height, width) = self.focal, self.principal_point, self.size
        pixel = 2.0 / height
        return np.array(
            [
                pixel * f_u,  # (1)
                -pixel * self.skew,  # (2)
                pixel * c_u + (1 - width) / height,  # (3)
                pixel * f_v,  # (4)
                (height - 1) / height - pixel * c_v,  # (5)
            ]
        )


@dataclass(frozen=True, eq=False)
class Orthographic(Lens):
    """A view from infinitely far away: nothing gets smaller with depth.

    Parameters
    ----------
    height : float
        From the lower edge of the image to the upper [m], positive.
    """

    height: Any
    PARAMETERS = ("height",)
    is_orthographic = True

    def __post_init__(self) -> None:
        height = float(checks.array("camera.height", self.height, ()))
        checks.positive("camera.height", height, hint="The metres that the image is high.")
        object.__setattr__(self, "height", height)

    def numbers(self) -> np.ndarray:
        """Return 2/height, 0, 0, 2/height, 0."""
        scale = 2.0 / self.height  # (1)
        return np.array([scale, 0.0, 0.0, scale, 0.0])
