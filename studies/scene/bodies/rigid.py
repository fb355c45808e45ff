"""Rigid bodies: a closed surface and a density, a mass, or equal masses at its vertices."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from render.scene import Mesh
from studies.runs.errors import StudyError
from studies.scene.bodies.part import motion_values, positive
from studies.scene.declared import Rigid
from studies.scene.looks import drawn_mesh
from studies.scene.maps import ParameterMap, Scaled, Value
from studies.scene.mesh_source import read_source, surface_of, tried
from studies.scene.motions import BodyMotion


DENSITY = 1000.0  # where nothing says how heavy a body is
KINDS = {"density": "kg/m3", "mass": "kg", "vertex_mass": "kg"}  # what says it, and in which unit
CENTRE = "centre"  # name of the point at the centre of mass


@dataclass(frozen=True, eq=False)
class RigidPart:
    """A rigid body."""

    name: str
    bodies: RigidBodies  # A set of one, its mesh in the world
    values: dict[str, Value]  # by path, with those of its motion
    maps: list[ParameterMap]
    mesh: Mesh  # what is drawn
    notes: tuple[str, ...]

    @property
    def center(self) -> np.ndarray:
        """Centre of mass in the declared pose, (3,) [m]."""
        return self.bodies.centers[0]

    @property
    def size(self) -> float:
        """Longest edge of the bounding box [m]."""
        return float(np.ptp(self.bodies.arms, axis=0).max())

    @property
    def state(self) -> BodyState:
        """A state at rest; the maps give its values."""
        return BodyState(self.center)


def make_rigid(name: str, body: Rigid, gravity: float) -> RigidPart:
    """Return a rigid body; `gravity` [m/s2] sets the default bounds of its speed."""
    key = f"bodies.{name}"
    given = [which for which in KINDS if getattr(body, which) is not None]
    if len(given) > 1:
        raise StudyError(f"`{key}` must have one of {', '.join(KINDS)}, got {' and '.join(given)}.")
    source = read_source(key, body)
    surface = surface_of(key, source)
    tried(f"{key}.mesh", surface.require_closed)
    which = given[0] if given else "density"
    number = getattr(body, which) if given else DENSITY
    note = (
        f"`{key}` has none of {', '.join(KINDS)}: a density of {DENSITY:g} kg/m3 is taken. It "
        "does not matter unless an obstacle's `stiffness` or `damping` is given."
    )
    factors: dict[str, Any] = {f"{name}.{which}": 1.0}
    weight: dict[str, Any] = {which: number}
    if which == "vertex_mass":
        center, inertia = surface.points.mean(axis=0), vertex_inertia(surface.points)
        n = len(surface.points)
        factors = {f"{name}.mass": float(n), f"{name}.inertia": inertia}
        weight = {"mass": n * number, "inertia": number * inertia, "center": center}
    points = {CENTRE: BodyPoint()}
    bodies = tried(f"{key}.mesh", lambda: RigidBodies(surface, points=points, **weight))
    path, size = f"{name}.{which}", float(np.ptp(surface.points, axis=0).max())
    value = positive(number, KINDS[which])
    values = {path: value, **motion_values(name, body, size, gravity)}
    start = BodyMotion(name, np.array(bodies.centers[0]), np.asarray(body.position))
    maps: list[ParameterMap] = [Scaled(path, factors), start]
    mesh = drawn_mesh(f"{key}.look", body.look, surface, source)
    return RigidPart(name, bodies, values, maps, mesh, () if given else (note,))


def vertex_inertia(points: np.ndarray) -> np.ndarray:
    """Return the inertia of 1 kg at each point about their centre: xx, yy, zz, xy, xz, yz."""
    x, y, z = (points - points.mean(axis=0)).T
    rows = [y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z]
    return np.array([row.sum() for row in rows])
