"""Makes a film with all that a user would have: the film, the mesh and a scene file."""

import copy
import json
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from PIL import Image
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from benchmarks.films import drawing, meshes
from benchmarks.films.catalogue import MESHES
from benchmarks.films.film import Film
from benchmarks.films.simulation import simulate


def make(film: Film, folder: Path) -> float:
    """Write film.mp4, the mesh, scene.toml and truth.json, and return the seconds it took."""
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    body = film.scene["bodies"][film.body]
    if "mesh" in body:
        meshes.save(folder / body["mesh"], *MESHES[body["mesh"]]())
    eye = film.scene["cameras"]["front"]
    seed = zlib.crc32(film.name.encode())
    x, faces = simulate(film)
    texture = drawing.pattern(film.color) if film.texture else None
    shapes = [drawing.Shape(x, faces, film.color, texture, film.sharp)]
    drawing.write(folder / "film.mp4", drawing.draw(shapes, eye, film.shot, seed), film.shot)
    if film.plate == "picture":
        Image.fromarray(drawing.draw([], eye, film.shot, seed + 1)[0]).save(folder / "plate.png")
    scene = scene_file(film, seed)
    (folder / "scene.toml").write_text(tomlkit.dumps(scene))
    if "mesh" in body:
        write_positions(film, scene, x, folder)
    truth = {
        "name": film.name,
        "parameters": {path: value_at(film.scene, path) for path in film.free},
        "start": {path: start for path, (start, _) in film.free.items()},
        "law": film.law,
        "note": film.note,
        "camera": eye,
        "solver": film.solver,
        "seconds": time.perf_counter() - began,
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth["seconds"]


def write_positions(film: Film, scene: dict[str, Any], x: np.ndarray, folder: Path) -> None:
    """Write the exact positions, and positions.toml: the same scene that is fitted to them.

    It shows how near a fit can come where contact, bending or the mesh differ.
    """
    body = film.scene["bodies"][film.body]
    if "mesh" in film.solver:
        fine, points = MESHES[film.solver["mesh"]]()[0], MESHES[body["mesh"]]()[0]
        x = x[:, KDTree(fine).query(points)[1]]
    np.savez_compressed(folder / "positions.npz", times=film.shot.times, x=x)
    states = {"kind": "states", "file": "positions.npz", "body": film.body}
    text = tomlkit.dumps({**scene, "observations": {"positions": states}})
    (folder / "positions.toml").write_text(text)


def scene_file(film: Film, seed: int) -> dict[str, Any]:
    """Return the scene as a user believes it to be: the free values and the camera are off."""
    scene = copy.deepcopy(film.scene)
    for path, (start, _) in film.free.items():
        owner, key = owner_of(scene, path)
        owner[key] = start
    scene["bodies"][film.body]["look"] = {"color": list(film.guess), "smooth": not film.sharp}
    rng = np.random.default_rng(seed)
    scene["cameras"]["front"] = misjudged(scene["cameras"]["front"], rng)
    background = {
        "none": {},
        "color": {"background": {"color": list(film.shot.background)}},
        "picture": {"background": {"picture": "plate.png"}},
    }
    return {
        "title": film.name,
        **scene,
        "lights": {"sun": {"direction": [1.0, 1.5, 1.0]}},
        "observations": {"film": {"kind": "film", "video": "film.mp4", **background[film.plate]}},
        "free": {path: {"bounds": list(bounds)} for path, (_, bounds) in film.free.items()},
    }


def owner_of(scene: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return the table that holds the value of a path, and its key."""
    name, key = path.split(".")
    if name == "world":
        return scene["world"], key
    return {**scene.get("obstacles", {}), **scene["bodies"]}[name], key


def value_at(scene: dict[str, Any], path: str) -> Any:
    """Return the true value of a path."""
    owner, key = owner_of(scene, path)
    return owner[key]


def misjudged(camera: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the camera with errors up to 1 % of the distance, 1 degree, and 1 % of the field."""
    eye, target = np.array(camera["eye"]), np.array(camera["target"])
    view = target - eye
    shift = rng.normal(size=3)
    shift *= rng.uniform(0.5, 1.0) * 0.01 * np.linalg.norm(view) / np.linalg.norm(shift)
    axis = np.cross(view, rng.normal(size=3))
    turn = Rotation.from_rotvec(rng.uniform(0.5, 1.0) * axis / np.linalg.norm(axis), degrees=True)
    field = camera["fov_y"] * (1 + rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0) * 0.01)
    return {
        **camera,
        "eye": np.round(eye + shift, 5).tolist(),
        "target": np.round(eye + shift + turn.apply(view), 5).tolist(),
        "fov_y": round(float(field), 3),
    }
