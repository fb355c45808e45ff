r"""A scene at rest and the cameras on it, drawn as a function of parameters by path.

    values by path -> scene, cameras, rasterizer, vertices -> pictures

Paths are those of `adjoint/render/paths.py`: "ball.vertices", "sky.coefficients",
"camera.0.fov_y", "ball.texels".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import numpy as np

from adjoint.render.soft_raster import ImageRecord, rasterize_jvp, record_images
from adjsim import checks
from render.annealing import softness
from render.camera import AnyCamera
from render.scene import Material, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.errors import StudyError


VISIBLE = 4.0  # pixels that the scene must cover in every picture
MATERIAL = tuple(part.name for part in fields(Material))


@dataclass(frozen=True, eq=False)
class Scenery:
    """What is drawn, and from where.

    Attributes
    ----------
    scene : Scene
    cameras : tuple of camera
        One for each picture.
    rasterizer : SoftRasterizer
    vertices : mapping of str to array
        Of every object, (n_vertices, 3) [m].
    size : tuple of int
        Height and width [pixels].
    dtype, device : str
        float64 or float32, cpu or cuda.
    threads : int, optional
        As `rasterize` takes it.
    """

    scene: Scene
    cameras: tuple[AnyCamera, ...]
    rasterizer: SoftRasterizer
    vertices: Mapping[str, np.ndarray]
    size: tuple[int, int]
    dtype: str = field(default="float64", kw_only=True)
    device: str = field(default="cpu", kw_only=True)
    threads: int | None = field(default=None, kw_only=True)

    def with_values(self, values: Mapping[str, Any]) -> "Scenery":
        """Return the scenery with parameters by path replaced."""
        out = self
        for path, value in values.items():
            out = out._with_value(path, value)
        return out

    def _with_value(self, path: str, value: Any) -> "Scenery":
        owner, _, name = path.rpartition(".")
        if owner == "rasterizer":
            return replace(self, rasterizer=replace(self.rasterizer, **{name: value}))
        if name == "vertices":
            return replace(self, vertices={**self.vertices, owner: np.asarray(value)})
        if owner.startswith("camera."):
            k = int(owner.split(".")[1])
            cameras = list(self.cameras)
            cameras[k] = cameras[k].with_values({name: value})
            return replace(self, cameras=tuple(cameras))
        objects, lights = dict(self.scene.objects), dict(self.scene.lights)
        if owner in lights:
            lights[owner] = replace(cast("Any", lights[owner]), **{name: value})
        elif name in MATERIAL:
            material = replace(objects[owner].material, **{name: value})
            objects[owner] = replace(objects[owner], material=material)
        elif name == "texels":
            texture = replace(cast("Any", objects[owner].texture), texels=value)
            objects[owner] = replace(objects[owner], texture=texture)
        else:
            objects[owner] = replace(cast("Any", objects[owner]), **{name: value})
        return replace(self, scene=Scene(objects, lights))

    def shoot(self) -> np.ndarray:
        """Return the pictures, (n_cameras, height, width, 4)."""
        return rasterize(*self._drawn(), threads=self.threads, device=self.device)

    def jvp(self, tangents: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return the pictures and their derivative along tangents by path."""
        return rasterize_jvp(*self._drawn(), tangents, threads=self.threads, device=self.device)

    def record(self) -> ImageRecord:
        """Draw, and keep what pulls cotangents back."""
        return record_images(*self._drawn(), threads=self.threads, device=self.device)

    def softened(self, factor: float) -> "Scenery":
        """Return the scenery drawn with edges wider by a factor."""
        sigma = self.rasterizer.sigma * factor**2
        return replace(self, rasterizer=replace(self.rasterizer, sigma=sigma))

    def _drawn(
        self,
    ) -> tuple[
        Scene, tuple[AnyCamera, ...], SoftRasterizer, dict[str, np.ndarray], tuple[int, int]
    ]:
        vertices = {name: np.asarray(x, self.dtype) for name, x in self.vertices.items()}
        return self.scene, self.cameras, self.rasterizer, vertices, self.size


def make_rasterizer(image: Mapping[str, Any]) -> tuple[SoftRasterizer, tuple[int, int]]:
    """Return rasterizer and size of the settings' table `image`.

    Sigma is set by the pixel: `image.softness` is the width of soft edges in pixels.
    """
    for key in ("height", "width", "softness"):
        checks.positive(f"image.{key}", image[key])
    background = checks.array("image.background", image["background"], (3,))
    sigma = softness(image["softness"], image["height"])
    return SoftRasterizer(sigma, background=background), (image["height"], image["width"])


def photographed(scenery: Scenery) -> np.ndarray:
    """Return the target pictures of a scenery.

    Raises
    ------
    StudyError
        If a camera sees next to nothing: any search would call that a perfect fit.
    """
    images = scenery.shoot()
    covered = images[..., 3].sum(axis=(1, 2))
    if covered.min() < VISIBLE:
        raise StudyError(
            f"`camera` must see the scene in every picture, but in picture "
            f"{int(covered.argmin())} {covered.min():.1f} pixels are covered. Move it, or look "
            "elsewhere."
        )
    return images
