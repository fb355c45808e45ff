"""Simulates a film, and writes all that a user would have: the film, the mesh and a scene file."""

import copy
import json
import time
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyvista
import tomlkit
from PIL import Image
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from benchmarks.films import drawing, meshes, solver_bounces, solver_rigid, solver_soft, touching
from benchmarks.films.films import Film
from benchmarks.films.meshes import MESHES, skin
from benchmarks.films.solver_cloth import Sheet


STILL = (0.0, 0.0, 0.0)
# What the user has measured with a ruler and a scale: sizes and masses to 1 %.
MEASURED = {"scale_error": 0.01, "mass_error": 0.01}
Body = dict[str, Any]
Surface = tuple[np.ndarray, np.ndarray]  # vertices (n_frames, n, 3) [m], and faces


def make(film: Film, folder: Path) -> float:
    """Write film.mp4, the meshes, scene.toml and truth.json, and return the seconds it took.

    Where the bodies have meshes, also their exact motion, positions.npz, or positions_NAME.npz of
    each of several, and positions.toml, the scene that is fitted to it: how near a fit can come
    where contact, bending or the mesh differ.
    """
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    eye, bodies = film.scene["cameras"]["front"], film.scene["bodies"]
    seed = zlib.crc32(film.name.encode())
    moments = exposures(film)
    surfaces = moments[0]
    common = {"texture": film.texture, "sharp": film.sharp}
    looks = [{"color": film.seen(name)[0], **common} for name in film.drawn]
    pictures = []
    for moment in moments:
        shown = [moment[name] if name in bodies else sphere(film, name) for name in film.drawn]
        pictures.append(drawing.draw(shown, looks, eye, film.shot, seed=seed))
    drawing.write(folder / "film.mp4", drawing.exposed(pictures), film.shot)
    if film.plate == "picture":
        plate = drawing.draw((), (), eye, film.shot, seed=seed + 1)[0]
        Image.fromarray(plate).save(folder / "plate.png")
    scene = scene_file(film, seed)
    (folder / "scene.toml").write_text(tomlkit.dumps(scene))
    states = {}
    for name, body in bodies.items():
        if "mesh" not in body:
            continue
        points, cells = MESHES[body["mesh"]]()
        meshes.save(folder / body["mesh"], points, cells)
        x = surfaces[name][0]
        if "mesh" in film.solver:
            x = x[:, KDTree(MESHES[film.solver["mesh"]]()[0]).query(points)[1]]
        key = "positions" if len(bodies) == 1 else f"positions_{name}"
        np.savez_compressed(folder / f"{key}.npz", times=film.shot.times, x=x)
        states[key] = {"kind": "states", "file": f"{key}.npz", "body": name}
    if states:
        text = tomlkit.dumps({**scene, "observations": states})
        (folder / "positions.toml").write_text(text)
    true_values = {}
    for path in film.free:
        owner, key = owner_of(film.scene, path)
        true_values[path] = owner[key]
    truth = {
        "name": film.name,
        "parameters": true_values,
        "start": {path: entry["start"] for path, entry in film.free.items()},
        "law": film.law,
        "note": film.note,
        "camera": eye,
        "solver": film.solver,
        "seconds": time.perf_counter() - began,
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth["seconds"]


def scene_file(film: Film, seed: int) -> dict[str, Any]:
    """Return the scene as a user believes it to be: the free values and the camera are off.

    It says how well sizes and masses are known.
    """
    scene = copy.deepcopy(film.scene)
    for path, entry in film.free.items():
        owner, key = owner_of(scene, path)
        owner[key] = entry["start"]
    owners = {**scene.get("obstacles", {}), **scene["bodies"]}
    for name in film.drawn:
        owners[name]["look"] = {"color": list(film.seen(name)[1]), "smooth": not film.sharp}
    for name, body in scene["bodies"].items():
        body.update(MEASURED)
        if f"{name}.length" in film.free:  # which has no uncertainty beforehand
            del body["scale_error"]
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
        "free": {path: {"bounds": entry["bounds"]} for path, entry in film.free.items()},
    }


def owner_of(scene: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return the table that holds the value of a path, and its key."""
    name, key = path.split(".")
    if name == "world":
        return scene["world"], key
    tables = ("bodies", "obstacles", "contacts", "joints")
    return next(scene[table][name] for table in tables if name in scene.get(table, {})), key


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


def exposures(film: Film) -> list[dict[str, Surface]]:
    """Return the vertices and faces of each body at the moments that a frame is exposed to."""
    shot = film.shot
    if not shot.shutter:
        return [simulate(film)]
    between = round(2.0 / shot.shutter)  # the shutter opens, is half through, and closes
    finer = replace(shot, fps=between * shot.fps, n_frames=between * (shot.n_frames - 1) + 3)
    surfaces = simulate(replace(film, shot=finer))
    return [
        {name: (x[k::between][: shot.n_frames], faces) for name, (x, faces) in surfaces.items()}
        for k in range(3)
    ]


def simulate(film: Film) -> dict[str, Surface]:
    """Return the vertices of every frame and the faces of each body.

    Vertices are the points of the film's mesh, in its order; those of a pendulum are drawn ones.
    """
    bodies = film.scene["bodies"]
    if "joints" in film.scene:
        return linkage(film) if len(bodies) > 1 else barred(film)
    if len(bodies) > 1:
        return soft_pair(film)
    ((name, body),) = bodies.items()
    kinds = {"soft": soft, "cloth": soft, "rigid": rigid, "pendulum": pendulum}
    return {name: kinds[body["kind"]](film, body)}


def soft(film: Film, body: Body) -> Surface:
    """Return vertices and faces of a soft body or a sheet."""
    of_solid = {key: value for key, value in film.solver.items() if key != "restitution"}
    solid, cells, x, v = solid_of(body, of_solid)
    frames = solver_soft.simulate(
        solid, x, v, film.shot.times, gravity=gravity(film), touch=obstacle(film, body)
    )
    return frames, cells if body["kind"] == "cloth" else skin(cells)


def soft_pair(film: Film) -> dict[str, Surface]:
    """Return vertices and faces of two soft bodies that touch."""
    bodies, (contact,) = film.scene["bodies"], film.scene["contacts"].values()
    first, second = (solid_of(bodies[name], film.solver) for name in contact["between"])
    both = solver_soft.Solids([first[0], second[0]])
    n = len(first[2])
    mobility = np.where(both.held, 0.0, 1 / both.masses())
    skins = skin(first[1]), skin(second[1])
    touch = touching.Surfaces((skins[0], n + skins[1]), mobility, contact["friction"])
    x, v = (np.concatenate([first[k], second[k]]) for k in (2, 3))
    frames = solver_soft.simulate(both, x, v, film.shot.times, gravity=gravity(film), touch=touch)
    parts = frames[:, :n], frames[:, n:]
    return dict(zip(contact["between"], zip(parts, skins, strict=True), strict=True))


def solid_of(body: Body, solver: dict[str, Any]) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return a soft body or a sheet for the solver, its cells, and its start in the world."""
    options = dict(solver)
    points, cells = MESHES[options.pop("mesh", body["mesh"])]()
    x, v = placed(points, body)
    keys = ("E", "nu", "density", "viscosity", "thickness", "bending")
    values = {key: body[key] for key in keys if key in body}
    values |= {"points": points * body.get("scale", 1.0), "held": held(x, body), **options}
    if body["kind"] == "cloth":
        return Sheet(triangles=cells, **values), cells, x, v
    return solver_soft.Solid(tets=cells, **values), cells, x, v


def obstacle(film: Film, body: Body) -> solver_soft.Touch | None:
    """Return what the film's floor or sphere does to velocities.

    The middle of a sheet stays half its thickness away from a sphere.
    """
    for shape in film.scene.get("obstacles", {}).values():
        if shape["kind"] == "plane":
            height, friction = floor(film)
            bounce = film.solver.get("restitution", 0.0)
            return partial(touching.hit_floor, height=height, friction=friction, restitution=bounce)
        radius = shape["radius"] + body.get("thickness", 0.0) / 2
        center = np.array(shape["center"])
        friction = shape["friction"]
        return partial(touching.hit_sphere, center=center, radius=radius, friction=friction)
    return None


def sphere(film: Film, name: str) -> Surface:
    """Return vertices and faces of a sphere that does not move."""
    shape = film.scene["obstacles"][name]
    mesh = pyvista.Sphere(
        radius=shape["radius"], center=shape["center"], theta_resolution=48, phi_resolution=48
    )
    x = np.asarray(mesh.points, float)
    return np.broadcast_to(x, (film.shot.n_frames, *x.shape)), mesh.regular_faces


def linkage(film: Film) -> dict[str, Surface]:
    """Return vertices and faces of two rigid bodies on hinges about z, at rest at the start."""
    bodies, hinges = film.scene["bodies"], film.scene["joints"].values()
    first, second = (np.array(hinge["anchor"]) for hinge in hinges)
    starts, masses, centres, moments = [], [], [], []
    for body in bodies.values():
        points, faces = MESHES[body["mesh"]]()
        x, _ = placed(points, body)
        volume, centre, inertia = solver_rigid.mass_properties(x, faces)
        starts.append((x, faces))
        masses.append(body["density"] * volume)
        centres.append(centre)
        moments.append(body["density"] * inertia[2, 2])
    arms = (centres[0] - first, second - first, centres[1] - second)
    angles = solver_rigid.links(
        tuple(arm[:2] for arm in arms), tuple(masses), tuple(moments), film.shot.times,
        viscous=tuple(hinge.get("viscous_friction", 0.0) for hinge in hinges),
        dry=tuple(hinge.get("dry_friction", 0.0) for hinge in hinges),
        gravity=-gravity(film)[1],
    )  # fmt: skip
    turns = Rotation.from_euler("z", angles[:, :1]), Rotation.from_euler("z", angles[:, 1:])
    elbows = first + turns[0].apply(second - first)
    (x, faces), (y, others) = starts
    upper = first + np.array([turn.apply(x - first) for turn in turns[0]])
    lower = elbows[:, None] + np.array([turn.apply(y - second) for turn in turns[1]])
    return dict(zip(bodies, ((upper, faces), (lower, others)), strict=True))


def rigid(film: Film, body: Body) -> Surface:
    """Return vertices and faces of a rigid body, in flight or on a floor."""
    points, faces = MESHES[body["mesh"]]()
    x, v = placed(points, body)
    volume, centre, inertia = solver_rigid.mass_properties(x, faces)
    start = {"centre": centre, "velocity": v[0], "spin": np.array(body.get("spin", STILL))}
    height, friction = floor(film)
    times = film.shot.times
    if height is None:
        drag = film.solver.get("drag", 0.0)
        way, turns = solver_rigid.throw(inertia, start, times, gravity(film), drag=drag)
        turned = [turn.apply(x - centre) for turn in turns]
        return centre + way[:, None] + np.array(turned), faces
    inertia /= volume
    touch = {"gravity": gravity(film), "floor": height, "friction": friction}
    touch["restitution"] = film.scene["obstacles"]["floor"].get("restitution", 0.0)
    if body.get("touches") == "ball":
        radius = float(np.linalg.norm(x - centre, axis=1).max())
        way = solver_bounces.ball(radius, start, times, **touch)
        return way[:, None] + (x - centre), faces
    return solver_rigid.slide(x, inertia, start, times, **touch), faces


def barred(film: Film) -> dict[str, Surface]:
    """Return vertices and faces of a bar on a hinge about z, from rest, before a wall of x = const.

    It meets the wall with the corner that comes first.
    """
    ((name, body),), (hinge,) = film.scene["bodies"].items(), film.scene["joints"].values()
    (wall,) = film.scene["obstacles"].values()
    points, faces = MESHES[body["mesh"]]()
    x, _ = placed(points, body)
    volume, centre, inertia = solver_rigid.mass_properties(x, faces)
    arms, mass = x - hinge["anchor"], body["density"] * volume
    arm = centre - hinge["anchor"]
    about = body["density"] * inertia[2, 2] + mass * arm[:2] @ arm[:2]
    reach, place = np.hypot(*arms[:, :2].T), wall["point"][0] - hinge["anchor"][0]
    way = np.linspace(0.0, -np.pi, 100_001)  # it falls clockwise
    corner = np.arctan2(arms[:, 1], arms[:, 0])[reach > np.abs(place)]
    least = (reach[reach > np.abs(place)] * np.cos(corner + way[:, None])).min(axis=1)
    angles = solver_bounces.bar(
        arm[:2], mass, about, film.shot.times, wall=float(way[np.argmax(least < place)]),
        restitution=wall["restitution"], viscous=hinge["viscous_friction"],
        gravity=-gravity(film)[1],
    )  # fmt: skip
    turns = Rotation.from_euler("z", angles[:, None])
    return {name: (hinge["anchor"] + np.array([turn.apply(arms) for turn in turns]), faces)}


def pendulum(film: Film, body: Body) -> Surface:
    """Return vertices and faces of the rods and bobs of a pendulum in the plane z = 0."""
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
        rod = pyvista.Cylinder(
            center=(0, -length[k] / 2, 0), direction=(0, 1, 0), radius=body["rod_radius"],
            height=length[k], resolution=12,
        )  # fmt: skip
        bob = pyvista.Sphere(radius=body["bob_radius"], center=(0, -length[k], 0))
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
