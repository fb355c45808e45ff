"""Declared cameras as cameras that draw.

    eye, target, up with fov_y       `Camera`, parameters eye, target, up, fov_y
    eye, target, up with K           `Camera` with `Intrinsics`
    R, t with K or fov_y             `PosedCamera`, whose rotation vector is 0 at R

K counts in pixels of the film as it was taken. A film is drawn smaller by giving `Intrinsics` the
size of the film: an image of another size and the same aspect shows the same. Distortion is no part
of a camera here: films and points are undistorted when they are read.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from adjsim.meshes.triangle_mesh import INSIDE, winding_number
from render.camera import AnyCamera, Camera
from render.lenses import Intrinsics
from render.posed_camera import PosedCamera
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.mesh_source import tried


NEAR, FAR = 0.01, 1000.0  # times the distance to what is looked at
MOST_NARROW = 20  # times as long as wide is a picture at most: figures show all of it


def make_camera(
    name: str, camera: declared.Camera, size: tuple[int, int], middle: Any = (0.0, 0.0, 0.0)
) -> AnyCamera:
    """Return the camera of a film of a height and width [pixels], before it is made smaller.

    The distance to `middle` of what is looked at, (3,) [m], sets the planes near and far.
    """
    key = f"cameras.{name}"
    if max(size) > MOST_NARROW * min(size):
        raise StudyError(
            f"`{key}` must take pictures at most {MOST_NARROW} times as long as wide, got "
            f"{size[0]} x {size[1]} pixels (height x width). Crop the film, or simulate another "
            "height and width."
        )
    lens: dict[str, Any] = {"fov_y": camera.fov_y}
    if camera.K is not None:
        matrix, (height, width) = camera.K, size
        c_u, c_v = matrix[0][2], matrix[1][2]
        if not (0.0 <= c_u < width - 1 and 0.0 <= c_v < height - 1):
            raise StudyError(
                f"`{key}.K` must be in pixels of the film, which has {width} x {height}, but its "
                f"principal point is at ({c_u:g}, {c_v:g}). If the film was made smaller after the "
                "calibration, scale the first two rows of K alike."
            )
        lens = {"lens": tried(f"{key}.K", lambda: Intrinsics.from_matrix(matrix, size))}
    if camera.eye is not None:
        made: AnyCamera = tried(key, lambda: Camera(camera.eye, camera.target, camera.up, **lens))
    else:
        extrinsics = np.column_stack([np.array(camera.R), np.array(camera.t)])
        made = tried(f"{key}.R", lambda: PosedCamera.from_extrinsics(extrinsics, **lens))
    distance = float(np.linalg.norm(made.pose()[0] - np.asarray(middle)))
    changes: dict[str, Any] = {"near": NEAR * distance, "far": FAR * distance}
    return dataclasses.replace(cast("Any", made), **changes)


def require_outside(name: str, camera: AnyCamera, drawn: Mapping[str, Any]) -> None:
    """Raise if a camera is inside a body; `drawn` are faces and vertices by name."""
    eye = camera.pose()[0]
    for body, (faces, vertices) in drawn.items():
        if abs(winding_number(eye, np.asarray(vertices), np.asarray(faces))) > INSIDE:
            low, high = vertices.min(axis=0), vertices.max(axis=0)
            raise StudyError(
                f"`cameras.{name}` must be outside of all bodies, but its eye, {_text(eye)} m, is "
                f"inside {body!r}, which reaches from {_text(low)} to {_text(high)} m. Check "
                f"`bodies.{body}.scale`, or move the camera."
            )


def _text(point: np.ndarray) -> str:
    return f"[{', '.join(f'{value:.4g}' for value in point)}]"
