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
from benchmarks.films.films import Film
from benchmarks.films.meshes import MESHES
from benchmarks.films.simulation import simulate


def make(film: Film, folder: Path) -> float:
    """Write film.mp4, the mesh, scene.toml and truth.json, and return the seconds it took.

    Where the body has a mesh, also positions.npz, its exact motion, and positions.toml, the scene
    that is fitted to it: how near a fit can come where contact, bending or the mesh differ.
    """
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    body, eye = film.scene["bodies"][film.body], film.scene["cameras"]["front"]
    seed = zlib.crc32(film.name.encode())
    x, faces = simulate(film)
    look = {"color": film.color, "texture": film.texture, "sharp": film.sharp}
    frames = drawing.draw((x, faces), look, eye, film.shot, seed=seed)
    drawing.write(folder / "film.mp4", frames, film.shot)
    if film.plate == "picture":
        plate = drawing.draw(None, {}, eye, film.shot, seed=seed + 1)[0]
        Image.fromarray(plate).save(folder / "plate.png")
    scene = scene_file(film, seed)
    (folder / "scene.toml").write_text(tomlkit.dumps(scene))
    if "mesh" in body:
        points, cells = MESHES[body["mesh"]]()
        meshes.save(folder / body["mesh"], points, cells)
        if "mesh" in film.solver:
            x = x[:, KDTree(MESHES[film.solver["mesh"]]()[0]).query(points)[1]]
        np.savez_compressed(folder / "positions.npz", times=film.shot.times, x=x)
        states = {"kind": "states", "file": "positions.npz", "body": film.body}
        text = tomlkit.dumps({**scene, "observations": {"positions": states}})
        (folder / "positions.toml").write_text(text)
    true_values = {}
    for path in film.free:
        owner, key = owner_of(film.scene, path)
        true_values[path] = owner[key]
    truth = {
        "name": film.name,
        "parameters": true_values,
        "start": {path: one["start"] for path, one in film.free.items()},
        "law": film.law,
        "note": film.note,
        "camera": eye,
        "solver": film.solver,
        "seconds": time.perf_counter() - began,
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth["seconds"]


def scene_file(film: Film, seed: int) -> dict[str, Any]:
    """Return the scene as a user believes it to be: the free values and the camera are off."""
    scene = copy.deepcopy(film.scene)
    for path, one in film.free.items():
        owner, key = owner_of(scene, path)
        owner[key] = one["start"]
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
        "free": {path: {"bounds": one["bounds"]} for path, one in film.free.items()},
    }


def owner_of(scene: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return the table that holds the value of a path, and its key."""
    name, key = path.split(".")
    if name == "world":
        return scene["world"], key
    return {**scene.get("obstacles", {}), **scene["bodies"]}[name], key


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
