r"""Cameras: what all of them have, and the one that looks from a point at a point.

    forward f = (target - eye)/|target - eye|,  right r = f x up / |f x up|,  u = r x f

The other one: `render/posed_camera.py`. A camera has a pose (where it is) and a lens
(`render/lenses.py`), and comes down to a view (`render/projection.py`).

Adjoint: `adjoint/render/camera.py`. Tests: `tests/render/test_camera.py`.
Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., sec. 6.1.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np

from adjsim import checks
from render.lenses import Intrinsics, Lens, Orthographic, Perspective
from render.projection import AXES, EYE, LENS, PERSPECTIVE, VIEW_SIZE


FOV_Y = 45.0  # degrees, of a camera that is given no lens
PARALLEL = 1e-9  # sine of the angle below which `up` counts as along the view
TO_VISION = np.diag([1.0, -1.0, -1.0])  # axes x right, y up, z back to x right, y down, z ahead


class AnyCamera(ABC):
    """What every camera has: a pose, a lens, and the depths between which faces are drawn.

    Attributes
    ----------
    fov_y : float or None
        Vertical field of view [deg]; None if there is another lens.
    lens : Intrinsics, Orthographic or None
        None: a pinhole with this field of view.
    near, far : float
        Depths [m] between which a face is drawn. Differentiated in `Softmax`, by which depths
        are weighed, and `far` where depth is an output: it lies behind everything.
    """

    POSE: ClassVar[tuple[str, ...]]  # names of the parameters of the pose
    fov_y: Any
    lens: Intrinsics | Orthographic | None
    near: float
    far: float

    @abstractmethod
    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the eye, (3,) [m], and the axes right, up and forward, one a row (3, 3)."""

    @cached_property
    def optics(self) -> Lens:
        """The lens, that of the field of view if there is no other."""
        return self.lens or Perspective(self.fov_y)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the parameters of pose and lens that differentiate, by name."""
        optics = self.optics
        pose = {name: np.asarray(getattr(self, name), float) for name in self.POSE}
        return pose | {name: np.asarray(getattr(optics, name), float) for name in optics.PARAMETERS}

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return this camera with other values of pose, lens, `near` or `far`, by name."""
        values = checks.mapping("values", values, "{'eye': (0.0, 0.0, 3.0)}")
        for name in values:
            checks.known_key("parameter of `camera`", name, [*self.parameters(), "near", "far"])
        of_lens = self.lens.PARAMETERS if self.lens else ()
        of_camera = {name: value for name, value in values.items() if name not in of_lens}
        if self.lens:
            changes = {name: value for name, value in values.items() if name in of_lens}
            of_camera["lens"] = dataclasses.replace(self.lens, **changes)
        return dataclasses.replace(cast("Any", self), **of_camera)

    def view(self) -> np.ndarray:
        """Return the view of `render/projection.py`, (18,)."""
        eye, axes = self.pose()
        out = np.empty(VIEW_SIZE)
        out[EYE], out[AXES], out[LENS] = eye, axes.ravel(), self.optics.numbers()
        out[PERSPECTIVE] = 0.0 if self.optics.is_orthographic else 1.0
        return out

    def extrinsics(self) -> np.ndarray:
        """Return (R | t), (3, 4): from the world to axes x right, y down, z ahead [m]."""
        eye, axes = self.pose()
        R = TO_VISION @ axes * [[1.0], [1.0], [-1.0]]
        return np.concatenate([R, -(R @ eye)[:, None]], axis=1)

    def _check_common(self) -> None:
        """Check and set field of view or lens, and the planes near and far."""
        if self.lens is not None and not isinstance(self.lens, Intrinsics | Orthographic):
            raise TypeError(
                "`camera.lens` must be an Intrinsics or Orthographic lens, got "
                f"{type(self.lens).__name__}. A field of view is given as `fov_y`."
            )
        if self.lens is not None and self.fov_y is not None:
            raise ValueError(
                "`camera.fov_y` must be None where `camera.lens` is given, got "
                f"{self.fov_y}: the lens says how wide the view is."
            )
        if self.lens is None:
            lens = Perspective(FOV_Y if self.fov_y is None else self.fov_y)
            object.__setattr__(self, "fov_y", lens.fov_y)
        for name in ("near", "far"):
            value = float(checks.array(f"camera.{name}", getattr(self, name), ()))
            object.__setattr__(self, name, value)
        if not 0.0 < self.near < self.far:
            raise ValueError(
                "`camera.near` and `camera.far` must satisfy 0 < near < far, "
                f"got near={self.near:g}, far={self.far:g}."
            )


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a x b; `numpy.cross` takes twenty times as long for two vectors."""
    (a_x, a_y, a_z), (b_x, b_y, b_z) = a, b
    return np.array([a_y * b_z - a_z * b_y, a_z * b_x - a_x * b_z, a_x * b_y - a_y * b_x])


def look_at(
    eye: np.ndarray, target: np.ndarray, up: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes right, true up and forward [-], each (3,)."""
    view = target - eye  # (1)
    forward = view / np.linalg.norm(view)  # (2)
    side = cross(forward, up)  # (3)
    right = side / np.linalg.norm(side)  # (4)
    true_up = cross(right, forward)  # (5)
    return right, true_up, forward


@dataclass(frozen=True, eq=False)
class Camera(AnyCamera):
    """A camera that looks from a point at a point, right-handed, along its own -z.

    Parameters
    ----------
    eye : array_like
        Centre of projection, (3,) [m].
    target : array_like
        Point that falls on the middle of the image, (3,) [m].
    up : array_like
        Direction that is up in the image, (3,) [-]; need not be orthogonal to the view.
    fov_y : float, optional
        Vertical field of view [deg], between 0 and 180; 45 if there is no lens.
    near, far : float
        Depths [m] between which a face is drawn.
    lens : Intrinsics or Orthographic, optional
        In place of a field of view.

    Raises
    ------
    ValueError
        If the eye is at the target, `up` is along the view, a number is out of range, or a vector
        is so short or long that the square of its length is 0 or infinite.

    Notes
    -----
    Parameters that differentiate: `camera.eye`, `.target`, `.up` and `.fov_y` (per degree),
    or those of the lens in its place; `.near` and `.far` as `AnyCamera` says.
    """

    eye: Any
    target: Any
    up: Any = (0.0, 1.0, 0.0)
    fov_y: Any = None
    near: float = 0.1
    far: float = 100.0
    lens: Intrinsics | Orthographic | None = None
    POSE = ("eye", "target", "up")

    def __post_init__(self) -> None:
        for name in self.POSE:
            checks.freeze(self, name, checks.array(f"camera.{name}", getattr(self, name), (3,)))
        self._check_common()
        with np.errstate(over="ignore"):
            view = self.target - self.eye
        if not np.any(view):
            raise ValueError(
                f"`camera.eye` must differ from `camera.target`, got {self.eye} for both. "
                "Move the eye away from the point it looks at."
            )
        checks.length("camera.target - camera.eye", view, hint="Give both in metres.")
        if np.any(self.up):
            checks.length("camera.up", self.up, hint="Give a unit vector.")
        forward = view / np.linalg.norm(view)
        side = np.linalg.norm(cross(forward, self.up))
        if not side > PARALLEL * np.linalg.norm(self.up):
            raise ValueError(
                f"`camera.up` must not be along the view, got up={self.up} and "
                f"target - eye={view}. Choose another `up`."
            )

    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the eye, (3,) [m], and the axes right, up and forward, one a row (3, 3)."""
        return self.eye, np.stack(look_at(self.eye, self.target, self.up))
