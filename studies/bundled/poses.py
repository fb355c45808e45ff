"""A camera around one of fourteen shapes, and a guess of it that is 25 to 35 degrees off."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.meshes.shapes import shape
from render.posed_camera import TO_VISION
from studies.scene.declared import Camera, Free, SceneFile


THING, CAMERA = "thing", "front"
SHAPES = (
    "airplane", "dog", "chair", "banana", "apple", "star", "gear", "bowl", "torus", "cube", "cone",
    "capsule", "cylinder", "sphere",
)  # fmt: skip
DISTANCE, ELEVATION, AZIMUTH = (2.6, 3.6), (-40.0, 60.0), (0.0, 360.0)  # [m], [deg]
TARGET, FOV = 0.15, (35.0, 50.0)  # how far beside the middle it aims [m], and its view [deg]
TURN, SHIFT, ZOOM = (25.0, 35.0), (0.15, 0.25), (0.85, 1.2)  # the guess: [deg], of the distance, -
FAR = 0.4  # of the distance: bounds of the translation


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene of an instance: the guess is its camera, and the truth is where it was."""
    name = SHAPES[instance % len(SHAPES)]
    points = shape(name).points
    center = 0.5 * (points.min(axis=0) + points.max(axis=0))
    away = rng.uniform(*DISTANCE)
    e, a = np.radians([rng.uniform(*ELEVATION), rng.uniform(*AZIMUTH)])
    fov_y, target = rng.uniform(*FOV), rng.uniform(-TARGET, TARGET, 3)
    right = np.array([np.cos(a), 0.0, -np.sin(a)])
    up = np.array([-np.sin(e) * np.sin(a), np.cos(e), -np.sin(e) * np.cos(a)])
    back = np.array([np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)])
    nominal = np.stack([right, up, back])
    translation = nominal @ (center - (target + away * back))
    axis, way = rng.standard_normal((2, 3))
    turn = Rotation.from_rotvec(np.radians(rng.uniform(*TURN)) * axis / np.linalg.norm(axis))
    distance = float(np.linalg.norm(translation))
    shift = rng.uniform(*SHIFT) * distance * way / np.linalg.norm(way)
    guess, begun = turn.as_matrix() @ nominal, translation + shift
    file_camera = file.cameras[CAMERA]
    camera = replace(
        file_camera,
        eye=None,
        target=None,
        R=_rows(TO_VISION @ guess),
        t=tuple((TO_VISION @ (begun - guess @ center)).tolist()),
        fov_y=fov_y * rng.uniform(*ZOOM),
    )
    path = f"cameras.{CAMERA}"
    truth = {
        f"{path}.rotation": tuple(turn.inv().as_rotvec().tolist()),
        f"{path}.translation": tuple(translation.tolist()),
        f"{path}.fov_y": fov_y,
    }
    free = {k: settings for k, settings in file.free.items() if k != f"{path}.translation"}
    if len(free) < len(file.free):
        far = FAR * distance
        free |= {f"{path}.translation[{i}]": Free(bounds=(x - far, x + far))
                 for i, x in enumerate(begun.tolist())}  # fmt: skip
    cameras: dict[str, Camera] = {**file.cameras, CAMERA: camera}
    bodies = {**file.bodies, THING: replace(file.bodies[THING], mesh=f"shape:{name}")}
    return replace(file, cameras=cameras, bodies=bodies, truth={**truth, **file.truth}, free=free)


def _rows(matrix: np.ndarray) -> tuple[tuple[float, float, float], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
