"""Runs the solver that a film's body needs: scene values in, vertices of every frame out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.films import solver_soft
from benchmarks.films.catalogue import MESHES
from benchmarks.films.drawing import Shape
from benchmarks.films.films import Film
from benchmarks.films.meshes import skin


STILL = (0.0, 0.0, 0.0)


def simulate(film: Film) -> list[Shape]:
    """Return what moves in the film."""
    body = film.scene["bodies"][film.body]
    vertices, faces = SOLVERS[body["kind"]](film, body)
    texture = film.shot.pattern(film.color) if film.texture else None
    return [Shape(vertices, faces, film.color, texture, film.sharp)]


def soft(film: Film, body: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and faces of a soft body."""
    options = dict(film.solver)
    points, tets = MESHES[options.pop("mesh", body["mesh"])]()
    x, v = placed(points, body)
    floor = film.scene.get("obstacles", {}).get("floor")
    solid = solver_soft.Solid(
        points=points,
        tets=tets,
        held=held(x, body),
        **{key: body[key] for key in ("E", "nu", "density", "viscosity") if key in body},
        **options,
    )
    frames = solver_soft.simulate(
        solid,
        x,
        v,
        film.shot.times,
        gravity=gravity(film),
        floor=None if floor is None else floor["point"][1],
        friction=0.0 if floor is None else floor["friction"],
    )
    return frames, skin(tets)


def gravity(film: Film) -> np.ndarray:
    """Return the scene's gravity [m/s2]."""
    return np.array(film.scene.get("world", {}).get("gravity", (0.0, -9.81, 0.0)))


def placed(points: np.ndarray, body: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities of a mesh's points in the world at the start."""
    turn = Rotation.from_rotvec(body.get("rotation", STILL), degrees=True)
    x = turn.apply(points) + body.get("position", STILL)
    return x, np.broadcast_to(np.array(body.get("velocity", STILL)), x.shape).copy()


def held(x: np.ndarray, body: dict[str, Any]) -> np.ndarray:
    """Return the mask of held nodes: those in a box or behind a plane, or by number."""
    mask = np.zeros(len(x), bool)
    where = body.get("held", {})
    if "box" in where:
        inside = (x >= where["box"]["lower"]) & (x <= where["box"]["upper"])
        mask |= inside.all(axis=1)
    if "plane" in where:
        mask |= (x - where["plane"]["point"]) @ np.array(where["plane"]["normal"]) <= 1e-9
    mask[list(where.get("nodes", ()))] = True
    return mask


SOLVERS: dict[str, Callable[[Film, dict[str, Any]], tuple[np.ndarray, np.ndarray]]] = {
    "soft": soft,
}
