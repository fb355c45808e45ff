"""Fourteen closed surfaces for rigid bodies, each with at most 250 points.

Six primitives, and eight that are not convex. All are our own; their axis, or what stands
up, is y, and `shape` puts the centre of mass of the solid at the origin.

Tests: `tests/meshes/test_shapes.py`.
"""

from collections.abc import Callable

import numpy as np

from adjsim import checks
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.grid import grid_tets
from adjsim.meshes.surfaces import blocks, prism, tube, turned
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh


def shape(name: str, radius: float = 1.0) -> TriangleMesh:
    """Return a closed surface by its name.

    Parameters
    ----------
    name : str
        One of `SHAPES`: cube, sphere, cylinder, cone, capsule, torus, star, gear, bowl,
        apple, banana, chair, dog, airplane.
    radius : float
        Distance of the farthest point from the centre of mass of the solid [m], positive.

    Returns
    -------
    TriangleMesh
        Closed, manifold, facing outwards, with at most 250 points; the centre of mass of
        the solid is the origin.

    Raises
    ------
    ValueError
        If there is no such shape (the message lists them), or the radius is not positive.

    Examples
    --------
    >>> from adjsim.meshes import shape
    >>> print(round(shape("cube").volume, 4), len(shape("dog").faces))
    1.5396 196
    """
    make = SHAPES[checks.known_key("shape", name, SHAPES)]
    radius = float(checks.positive("radius", checks.array("radius", radius, ())))
    mesh = make()
    points = mesh.points - mesh.centroid
    points *= radius / np.linalg.norm(points, axis=1).max()
    return TriangleMesh(points, mesh.faces)


def _cube() -> TriangleMesh:
    return blocks([(-1.0, 1.0)] * 3, np.ones((1, 1, 1)))


def _sphere() -> TriangleMesh:
    ball = ball_tets(4)
    surface = ball.surface()
    return TriangleMesh(ball.points[surface.nodes], surface.local_faces)


def _cylinder() -> TriangleMesh:
    heights = np.linspace(-1.0, 1.0, 5)
    side = [(0.6, y) for y in heights]
    return turned([(0.0, -1.0), (0.3, -1.0), *side, (0.3, 1.0), (0.0, 1.0)], 24)


def _cone() -> TriangleMesh:
    side = [(0.8 * (1.0 - t), 2.0 * t) for t in (0.0, 0.25, 0.5, 0.75)]
    return turned([(0.0, 0.0), (0.4, 0.0), *side, (0.0, 2.0)], 24)


def _capsule() -> TriangleMesh:
    t = np.linspace(0.0, 0.5 * np.pi, 5)
    top = np.column_stack([0.5 * np.cos(t), 0.5 + 0.5 * np.sin(t)])
    top[-1, 0] = 0.0
    return turned(np.concatenate([(top * (1.0, -1.0))[::-1], top]), 20)


def _torus() -> TriangleMesh:
    t = 2.0 * np.pi / 10 * np.arange(10)
    return turned(np.column_stack([1.0 + 0.4 * np.cos(t), 0.4 * np.sin(t)]), 24)


def _star() -> TriangleMesh:
    t = 2.0 * np.pi / 10 * np.arange(10) + 0.5 * np.pi
    r = np.where(np.arange(10) % 2 == 0, 1.0, 0.45)
    return prism(np.column_stack([r * np.cos(t), r * np.sin(t)]), 0.4)


def _gear() -> TriangleMesh:
    # With four sectors to a tooth the outline runs root, root, tip, tip.
    n, radius = 48, np.stack([np.full(48, 0.4), np.tile([0.8, 0.8, 1.0, 1.0], 12)])
    angle = 2.0 * np.pi / n * np.arange(n)
    points = np.empty((2, n, 2, 3))  # radius, angle, height
    points[..., :2] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)[:, :, None]
    points[..., 2] = [-0.2, 0.2]
    ring = np.take(np.arange(4 * n).reshape(2, n, 2), np.arange(n + 1), axis=1, mode="wrap")
    solid = TetMesh(points.reshape(-1, 3), grid_tets(ring, tets_per_cell=6))
    return TriangleMesh(solid.points, solid.surface().faces)


def _bowl() -> TriangleMesh:
    t = np.linspace(0.0, 0.45 * np.pi, 6)
    outer = np.column_stack([np.sin(t), -np.cos(t)])
    return turned(np.concatenate([outer, 0.85 * outer[::-1]]), 22)


def _apple() -> TriangleMesh:
    t = np.linspace(0.0, np.pi, 13)
    r = 1.0 - 0.45 * np.abs(np.cos(t)) ** 5
    profile = np.column_stack([r * np.sin(t) * (1.0 - 0.12 * np.cos(t)), -r * np.cos(t)])
    profile[[0, -1], 0] = 0.0
    return turned(profile, 18)


def _banana() -> TriangleMesh:
    t = np.linspace(-1.0, 1.0, 19)
    path = np.column_stack([np.sin(1.1 * t), -np.cos(1.1 * t)])
    radii = 0.22 * (1.0 - np.abs(t[1:-1]) ** 3) ** 0.6 + 0.03
    return tube(path, radii, 10)


def _chair() -> TriangleMesh:
    there = np.zeros((3, 3, 3), bool)  # legs, seat, back
    for x in (0, 2):
        for z in (0, 2):
            there[x, 0, z] = True
    there[:, 1, :] = True
    there[:, 2, 0] = True
    width = (-0.5, -0.38, 0.38, 0.5)
    return blocks([width, (0.0, 0.9, 1.0, 2.0), width], there)


def _dog() -> TriangleMesh:
    # x: from the tail to the nose, y: up, z: from side to side.
    along = (-1.25, -0.8, -0.55, 0.55, 0.8, 1.05, 1.35)
    up = (0.0, 0.6, 0.95, 1.1, 1.35, 1.55, 1.75)
    across = (-0.3, -0.15, 0.15, 0.3)
    there = np.zeros((6, 6, 3), bool)
    for x in (1, 3):
        for z in (0, 2):
            there[x, 0, z] = True  # legs
    there[1:4, 1:3, :] = True  # body
    there[0, 2, 1] = True  # tail
    there[3, 3, 1] = True  # neck
    there[3:5, 4, :] = True  # head
    there[5, 4, 1] = True  # nose
    for z in (0, 2):
        there[3, 5, z] = True  # ears
    return blocks([along, up, across], there)


def _airplane() -> TriangleMesh:
    # x: from the tail to the nose, y: up, z: along the wings.
    along = (-1.5, -1.0, -0.3, 0.4, 1.1, 1.6)
    up = (-0.16, -0.05, 0.05, 0.16, 0.6)
    across = (-1.6, -0.9, -0.5, -0.16, -0.04, 0.04, 0.16, 0.5, 0.9, 1.6)
    there = np.zeros((5, 4, 9), bool)
    there[:, :3, 3:6] = True  # fuselage
    there[2, 1, :] = True  # wings
    there[0, 1, 2:7] = True  # tailplane
    there[0, 3, 4] = True  # fin
    mesh = blocks([along, up, across], there)
    x, y, z = mesh.points.T
    swept = x - 0.4 * np.abs(z) - 0.6 * np.maximum(y - 0.16, 0.0)
    thin = np.where(x > 1.3, 0.45, 1.0)  # the nose
    side = np.where(np.abs(z) < 0.3, thin * z, z)
    return TriangleMesh(np.column_stack([swept, thin * y, side]), mesh.faces)


SHAPES: dict[str, Callable[[], TriangleMesh]] = {
    "cube": _cube,
    "sphere": _sphere,
    "cylinder": _cylinder,
    "cone": _cone,
    "capsule": _capsule,
    "torus": _torus,
    "star": _star,
    "gear": _gear,
    "bowl": _bowl,
    "apple": _apple,
    "banana": _banana,
    "chair": _chair,
    "dog": _dog,
    "airplane": _airplane,
}
