"""How the body looks: one colour, ambient light and a lamp, fitted to the first frame.

The first frame of a video shows the body at rest, whose shape and place are known. What
is left of the difference is colour, light and background, and these are fitted to it, so
that the later frames can be compared in RGB although another renderer, or a real camera,
made them. The face colours stay white: `ambient` (3,) and the lamp's `color` (3,) take
the body's colour in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import scipy.optimize

from adjoint.render.soft_raster import rasterize_jvp
from render.camera import Camera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.errors import StudyError
from studies.filming import Filming, Pulled
from studies.motion import Motion


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


def over_plate(images: np.ndarray, plate: np.ndarray) -> np.ndarray:
    """Return images (..., H, W, 4), drawn over black, over a plate (H, W, 3); alpha stays."""
    alpha = images[..., 3:]
    return np.concatenate([images[..., :3] + (1.0 - alpha) * plate, alpha], axis=-1)


def over_plate_jvp(tan_images: np.ndarray, plate: np.ndarray) -> np.ndarray:
    """Return the tangent of `over_plate`."""
    tan_alpha = tan_images[..., 3:]
    return np.concatenate([tan_images[..., :3] - tan_alpha * plate, tan_alpha], axis=-1)


def over_plate_vjp(adj_images: np.ndarray, plate: np.ndarray) -> np.ndarray:
    """Return the cotangent of the images of `over_plate`."""
    adj_rgb = adj_images[..., :3]
    adj_alpha = adj_images[..., 3:] - (adj_rgb * plate).sum(axis=-1, keepdims=True)
    return np.concatenate([adj_rgb, adj_alpha], axis=-1)


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

    def fit(self, look: Look, plate: np.ndarray) -> Look:
        """Return the look that explains the frame best, in least squares."""

        def residual(p: np.ndarray) -> np.ndarray:
            images = rasterize(*self._drawn(_unpacked(p)))
            return (over_plate(images, plate)[..., :3] - self.target).ravel()

        def jacobian(p: np.ndarray) -> np.ndarray:
            drawn = self._drawn(_unpacked(p))
            pushed = [
                rasterize_jvp(*drawn, {path: tangent})[1]
                for path in ("body.ambient", "lamp.color", "lamp.direction")
                for tangent in np.eye(3)
            ]
            columns = [over_plate_jvp(tan, plate)[..., :3].ravel() for tan in pushed]
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


@dataclass(frozen=True, eq=False)
class PlateFilming(Filming):
    """A filming over black, laid over a plate: images are RGBA, (n_frames, H, W, 4).

    Attributes
    ----------
    filming : Filming
        Its background is black.
    plate : ndarray
        The picture without what moves, (H, W, 3).
    """

    filming: Filming
    plate: np.ndarray
    size: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.filming.size)

    def shoot(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the images of a trajectory."""
        return over_plate(self.filming.shoot(motion, run), self.plate)

    def jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and their tangents."""
        images, tan_images = self.filming.jvp(motion, run, tan_run, tangents)
        return over_plate(images, self.plate), over_plate_jvp(tan_images, self.plate)

    def vjp(self, motion: Motion, run: Any, adj_images: np.ndarray) -> Pulled:
        """Pull the cotangent of the images back."""
        return self.filming.vjp(motion, run, over_plate_vjp(adj_images, self.plate))

    def meshes(self, motion: Motion, run: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return faces and vertices of the objects by name."""
        return self.filming.meshes(motion, run)
