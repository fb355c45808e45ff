"""Rigid bodies: a closed surface and a density or a mass.

Tests: `tests/studies/scene/bodies/test_rigid.py`.
"""

from dataclasses import dataclass

import numpy as np

from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from render.scene import Mesh
from studies.errors import StudyError
from studies.scene.bodies.part import motion_values, positive
from studies.scene.declared import Rigid
from studies.scene.looks import drawn_mesh
from studies.scene.maps import ParameterMap, Scaled, Value
from studies.scene.mesh_source import read_source, surface_of, tried
from studies.scene.motions import BodyMotion


DENSITY = 1000.0  # where neither density nor mass is given


@dataclass(frozen=True, eq=False)
class RigidPart:
    """A rigid body.

    Attributes
    ----------
    name : str
    bodies : RigidBodies
        A set of one, its mesh in the world.
    values : dict
        By path, with those of its motion.
    maps : list of ParameterMap
    mesh : Mesh
        What is drawn.
    notes : tuple of str
    """

    name: str
    bodies: RigidBodies
    values: dict[str, Value]
    maps: list[ParameterMap]
    mesh: Mesh
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
    if body.held is not None:
        raise StudyError(
            f"`{key}.held` is for bodies made of nodes. What does not move at all is an obstacle."
        )
    if body.density is not None and body.mass is not None:
        raise StudyError(f"`{key}` must have `density` or `mass`, got both.")
    notes: list[str] = []
    source = read_source(key, body)
    surface = surface_of(key, source)
    tried(f"{key}.mesh", surface.require_closed)
    if body.mass is not None:
        which, value = "mass", positive(body.mass, "kg")
        bodies = tried(f"{key}.mesh", lambda: RigidBodies(surface, mass=body.mass))
    else:
        if body.density is None:
            notes.append(
                f"`{key}` has neither `density` nor `mass`: {DENSITY:g} kg/m3 is taken. It does "
                "not matter unless an obstacle's `stiffness` or `damping` is given."
            )
        density = DENSITY if body.density is None else body.density
        which, value = "density", positive(density, "kg/m3")
        bodies = tried(f"{key}.mesh", lambda: RigidBodies(surface, density=density))
    path, center = f"{name}.{which}", bodies.centers[0]
    size = float(np.ptp(surface.points, axis=0).max())
    values = {path: value, **motion_values(name, body, size, gravity)}
    maps: list[ParameterMap] = [
        Scaled(path, {path: 1.0}),
        BodyMotion(name, np.array(center), np.asarray(body.position)),
    ]
    mesh = drawn_mesh(f"{key}.look", body.look, surface, source)
    return RigidPart(name, bodies, values, maps, mesh, tuple(notes))
