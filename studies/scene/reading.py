"""Scene files: TOML in, checked dataclasses out, and back.

`kind` may be left out of a light (`coefficients` are of a sky), of an observation (a `video` is a
film, a `file` .csv holds points, .npz states, what is simulated with a `height` is a film, `at`
places points, a `grip` has a force) and of an obstacle (`ends`: capsule, `radius`: sphere, `size`:
box, else plane). File names are relative to the folder of the scene file; "adjsim:NAME" is in
studies/bundled/assets. A camera in a ring, as of a turntable, stands for many views and their
pictures, and takes for copies of the bodies (`studies/scene/takes.py`).
"""

import copy
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.runs.errors import StudyError, error_of
from studies.runs.files import files_of
from studies.scene.checking import check_scene
from studies.scene.declared import Camera, Film, SceneFile, resolved
from studies.scene.exif import with_fields_of_view
from studies.scene.files import read_toml
from studies.scene.overrides import JOINED, set_override
from studies.scene.tables import validated
from studies.scene.takes import spread_takes, without_repeats


PICTURES = (".png", ".jpg", ".jpeg")  # of a ring's films

# Kinds of observations by the names of their files.
OF_SUFFIX = {".csv": "points", ".npz": "states", ".ply": "cloud", ".pcd": "cloud"}


def read_scene(path: Path | str, overrides: Sequence[str] = ()) -> SceneFile:
    """Read a scene file, with overrides such as "bodies.duck.E=2e5" applied.

    Raises
    ------
    StudyError
        On all mistakes in the tables, by their keys; if there are none, on all disagreements.
    """
    path = Path(path)
    if not path.is_file():
        raise StudyError(f"There is no scene file {path}.")
    values = read_toml(path)
    for override in overrides:
        set_override(values, override)
    return scene_from_dict(values, path.parent, source=str(path))


def scene_from_dict(
    values: Mapping[str, Any], folder: Path | str = ".", *, source: str = "the scene"
) -> SceneFile:
    """Return the scene that the tables of a scene file declare; paths are relative to `folder`.

    Where several mistakes are found, the error says that they are in `source`.
    """
    values = copy.deepcopy(dict(values))
    values |= {key: join(values[key]) for key, join in JOINED.items() if key in values}
    takes = values.get("takes")
    values = spread_takes(values)
    truth = values.get("truth")
    for path, mesh in truth.items() if isinstance(truth, dict) else ():
        if path.endswith(".mesh"):
            try:
                values["truth"][path] = resolved(mesh, "mesh", Path(folder))
            except StudyError as error:
                raise StudyError(f"`{path}`{error}") from error
    _infer_kinds(values)
    values.setdefault("bodies", {})  # a misspelt key is named first
    try:
        scene = with_fields_of_view(_spread(validated(SceneFile, values, Path(folder), source)))
        check_scene(scene, source)
    except StudyError as error:
        if not (takes and error.mistakes):
            raise
        raise error_of(without_repeats(error.mistakes, takes), source) from error
    return scene


def to_toml(scene: SceneFile) -> str:
    """Return a scene as TOML without what is at its default; to read it gives an equal scene."""
    import tomlkit

    return tomlkit.dumps(plain(scene))


def plain(scene: SceneFile) -> dict[str, Any]:
    """Return a scene as nested tables of plain values, without what is at its default."""
    return json.loads(json.dumps(_changed(scene), default=lambda value: value.tolist()))


def _infer_kinds(values: dict[str, Any]) -> None:
    """Set the kinds of observations and obstacles that their other keys give away."""
    for table in _tables(values.get("observations")):
        suffix = Path(str(table.get("file", ""))).suffix.lower()
        kind = "film" if "video" in table else OF_SUFFIX.get(suffix)
        if isinstance(simulate := table.get("simulate"), dict):
            kind = "film" if "height" in simulate else "points" if "at" in table else "states"
            kind = "cloud" if "points" in simulate else kind
        kind = "force" if {"grip", "obstacle"} & table.keys() else kind
        kind = "own" if "type" in table else kind
        if kind:
            table.setdefault("kind", kind)
    for table in _tables(values.get("lights")):
        table.setdefault("kind", "sky" if "coefficients" in table else "sun")
    for table in _tables(values.get("obstacles")):
        keys = {"ends": "capsule", "radius": "sphere", "size": "box"}
        table.setdefault("kind", next((keys[key] for key in keys if key in table), "plane"))


def _tables(named: Any) -> list[dict[str, Any]]:
    tables = named.values() if isinstance(named, dict) else ()
    return [table for table in tables if isinstance(table, dict)]


def _changed(value: Any) -> Any:
    """Return a dataclass as tables without None and defaults; the kind is kept."""
    if isinstance(value, tuple | list):
        return [_changed(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _changed(item) for key, item in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    tables = {}
    for field in sorted(dataclasses.fields(value), key=lambda field: field.name != "kind"):
        item, default = getattr(value, field.name), field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name == "kind" or (item is not None and item != default):
            tables[field.name] = _changed(item)
    return tables


def _spread(file: SceneFile) -> SceneFile:
    """Return the scene with a camera and a film for every view of its rings: side1, side2, ..."""
    rings = {name: camera for name, camera in file.cameras.items() if camera.ring is not None}
    if not rings:
        return file
    cameras: dict[str, Camera] = {}
    observations: dict[str, Any] = {}
    for name, camera in file.cameras.items():
        cameras |= _views(name, camera)
    for name, observation in file.observations.items():
        camera = getattr(observation, "camera", None)
        if camera is None and len(file.cameras) == 1:
            camera = next(iter(file.cameras))
        if isinstance(observation, Film) and camera in rings:
            observations |= _films(name, observation, list(_views(camera, rings[camera])))
        else:
            observations[name] = observation
    return dataclasses.replace(file, cameras=cameras, observations=observations)


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
        tilted = arm
        if elevations:
            angle = np.radians(elevations[k % len(elevations)])
            ahead = level / np.linalg.norm(level)
            tilted = np.linalg.norm(arm) * (np.cos(angle) * ahead + np.sin(angle) * up)
        turn = 2.0 * np.pi * k / n
        along = (tilted @ up) * up
        about = np.cos(turn) * (tilted - along) + np.sin(turn) * np.cross(up, tilted)
        eye = camera.target + along + about
        out[f"{name}{k + 1}"] = dataclasses.replace(camera, eye=tuple(eye.tolist()), ring=None)
    return out


def _films(name: str, film: Film, cameras: list[str]) -> dict[str, Film]:
    """Return the pictures of a ring: simulated, or one after the other of a folder."""
    videos: list[str | None] = [None] * len(cameras)
    if film.video is not None:
        folder = Path(film.video)
        videos = [str(path) for path in files_of(folder) or () if path.suffix.lower() in PICTURES]
        if len(videos) != len(cameras):
            raise StudyError(
                f"`observations.{name}.video` must be a folder with {len(cameras)} pictures, one "
                f"for every view of its ring, got {len(videos)} in {folder}."
            )
    return {
        f"{name}{k + 1}": dataclasses.replace(film, video=video, camera=camera)
        for k, (video, camera) in enumerate(zip(videos, cameras, strict=True))
    }
