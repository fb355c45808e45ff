"""How the body looks: one colour, ambient light and a lamp, fitted to the first frame.

The first frame of a video shows the body at rest, whose shape and place are known. What
is left of the difference is colour, light and background, and these are fitted to it, so
that the later frames can be compared in RGB although another renderer, or a real camera,
made them. The face colours stay white: `ambient` (3,) and the lamp's `color` (3,) take
the body's colour in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.optimize

from adjoint.render.soft_raster import record_images
from render.camera import Camera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.errors import StudyError


Drawn = tuple[Scene, Camera, SoftRasterizer, dict[str, Any], tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Look:
    """Ambient colour (3,), lamp colour (3,), direction towards the lamp (3,) [-]."""

    ambient: np.ndarray
    lamp: np.ndarray
    direction: np.ndarray

    def scene(self, faces: np.ndarray) -> Scene:
        """Return the body under its lamp."""
        return Scene(
            objects={"body": Mesh(faces, material=Material(ambient=self.ambient, diffuse=1.0))},
            lights={"lamp": DirectionalLight(self.direction, self.lamp)},
        )


def silhouette() -> Look:
    """Return the look of a body that is white everywhere."""
    return Look(np.ones(3), np.zeros(3), np.array([0.0, 1.0, 0.0]))


def given_look(settings: Mapping[str, Any]) -> Look:
    """Return the look of the settings `[appearance]`."""
    color, ambient = np.array(settings["color"], float), settings["ambient"]
    return Look(ambient * color, (1.0 - ambient) * color, np.array(settings["light"], float))


@dataclass(frozen=True, eq=False)
class FirstFrame:
    """The body at rest, as a camera sees it."""

    faces: np.ndarray
    vertices: np.ndarray
    camera: Camera
    rasterizer: SoftRasterizer
    target: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        return self.target.shape[0], self.target.shape[1]

    def alpha(self) -> np.ndarray:
        """Return the coverage by the body, (H, W)."""
        return rasterize(*self._drawn(silhouette()))[..., 3]

    def background(self) -> np.ndarray:
        """Return the median colour of the pixels that the body leaves free, (3,)."""
        is_free = self.alpha() < 1e-3
        if not is_free.any():
            raise StudyError(
                "`camera` sees nothing but the body, so the background has no colour to fit. "
                "Move it back, check `body.scale`, or set `appearance.fit` to false."
            )
        return np.median(self.target[is_free], axis=0)

    def over(self, plate: np.ndarray) -> "FirstFrame":
        """Return the frame with the body drawn over a plate, (H, W, 3)."""
        return replace(self, rasterizer=replace(self.rasterizer, background=plate))

    def fit(self, look: Look) -> Look:
        """Return the look that explains the frame best, in least squares."""

        def residual(p: np.ndarray) -> np.ndarray:
            images = rasterize(*self._drawn(_unpacked(p)))
            return (images[..., :3] - self.target).ravel()

        def jacobian(p: np.ndarray) -> np.ndarray:
            record = record_images(*self._drawn(_unpacked(p)))
            columns = [
                record.jvp({path: tangent})[..., :3].ravel()
                for path in ("body.ambient", "lamp.color", "lamp.direction")
                for tangent in np.eye(3)
            ]
            return np.stack(columns, axis=1)

        direction = look.direction / np.linalg.norm(look.direction)
        start = np.concatenate([look.ambient, look.lamp, direction])
        low = np.repeat([0.0, -2.0], [6, 3])
        found: Any = scipy.optimize.least_squares(
            residual,
            np.maximum(start, low + 1e-3),
            cast(Any, jacobian),
            bounds=(low, np.full(9, 4.0)),
            max_nfev=30,
        )
        look = _unpacked(found.x)
        return replace(look, direction=look.direction / np.linalg.norm(look.direction))

    def _drawn(self, look: Look) -> Drawn:
        vertices = {"body": self.vertices}
        return look.scene(self.faces), self.camera, self.rasterizer, vertices, self.size


def _unpacked(p: np.ndarray) -> Look:
    return Look(p[:3], p[3:6], p[6:])
