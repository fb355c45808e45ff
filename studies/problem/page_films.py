"""Films for the page of a run: the film as it was taken, the answer drawn as large, and obstacles.

The answer is drawn again with at least `ROWS` rows over the film's background; obstacles that the
scene does not draw are shown lightly behind the bodies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from render.annealing import softness
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.films import FilmObserver
from studies.problem.making import Made
from studies.problem.observations.films import film_pictures
from studies.problem.observers import Observer
from studies.problem.observing import camera_of
from studies.problem.problem import SceneProblem
from studies.problem.smoke import SmokeObserver
from studies.runs.media import as_float, as_uint8
from studies.scene import declared
from studies.scene.obstacles import DRAWN_CELLS, drawn_obstacle


ROWS = 480  # of a film on a page, at least
MOST_FRAMES = 48
AT_ONCE = 4  # frames
SUPERSAMPLED = 24  # films of so many frames or fewer are drawn with twice the rows
SOFT = 0.5  # width of edges [pixels]
OPACITY = 0.3  # of obstacles that the scene does not draw
AROUND = 2.0  # times the distance of the camera: edge of the part of a floor that is shown
SQUARES = (0.35, 0.75)  # grey levels of a floor


@dataclass(frozen=True, eq=False)
class PageFilm:
    """What a page shows of one film, in RGB of 8 bits, (n, height, width, 3)."""

    footage: np.ndarray
    answer: np.ndarray  # the whole motion where the film is a picture
    is_simulated: bool = False  # whether the film was drawn again from the truth


def page_film(
    problem: SceneProblem,
    one: FilmObserver,
    file: declared.SceneFile,
    *,
    values: Mapping[str, np.ndarray],
    made: Made,
) -> PageFilm:
    """Return what a page shows of a film at the answer, `values` by scene path.

    A simulated film is drawn again as large, from the truth.
    """
    n = len(one.times)
    chosen = np.unique(np.linspace(0, n - 1, min(n, MOST_FRAMES)).round().astype(int))
    spec = file.observations[one.name]
    assert isinstance(spec, declared.Film)
    footage = None
    if spec.video is not None:
        footage = film_pictures(spec, camera_of(file, spec), one.name, rows=ROWS, chosen=chosen)
    height, width = one.size if footage is None else footage.shape[1:3]
    times = -(-ROWS // height)
    size = (height * times, width * times)
    instants = one.instants(values)[chosen] if n > 1 else _until(one, values)
    drawing = _Drawing(problem, one, file, size, _plate(one, footage, size))
    answer = drawing.images(values, instants)
    if footage is None and made.hidden is not None and made.true_values is not None:
        shown = next(each for each in made.hidden.observers if each.name == one.name)
        assert isinstance(shown, FilmObserver)
        truth = {**made.hidden.fixed, **made.true_values}
        hidden = replace(drawing, problem=made.hidden, one=shown)
        footage = hidden.images(truth, one.instants(truth)[chosen])
    if footage is None:
        footage = as_uint8(one.frames[chosen])
    return PageFilm(footage, answer, spec.video is None)


def smoke_film(
    problem: SceneProblem, one: SmokeObserver, values: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return the frames of smoke at the answer; the whole motion where the film is a picture."""
    times = one.times if len(one.times) > 1 else _until(one, values) - one.start
    frames = np.broadcast_to(np.float32(0.0), (len(times), *one.frames.shape[1:]))
    shown = replace(one, times=times, index=np.arange(len(times)), frames=frames)
    (rows,) = _predicted(problem, [shown], values)
    return as_uint8(shown.as_images(rows)[..., :3])


def _until(one: Observer, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return times from the start of the motion to that of a picture."""
    end = float(one.instants(values)[0])
    return np.linspace(0.0, end, MOST_FRAMES) if end > 0.0 else np.array([end])


def _predicted(
    problem: SceneProblem, observers: Sequence[Observer], values: Mapping[str, np.ndarray]
) -> Iterator[np.ndarray]:
    """Yield the predictions of other observers, made one after the other."""
    moved, samplings = replace(problem, observers=tuple(observers)).moved(values)
    for one, at in zip(observers, samplings, strict=True):
        yield one.predict(moved, at, values)


@dataclass(frozen=True, eq=False)
class _Drawing:
    """How the frames of one film are drawn for a page."""

    problem: SceneProblem
    one: FilmObserver
    file: declared.SceneFile
    size: tuple[int, int]
    plate: np.ndarray

    def images(self, values: Mapping[str, np.ndarray], instants: np.ndarray) -> np.ndarray:
        """Return the frames at these times of the scene, (n, height, width, 3) of 8 bits."""
        parts = np.array_split(instants, -(-len(instants) // AT_ONCE))
        factor = 2 if len(instants) <= SUPERSAMPLED else 1
        height, width = (factor * side for side in self.size)
        start = float(np.asarray(values.get(self.one.start_path, self.one.start)))
        looks, paths = self.one.scene, self.one.paths
        if not paths:  # of silhouettes
            looks = Scene(self.problem.built.meshes, self.problem.built.lights)
        pages = [
            replace(
                self.one,
                scene=looks,
                times=part - start,
                index=np.arange(len(part)),
                frames=np.broadcast_to(np.float32(0.0), (len(part), height, width, 3)),
                rasterizer=SoftRasterizer(sigma=softness(factor * SOFT, height), seamless=True),
            )
            for part in parts
        ]
        plate = self._with_obstacles(values)
        out = []
        for page, rows in zip(pages, _predicted(self.problem, pages, values), strict=True):
            drawn = page.as_images(rows)
            drawn = drawn.reshape(-1, self.size[0], factor, self.size[1], factor, 4)
            drawn = drawn.mean(axis=(2, 4))
            out.append(as_uint8(drawn[..., :3] + (1.0 - drawn[..., 3:]) * plate))
        return np.concatenate(out)

    def _with_obstacles(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the background with the obstacles that the scene does not draw, lightly."""
        meshes: dict[str, Mesh] = {}
        vertices: dict[str, np.ndarray] = {}
        for name, obstacle in self.file.obstacles.items():
            if not obstacle.draw:
                for key, (mesh, points) in self._drawn(name, obstacle).items():
                    meshes[key], vertices[key] = mesh, (points - self.one.center)[None]
        if not meshes:
            return self.plate
        rasterizer = SoftRasterizer(sigma=softness(SOFT, self.size[0]), seamless=True)
        scene = Scene(meshes, self.problem.built.lights)
        (drawn,) = rasterize(scene, self.one.camera_at(values), rasterizer, vertices, self.size)
        shown = OPACITY * drawn[..., 3:]
        return self.plate * (1.0 - shown) + OPACITY * drawn[..., :3]

    def _drawn(self, name: str, obstacle: declared.Obstacle) -> dict[str, tuple[Mesh, np.ndarray]]:
        """Return the meshes of an obstacle: of a plane, the squares of a floor near the bodies."""
        if not isinstance(obstacle, declared.PlaneObstacle):
            mesh, points = drawn_obstacle(name, obstacle)
            return {name: (_grey(mesh.faces, SQUARES[1]), points)}
        center = self.one.center
        normal = np.asarray(obstacle.normal) / np.linalg.norm(obstacle.normal)
        below = center - normal * (normal @ (center - np.asarray(obstacle.point)))
        size = AROUND * float(np.linalg.norm(self.one.camera.translation))
        near = replace(obstacle, point=tuple(below.tolist()), extent=min(obstacle.extent, size))
        mesh, points = drawn_obstacle(name, near)
        edges = points[[1, DRAWN_CELLS + 1]] - points[0]
        offsets = (points[mesh.faces].mean(axis=1) - points[0]) @ edges.T
        cells = np.floor(offsets / (edges**2).sum(axis=1) / 2.0).astype(int).sum(axis=1) % 2
        return {
            f"{name}-{k}": (_grey(mesh.faces[cells == k], grey), points)
            for k, grey in enumerate(SQUARES)
        }


def _grey(faces: np.ndarray, level: float) -> Mesh:
    return Mesh(faces, material=Material(ambient=0.6 * level, diffuse=0.4 * level))


def _plate(one: FilmObserver, footage: np.ndarray | None, size: tuple[int, int]) -> np.ndarray:
    """Return what is behind the bodies, as large as the page's film, (height, width, 3)."""
    background = np.asarray(one.rasterizer.background, np.float64)
    if not one.paths and footage is not None:  # silhouettes: the film itself, half as bright
        return 0.5 * enlarged(as_float(footage[0]), size)
    if background.ndim == 1:
        return np.broadcast_to(background, (*size, 3))
    return enlarged(background, size)


def enlarged(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return an image (H, W, C) of another size, smooth between pixels."""
    from PIL import Image

    def resized(channel: np.ndarray) -> Any:
        made = Image.fromarray(np.ascontiguousarray(channel, np.float32))
        return np.asarray(made.resize((size[1], size[0]), Image.Resampling.BICUBIC))

    return np.stack([resized(one) for one in np.moveaxis(image, -1, 0)], axis=-1)
