"""A scene at its start values, filmed as its films were."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.ndimage import binary_dilation

from render.blending import Hard
from render.camera import AnyCamera
from render.outputs import rasterize_outputs
from render.scene import Scene
from render.soft_raster import SoftRasterizer, rasterize, softness
from studies.problem.forward import motion_through
from studies.problem.free import start_values
from studies.problem.joint_marks import seen_by
from studies.problem.observations.films import FilmData, advice_on_film, plate_of, read_film
from studies.problem.observations.outlines import foreground
from studies.problem.observers import NODES, surfaces
from studies.problem.observing import frame_times
from studies.problem.steps import sample_steps
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.building import BuiltScene
from studies.scene.cameras import make_camera, require_outside
from studies.scene.declared import Film, SceneFile
from studies.scene.filming import Carried
from studies.scene.maps import Value
from studies.scene.motion import Settled
from studies.scene.steps import longest_step


COMPARED = 32  # frames of a film that are drawn
SIZE = (360, 480)  # of a camera without a film [pixels]
DURATION = 1.0  # of a scene without a film [s]
MARGIN = 0.05  # of the height: how far a body may be from where it is drawn
SOFTNESS = 0.4  # likewise [pixels]
DECLARED = "The picture has the bodies as they are declared instead."
TOUCHING = 0.01  # of the reach of the bodies: what is so little behind a surface is not hidden
CARRIER = ".carrier"  # behind the name of a body
GREY = (0.9, 0.9, 0.9)  # behind a scene without a film


@dataclass(frozen=True, eq=False)
class Shot:
    """A scene as one film's camera sees it."""

    key: str  # "observations.NAME", or "cameras.NAME" without a film
    camera: AnyCamera
    data: FilmData | None
    indices: np.ndarray  # of the film's frames that are drawn, (n,)
    times: np.ndarray  # of these in the scene [s], (n,)
    images: np.ndarray  # the scene, (n, H, W, 4); fewer than `indices` where the rollout fails
    places: dict[str, np.ndarray]  # vertices by name, (n, n_vertices, 3) [m]
    scene: Scene
    plate: np.ndarray  # what is behind the bodies, (H, W, 3) or (3,)
    nodes: np.ndarray | None = None  # of all bodies, (n, n_nodes, 3) [m]
    # Of bodies that carry obstacles, by name: centre and ends of its axes, (n, 4, 3) [m]
    carriers: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the pictures [pixels]."""
        return self.images.shape[1], self.images.shape[2]

    @property
    def drawn(self) -> np.ndarray:
        """Where the scene is, (n, H, W) of truth values."""
        return self.images[..., 3] > 0.5

    @cached_property
    def box(self) -> np.ndarray:
        """Two corners of a box around everything that is drawn at first, (2, 3) [m]."""
        points = np.concatenate([places[0] for places in self.places.values()])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    @property
    def center(self) -> np.ndarray:
        """The middle of that box, (3,) [m]."""
        return self.box.mean(axis=0)

    @property
    def reach(self) -> float:
        """The length of its diagonal [m]."""
        return float(np.linalg.norm(self.box[1] - self.box[0]))

    @property
    def pixels_per_metre(self) -> float:
        """How many pixels a metre across the view has at the middle of that box."""
        _, (depth,) = self.seen_at(self.center[None])
        return 0.5 * float(self.camera.optics.numbers()[3]) * self.size[0] / max(depth, 1e-9)

    @cached_property
    def _depths(self) -> dict[int, np.ndarray]:
        """Depths that are drawn, (H, W) [m], of the frames that were asked for."""
        return {}

    def hides(self, frame: int, points: np.ndarray) -> np.ndarray:
        """Return which points (n, 3) [m] a body hides in a frame."""
        if frame not in self._depths:
            places = {name: x[frame] for name, x in self.places.items()}
            drawn = rasterize_outputs(
                self.scene, self.camera, SoftRasterizer(blend=Hard()), places, self.size, ["depth"]
            )
            self._depths[frame] = drawn["depth"]
        pixels, depths = self.seen_at(points)
        pixels = np.where(np.isfinite(pixels), pixels, -1.0)
        columns, rows = np.rint(np.clip(pixels, -1.0, max(self.size))).astype(int).T
        inside = (rows >= 0) & (rows < self.size[0]) & (columns >= 0) & (columns < self.size[1])
        in_front = self._depths[frame][rows * inside, columns * inside]
        return inside & (depths > in_front + TOUCHING * self.reach)

    def seen_at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return columns and rows (n, 2) [pixels] and depths (n,) [m] of points."""
        return seen_by(self.camera, self.size)(points)


def shoot(
    file: SceneFile, built: BuiltScene, key: str, *, name: str, film: Film | None
) -> tuple[Shot, list[str]]:
    """Return the scene as a camera, by name, films it, and what is doubtful about the film.

    It moves by the start values of what is free.
    """
    spec, said, data = file.cameras[name], [], None
    size = full_size = spec.size or _size_by_lens(spec.K)
    indices, times = np.arange(3), np.linspace(0.0, file.world.duration or DURATION, 3)
    if film is not None and film.simulate is not None:
        size = full_size = (film.simulate.height, film.simulate.width)
        every = frame_times(film, file.world, key)
        indices = np.unique([0, len(every) // 2, len(every) - 1])
        times = every[indices]
    elif film is not None:
        data = read_film(film, spec, key)
        try:
            said += advice_on_film(data, key)
        except StudyError as error:  # nothing moves in it
            said.append(str(error))
        size, full_size = data.size, data.full_size
        n = min(len(data.frames), COMPARED)
        indices = np.unique(np.linspace(0, len(data.frames) - 1, n).round().astype(int))
        times = data.times[indices]
    values, start = _start_values(file, built, key, film)
    dt, times = longest_step(file.world), start + times
    moved, failed = places_at(_with_carriers(file, built), dt, times, values=values)
    places = surfaces(moved)
    said += [failed] if failed else []
    if film is not None and film.bodies is not None:
        hidden = set(file.bodies).difference(film.bodies)
        places = {body: points for body, points in places.items() if body not in hidden}
    first = {body: points[0] for body, points in places.items()}
    middle = np.mean(np.concatenate(list(first.values())), axis=0)
    camera = make_camera(name, spec, full_size, middle)
    drawn = {body: (built.meshes[body].faces, points) for body, points in first.items()}
    require_outside(name, camera, drawn)
    sigma = softness(film.softness or SOFTNESS if film else SOFTNESS, size[0])
    rasterizer = SoftRasterizer(sigma=sigma, seamless=True)
    scene = Scene({body: built.meshes[body] for body in places}, built.lights)
    images = rasterize(scene, camera, rasterizer, places, size)
    plate = np.array(GREY)
    if data is not None and film is not None:
        around = max(int(np.ceil(MARGIN * size[0])), 2)
        covered = images[0, ..., 3] > 0.01
        if (filmed := foreground(data)) is not None:  # else it would stand beside the scene's
            covered |= filmed[0]
        plate = plate_of(data, binary_dilation(covered, iterations=around))
    images[..., :3] += (1.0 - images[..., 3:]) * plate
    nodes = moved.get(NODES)
    carriers = {k.removesuffix(CARRIER): x for k, x in moved.items() if k.endswith(CARRIER)}
    shot = Shot(key, camera, data, indices, times, images, places, scene, plate, nodes, carriers)
    return shot, said


def _start_values(
    file: SceneFile, built: BuiltScene, key: str, film: Film | None
) -> tuple[dict[str, np.ndarray], float]:
    """Return where what is free starts, by scene path, and the scene's time of a film's time 0."""
    if film is None:
        return start_values(file.free, built.values), 0.0
    path = f"{key}.start"
    start = Value(np.asarray(film.start), "s", "linear", (-np.inf, np.inf))
    values = start_values(file.free, {**built.values, path: start})
    return values, float(values.get(path, film.start))


def _with_carriers(file: SceneFile, built: BuiltScene) -> BuiltScene:
    """Return the scene with a subject more for each body that carries an obstacle.

    `NAME.carrier` are its centre and the ends of its axes, which are those of the world where it is
    declared: from there `carried_by` moves what it carries.
    """
    moving = getattr(built.system, "bodies", {})
    names = {
        obstacle.fixed_to for obstacle in file.obstacles.values() if obstacle.fixed_to in moving
    }
    axes = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    carriers = {f"{name}{CARRIER}": Carried.by(str(name), axes) for name in names}
    return replace(built, subjects={**built.subjects, **carriers})


def carried_by(carrier: np.ndarray, center: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return points of the declared scene (..., 3) as a body carries them, (n_frames, ..., 3).

    `carrier` (n_frames, 4, 3) is of `_with_carriers`, `center` (3,) [m] where the body is declared.
    """
    axes = carrier[:, 1:] - carrier[:, :1]
    moved = (points - center).reshape(-1, 3) @ axes + carrier[:, :1]
    return moved.reshape(len(carrier), *points.shape)


def _size_by_lens(K: Any) -> tuple[int, int]:
    """Return height and width of a picture whose middle is the principal point of K [pixels]."""
    return SIZE if K is None else (round(2 * K[1][2]) + 1, round(2 * K[0][2]) + 1)


def places_at(
    built: BuiltScene,
    given_dt: float | None,
    times: np.ndarray,
    sensor: str = "",
    *,
    values: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> tuple[dict[str, np.ndarray], str | None]:
    """Return vertices by name, and nodes as `NODES`, at times [s], and why the rollout fails.

    Where it does, they are those of the start. What a `sensor` reads is among them by its name.
    `values` by scene path replace the scene's own.
    """
    motion, at = motion_through(built, times, given_dt, values)
    for path in built.paths:
        path.check(float(np.max(times)), motion.dt)
    failed = None
    try:
        run = motion.run()
    except NotFiniteError as error:
        if isinstance(motion.system, Settled):  # drawn as it is declared
            motion, reason = replace(motion, system=motion.system.model), f"{error} {DECLARED}"
        else:
            reason = ""
        steps, (at,) = sample_steps([np.zeros(1)], motion.dt, moves=[False])
        motion = motion.at(steps)
        run = motion.run()
        failed = reason or (
            f"The scene leaves the finite numbers within {times[-1]:.3g} s at its start values, "
            f"with a step of {motion.dt:.3g} s. Check E and density, whether bodies begin inside "
            "an obstacle, or give a smaller `world.dt`."
        )
    subjects: dict[str, Any] = dict(built.subjects)
    if sensor:
        subjects[sensor] = built.sensors[sensor]
    places = {k: at.at(subject.vertices(motion, run)) for k, subject in subjects.items()}
    if getattr(run, "x", None) is not None:
        places[NODES] = at.at(np.asarray(run.x))
    return places, failed
