"""Shapes of obstacles: the contact of each, distances from it, how it moves and how it is drawn.

A new shape is a dataclass in `studies/scene/declared.py`, a contact in the engine, and a class here
with its line in `SHAPES`.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import ConvexHull

from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.sheets import sheet
from adjsim.meshes.surfaces import turned
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rotations import rotation_matrix
from render.scene import Mesh
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.part import linear
from studies.scene.contacts import Touching
from studies.scene.looks import drawn_mesh
from studies.scene.maps import Value
from studies.scene.mesh_source import Source, surface_of


LINES = 48  # around a ring of a wire
DRAWN_CELLS = 24  # along the edge of a plane: faces with a corner behind the camera are left out


class Shape(ABC):
    """The shape of a declared obstacle; `pose` is what its contact calls its pose and sizes."""

    contact: ClassVar[type[Any]]
    pose: dict[str, Any]

    def __init__(self, name: str, spec: Any) -> None:
        self.name, self.spec = name, spec

    @abstractmethod
    def distance(self, x: np.ndarray) -> np.ndarray:
        """Return how far points (n, 3) are outside of it, (n,) [m]; inside it is negative."""

    @property
    def width(self) -> float:
        """Its smallest extent [m]; a plane has none."""
        return np.inf

    @abstractmethod
    def surface(self) -> TriangleMesh:
        """Return the surface that is drawn."""

    def about(self, center: np.ndarray) -> declared.Obstacle:
        """Return the obstacle with its place counted from a point, (3,) [m]."""
        return replace(self.spec, center=_place(np.asarray(self.spec.center) - center))

    def drawn(self) -> tuple[Mesh, np.ndarray]:
        """Return how it is drawn, and its vertices, (n_vertices, 3) [m]."""
        surface = self.surface()
        look = drawn_mesh(f"obstacles.{self.name}.look", self.spec.look, surface, Source(surface))
        return look, surface.points

    @abstractmethod
    def wire(self, center: np.ndarray, far: float) -> np.ndarray:
        """Return lines that show it, as segments (n, 2, 3) [m].

        What is further than `far` from `center` [m] need not be in it.
        """

    def patches(self, center: np.ndarray, far: float) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the faces of the patches that a picture shows in turns, and the vertices.

        What is further than `far` from `center` [m] need not be in it.
        """
        surface = self.surface()
        return [surface.faces], surface.points

    @property
    def place(self) -> np.ndarray:
        """Its centre, or a point of a plane, (3,) [m]."""
        return np.asarray(self.pose["center"])

    @property
    def track(self) -> tuple[str, np.ndarray]:
        """What its contact calls its place, and the matrix from an offset to a change of it."""
        return "center", np.eye(3)

    def nodes(self, body: Touching) -> np.ndarray | None:
        """Return the points of a body that can touch it."""
        return body.nodes

    def values(self, reach: float) -> dict[str, Value]:
        """Return what of its pose may be free, for bodies of this size [m]."""
        return {}

    def nearest(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the point of the surface that is nearest to x, (3,) [m], and the normal there."""
        step = 1e-6 * max(1.0, float(np.abs(x).max()))
        beside = x + step * np.concatenate([np.eye(3), -np.eye(3)])
        ahead, behind = self.distance(beside).reshape(2, 3)
        outward = (ahead - behind) / np.linalg.norm(ahead - behind)
        return x - self.distance(x[None])[0] * outward, outward

    def tilts(
        self, foot: np.ndarray, outward: np.ndarray
    ) -> list[Callable[[float], declared.Obstacle]]:
        """Return what turns it by an angle [deg] about each axis across its normal at a point.

        The point of its surface is `foot`, (3,) [m], and `outward` the normal there.
        """
        return []


class _Plane(Shape):
    contact = HalfSpaceContact

    def __init__(self, name: str, spec: declared.PlaneObstacle) -> None:
        super().__init__(name, spec)
        normal = np.asarray(spec.normal) / np.linalg.norm(np.asarray(spec.normal))
        self.pose = {"normal": normal, "height": float(normal @ np.asarray(spec.point))}

    @property
    def place(self) -> np.ndarray:
        return np.asarray(self.spec.point)

    @property
    def track(self) -> tuple[str, np.ndarray]:
        return "height", self.pose["normal"]

    def distance(self, x: np.ndarray) -> np.ndarray:
        return x @ self.pose["normal"] - self.pose["height"]

    def surface(self) -> TriangleMesh:
        edge = self.spec.extent
        flat = sheet((DRAWN_CELLS,) * 2, (edge, edge), (-0.5 * edge, -0.5 * edge, 0.0))
        R = rotation_matrix(turn_to(self.pose["normal"]))
        points = flat.points[:, [1, 2, 0]] @ R.T + np.asarray(self.spec.point)  # z to y
        return TriangleMesh(points, flat.faces)

    def about(self, center: np.ndarray) -> declared.Obstacle:
        return replace(self.spec, point=_place(np.asarray(self.spec.point) - center))

    def wire(self, center: np.ndarray, far: float) -> np.ndarray:
        """Return every third line of a grid of squares near the bodies, in pieces."""
        grid = self._near(center, far).points.reshape(DRAWN_CELLS + 1, DRAWN_CELLS + 1, 3)
        lines = [lines[::3] for lines in (grid, grid.swapaxes(0, 1))]
        pieces = [np.stack([line[:, :-1], line[:, 1:]], axis=2) for line in lines]
        return np.concatenate(pieces).reshape(-1, 2, 3)

    def _near(self, center: np.ndarray, far: float) -> TriangleMesh:
        """Return the surface with its middle below a point, (3,), no larger than `far` [m]."""
        normal = self.pose["normal"]
        below = center - normal * (normal @ (center - np.asarray(self.spec.point)))
        near = replace(self.spec, point=_place(below), extent=min(self.spec.extent, far))
        return _Plane(self.name, near).surface()

    def patches(self, center: np.ndarray, far: float) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the squares of a floor near the bodies."""
        surface = self._near(center, far)
        points, faces = surface.points, surface.faces
        edges = points[[1, DRAWN_CELLS + 1]] - points[0]
        offsets = (points[faces].mean(axis=1) - points[0]) @ edges.T
        cells = np.floor(offsets / (edges**2).sum(axis=1) / 2.0).astype(int).sum(axis=1) % 2
        return [faces[cells == k] for k in range(2)], points

    def nodes(self, body: Touching) -> np.ndarray | None:
        """Return the vertices that can touch a plane: of a rigid body, those of its hull."""
        if not body.is_rigid:
            return body.nodes
        return np.sort(ConvexHull(body.points).vertices).astype(np.int64)

    def values(self, reach: float) -> dict[str, Value]:
        return {"height": linear(self.pose["height"], "m", reach)}

    def tilts(
        self, foot: np.ndarray, outward: np.ndarray
    ) -> list[Callable[[float], declared.Obstacle]]:
        def about(axis: np.ndarray, angle: float) -> declared.Obstacle:
            turn = rotation_matrix(np.radians(angle) * axis)
            normal = turn @ np.asarray(self.spec.normal)
            return replace(self.spec, normal=_place(normal), point=_place(foot))

        return [partial(about, axis) for axis in np.linalg.svd(outward[None])[2][1:]]


class _Rounded(Shape):
    """A box in a frame of its own, and all that is within a radius of it."""

    rotation: Any = (0.0, 0.0, 0.0)  # of the frame [rad]
    half: Any = (0.0, 0.0, 0.0)  # half edges of the box [m]
    radius: float = 0.0  # [m]

    def distance(self, x: np.ndarray) -> np.ndarray:
        R = rotation_matrix(np.asarray(self.rotation))
        beyond = np.abs((x - np.asarray(self.pose["center"])) @ R) - np.asarray(self.half)
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
        return outside + np.minimum(beyond.max(axis=1), 0.0) - self.radius

    @property
    def width(self) -> float:
        return 2.0 * (self.radius or float(np.min(self.half)))

    def wire(self, center: np.ndarray, far: float) -> np.ndarray:
        """Return outlines across the axes of its frame, through the middle or the ends of y."""
        half, turn = np.asarray(self.half), 2.0 * np.pi * np.arange(LINES + 1) / LINES
        if not self.radius:  # corners alone, two and two along each axis
            corners = half * np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
            pairs = itertools.combinations(corners, 2)
            edges = [pair for pair in pairs if np.sum(pair[0] != pair[1]) == 1]
            return self._placed(np.array(edges))
        c, s, zero = np.cos(turn), np.sin(turn), np.zeros_like(turn)
        beyond = half[1] * np.sign(s)
        rings = [self.radius * np.stack(ring, axis=1) for ring in ((c, s, zero), (zero, s, c))]
        rings = [ring + beyond[:, None] * (0.0, 1.0, 0.0) for ring in rings]
        flat = self.radius * np.stack([c, zero, s], axis=1)
        rings += [flat + end * half for end in (-1.0, 1.0)]
        return self._placed(np.concatenate([np.stack([r[:-1], r[1:]], axis=1) for r in rings]))

    def _placed(self, points: np.ndarray) -> np.ndarray:
        """Return points of the frame in the world."""
        R = rotation_matrix(np.asarray(self.rotation))
        return points @ R.T + np.asarray(self.pose["center"])

    def outwards(self, surface: TriangleMesh) -> TriangleMesh:
        """Return a surface of the frame in the world."""
        return TriangleMesh(self._placed(surface.points), surface.faces)


class _Sphere(_Rounded):
    contact = SphereContact

    def __init__(self, name: str, spec: declared.SphereObstacle) -> None:
        super().__init__(name, spec)
        self.radius = spec.radius
        self.pose = {"center": spec.center, "sphere_radius": spec.radius}

    def surface(self) -> TriangleMesh:
        return surface_of(self.name, Source(ball_tets(5, self.spec.radius, self.spec.center)))


class _Box(_Rounded):
    contact = BoxContact

    def __init__(self, name: str, spec: declared.BoxObstacle) -> None:
        super().__init__(name, spec)
        self.half, self.rotation = 0.5 * np.asarray(spec.size), np.radians(spec.rotation)
        self.pose = {
            "center": spec.center, "rotation": self.rotation, "half_extents": self.half
        }  # fmt: skip

    def surface(self) -> TriangleMesh:
        size = np.asarray(self.spec.size)
        tets = box_tets((4, 4, 4), size.tolist(), (-0.5 * size).tolist())
        return self.outwards(surface_of(self.name, Source(tets)))


class _Capsule(_Rounded):
    contact = CapsuleContact

    def __init__(self, name: str, spec: declared.CapsuleObstacle) -> None:
        super().__init__(name, spec)
        first, last = (np.asarray(end) for end in spec.ends)
        length = float(np.linalg.norm(last - first))
        if length == 0.0:
            raise StudyError(
                f"`obstacles.{name}.ends` must be two points, got {list(spec.ends[0])} twice. "
                "With one centre it is a sphere."
            )
        self.rotation, self.radius = turn_to((last - first) / length), spec.radius
        self.half = np.array([0.0, 0.5 * length, 0.0])
        self.pose = {
            "center": 0.5 * (first + last), "rotation": self.rotation,
            "half_length": 0.5 * length, "capsule_radius": spec.radius,
        }  # fmt: skip

    def surface(self) -> TriangleMesh:
        t = np.linspace(0.0, 0.5 * np.pi, 7)
        arc = self.radius * np.column_stack([np.cos(t), np.sin(t)])
        arc[-1, 0] = 0.0
        top = arc + np.array([0.0, self.half[1]])
        return self.outwards(turned(np.concatenate([(top * (1.0, -1.0))[::-1], top]), 24))

    def about(self, center: np.ndarray) -> declared.Obstacle:
        first, last = (_place(np.asarray(end) - center) for end in self.spec.ends)
        return replace(self.spec, ends=(first, last))


SHAPES: dict[type[Any], type[Any]] = {
    declared.PlaneObstacle: _Plane,
    declared.SphereObstacle: _Sphere,
    declared.BoxObstacle: _Box,
    declared.CapsuleObstacle: _Capsule,
}


def shape_of(name: str, obstacle: declared.Obstacle) -> Shape:
    """Return the shape of an obstacle."""
    return SHAPES[type(obstacle)](name, obstacle)


def _place(point: np.ndarray) -> declared.Vector:
    x, y, z = point.tolist()
    return x, y, z


def turn_to(direction: np.ndarray) -> np.ndarray:
    """Return the rotation vector [rad] that turns the y axis to a unit vector."""
    axis = np.cross([0.0, 1.0, 0.0], direction)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return np.array([0.0 if direction[1] > 0.0 else np.pi, 0.0, 0.0])
    return axis / sine * np.arctan2(sine, direction[1])
