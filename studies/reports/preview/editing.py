"""Changes of a scene that are made by looking: a camera, a floor, held nodes, a colour to track.

Each change is a setting of the scene file, as of the command line; the scene is read again with all
of them, and written in the end with the comments of its file.

    camera    the pose, and without `K` the field of view, for which known points lie nearest to
              where they are seen: least squares, from the declared pose and from all around
    floor     a plane moves along its normal until the point below the bodies is seen where it was
              dragged to
    held      the box around the nodes that are seen in a rectangle
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from scipy.spatial.transform import Rotation

from render.posed_camera import PosedCamera
from studies.problem.from_views import with_hulls
from studies.problem.joint_marks import seen_by
from studies.problem.observations.film_tracker import Tracked, has_hue
from studies.reports.preview.overlay import Overlay, overlays, seen_pixels
from studies.reports.preview.shots import Shot
from studies.reports.preview.showing import inspect
from studies.runs.errors import StudyError
from studies.runs.files import replacing
from studies.scene.building import build
from studies.scene.declared import Camera, Film, PlaneObstacle
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.obstacle_shapes import shape_of
from studies.scene.overrides import set_override
from studies.scene.reading import read_scene


POSE_POINTS, LENS_POINTS = 3, 4  # known points that determine a pose, and a field of view as well
BEHIND = 1e4  # pixels that a point behind the camera is off
GOOD = 0.02  # of the height: known points that are farther off are doubtful
NEWTON_STEPS = 6  # for the height of a floor
ENOUGH = 0.005  # likewise: points that are nearer are seen by no other camera
AROUND = 1e-3  # of the size of a body, by which the box of held nodes is larger than they are
TOLERANCE = 0.15  # of a colour that is tracked


class Editor:
    """A scene file with settings that are changed; `shots` shows it as it is now."""

    def __init__(self, path: Path, overrides: Sequence[str] = ()) -> None:
        read_scene(path, overrides)  # which refuses what is no setting
        self.path, self.written = path, False
        self.settings = dict(text.split("=", 1) for text in overrides)
        self._look(self.settings)

    @property
    def lines(self) -> list[str]:
        """The settings as key=value."""
        return [f"{key}={value}" for key, value in self.settings.items()]

    @property
    def target(self) -> Path:
        """The file that is written: the scene's, or of a bundled scene one of its name here."""
        return Path(self.path.name) if self.path.parent == BUNDLED else self.path

    def change(self, settings: Mapping[str, str | None]) -> None:
        """Change settings, values as TOML has them; None takes one back.

        Raise StudyError if the scene cannot be read or drawn with them; then nothing has changed.
        """
        wanted = {**self.settings, **settings}
        kept = {key: value for key, value in wanted.items() if value is not None}
        self._look(kept)
        self.settings = kept

    def _look(self, settings: Mapping[str, str]) -> None:
        file = read_scene(self.path, [f"{key}={value}" for key, value in settings.items()])
        hulls: list[str] = []
        file = with_hulls(instance_of(file, seed=0), say=hulls.append)
        built = build(file)
        shots, warnings = inspect(file, built)
        if not shots:
            raise StudyError("`cameras` is empty: a page needs a table [cameras.NAME].")
        self.file, self.built, self.shots, self.hulls = file, built, shots, hulls
        self.notes = [*built.notes, *warnings]

    def marks(self, shot: Shot) -> list[Overlay]:
        """Return what is drawn over a shot."""
        return overlays(self.file, self.built, shot)

    def solve(self, shot: Shot, points: Sequence[tuple[Any, Any]]) -> str:
        """Set the camera of a shot by points, pixel and place [m] of each; say how well."""
        name = self._camera_of(shot)
        spec = self.file.cameras[name]
        pixels, places = (np.array(values, float) for values in zip(*points, strict=True))
        settings, off = solved_camera(spec, shot, pixels, places)
        self.change({f"cameras.{name}.{key}": value for key, value in settings.items()})
        doubt = " Check the places." if off > GOOD * shot.size[0] else ""
        return f"{len(points)} points are {off:.2g} pixels off on average.{doubt}"

    def _camera_of(self, shot: Shot) -> str:
        family, name = shot.key.split(".", 1)
        camera = name if family == "cameras" else self.file.films[name].camera
        return camera or next(iter(self.file.cameras))

    def drag_floor(self, shot: Shot, name: str, pixel: Sequence[float]) -> str:
        """Move a plane so that its point below the bodies is seen in the row of a pixel."""
        plane = self.file.obstacles.get(name)
        if not isinstance(plane, PlaneObstacle):
            raise StudyError(f"`obstacles.{name}` must be a plane, to be dragged.")
        foot, normal = shape_of(name, plane).nearest(shot.center)
        moved, step = 0.0, 1e-3 * shot.reach
        for _ in range(NEWTON_STEPS):  # a pixel is not linear in the height
            ends = foot + np.array([[moved], [moved + step]]) * normal
            (here, ahead), depths = shot.seen_at(ends)
            along = (ahead - here) / step  # pixels by metre
            if depths.min() <= 0.0 or not np.linalg.norm(along) * shot.reach >= 1.0:
                raise StudyError(
                    f"`obstacles.{name}` cannot be dragged there in this view: its normal is "
                    "hardly seen. Use another view, or set its `point`."
                )
            moved += float(along @ (np.asarray(pixel) - here) / (along @ along))
        point = np.asarray(plane.point) + moved * normal
        self.change({f"obstacles.{name}.point": value_text(point)})
        return f"{name} moved by {1e3 * moved:.3g} mm along its normal."

    def hold(self, shot: Shot, name: str, corners: Sequence[Sequence[float]]) -> str:
        """Hold the nodes of a body that are seen in a rectangle of the first frame."""
        rows = self.built.nodes.get(name)
        if rows is None or shot.nodes is None:
            raise StudyError(f"`bodies.{name}` has no nodes that can be held.")
        x = shot.nodes[0, rows]
        pixels, depths = shot.seen_at(x)
        low, high = np.sort(np.asarray(corners, float), axis=0)
        inside = ((pixels >= low) & (pixels <= high)).all(axis=1) & (depths > 0.0)
        if not inside.any():
            raise StudyError(f"No node of `bodies.{name}` is in the rectangle.")
        slack = AROUND * float(np.ptp(x, axis=0).max())
        lower, upper = x[inside].min(axis=0) - slack, x[inside].max(axis=0) + slack
        box = f"{{ lower = {value_text(lower)}, upper = {value_text(upper)} }}"
        before = getattr(self.file.bodies[name], "held", None)
        if before is not None and before.path is not None:
            raise StudyError(
                f"`bodies.{name}.held` has a path, which a rectangle would drop. Change its file."
            )
        self.change({f"bodies.{name}.held": f"{{ box = {box} }}"})
        assert self.built.held is not None
        return f"{int(self.built.held[rows].sum())} of {len(x)} nodes of {name} are held."

    def pick(self, shot: Shot, frame: int, pixel: Sequence[float]) -> dict[str, Any]:
        """Return the colour at a pixel of a film, where it is found, and how it is tracked."""
        film = self.file.observations.get(shot.key.split(".", 1)[1])
        if shot.data is None or not isinstance(film, Film):
            raise StudyError(f"`{shot.key}` has no film whose colours can be tracked.")
        picture = shot.data.frames[shot.indices[frame]][..., :3]
        column, row = (round(value) for value in pixel)
        around = picture[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
        color = np.round(around.mean(axis=(0, 1)), 3)
        spot = Tracked(color, None, TOLERANCE, by_hue=has_hue(color, TOLERANCE)).find(picture)
        numbers = " ".join(f"{value:g}" for value in color)
        say = f'adjsim track {film.video} track.csv --color "{numbers}" --tolerance {TOLERANCE}'
        if spot is None:
            return {"say": f"Too little is like this colour. {say}", "middle": None}
        cut = " It is cut by the edge." if spot.is_cut else ""
        return {"say": f"{int(spot.pixels.sum())} pixels.{cut} {say}", "middle": [spot.u, spot.v]}

    def write(self) -> Path:
        """Write the scene with its settings, and return the file."""
        if self.target != self.path and self.target.exists() and not self.written:
            raise StudyError(f"{self.target} is there already: nothing is replaced. Move it away.")
        text = tomlkit.parse(self.path.read_text(encoding="utf-8"))
        for line in self.lines:
            set_override(text, line)
        with replacing(self.target) as temporary:
            temporary.write_text(tomlkit.dumps(text), encoding="utf-8")
        self.written = True
        return self.target.resolve()

    def state(self, say: str = "") -> dict[str, Any]:
        """Return what the page shows, as JSON has it."""
        return {
            "say": say or " ".join(self.hulls),
            "shots": [self._shown(shot) for shot in self.shots],
            "planes": [k for k, o in self.file.obstacles.items() if isinstance(o, PlaneObstacle)],
            "bodies": list(self.built.nodes),
            "held": self.built.held_counts(),
            "settings": self.settings,
            "notes": self.notes,
            "target": str(self.target),
        }

    def _shown(self, shot: Shot) -> dict[str, Any]:
        frames = range(len(shot.images))
        marks = [
            {
                "name": mark.name,
                "color": "#{:02x}{:02x}{:02x}".format(*mark.color),
                "label": mark.label,
                "ends": [
                    np.round(seen_pixels(mark, frame, shot, shot.size), 2).tolist()
                    for frame in (frames if len(mark.points) > 1 else [0])
                ],
            }
            for mark in self.marks(shot)
        ]
        return {
            "key": shot.key, "height": shot.size[0], "width": shot.size[1],
            "times": shot.times[: len(frames)].tolist(), "has_film": shot.data is not None,
            "marks": marks,
        }  # fmt: skip


def value_text(numbers: Any) -> str:
    """Return numbers as TOML has them, to nine digits."""
    return json.dumps([float(f"{number:.9g}") for number in np.ravel(numbers)])


def solved_camera(
    spec: Camera, shot: Shot, pixels: np.ndarray, places: np.ndarray
) -> tuple[dict[str, str], float]:
    """Return the settings of a shot's camera that sees places (n, 3) [m] at pixels (n, 2).

    And how well: the root mean square of what they are off [pixels].
    """
    from scipy.optimize import least_squares

    has_lens = spec.K is not None
    _require_points(pixels, places, POSE_POINTS if has_lens else LENS_POINTS)
    camera: Any = shot.camera
    eye, axes = _opencv(camera)
    middle = places.mean(axis=0)
    lens = {"lens": camera.lens} if has_lens else {}
    fov = spec.fov_y or 45.0

    def camera_at(theta: np.ndarray, turn: np.ndarray) -> PosedCamera:
        R = (Rotation.from_rotvec(theta[:3]) * Rotation.from_matrix(turn)).as_matrix()
        optics = lens or {"fov_y": float(np.clip(fov * np.exp(theta[6]), 1.0, 170.0))}
        return PosedCamera.from_extrinsics(np.column_stack([R, theta[3:6]]), **optics)

    def off(theta: np.ndarray, turn: np.ndarray) -> np.ndarray:
        seen, depths = seen_by(camera_at(theta, turn), shot.size)(places)
        return np.where(depths[:, None] > 0.0, seen - pixels, BEHIND).ravel()

    best: Any = None
    distance = float(np.linalg.norm(eye - middle))
    for turn in (axes, *_views()):
        there = eye if turn is axes else middle - distance * turn[2]
        start = np.concatenate([np.zeros(3), -turn @ there, np.zeros(0 if has_lens else 1)])
        if not np.isfinite(off(start, turn)).all():
            continue
        end = least_squares(off, start, args=(turn,), x_scale="jac", max_nfev=200)
        if best is None or end.cost < best[0].cost:
            best = end, turn
        if np.sqrt(2.0 * best[0].cost / len(places)) < ENOUGH * shot.size[0]:
            break
    if best is None:
        raise StudyError("No camera sees these points. Check their places, in metres.")
    end, turn = best
    eye, axes = _opencv(camera_at(end.x, turn))
    rms = float(np.sqrt(2.0 * end.cost / len(places)))
    if spec.eye is None:
        shift = -axes @ eye
        rows = ", ".join(value_text(row) for row in axes)
        settings = {"R": f"[{rows}]", "t": value_text(shift)}
    else:
        ahead = eye + float((middle - eye) @ axes[2]) * axes[2]
        settings = {"eye": value_text(eye), "target": value_text(ahead), "up": value_text(-axes[1])}
    if not has_lens:
        settings["fov_y"] = f"{fov * float(np.exp(end.x[6])):.6g}"
    return settings, rms


def _require_points(pixels: np.ndarray, places: np.ndarray, needed: int) -> None:
    """Raise unless points are enough for a camera."""
    if not (np.isfinite(places).all() and np.isfinite(pixels).all()):
        raise StudyError("Each known point needs three numbers, its place in metres.")
    if len(places) < needed or np.linalg.matrix_rank(places - places[0], tol=1e-9) < 2:
        raise StudyError(
            f"A camera needs {needed} known points or more that are not on one line, got "
            f"{len(places)}."
        )


def _opencv(camera: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the eye of a camera and its axes as rows: right, down and ahead."""
    eye, (right, up, ahead) = camera.pose()
    return eye, np.stack([right, -up, ahead])


def _views() -> list[np.ndarray]:
    """Return the axes of cameras that look at a point from all around: right, down and ahead."""
    out = []
    for x, y, z in itertools.product((-1, 0, 1), repeat=3):
        if (x, z) == (0, 0):
            continue
        ahead = -np.array([x, y, z]) / np.linalg.norm([x, y, z])
        right = np.cross(ahead, [0.0, 1.0, 0.0])
        right /= np.linalg.norm(right)
        out.append(np.stack([right, np.cross(ahead, right), ahead]))
    return out
