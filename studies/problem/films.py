"""Films as observations: drawn, compared over a pyramid, with tangent and cotangent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.ndimage import binary_dilation, uniform_filter

from adjoint.render.losses import residuals_jvp, residuals_vjp
from adjoint.render.pyramid_boxes import box_residuals_vjp
from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from adjoint.render.soft_raster import record_images
from adjsim.jit.device_arrays import beside, to_host
from adjsim.jit.devices import module_of
from adjsim.values import values_under
from render.lenses import Perspective
from render.losses import Mse, PyramidMse, difference, residuals
from render.posed_camera import PosedCamera
from render.pyramid_boxes import boxes_around
from render.scene import Mesh, Scene
from render.smoke import smoke_images
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.observations.outlines import GREYISH, bodies_in
from studies.problem.observers import (
    DENSITY,
    SEEN,
    Back,
    Moved,
    Observer,
    ReachedResiduals,
    RecordedPrediction,
    Values,
)
from studies.problem.steps import Sampling


WHITE = (1.0, 1.0, 1.0)  # smoke
MOST_IN_BOXES = 1 / 16  # of the pixels: if more are not the background, boxes gain nothing
MARGIN = 0.1  # of a body's size: how near to where it is drawn everything counts
LEAST_SHADE, SMOOTHED = 2.0 / 255.0, 5  # change of colour that is one, over so many pixels a side
DARKEST, BRIGHTEST = 0.2, 4.0  # part of the light that a shadow leaves, or that more light adds
MOST_GREY = 0.5  # part of a body that may look like a shadow on what is behind it


@dataclass(frozen=True, eq=False)
class PictureObserver(Observer):
    """What is compared picture by picture, over a pyramid."""

    BY_FRAME = "frames"

    frames: np.ndarray  # (n_frames, H, W, 3)
    levels: int  # of the pyramid; 1: none
    first: np.ndarray  # first frame of the whole film, (H, W, 3)
    # weight of one of them relative to the next finer one
    growth: float = field(default=1.0, kw_only=True)
    # what is not compared, (H, W) of truth values
    ignored: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        return self.frames.shape[1], self.frames.shape[2]

    def targets(self) -> np.ndarray:
        """Return the pixels in RGB, (n_frames H W, 3)."""
        return self.frames.reshape(-1, 3)

    def still(self) -> np.ndarray:
        """Return the pixels of the first frame of the whole film, at every frame."""
        return np.broadcast_to(self.first, self.frames.shape).reshape(-1, 3)

    def showing(self, rows: np.ndarray) -> Self:
        """Return the film of these pixels, (n_frames H W, 3)."""
        frames = rows.reshape(self.frames.shape)
        return replace(self, frames=frames, first=frames[0])

    def as_images(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as images, (n_frames, H, W, 3 or 4)."""
        return rows.reshape(-1, *self.size, rows.shape[-1])

    @property
    def loss(self) -> Mse | PyramidMse:
        """The loss of images, before it is weighted."""
        return Mse() if self.levels == 1 else PyramidMse(self.levels, self.growth)

    @property
    def part_compared(self) -> float:
        """The part of the pixels that is compared."""
        return 1.0 if self.ignored is None else 1.0 - float(self.ignored.mean())

    def where_compared(self, images: Any, other: Any = 0.0) -> Any:
        """Return images (n_frames, H, W, k), with those of others where they are not compared."""
        if self.ignored is None:
            return images
        ignored = beside(self.ignored, images)[..., None]
        other = beside(other, images) if np.ndim(other) else other
        return (~ignored * images + ignored * other).astype(images.dtype)

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.weight / self.part_compared)) / SEEN

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r of the pyramid, frame after frame."""
        images = self.where_compared(self.as_images(rows)[..., :3], self.frames)
        r = residuals(self.loss, images, self.frames)
        r *= self._scale
        return r

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r."""
        tangent = self.where_compared(self.as_images(tan_rows))
        tan_r = residuals_jvp(self.loss, tangent, self.frames, tangent)
        tan_r *= self._scale
        return tan_r

    def residuals_near(self, mask: np.ndarray, dtype: np.dtype) -> ReachedResiduals:
        """Return the residuals that see a pixel of a mask (n_frames, H, W)."""
        boxes = boxes_around(mask, self.loss, 3, dtype)

        def jvp(tan_rows: np.ndarray) -> np.ndarray:
            tangent = self.where_compared(self.as_images(tan_rows)[..., :3])
            return self._scale * boxes.residuals(tangent)

        def vjp(adj_r: np.ndarray) -> np.ndarray:
            adj = np.zeros((*mask.shape, 4), adj_r.dtype)
            box_residuals_vjp(boxes, self._scale * adj_r, adj[..., :3])
            return self.where_compared(adj).reshape(-1, 4)

        return ReachedResiduals(boxes.rows, jvp, vjp)

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the pixels."""
        shape = (*self.frames.shape[:-1], 4)
        blank = module_of(adj_r).zeros(shape, self.frames.dtype)
        adj = residuals_vjp(self.loss, blank, self.frames, self._scale * adj_r)
        return self.where_compared(adj).reshape(-1, 4)

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return weight times the mean square of the difference in RGB by frame, over SEEN^2."""
        pairs = zip(self.as_images(rows), self.as_images(other[:, :3]), strict=True)
        offs = (self.where_compared(difference(a[..., :3], b)) for a, b in pairs)  # frame by frame
        mean = np.array([np.square(off, dtype=np.float64).mean() for off in offs])
        return self.weight / SEEN**2 * mean / self.part_compared

    def mean(self) -> np.ndarray:
        """Return the mean of the colours that are compared, at every pixel."""
        rows = self.targets()
        compared = rows if self.ignored is None else self.frames[:, ~self.ignored].reshape(-1, 3)
        return np.broadcast_to(compared.mean(axis=0), rows.shape)


class Scenery(NamedTuple):
    """What the camera of a film sees: vertices are (n_frames, n, 3), the size is (H, W)."""

    scene: Scene
    camera: PosedCamera
    vertices: dict[str, np.ndarray]
    size: tuple[int, int]


@dataclass(frozen=True, eq=False)
class FilmObserver(PictureObserver):
    """A film from a camera."""

    KIND = "film"

    scene: Scene
    rasterizer: SoftRasterizer
    # scene paths of looks and lights by the renderer's: {"duck.ambient": "duck.look.ambient"}
    paths: dict[str, str]
    camera: PosedCamera = field(kw_only=True)

    def fields(self, moved: Moved) -> Moved:
        """Return the vertices of what is drawn."""
        return {name: moved[name] for name in self.scene.objects}

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        """Draw the film."""
        drawn = record_images(*self._drawn(seen, values), device=self.device)
        rows = drawn.images.reshape(-1, 4)

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            tangents = {f"{name}.vertices": part for name, part in tan.items()}
            for name, value in values_under(self.camera_path, tan_values).items():
                tangents[f"camera.{name}"] = value
            tangents |= {
                own: tan_values[path] for own, path in self.paths.items() if path in tan_values
            }
            if not tangents:
                return np.zeros(rows.shape, rows.dtype)
            return drawn.jvp(tangents).reshape(-1, 4)

        def vjp(adj_rows: np.ndarray) -> Back:
            names = camera_names(self.camera)
            values = {f"camera.{name}": f"{self.camera_path}.{name}" for name in names}
            values |= self.paths
            vertices = {f"{name}.vertices": name for name in self.scene.objects}
            adj = drawn.vjp(self.as_images(adj_rows), wrt=[*vertices, *values])
            by_path = {path: adj[own] for own, path in values.items()}
            return {name: adj[own] for own, name in vertices.items()}, by_path

        return RecordedPrediction(rows, jvp, vjp)

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the pixels, (n_frames H W, 4)."""
        drawn = self._drawn(self.seen(moved, at), values)
        return rasterize(*drawn, device=self.device).reshape(-1, 4)

    def _drawn(self, seen: Moved, values: Values) -> tuple[Any, ...]:
        scene, camera, vertices, size = self.scenery(seen, values)
        return scene, camera, self.rasterizer, vertices, size

    def scenery(self, seen: Moved, values: Values) -> Scenery:
        """Return what the camera sees."""
        vertices = {name: x - beside(self.center.astype(x.dtype), x) for name, x in seen.items()}
        scene = with_look(self.scene, self.paths, values)
        return Scenery(scene, self.camera_at(values), vertices, self.size)

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r of the pyramid, frame after frame.

        Where most rows show the background, it is that of the background, which is computed once.
        """
        images = self.as_images(rows)
        if not isinstance(images, np.ndarray) or images.shape[-1] != 4:
            return super().residuals(rows)
        behind, r = _of_background(self, images.dtype)
        differs = self.where_compared(images, behind) != behind
        differs = differs.view(np.uint32)[..., 0]  # any of the four channels
        if np.count_nonzero(differs) > MOST_IN_BOXES * differs.size:
            return super().residuals(rows)
        boxes = boxes_around(differs, self.loss, 3, images.dtype)
        images = self.where_compared(images[..., :3], self.frames)
        near = self._scale * boxes.differences(images, self.frames)
        if not np.isfinite(near).all():
            return super().residuals(rows)  # which says where
        r = r.copy()
        r[boxes.rows] = near
        return r

    def reached(self, rows: np.ndarray, count: int) -> ReachedResiduals:
        """Return which residuals may change: those that see a pixel where something is drawn."""
        del count
        alpha = to_host(self.as_images(rows)[..., 3])
        return self.residuals_near(alpha > 0.0, alpha.dtype)

    def counted(self, rows: np.ndarray) -> np.ndarray:
        """Return which pixels can tell a right motion from a wrong one, `(n_frames H W,)` bool.

        `rows` is the prediction. Where the bodies are drawn in this frame or in the first one, and
        near there, all do. Elsewhere shadows and light that change do not: pixels that are what is
        behind the bodies, and darker or brighter in this frame or in the first one. A body that is
        elsewhere than predicted has other colours, and counts. All pixels count where nothing is
        drawn at first, or where half of the body itself looks like a shadow.
        """
        images = self.where_compared(self.as_images(rows))
        first = images[0, ..., 3] > 0.5
        every = np.ones(len(rows), bool)
        if not first.any():
            return every
        plate = _smoothed(np.broadcast_to(self.rasterizer.background, self.frames.shape[1:]))
        pairs = [_shade(_smoothed(frame), plate) for frame in self.frames]
        multiples, changed = (np.stack(masks) for masks in zip(*pairs, strict=True))
        if multiples[0][first].mean() > MOST_GREY:
            return every
        margin = max(round(MARGIN * float(np.sqrt(first.sum()))), 2)
        drawn = images[..., 3] > 0.01
        far = ~np.array([binary_dilation(one | drawn[0], iterations=margin) for one in drawn], bool)
        begun = multiples[0] & changed[0]
        return np.logical_not(far & multiples & (changed | begun)).ravel()

    def agreed(self, rows: np.ndarray) -> np.ndarray:
        """Return where prediction and film agree on whether a body is there, `(n_frames H W,)`."""
        plate = np.broadcast_to(self.rasterizer.background, self.frames.shape[1:])
        pairs = zip(self.as_images(rows), self.frames, strict=True)
        masks = [bodies_in(a[..., :3], plate) == bodies_in(b, plate) for a, b in pairs]
        return np.concatenate(masks).ravel()

    def softened(self, factor: float) -> Self:
        """Return the film drawn with edges softer by a factor."""
        sigma = self.rasterizer.sigma * factor**2
        return replace(self, rasterizer=replace(self.rasterizer, sigma=sigma))


@lru_cache(maxsize=1)
def _of_background(one: FilmObserver, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the background in RGBA, (H, W, 4), and the residuals of frames that show it alone."""
    behind = np.zeros((*one.size, 4), dtype)
    behind[..., :3] = one.rasterizer.background
    frames = np.broadcast_to(behind[..., :3], one.frames.shape)
    return behind, PictureObserver.residuals(one, frames)


def _smoothed(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W, 3) without its details, channel by channel (3, H, W)."""
    size: Any = (1, SMOOTHED, SMOOTHED)
    return uniform_filter(np.moveaxis(image, -1, 0), size)


def _shade(found: np.ndarray, behind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which pixels are those of a plate times a grey factor, and which differ from it.

    Of a frame and the plate, both smoothed.
    """
    share = found / np.maximum(behind, 1e-3)
    factor = share.mean(axis=0)
    is_multiple = (np.ptp(share, axis=0) < GREYISH) & (factor > DARKEST) & (factor < BRIGHTEST)
    return is_multiple, np.abs(found - behind).max(axis=0) > LEAST_SHADE


def with_look(scene: Scene, paths: Mapping[str, str], values: Values) -> Scene:
    """Return the scene with the looks and lights that have values."""
    objects, lights = dict(scene.objects), dict(scene.lights)
    for target, path in paths.items():
        if path not in values:
            continue
        owner, _, name = target.rpartition(".")
        if owner in lights:
            lights[owner] = replace(lights[owner], **{name: values[path]})
        else:
            objects[owner] = _with_value(objects[owner], name, values[path])
    return Scene(objects, lights)


def _with_value(mesh: Mesh, name: str, value: np.ndarray) -> Mesh:
    """Return a mesh with another texture, colours of vertices, or part of its material."""
    if name == "texels" and mesh.texture is not None:
        return replace(mesh, texture=replace(mesh.texture, texels=value))
    if name == "vertex_colors":
        return replace(mesh, vertex_colors=value)
    return replace(mesh, material=replace(mesh.material, **{name: value}))


def camera_names(camera: PosedCamera) -> tuple[str, ...]:
    """Return the parameters of a camera that may be free."""
    lens = "fov_y" if isinstance(camera.optics, Perspective) else "focal"
    return ("rotation", "translation", lens)


@dataclass(frozen=True, eq=False)
class SmokeObserver(PictureObserver):
    """A film of white smoke over a colour, its frames as large as the grid."""

    KIND = "film of smoke"

    background: np.ndarray  # (3,)

    def fields(self, moved: Moved) -> Moved:
        """Return the density."""
        return {DENSITY: moved[DENSITY]}

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        """Draw the film."""
        del values
        density = seen[DENSITY]

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            del tan_values
            tangent = tan.get(DENSITY, np.zeros_like(density))
            return smoke_images_jvp(tangent, WHITE, self.background).reshape(-1, 4)

        def vjp(adj_rows: np.ndarray) -> Back:
            return {DENSITY: smoke_images_vjp(self.as_images(adj_rows), WHITE, self.background)}, {}

        return RecordedPrediction(
            smoke_images(density, WHITE, self.background).reshape(-1, 4), jvp, vjp
        )
