r"""What an observation predicts from a motion, with tangent and cotangent.

Predictions are rows of four numbers: pixels RGBA of a film, x, y, z, 0 of a point in space, and
u, v, 0, 0 of one in a picture; what was observed are rows of three. A loss is the mean over frames
of

    film      weight * mean over pixels of (image - target)^2 / SEEN^2, summed over a pyramid
    points    weight * mean over points of |p - p_0|^2 / error^2

so that a deviation of SEEN in every pixel, or of one standard deviation in every point, is 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse

from adjoint.render.losses import residuals_jvp, residuals_vjp
from adjoint.render.soft_raster import ImageRecord, record_images
from adjoint.rotations import rotation_matrix_jvp, rotation_matrix_vjp
from adjsim.rotations import rotation_matrix
from render.lenses import Perspective
from render.losses import Mse, PyramidMse, residuals
from render.posed_camera import PosedCamera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.sampling import Sampling


SEEN = 0.05  # a difference in colour, where white is 1, that counts as one
Values = Mapping[str, np.ndarray]  # by scene path


@dataclass(frozen=True, eq=False)
class Moved:
    """Where everything is at the steps that are kept: of a trajectory, or tangents of it.

    Attributes
    ----------
    surfaces : dict
        Vertices of every drawn object, (n_rows, n_vertices, 3) [m].
    x : numpy.ndarray, optional
        Nodes, (n_rows, n_nodes, 3) [m].
    density : numpy.ndarray, optional
        Of smoke, (n_rows, height, width) [-].
    """

    surfaces: dict[str, np.ndarray]
    x: np.ndarray | None = None
    density: np.ndarray | None = None


@dataclass(eq=False)
class Cotangents:
    """What a prediction pulls back: to what is at the kept steps, and to values by path."""

    surfaces: dict[str, np.ndarray] = field(default_factory=dict)
    x: np.ndarray | None = None
    density: np.ndarray | None = None
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, other: "Cotangents") -> None:
        """Add those of another observation."""
        for mine, theirs in ((self.surfaces, other.surfaces), (self.values, other.values)):
            for key, value in theirs.items():
                mine[key] = mine[key] + value if key in mine else value
        for name in ("x", "density"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None:
                setattr(self, name, theirs if mine is None else mine + theirs)


@dataclass(frozen=True, eq=False)
class Observer(ABC):
    """One observation.

    Attributes
    ----------
    name : str
    weight : float
    times : numpy.ndarray
        Relative to `start`, increasing, (n_frames,) [s].
    start : float
        The scene's time of time 0 [s]; free as "observations.NAME.start".
    index : numpy.ndarray
        Number of each frame on the timeline of all observations, (n_frames,).
    """

    name: str
    weight: float
    times: np.ndarray
    start: float
    index: np.ndarray

    @property
    def start_path(self) -> str:
        """Path of the start time."""
        return f"observations.{self.name}.start"

    def instants(self, values: Values) -> np.ndarray:
        """Return the scene's times of the frames, (n_frames,) [s]."""
        return self.times + float(values.get(self.start_path, self.start))

    def rows_per_frame(self) -> int:
        """Return the number of rows of a prediction that belong to a frame."""
        return len(self.targets()) // len(self.times)

    @abstractmethod
    def targets(self) -> np.ndarray:
        """Return what was observed, in rows (n_rows, 3)."""

    @abstractmethod
    def between(self, keep: np.ndarray) -> Self:
        """Return the observation at the frames of this mask only, (n_frames,)."""

    @abstractmethod
    def record(self, moved: Moved, at: Sampling, values: Values) -> "Recorded":
        """Predict, and keep what tangents and cotangents need."""

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the prediction, (n_rows, 4)."""
        return self.record(moved, at, values).rows

    @abstractmethod
    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r, frame after frame, with loss = r @ r."""

    @abstractmethod
    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r, which is linear in the rows."""

    @abstractmethod
    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the rows."""

    @abstractmethod
    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the weighted mean square of a difference by frame, (n_frames,), no pyramid."""

    def still(self) -> np.ndarray:
        """Return the rows of the first frame, at every frame."""
        per_frame = self.rows_per_frame()
        return np.tile(self.targets()[:per_frame], (len(self.times), 1))


class Recorded(ABC):
    """A prediction with its derivatives."""

    @property
    @abstractmethod
    def rows(self) -> np.ndarray:
        """The rows, (n_rows, 4)."""

    @abstractmethod
    def jvp(self, tan: Moved | None, tan_values: Values) -> np.ndarray:
        """Return the tangent of the rows; without a tangent of the motion, of values alone."""

    @abstractmethod
    def vjp(self, adj_rows: np.ndarray) -> Cotangents:
        """Pull the cotangent of the rows back."""


@dataclass(frozen=True, eq=False)
class FilmObserver(Observer):
    """A film.

    Attributes
    ----------
    frames : numpy.ndarray
        (n_frames, H, W, 3).
    scene : Scene
    camera : PosedCamera
        It looks at vertices minus `center`, so that it turns about what it films.
    center : numpy.ndarray
        (3,) [m].
    camera_path : str
        "cameras.NAME".
    rasterizer : SoftRasterizer
    levels : int
        Of the pyramid; 1: none.
    paths : dict
        Scene paths of looks and lights by the renderer's: {"duck.ambient": "duck.look.ambient"}.
    first : numpy.ndarray
        First frame of the whole film, (H, W, 3).
    device : str
        Where it is drawn: cpu or cuda.
    """

    frames: np.ndarray
    scene: Scene
    camera: PosedCamera
    center: np.ndarray
    camera_path: str
    rasterizer: SoftRasterizer
    levels: int
    paths: dict[str, str]
    first: np.ndarray
    device: str = "cpu"

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

    def between(self, keep: np.ndarray) -> "FilmObserver":
        """Return the film of the frames of this mask only."""
        return replace(
            self, frames=self.frames[keep], times=self.times[keep], index=self.index[keep]
        )

    def as_images(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as images, (n_frames, H, W, 3 or 4)."""
        return rows.reshape(-1, *self.size, rows.shape[-1])

    def record(self, moved: Moved, at: Sampling, values: Values) -> "RecordedFilm":
        """Draw the film."""
        arguments = self._drawn(moved, at, values)
        return RecordedFilm(self, moved, at, record_images(*arguments, device=self.device))

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the pixels, (n_frames H W, 4)."""
        images = rasterize(*self._drawn(moved, at, values), device=self.device)
        return images.reshape(-1, 4)

    def _drawn(self, moved: Moved, at: Sampling, values: Values) -> tuple[Any, ...]:
        vertices = {
            name: at.at(moved.surfaces[name]) - self.center.astype(moved.surfaces[name].dtype)
            for name in self.scene.objects
        }
        scene = with_look(self.scene, self.paths, values)
        return scene, self.camera_at(values), self.rasterizer, vertices, self.size

    def camera_at(self, values: Values) -> PosedCamera:
        """Return the camera with the values of its paths."""
        prefix = f"{self.camera_path}."
        own = {
            path.removeprefix(prefix): value
            for path, value in values.items()
            if path.startswith(prefix)
        }
        return self.camera.with_values(own) if own else self.camera

    @property
    def loss(self) -> Mse | PyramidMse:
        """The loss of images, before it is weighted."""
        return Mse() if self.levels == 1 else PyramidMse(self.levels)

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.weight)) / SEEN

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r of the pyramid, frame after frame."""
        return self._scale * residuals(self.loss, self.as_images(rows), self.frames)

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r."""
        tangent = self.as_images(tan_rows)
        return self._scale * residuals_jvp(self.loss, tangent, self.frames, tangent)

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the pixels."""
        blank = np.zeros((*self.frames.shape[:-1], 4), self.frames.dtype)
        return residuals_vjp(self.loss, blank, self.frames, self._scale * adj_r).reshape(-1, 4)

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return weight times the mean square of the difference in RGB by frame, over SEEN^2."""
        off = self.as_images(rows[:, :3] - other[:, :3])
        return self.weight / SEEN**2 * np.square(off, dtype=np.float64).mean(axis=(1, 2, 3))


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


@dataclass(frozen=True, eq=False)
class RecordedFilm(Recorded):
    """A film that was drawn."""

    film: FilmObserver
    moved: Moved
    at: Sampling
    drawn: ImageRecord

    @property
    def rows(self) -> np.ndarray:
        """The pixels."""
        return self.drawn.images.reshape(-1, 4)

    def jvp(self, tan: Moved | None, tan_values: Values) -> np.ndarray:
        """Return the tangent of the pixels."""
        film = self.film
        tangents: dict[str, Any] = {}
        shift = tan_values.get(film.start_path)
        for name in film.scene.objects:
            parts = [] if tan is None else [self.at.at(tan.surfaces[name])]
            if shift is not None:
                parts.append(float(shift) * self.at.slope(self.moved.surfaces[name]))
            if parts:
                tangents[f"{name}.vertices"] = sum(parts[1:], start=parts[0])
        prefix = f"{film.camera_path}."
        for path, value in tan_values.items():
            if path.startswith(prefix):
                tangents[f"camera.{path.removeprefix(prefix)}"] = value
        tangents |= {
            own: tan_values[path] for own, path in film.paths.items() if path in tan_values
        }
        if not tangents:
            return np.zeros_like(self.rows)
        return self.drawn.jvp(tangents).reshape(-1, 4)

    def vjp(self, adj_rows: np.ndarray) -> Cotangents:
        """Pull the cotangent of the pixels back."""
        film, out = self.film, Cotangents()
        vertices = [f"{name}.vertices" for name in film.scene.objects]
        camera = {
            f"camera.{name}": f"{film.camera_path}.{name}" for name in camera_names(film.camera)
        }
        adj = self.drawn.vjp(film.as_images(adj_rows), wrt=[*vertices, *camera, *film.paths])
        slope = 0.0
        for name in film.scene.objects:
            own = adj[f"{name}.vertices"]
            out.surfaces[name] = self.at.spread(own, len(self.moved.surfaces[name]))
            slope += float(np.sum(own * self.at.slope(self.moved.surfaces[name])))
        out.values = {path: adj[own] for own, path in {**camera, **film.paths}.items()}
        out.values[film.start_path] = np.asarray(slope)
        return out


def camera_names(camera: PosedCamera) -> tuple[str, ...]:
    """Return the parameters of a camera that may be free."""
    lens = "fov_y" if isinstance(camera.optics, Perspective) else "focal"
    return ("rotation", "translation", lens)


@dataclass(frozen=True, eq=False)
class PointObserver(Observer):
    """Tracked points, as weighted sums of vertices of an object or of nodes.

    Attributes
    ----------
    places : numpy.ndarray
        (n_frames, n_points, 2 or 3), NaN where a point was not tracked.
    error : float
        Standard deviation [m or pixels].
    matrix : csr_array
        (n_points, n_vertices).
    object : str
        Of which vertices; "": of the nodes of the model.
    camera : PosedCamera, optional
        Of points in a picture, in pixels (u, v) of an image of `size`; it looks at points minus
        `center`.
    """

    places: np.ndarray
    error: float
    matrix: scipy.sparse.csr_array
    object: str
    camera: PosedCamera | None = None
    camera_path: str = ""
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    size: tuple[int, int] = (1, 1)

    def targets(self) -> np.ndarray:
        """Return the places in rows, 0 where a point was not tracked."""
        out = np.zeros((*self.places.shape[:2], 3))
        out[..., : self.places.shape[-1]] = np.nan_to_num(self.places)
        return out.reshape(-1, 3)

    def still(self) -> np.ndarray:
        """Return the first place of every point at every frame."""
        first = np.argmax(np.isfinite(self.places[..., 0]), axis=0)
        begun = self.places[first, np.arange(self.places.shape[1])]
        return replace(self, places=np.broadcast_to(begun, self.places.shape)).targets()

    def between(self, keep: np.ndarray) -> "PointObserver":
        """Return the points at the frames of this mask only."""
        return replace(
            self, places=self.places[keep], times=self.times[keep], index=self.index[keep]
        )

    def points(self, moved: Moved, at: Sampling) -> np.ndarray:
        """Return the points in space, (n_frames, n_points, 3) [m]."""
        return self._applied(at.at(self._rows(moved)))

    def _rows(self, moved: Moved) -> np.ndarray:
        rows = moved.surfaces[self.object] if self.object else moved.x
        assert rows is not None
        return rows

    def _applied(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([self.matrix @ frame for frame in rows])

    def camera_at(self, values: Values) -> PosedCamera | None:
        """Return the camera with the values of its paths; None of points in space."""
        if self.camera is None:
            return None
        prefix = f"{self.camera_path}."
        own = {p.removeprefix(prefix): v for p, v in values.items() if p.startswith(prefix)}
        return self.camera.with_values(own) if own else self.camera

    def record(self, moved: Moved, at: Sampling, values: Values) -> "RecordedPoints":
        """Predict the points."""
        points, camera = self.points(moved, at), self.camera_at(values)
        shown = points if camera is None else to_pixels(camera, points - self.center, self.size)
        rows = np.zeros((*points.shape[:2], 4))
        rows[..., : shown.shape[-1]] = shown
        return RecordedPoints(self, moved, at, points, camera, rows.reshape(-1, 4))

    def _factor(self) -> np.ndarray:
        """Return what scales each row, (n_frames n_points, 1): 0 where nothing was tracked."""
        is_known = np.isfinite(self.places[..., 0])
        count = np.maximum(is_known.sum(axis=1, keepdims=True), 1) * len(self.times)
        scale = np.sqrt(self.weight / count) / self.error
        return np.where(is_known, scale, 0.0).reshape(-1, 1)

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return the scaled differences, frame after frame."""
        return (self._factor() * (rows[:, :3] - self.targets())).ravel()

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r."""
        return (self._factor() * tan_rows[:, :3]).ravel()

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the rows."""
        out = np.zeros((len(adj_r) // 3, 4))
        out[:, :3] = self._factor() * adj_r.reshape(-1, 3)
        return out

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the weighted mean square by frame."""
        scaled = np.square(self._factor() * (rows[:, :3] - other[:, :3])).reshape(
            len(self.times), -1
        )
        return len(self.times) * scaled.sum(axis=1)


@dataclass(frozen=True, eq=False)
class RecordedPoints(Recorded):
    """Predicted points."""

    observer: PointObserver
    moved: Moved
    at: Sampling
    points: np.ndarray
    camera: PosedCamera | None
    predicted: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The places, (n_frames n_points, 4)."""
        return self.predicted

    def jvp(self, tan: Moved | None, tan_values: Values) -> np.ndarray:
        """Return the tangent of the rows."""
        own = self.observer
        tan_points = np.zeros_like(self.points)
        if tan is not None:
            tan_points += own._applied(self.at.at(own._rows(tan)))
        if (shift := tan_values.get(own.start_path)) is not None:
            tan_points += float(shift) * own._applied(self.at.slope(own._rows(self.moved)))
        shown = tan_points
        if self.camera is not None:
            prefix = f"{own.camera_path}."
            tangents = {
                p.removeprefix(prefix): v for p, v in tan_values.items() if p.startswith(prefix)
            }
            shown = to_pixels_jvp(
                self.camera,
                self.points - own.center,
                own.size,
                tan_points=tan_points,
                tangents=tangents,
            )
        out = np.zeros((*shown.shape[:2], 4))
        out[..., : shown.shape[-1]] = shown
        return out.reshape(-1, 4)

    def vjp(self, adj_rows: np.ndarray) -> Cotangents:
        """Pull the cotangent of the rows back."""
        own, out = self.observer, Cotangents()
        adj = adj_rows.reshape(*self.points.shape[:2], 4)
        if self.camera is None:
            adj_points = adj[..., :3]
        else:
            adj_points, by_name = to_pixels_vjp(
                self.camera, self.points - own.center, own.size, adj[..., :2]
            )
            out.values = {f"{own.camera_path}.{name}": value for name, value in by_name.items()}
        back = np.stack([own.matrix.T @ frame for frame in adj_points])
        rows = own._rows(self.moved)
        out.values[own.start_path] = np.asarray(np.sum(back * self.at.slope(rows)))
        spread = self.at.spread(back, len(rows))
        if own.object:
            out.surfaces[own.object] = spread
        else:
            out.x = spread
        return out


def to_pixels(camera: PosedCamera, points: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return column and row (u, v) of points (..., 3) in an image of `size` (height, width)."""
    height, width = size
    p = points @ (rotation_matrix(camera.rotation) @ camera.nominal).T + camera.translation  # (1)
    f_x, k, c_x, f_y, c_y = camera.optics.numbers()
    z = -p[..., 2]
    s_x = (f_x * p[..., 0] + k * p[..., 1]) / z + c_x  # (2)
    s_y = f_y * p[..., 1] / z + c_y  # (3)
    u = (height * s_x + width - 1) / 2.0  # (4)
    v = (height - 1 - height * s_y) / 2.0  # (5)
    return np.stack([u, v], axis=-1)


def to_pixels_jvp(
    camera: PosedCamera,
    points: np.ndarray,
    size: tuple[int, int],
    *,
    tan_points: np.ndarray,
    tangents: Values,
) -> np.ndarray:
    """Return the tangent of `to_pixels` for tangents of the points and of the camera by name."""
    height = size[0]
    R = rotation_matrix(camera.rotation) @ camera.nominal
    p = points @ R.T + camera.translation
    tan_p = tan_points @ R.T  # (1)
    if "rotation" in tangents:
        tan_R = rotation_matrix_jvp(camera.rotation, tangents["rotation"]) @ camera.nominal
        tan_p = tan_p + points @ tan_R.T
    if "translation" in tangents:
        tan_p = tan_p + tangents["translation"]
    f_x, k, _, f_y, _ = camera.optics.numbers()
    tan_f_x, tan_f_y = _focal_rates(camera, size) @ _lens_tangent(camera, tangents)
    z, tan_z = -p[..., 2], -tan_p[..., 2]
    a, tan_a = f_x * p[..., 0] + k * p[..., 1], f_x * tan_p[..., 0] + k * tan_p[..., 1]
    tan_a = tan_a + tan_f_x * p[..., 0]
    b, tan_b = f_y * p[..., 1], f_y * tan_p[..., 1] + tan_f_y * p[..., 1]
    tan_u = height / 2.0 * (tan_a - a * tan_z / z) / z  # (2), (4)
    tan_v = -height / 2.0 * (tan_b - b * tan_z / z) / z  # (3), (5)
    return np.stack([tan_u, tan_v], axis=-1)


def to_pixels_vjp(
    camera: PosedCamera, points: np.ndarray, size: tuple[int, int], adj: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Pull the cotangent of `to_pixels` back to the points and to the camera by name."""
    height = size[0]
    R = rotation_matrix(camera.rotation) @ camera.nominal
    p = points @ R.T + camera.translation
    f_x, k, _, f_y, _ = camera.optics.numbers()
    z = -p[..., 2]
    adj_x = height / 2.0 * adj[..., 0] / z  # (4), (2): of the numerator a = f_x x + k y
    adj_y = -height / 2.0 * adj[..., 1] / z  # (5), (3): of b = f_y y
    a, b = f_x * p[..., 0] + k * p[..., 1], f_y * p[..., 1]
    adj_z = -(adj_x * a + adj_y * b) / z
    adj_p = np.stack([f_x * adj_x, k * adj_x + f_y * adj_y, -adj_z], axis=-1)
    flat_points, flat = points.reshape(-1, 3), adj_p.reshape(-1, 3)
    adj_R = flat.T @ flat_points
    adj_focal = np.array([np.sum(adj_x * p[..., 0]), np.sum(adj_y * p[..., 1])])
    lens = _focal_rates(camera, size).T @ adj_focal
    name = camera_names(camera)[2]
    return adj_p @ R, {
        "rotation": rotation_matrix_vjp(camera.rotation, adj_R @ camera.nominal.T),  # (1)
        "translation": flat.sum(axis=0),
        name: lens.reshape(()) if name == "fov_y" else lens,
    }


def _focal_rates(camera: PosedCamera, size: tuple[int, int]) -> np.ndarray:
    """Return d(f_x, f_y) / d(fov_y) (2, 1), or / d(focal) (2, 2)."""
    del size
    f_x, _, _, f_y, _ = camera.optics.numbers()
    if isinstance(camera.optics, Perspective):
        half = np.radians(camera.optics.fov_y) / 2.0
        rate = -np.radians(0.5) / np.sin(half) ** 2
        return np.array([[rate], [rate]])
    focal = np.asarray(camera.optics.focal)  # pyright: ignore[reportAttributeAccessIssue]
    return np.diag([f_x / focal[0], f_y / focal[1]])


def _lens_tangent(camera: PosedCamera, tangents: Values) -> np.ndarray:
    name = camera_names(camera)[2]
    size = 1 if name == "fov_y" else 2
    return np.broadcast_to(np.asarray(tangents.get(name, 0.0), np.float64), (size,))
