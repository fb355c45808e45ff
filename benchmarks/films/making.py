"""Simulates a film, and writes all that a user would have: the film, the mesh and a scene file."""

import copy
import json
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyvista
import tomlkit
from PIL import Image
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from benchmarks.films import drawing, meshes, solver_rigid, solver_soft
from benchmarks.films.films import Film
from benchmarks.films.meshes import MESHES, skin
from benchmarks.films.solver_cloth import Sheet


STILL = (0.0, 0.0, 0.0)
Body = dict[str, Any]
Surface = tuple[np.ndarray, np.ndarray]  # vertices (n_frames, n, 3) [m], and faces


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


def simulate(film: Film) -> Surface:
    """Return the vertices of every frame and the faces of the body.

    Vertices are the points of the film's mesh, in its order; those of a pendulum are drawn ones.
    """
    body = film.scene["bodies"][film.body]
    return {"soft": soft, "cloth": soft, "rigid": rigid, "pendulum": pendulum}[body["kind"]](
        film, body
    )


def soft(film: Film, body: Body) -> Surface:
    """Return vertices and faces of a soft body or a sheet."""
    options = dict(film.solver)
    points, cells = MESHES[options.pop("mesh", body["mesh"])]()
    x, v = placed(points, body)
    keys = ("E", "nu", "density", "viscosity", "thickness", "bending")
    values = {key: body[key] for key in keys if key in body}
    values |= {"points": points * body.get("scale", 1.0), "held": held(x, body), **options}
    is_cloth = body["kind"] == "cloth"
    solid = (
        Sheet(triangles=cells, **values) if is_cloth else solver_soft.Solid(tets=cells, **values)
    )
    height, friction = floor(film)
    frames = solver_soft.simulate(
        solid, x, v, film.shot.times, gravity=gravity(film), floor=height, friction=friction
    )
    return frames, cells if is_cloth else skin(cells)


def rigid(film: Film, body: Body) -> Surface:
    """Return vertices and faces of a rigid body, in flight or on a floor."""
    points, faces = MESHES[body["mesh"]]()
    x, v = placed(points, body)
    volume, centre, inertia = solver_rigid.mass_properties(x, faces)
    start = {"centre": centre, "velocity": v[0], "spin": np.array(body.get("spin", STILL))}
    height, friction = floor(film)
    times = film.shot.times
    if height is None:
        way, turns = solver_rigid.throw(inertia, start, times, gravity(film))
        turned = [turn.apply(x - centre) for turn in turns]
        return centre + way[:, None] + np.array(turned), faces
    inertia /= volume
    return solver_rigid.slide(
        x, inertia, start, times, gravity=gravity(film), floor=height, friction=friction
    ), faces


def pendulum(film: Film, body: Body) -> Surface:
    """Return vertices and faces of the rods and bobs of a pendulum in the plane z = 0.

    The second link hangs in front of the first one, by 2.5 radii of a bob.
    """
    length = np.array(body["length"])
    n = len(length)
    angles = solver_rigid.pendulum(
        length,
        np.deg2rad(body["angle"]),
        film.shot.times,
        mass=np.array(body.get("mass", (1.0,) * n)),
        damping=np.array(body.get("damping", (0.0,) * n)),
    )
    parts, links = [], []
    for k in range(n):
        depth = 2.5 * body["bob_radius"] * k
        rod = pyvista.Cylinder(
            center=(0, -length[k] / 2, depth), direction=(0, 1, 0), radius=body["rod_radius"],
            height=length[k], resolution=12,
        )  # fmt: skip
        bob = pyvista.Sphere(radius=body["bob_radius"], center=(0, -length[k], depth))
        parts += [rod.triangulate(), bob]
        links += [k] * (parts[-2].n_points + parts[-1].n_points)
    merged = pyvista.merge(parts, merge_points=False).extract_surface(algorithm=None)
    faces = merged.regular_faces
    points, links = np.asarray(merged.points, float), np.array(links)
    frames = np.empty((len(angles), len(points), 3))
    for frame, angle in zip(frames, angles, strict=True):
        joint = np.array(body.get("pivot", STILL))
        for k in range(n):
            turn = Rotation.from_euler("z", angle[k])
            frame[links == k] = joint + turn.apply(points[links == k])
            joint = joint + turn.apply([0.0, -length[k], 0.0])
    return frames, faces


def floor(film: Film) -> tuple[float | None, float]:
    """Return the height and the friction of the scene's floor, (None, 0) if it has none."""
    plane = film.scene.get("obstacles", {}).get("floor")
    return (plane["point"][1], plane["friction"]) if plane else (None, 0.0)


def gravity(film: Film) -> np.ndarray:
    """Return the scene's gravity [m/s2]."""
    return np.array(film.scene.get("world", {}).get("gravity", (0.0, -9.81, 0.0)))


def placed(points: np.ndarray, body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities of a mesh's points in the world at the start."""
    turn = Rotation.from_rotvec(body.get("rotation", STILL), degrees=True)
    x = turn.apply(points * body.get("scale", 1.0)) + body.get("position", STILL)
    return x, np.broadcast_to(np.array(body.get("velocity", STILL)), x.shape).copy()


def held(x: np.ndarray, body: Body) -> np.ndarray:
    """Return the mask of held nodes: those in a box, behind a plane, in a ball, or by number."""
    mask = np.zeros(len(x), bool)
    where = body.get("held", {})
    if "box" in where:
        inside = (x >= where["box"]["lower"]) & (x <= where["box"]["upper"])
        mask |= inside.all(axis=1)
    if "plane" in where:
        mask |= (x - where["plane"]["point"]) @ np.array(where["plane"]["normal"]) <= 0
    if "ball" in where:
        mask |= np.linalg.norm(x - where["ball"]["center"], axis=1) <= where["ball"]["radius"]
    mask[list(where.get("nodes", ()))] = True
    return mask
