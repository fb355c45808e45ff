"""Films from a camera as observations: drawn, with tangent and cotangent, tracked and shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from scipy.ndimage import binary_dilation, uniform_filter

from adjoint.render.soft_raster import record_images
from adjsim.jit.device_arrays import beside, to_host
from adjsim.values import values_under
from render.posed_camera import PosedCamera
from render.pyramid_boxes import boxes_around
from render.scene import Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.film_pages import (
    AT_ONCE,
    MOST_FRAMES,
    ROWS,
    SUPERSAMPLED,
    PageFilm,
    page_rasterizer,
    until,
    with_obstacles,
)
from studies.problem.forward import start_surfaces
from studies.problem.joint_marks import marked, seen_by
from studies.problem.observations.films import film_pictures
from studies.problem.observations.outlines import (
    GREYISH,
    are_alike,
    bodies_in,
    drawn_as_filmed,
    outline,
)
from studies.problem.observers import (
    Back,
    Moved,
    Observer,
    ReachedResiduals,
    RecordedPrediction,
    Values,
)
from studies.problem.parameters import COLORS
from studies.problem.pictures import PictureObserver
from studies.problem.pixels import camera_names, to_pixels
from studies.problem.points import MILLIMETRE, PointObserver
from studies.problem.problem import SceneProblem
from studies.problem.steps import Sampling
from studies.runs.errors import StudyError
from studies.runs.media import SHARP, as_float, as_uint8, hatched, resized
from studies.scene.declared import SceneFile
from studies.scene.filming import Carried, Sliding, Still
from studies.scene.maps import Value
from studies.scene.motion import model_of


VISIBLE = 4.0  # pixels that the bodies must cover in the first frame
DIFFERS = 0.1  # from the background: a pixel of a target from a file that may show a body
HALF = 0.5
MOST_IN_BOXES = 1 / 16  # of the pixels: if more are not the background, boxes gain nothing
MARGIN = 0.1  # of a body's size: how near to where it is drawn everything counts
LEAST_SHADE, SMOOTHED = 2.0 / 255.0, 5  # change of colour that is one, over so many pixels a side
DARKEST, BRIGHTEST = 0.2, 4.0  # part of the light that a shadow leaves, or that more light adds
MOST_GREY = 0.5  # part of a body that may look like a shadow on what is behind it
LEAST_SEEN = 0.5  # part of the frames in which a tracked body must be seen whole
LEAST_AREA = 0.3  # part of its area in the median frame with which it counts as seen
SIZE_RATIO = 3.0  # times the area drawn at first: a larger or smaller mask is something else
# error of a middle over the root of its area, without an offset and with one
ERROR_KNOWN, ERROR_UNKNOWN = 0.03, 0.1
ERROR = 0.5  # and at least so many pixels


class Begun(NamedTuple):
    """The first frame of a film as the start of the search has it."""

    drawing: np.ndarray  # (H, W, 4)
    vertices: Moved  # by name, (n, 3), from the point that the camera turns about [m]
    camera: PosedCamera
    is_known: bool  # whether nothing that is free moves bodies in it


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
        return {name: moved[name] for name in self.scene.objects}

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        drawn = record_images(*self._drawn(seen, values), device=self.device)
        rows = drawn.images.reshape(-1, 4)

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            tangents = {f"{name}.vertices": vertices for name, vertices in tan.items()}
            for name, value in values_under(self.camera_path, tan_values).items():
                tangents[f"camera.{name}"] = value
            tangents |= {
                key: tan_values[path] for key, path in self.paths.items() if path in tan_values
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
            by_path = {path: adj[key] for key, path in values.items()}
            return {name: adj[key] for key, name in vertices.items()}, by_path

        return RecordedPrediction(rows, jvp, vjp)

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the pixels, (n_frames H W, 4)."""
        drawn = self._drawn(self.seen(moved, at), values)
        return rasterize(*drawn, device=self.device).reshape(-1, 4)

    def _drawn(self, seen: Moved, values: Values) -> tuple[Any, ...]:
        scene, camera, vertices, size = self.scenery(seen, values)
        return scene, camera, self.rasterizer, vertices, size

    def scenery(self, seen: Moved, values: Values) -> Scenery:
        vertices = {name: x - beside(self.center.astype(x.dtype), x) for name, x in seen.items()}
        scene = _with_look(self.scene, self.paths, values)
        return Scenery(scene, self.camera_at(values), vertices, self.size)

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r of the pyramid, frame after frame.

        Where most rows show the background, it is that of the background, which is computed once.
        """
        images = self.as_images(rows)
        if not isinstance(images, np.ndarray) or images.shape[-1] != 4:
            return super().residuals(rows)
        behind = self._behind(images.dtype)
        differs = self.where_compared(images, behind) != behind
        differs = differs.view(np.uint32)[..., 0]  # any of the four channels
        if np.count_nonzero(differs) > MOST_IN_BOXES * differs.size:
            return super().residuals(rows)
        boxes = boxes_around(differs, self.loss, 3, images.dtype)
        images = self.where_compared(images[..., :3], self.frames)
        near = self._scale * boxes.differences(images, self.frames)
        if not np.isfinite(near).all():
            return super().residuals(rows)  # which says where
        r = self._of_background(images.dtype).copy()
        r[boxes.rows] = near
        return r

    def looks(self) -> Iterable[str]:
        return self.paths.values()

    def _behind(self, dtype: np.dtype) -> np.ndarray:
        """Return the background in RGBA, (H, W, 4)."""
        behind = np.zeros((*self.size, 4), dtype)
        behind[..., :3] = self.rasterizer.background
        return behind

    def _of_background(self, dtype: np.dtype) -> np.ndarray:
        """Return the residuals of frames that show the background alone, computed once."""
        if dtype not in self._backgrounds:
            frames = np.broadcast_to(self._behind(dtype)[..., :3], self.frames.shape)
            self._backgrounds[dtype] = super().residuals(frames)
        return self._backgrounds[dtype]

    @cached_property
    def _backgrounds(self) -> dict[np.dtype, np.ndarray]:
        return {}

    def reached(self, rows: np.ndarray, count: int) -> ReachedResiduals:
        """Return which residuals may change: those that see a pixel where something is drawn."""
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
        far = ~np.array(
            [binary_dilation(mask | drawn[0], iterations=margin) for mask in drawn], bool
        )
        begun = multiples[0] & changed[0]
        return np.logical_not(far & multiples & (changed | begun)).ravel()

    def agreed(self, rows: np.ndarray) -> np.ndarray:
        """Return where prediction and film agree on whether a body is there, `(n_frames H W,)`."""
        plate = np.broadcast_to(self.rasterizer.background, self.frames.shape[1:])
        pairs = zip(self.as_images(rows), self.frames, strict=True)
        masks = [bodies_in(a[..., :3], plate) == bodies_in(b, plate) for a, b in pairs]
        return np.concatenate(masks).ravel()

    def pictures(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        plate = np.broadcast_to(self.rasterizer.background, self.frames.shape[1:])
        drawn = self.where_compared(to_host(self.as_images(rows))[..., :3], self.frames)
        if not self.paths:  # silhouettes, white on black
            return drawn, self.frames, drawn[..., 0] > 0.5, self.frames[..., 0] > 0.5
        masks = [np.array([bodies_in(a, plate) for a in each]) for each in (drawn, self.frames)]
        return drawn, self.frames, *masks

    def softened(self, factor: float) -> Self:
        sigma = self.rasterizer.sigma * factor**2
        return replace(self, rasterizer=replace(self.rasterizer, sigma=sigma))

    def values(self) -> dict[str, Value]:
        looks = {}
        for target, path in self.paths.items():
            bounds = (0.0, 1.0) if path.endswith(COLORS) else (-np.inf, np.inf)
            looks[path] = Value(_look_value(self.scene, target), "-", "linear", bounds)
        return super().values() | looks

    def in_space(self, problem: SceneProblem) -> tuple[Observer, ...]:
        """Return all drawn vertices of each body, in space; an observation has its body's name."""
        start, model = start_surfaces(problem.built), model_of(problem.built.system)
        bodies = (*problem.built.nodes, *(model.bodies if model else ()))
        counts = {name: len(start[name]) for name in bodies if name in self.scene.objects}
        return tuple(
            PointObserver(
                name, self.weight, self.times, self.start, self.index,
                MILLIMETRE, np.zeros((len(self.times), n, 3)), scipy.sparse.eye_array(n).tocsr(),
                name,
            )
            for name, n in counts.items()
        )  # fmt: skip

    def shaded_otherwise(self) -> Self:
        objects = {
            name: replace(mesh, smooth_normals=not mesh.smooth_normals)
            for name, mesh in self.scene.objects.items()
        }
        other = replace(self, scene=replace(self.scene, objects=objects))
        object.__setattr__(other, "_backgrounds", self._backgrounds)  # the same, and large
        return other

    def simulated(self, rows: np.ndarray) -> Self:
        """Return the film of these pixels.

        Raise a StudyError if they show nothing of the bodies.
        """
        covered = float(self.as_images(rows)[..., 3].sum(axis=(1, 2)).max())
        if covered < VISIBLE:
            raise StudyError(
                f"`{self.camera_path}` sees nothing of the motion: at most {covered:.1f} pixels of "
                f"a frame of `observations.{self.name}` are covered. Move it, look elsewhere, or "
                "check that the motion is what was meant."
            )
        return super().simulated(rows)

    def require_in_picture(self, points: np.ndarray) -> None:
        """Raise if no point (n, 3) is in the picture, or all of them are in too few pixels."""
        eye, axes = self.camera.pose()
        ahead = points[(points - self.center - eye) @ axes[2] > 0.0]
        ends = np.zeros((2, 2))
        if len(ahead):
            pixels = to_pixels(self.camera, ahead - self.center, self.size)
            height, width = self.size
            corner = [width - 0.5, height - 0.5]
            ends = np.clip([pixels.min(axis=0), pixels.max(axis=0)], -0.5, corner)
        sides = ends[1] - ends[0]
        if not sides.all() or np.prod(sides + 1.0) < VISIBLE:
            raise StudyError(self.unseen(points))

    def unseen(self, points: np.ndarray) -> str:
        """Return the message that bodies with these points (n, 3) are not in the picture."""
        low, high = (end.round(4).tolist() for end in (points.min(axis=0), points.max(axis=0)))
        return (
            f"`{self.camera_path}` does not see the bodies: they cover less than {VISIBLE:g} "
            f"pixels of the first frame of `observations.{self.name}`. They reach from {low} to "
            f"{high} m. Check eye and target, the bodies' `position` and `scale`, or run `adjsim "
            "preview`."
        )

    def silhouette(self) -> np.ndarray:
        """Return which pixels of the last picture differ from the background, (H, W) bool."""
        off = np.abs(self.frames[-1] - np.asarray(self.rasterizer.background)).max(axis=-1)
        differs = off > DIFFERS
        return off > HALF * np.median(off[differs]) if differs.any() else differs

    # Where its body is

    def track(self, subjects: Mapping[str, Any], begun: "Mapping[str, Begun]") -> Observer | None:
        """Return the middle of the only body as a tracked point; None if it is not seen."""
        bodies = [
            name for name in self.scene.objects
            if not isinstance(subjects[name], Still | Sliding | Carried)
        ]  # fmt: skip
        if len(bodies) != 1:
            return None
        (body,), first = bodies, begun[self.name]
        plate = np.broadcast_to(self.rasterizer.background, self.frames.shape[1:])
        outlines = [outline(bodies_in(frame, plate)) for frame in self.frames]
        areas = np.array([0.0 if each is None else each.area for each in outlines])
        usual = float(np.median(areas))
        nowhere, least = (np.nan, np.nan), LEAST_AREA * usual
        middles = np.array(
            [
                nowhere if each is None or each.touches_edge or each.area < least else each.middle
                for each in outlines
            ]
        )
        ahead = first.vertices[body]
        pixels = to_pixels(first.camera, ahead, self.size)
        faces = np.asarray(self.scene.objects[body].faces)
        a, b = (pixels[faces[:, i]] - pixels[faces[:, 0]] for i in (1, 2))
        area = 0.5 * np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        drawn_area = 0.5 * float(area.sum())  # front and back
        is_tracked = np.isfinite(middles[:, 0])
        if is_tracked.mean() < LEAST_SEEN or not 1.0 / SIZE_RATIO < usual / drawn_area < SIZE_RATIO:
            return None
        is_offset = False
        if is_tracked[0] and (begin := outlines[0]) is not None:
            mask, off = drawn_as_filmed(first.drawing, plate, begin)
            visible = area * _lies_in(mask, pixels[faces].mean(axis=1))
            is_whole = are_alike(0.5 * float(visible.sum()), drawn_area)
            # a part that some frames show and others do not, as of a box that turns, is left out
            is_part = off is not None and are_alike(begin.area, usual) and bool(visible.any())
            area = visible if is_part and not is_whole else area
            is_offset = first.is_known and off is not None and (is_whole or is_part)
        weights = np.bincount(faces.ravel(), np.repeat(area, 3), len(ahead)) / (3.0 * area.sum())
        error = ERROR_KNOWN if is_offset else ERROR_UNKNOWN
        point = PointObserver(
            self.name, self.weight, self.times, self.start, self.index,
            max(ERROR, error * float(np.sqrt(drawn_area))), middles[:, None],
            scipy.sparse.csr_array(weights[None]), body, self.size, camera=self.camera,
            camera_path=self.camera_path, center=self.center,
        )  # fmt: skip
        if is_offset:
            middle = to_pixels(first.camera, (weights @ ahead)[None], self.size)[0]
            point = replace(point, places=point.places + (middle - middles[0]))
        return point

    # On a page

    def page(
        self, problem: SceneProblem, file: SceneFile, values: Values, truth: Any = None
    ) -> PageFilm:
        """Return film and answer; a film that is simulated is drawn again from the `truth`."""
        n = len(self.times)
        chosen = np.unique(np.linspace(0, n - 1, min(n, MOST_FRAMES)).round().astype(int))
        spec, footage = file.films[self.name], None
        if spec.video is not None:
            camera = file.camera_of(spec)
            footage = film_pictures(spec, camera, self.name, rows=ROWS, chosen=chosen)
        height, width = self.size if footage is None else footage.shape[1:3]
        times = max(1, min(-(-ROWS // height), SHARP // width))  # a wide one is not drawn as high
        plate = self._plate((height * times, width * times))
        instants = self.instants(values)[chosen] if n > 1 else until(self, values)
        film = None
        if not self.paths and footage is not None:  # silhouettes
            film = np.broadcast_to(footage, (len(instants), *footage.shape[1:]))
        answer = self.drawn_over(
            plate, problem, file, values=values, instants=instants, film=film, marks_joints=True
        )
        if footage is None and truth is not None:
            hidden, true_values = truth
            (film,) = (each for each in films_of(hidden.observers) if each.name == self.name)
            instants = film.instants(true_values)[chosen]
            footage = film.drawn_over(plate, hidden, file, values=true_values, instants=instants)
        if footage is None:
            footage = as_uint8(self.frames[chosen])
        if self.ignored is not None:
            footage = as_uint8(hatched(as_float(footage), self.ignored))
        has_joints = bool(problem.built.joints)
        is_simulated, is_hatched = spec.video is None, self.ignored is not None
        return PageFilm(footage, answer, is_simulated, has_joints, film is not None, is_hatched)

    def drawn_over(
        self,
        plate: np.ndarray,
        problem: SceneProblem,
        file: SceneFile,
        *,
        values: Values,
        instants: np.ndarray,
        film: np.ndarray | None = None,
        marks_joints: bool = False,
    ) -> np.ndarray:
        """Return a film at these times of the scene over `plate`, (n, height, width, 3) of 8 bits.

        The plate (height, width, 3) is what is behind the bodies; or a `film` is, half as bright:
        (n, h, w, 3) of 8 bits.
        """
        parts = np.array_split(instants, -(-len(instants) // AT_ONCE))
        factor = 2 if len(instants) <= SUPERSAMPLED else 1
        height, width = plate.shape[:2]
        start = float(np.asarray(values.get(self.start_path, self.start)))
        built, camera = problem.built, self.camera_at(values)
        if film is None:
            behind = [None] * len(parts)
            plate = with_obstacles(
                plate, file.obstacles, lights=built.lights, camera=camera, center=self.center
            )
        else:
            behind, plate = np.array_split(film, len(parts)), np.zeros(plate.shape)
        rasterizer = replace(page_rasterizer(height), background=plate, supersample=factor)
        pages = [
            replace(
                self,
                scene=self.scene if self.paths else Scene(built.meshes, built.lights),
                times=times - start,
                index=np.arange(len(times)),
                frames=np.broadcast_to(np.float32(0.0), (len(times), height, width, 3)),
                rasterizer=rasterizer,
            )
            for times in parts
        ]
        out = []
        moved, samplings = replace(problem, observers=tuple(pages)).moved(values)
        for page, at, frames in zip(pages, samplings, behind, strict=True):
            images = page.as_images(page.predict(moved, at, values))
            if frames is not None:
                dim = [0.5 * resized(as_float(frame), (height, width)) for frame in frames]
                images = images[..., :3] + (1.0 - images[..., 3:]) * dim
            images = as_uint8(images)[..., :3]
            if marks_joints and built.joints:
                scenery = page.scenery(page.seen(moved, at), values)
                seen_at = seen_by(scenery.camera, images.shape[1:3])
                for k, image in enumerate(images):
                    places = {name: x[k] for name, x in scenery.vertices.items()}
                    images[k] = marked(image, built.joints, places, seen_at)
            out.append(images)
        return np.concatenate(out)

    def _plate(self, size: tuple[int, int]) -> np.ndarray:
        """Return what is behind the bodies, as large as the page's film, (height, width, 3)."""
        background = np.asarray(self.rasterizer.background, np.float64)
        if background.ndim == 1:
            return np.broadcast_to(background, (*size, 3))
        return resized(background, size)


def films_of(observers: Sequence[Observer]) -> list[FilmObserver]:
    """Return the films from cameras among observations."""
    return [observer for observer in observers if isinstance(observer, FilmObserver)]


def _smoothed(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W, 3) without its details, channel by channel (3, H, W)."""
    size: Any = (1, SMOOTHED, SMOOTHED)
    return uniform_filter(np.moveaxis(image, -1, 0), size)


def _shade(frame: np.ndarray, behind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which pixels are those of a plate times a grey factor, and which differ from it.

    Of a frame and the plate, both smoothed.
    """
    share = frame / np.maximum(behind, 1e-3)
    factor = share.mean(axis=0)
    is_multiple = (np.ptp(share, axis=0) < GREYISH) & (factor > DARKEST) & (factor < BRIGHTEST)
    return is_multiple, np.abs(frame - behind).max(axis=0) > LEAST_SHADE


def _with_look(scene: Scene, paths: Mapping[str, str], values: Values) -> Scene:
    """Return the scene with the looks and lights that have values."""
    objects, lights = dict(scene.objects), dict(scene.lights)
    for target, path in paths.items():
        if path not in values:
            continue
        owner, _, name = target.rpartition(".")
        changed: Any = {name: values[path]}
        if owner in lights:
            lights[owner] = replace(lights[owner], **changed)
            continue
        mesh = objects[owner]
        if name == "texels" and mesh.texture is not None:
            changed = {"texture": replace(mesh.texture, **changed)}
        elif name != "vertex_colors":
            changed = {"material": replace(mesh.material, **changed)}
        objects[owner] = replace(mesh, **changed)
    return Scene(objects, lights)


def _lies_in(mask: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Return which points (column, row), (n, 2), are in a mask, (n,) bool."""
    columns, rows = np.rint(pixels).astype(int).T
    is_inside = (columns >= 0) & (columns < mask.shape[1]) & (rows >= 0) & (rows < mask.shape[0])
    return is_inside & mask[np.where(is_inside, rows, 0), np.where(is_inside, columns, 0)]


def _look_value(scene: Scene, target: str) -> np.ndarray:
    """Return the value of a path of a look or a light, as the renderer calls it."""
    owner, _, name = target.rpartition(".")
    if owner in scene.lights:
        return np.asarray(getattr(scene.lights[owner], name), np.float64)
    mesh = scene.objects[owner]
    holder: Any = {"texels": mesh.texture, "vertex_colors": mesh}.get(name, mesh.material)
    return np.asarray(getattr(holder, name), np.float64)
