"""What a preview draws over a scene: obstacles, held nodes, paths, the world's axes and gravity.

Lines behind bodies are dashed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageDraw

from studies.problem.joint_marks import seen_by
from studies.reports.preview.shots import Shot, carried_by
from studies.scene.building import BuiltScene
from studies.scene.declared import SceneFile
from studies.scene.grips import weights_at
from studies.scene.obstacle_shapes import shape_of


OBSTACLE, HELD, GRAVITY = (35, 120, 130), (200, 30, 120), (110, 60, 190)
PATH, MOST_PATH = (220, 120, 20), 200  # of a grip or an obstacle; most places that are drawn
PIECES = 25  # of a line that a body hides, in part: every other hidden one is drawn
AXES = {"x": (205, 40, 40), "y": (30, 140, 60), "z": (40, 80, 210)}
FAR = 2.0  # times the reach of the bodies: how much of a floor is drawn
LONG = 0.3  # of this reach, an axis and gravity, rounded to 1, 2 or 5 times a power of ten
DOT = 0.006  # radius of a held node, over the height of the picture


@dataclass(frozen=True, eq=False)
class Overlay:
    """Lines or dots in space, of one colour.

    `points`: ends of segments (1 or n_frames, n, 2, 3), or dots (1 or n_frames, n, 1, 3) [m].
    """

    name: str
    color: tuple[int, int, int]
    points: np.ndarray
    label: str = ""  # at the end of the last segment

    def at(self, frame: int) -> np.ndarray:
        """Return the segments or dots of a frame."""
        return self.points[min(frame, len(self.points) - 1)]


def overlays(file: SceneFile, built: BuiltScene, shot: Shot) -> list[Overlay]:
    """Return what is drawn over a shot of a scene."""
    out, paths = [], {path.key: path for path in built.paths}
    wires = obstacle_wires(
        file, built, shot.center, far=FAR * shot.reach, times=shot.times, carriers=shot.carriers
    )
    out += [Overlay(f"obstacles.{name}", OBSTACLE, wire) for name, wire in wires.items()]
    if built.held is not None and built.held.any() and shot.nodes is not None:
        out.append(Overlay("held nodes", HELD, shot.nodes[:, built.held, None]))
    for path in paths.values():
        x = np.concatenate([path.start[None], path.places]).mean(axis=1)
        x = x[np.unique(np.linspace(0, len(x) - 1, MOST_PATH).round().astype(int))]
        name = path.key.split(".")[1]
        out.append(Overlay(path.key, PATH, np.stack([x[:-1], x[1:]], axis=1)[None], name))
    length = _round_length(LONG * shot.reach)
    for name, direction in zip(AXES, np.eye(3), strict=True):
        axis = np.stack([np.zeros(3), length * direction])
        label = f"x, {length:g} m" if name == "x" else name
        out.append(Overlay(f"axis {name}", AXES[name], axis[None, None], label))
    gravity = np.asarray(file.world.gravity)
    if size := float(np.linalg.norm(gravity)):
        arrow = np.stack([shot.center, shot.center + length * gravity / size])
        out.append(Overlay("gravity", GRAVITY, arrow[None, None], "g"))
    return out


def obstacle_wires(
    file: SceneFile, built: BuiltScene, center: np.ndarray, *, far: float, times: np.ndarray,
    carriers: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return lines that show obstacles, by name: (1 or n_times, n, 2, 3) [m].

    What is further than `far` from `center` [m] need not be in them. `times` (n_times,) [s] are
    those of obstacles that move along a path. What bodies carry that are not among `carriers`, see
    `Shot`, is left out.
    """
    out, paths = {}, {path.key: path for path in built.paths}
    for name, obstacle in file.obstacles.items():
        if obstacle.fixed_to is None:
            wire = shape_of(name, obstacle).wire(center, far)[None]
            if path := paths.get(f"obstacles.{name}.path"):
                offsets = weights_at(path.times, times) @ (path.places - path.start)[:, 0]
                wire = wire + offsets[:, None, None]
            out[name] = wire
        elif obstacle.fixed_to in carriers:
            (at,) = getattr(built.system, "bodies", {})[obstacle.fixed_to].centers
            wire = shape_of(name, obstacle).wire(at, far)
            out[name] = carried_by(carriers[obstacle.fixed_to], at, wire)
    return out


def _round_length(length: float) -> float:
    """Return the largest of 1, 2 or 5 times a power of ten that is no longer."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(max(k for k in (power, 2.0 * power, 5.0 * power) if k <= length * (1.0 + 1e-9)))


def seen_pixels(overlay: Overlay, frame: int, shot: Shot, size: tuple[int, int]) -> np.ndarray:
    """Return columns and rows of what is in front of the camera, (n, 1 or 2, 2) [pixels].

    `size` is the height and width of the picture. Lines are dashed where bodies hide them.
    """
    points = overlay.at(frame)
    if points.shape[1] == 2:
        points = _dashed(points, lambda x: shot.hides(frame, x))
    seen_at = seen_by(shot.camera, size)
    pixels, depths = seen_at(points.reshape(-1, 3))
    ahead = (depths.reshape(points.shape[:2]) > 0.0).all(axis=1)
    return pixels.reshape(*points.shape[:2], 2)[ahead]


def _dashed(ends: np.ndarray, hides: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return lines (n, 2, 3), those that are hidden in pieces without every other one."""
    t = np.linspace(0.0, 1.0, PIECES + 1)[:, None]
    at = ends[:, :1] + t * (ends[:, 1:] - ends[:, :1])
    pieces = np.stack([at[:, :-1], at[:, 1:]], axis=2)
    hidden = hides(pieces.mean(axis=2).reshape(-1, 3)).reshape(len(ends), PIECES)
    left_out = hidden & (np.arange(PIECES) % 2 == 1)
    lines = [
        dashes[~gone] if gone.any() else line[None]
        for line, dashes, gone in zip(ends, pieces, left_out, strict=True)
    ]
    return np.concatenate(lines)


def draw_overlays(
    image: np.ndarray, marks: Sequence[Overlay], frame: int, shot: Shot
) -> np.ndarray:
    """Return a picture (H, W, 3) of 8 bits with what is drawn over it."""
    picture = Image.fromarray(image)
    draw, radius = ImageDraw.Draw(picture), max(DOT * image.shape[0], 1.5)
    for mark in marks:
        pixels = seen_pixels(mark, frame, shot, (image.shape[0], image.shape[1])) + 0.5
        pixels = pixels[(np.abs(pixels) < 1e5).all(axis=(1, 2))]
        for ends in pixels:
            if len(ends) == 2:
                draw.line(ends.ravel().tolist(), mark.color, 2 if mark.label else 1)
            else:
                ((column, row),) = ends
                box = (column - radius, row - radius, column + radius, row + radius)
                draw.ellipse(box, fill=mark.color)
        if mark.label and len(pixels):
            draw.text(tuple(pixels[-1, -1] + 3), mark.label, fill=mark.color)
    return np.asarray(picture)
