"""Cameras in a ring, as of a turntable: one table stands for many views and their pictures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.declared import Camera, Film, SceneFile


PICTURES = (".png", ".jpg", ".jpeg")


def spread(file: SceneFile) -> SceneFile:
    """Return the scene with a camera and a film for every view of its rings.

    Those of the ring "side" are called "side1", "side2", and so on.
    """
    rings = {name: one for name, one in file.cameras.items() if one.ring is not None}
    if not rings:
        return file
    cameras: dict[str, Camera] = {}
    observations: dict[str, Any] = {}
    for name, camera in file.cameras.items():
        cameras |= _views(name, camera)
    for name, one in file.observations.items():
        camera = getattr(one, "camera", None)
        if camera is None and len(file.cameras) == 1:
            camera = next(iter(file.cameras))
        if isinstance(one, Film) and camera in rings:
            observations |= _films(name, one, list(_views(camera, rings[camera])))
        else:
            observations[name] = one
    return replace(file, cameras=cameras, observations=observations)


def _views(name: str, camera: Camera) -> dict[str, Camera]:
    """Return the cameras of a ring by name; a camera that is none as it is."""
    if camera.ring is None:
        return {name: camera}
    if camera.eye is None or camera.target is None:
        raise StudyError(
            f"`cameras.{name}.ring` needs eye and target, which are of its first view."
        )
    up = np.array(camera.up) / np.linalg.norm(camera.up)
    arm = np.subtract(camera.eye, camera.target)
    level = arm - (arm @ up) * up
    if not np.linalg.norm(level) > 0.0:
        raise StudyError(f"`cameras.{name}.eye` must not be above or below the target of a ring.")
    out = {}
    n, elevations = camera.ring.views, camera.ring.elevations
    for k in range(n):
        own = arm
        if elevations:
            angle = np.radians(elevations[k % len(elevations)])
            ahead = level / np.linalg.norm(level)
            own = np.linalg.norm(arm) * (np.cos(angle) * ahead + np.sin(angle) * up)
        turn = 2.0 * np.pi * k / n
        along = (own @ up) * up
        about = np.cos(turn) * (own - along) + np.sin(turn) * np.cross(up, own)
        eye = camera.target + along + about
        out[f"{name}{k + 1}"] = replace(camera, eye=tuple(eye.tolist()), ring=None)
    return out


def _films(name: str, film: Film, cameras: list[str]) -> dict[str, Film]:
    """Return the pictures of a ring: simulated, or one after the other of a folder."""
    videos: list[str | None] = [None] * len(cameras)
    if film.video is not None:
        folder = Path(film.video)
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        videos = [str(path) for path in found if path.suffix.lower() in PICTURES]
        if len(videos) != len(cameras):
            raise StudyError(
                f"`observations.{name}.video` must be a folder with {len(cameras)} pictures, one "
                f"for every view of its ring, got {len(videos)} in {folder}."
            )
    return {
        f"{name}{k + 1}": replace(film, video=video, camera=camera)
        for k, (video, camera) in enumerate(zip(videos, cameras, strict=True))
    }
