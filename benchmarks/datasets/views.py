"""PAC-NeRF and Spring-Gaus: a soft body that falls on a floor, filmed from all sides."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.datasets.writing import copied_mesh, read_json, required, write_scene
from studies.runs.errors import StudyError
from studies.scene.declared import FROM_VIEWS


NAME = re.compile(r"r_(\d+)_(-?\d+)\.png$")  # camera and frame of a picture of PAC-NeRF
BACKGROUND = -1  # its frame without the body
FLIPPED = np.diag([1.0, -1.0, -1.0])  # from axes right, up, back to right, down, ahead
MATERIAL = {"kind": "soft", "law": "log", "nu": 0.3, "density": 1000.0}
GUESSES = "E, nu and the start of the velocity are guesses; density and law are of the data set."
PLACE = "The mesh lies where --mesh has it: `position` moves it to where the first frames show it."
HULL = "The mesh is built from the first frames."


def pac_nerf(
    folder: Path, out: Path, mesh: Path | None, *, E: float, fps: float, floor: float
) -> Path:
    """Write the scene of an object of PAC-NeRF; return its path."""
    entries = read_json(required(folder, "all_data.json", "PAC-NeRF"))
    views: dict[int, dict[int, Mapping[str, Any]]] = {}
    for entry in entries:
        name = NAME.search(entry["file_path"])
        if name is None:
            raise StudyError(
                f"{folder / 'all_data.json'}: `file_path` must end in r_CAMERA_FRAME.png, got "
                f"{entry['file_path']!r}."
            )
        views.setdefault(int(name[1]), {})[int(name[2])] = entry
    out.mkdir(parents=True, exist_ok=True)
    cameras, observations = {}, {}
    for view, frames in sorted(views.items()):
        camera = f"camera{view}"
        pictures = [
            required(folder, frames[k]["file_path"], "PAC-NeRF") for k in sorted(frames) if k >= 0
        ]
        size = _copy(pictures, out / camera)
        cameras[camera] = camera_of(frames[0]["intrinsic"], frames[0]["c2w"], size)
        observations[camera] = film_of(camera, fps)
        if BACKGROUND in frames:
            plate = required(folder, frames[BACKGROUND]["file_path"], "PAC-NeRF")
            shutil.copyfile(plate, out / f"{camera}-background.png")
            observations[camera]["background"] = {"picture": f"{camera}-background.png"}
    return _write(out, cameras, observations, mesh, E=E, floor=floor)


def spring_gaus(
    folder: Path, out: Path, mesh: Path | None, *, E: float, fps: float, floor: float
) -> Path:
    """Write the scene of a synthetic object of Spring-Gaus; return its path."""
    entries = read_json(required(folder, "camera.json", "Spring-Gaus"))
    out.mkdir(parents=True, exist_ok=True)
    cameras, observations = {}, {}
    for entry in entries:
        camera = f"camera_{entry['camera']}"
        pictures = sorted(required(folder, entry["camera"], "Spring-Gaus").glob("*.png"))
        if not pictures:
            raise StudyError(
                f"{folder} is no folder of Spring-Gaus: {entry['camera']}/000.png is missing."
            )
        masks = out / f"{camera}-masks"
        masks.mkdir(exist_ok=True)
        for picture in pictures:
            with Image.open(picture) as pixels:
                pixels.convert("RGBA").getchannel("A").save(masks / picture.name)
        cameras[camera] = camera_of(entry["K"], entry["c2w"], _copy(pictures, out / camera))
        observations[camera] = {**film_of(camera, fps), "masks": masks.name}
    return _write(out, cameras, observations, mesh, E=E, floor=floor)


def camera_of(K: Any, c2w: Any, size: tuple[int, int]) -> dict[str, Any]:
    """Return a camera from its matrix and its pose in the world, axes right, up, back.

    Their pixels have corners at whole numbers, those of a scene file their middles.
    """
    K, pose = np.array(K, float), np.array(c2w, float)
    K[:2, 2] -= 0.5
    R = FLIPPED @ pose[:3, :3].T
    t = -R @ pose[:3, 3]
    return {"K": K.tolist(), "R": R.tolist(), "t": t.tolist(), "size": [*size], "fit": False}


def film_of(camera: str, fps: float) -> dict[str, Any]:
    """Return the observation of the folder of a camera's pictures."""
    return {"kind": "film", "video": camera, "camera": camera, "fps": fps, "compare": "silhouette"}


def _copy(pictures: list[Path], folder: Path) -> tuple[int, int]:
    """Write pictures as 000.png, 001.png, ... into a folder; return height and width."""
    folder.mkdir(exist_ok=True)
    size = (0, 0)
    for k, picture in enumerate(pictures):
        with Image.open(picture) as pixels:
            size = pixels.height, pixels.width
            pixels.convert("RGB").save(folder / f"{k:03d}.png")
    return size


def _write(
    out: Path, cameras: dict[str, Any], observations: dict[str, Any], mesh: Path | None,
    *, E: float, floor: float,
) -> Path:  # fmt: skip
    name = FROM_VIEWS if mesh is None else copied_mesh(mesh, out)
    scene: dict[str, Any] = {
        "bodies": {"body": {**MATERIAL, "mesh": name, "E": E}},
        "obstacles": {"floor": {"kind": "plane", "point": [0.0, floor, 0.0], "friction": 1.0}},
        "cameras": cameras,
        "observations": observations,
        "free": {
            "body.E": {"bounds": [1e3, 1e8]},
            "body.nu": {"bounds": [0.0, 0.49]},
            "body.velocity": {"bounds": [-5.0, 5.0]},
        },
    }
    if mesh is None:
        scene["free"]["body.shape"] = {}
        scene["search"] = {"max_evaluations": 1000}  # a Jacobian of all numbers takes 50
    return write_scene(out, scene, (GUESSES, HULL if mesh is None else PLACE))
