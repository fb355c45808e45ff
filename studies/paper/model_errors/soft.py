r"""The same body soft: tetrahedra inside the surface that a rigid body has, thrown alike.

    x_i = x + R c_i,   v_i = v + R (omega x c_i),   m_i = m s_i

s_i is the part of the volume that belongs to node i. The known force acts on the nodes in these
parts, so that it is the same force as on the rigid body; the floor pushes back on the nodes of
the surface, which are the vertices of the rigid body. The moment of inertia is that of lumped
masses: a little other than that of the volume.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from studies.motion import Motion
from studies.rigid import BODY, FLOOR, PATHS, PUSH


SOLID, MASS = "solid", "mass"
MATERIAL = ("mu", "lam", "viscosity")
SHAPES: dict[str, Callable[[], TetMesh]] = {
    "ball": lambda: ball_tets(2),
    "cube": lambda: box_tets((3, 3, 3)),
    "bar": lambda: box_tets((5, 2, 2), (2.5, 1.0, 1.0)),
    "slab": lambda: box_tets((4, 4, 2), (2.0, 2.0, 0.8)),
}


def soft_shape(name: str, radius: float) -> TetMesh:
    """Return a shape of `SHAPES` about its centre, its farthest point `radius` [m] away."""
    mesh = SHAPES[name]()
    points = mesh.points - skin(mesh).centroid
    return TetMesh(radius / np.linalg.norm(points, axis=1).max() * points, mesh.tets)


def skin(mesh: TetMesh) -> TriangleMesh:
    """Return the surface of the tetrahedra."""
    surface = mesh.surface()
    return TriangleMesh(mesh.points[surface.nodes], surface.local_faces)


def soften(rigid: Motion, mesh: TetMesh, material: Mapping[str, Any]) -> Motion:
    """Return the motion of a rigid body whose surface is that of `mesh`, soft.

    `material` has mu, lam and viscosity; all else is that of the rigid body.
    """
    model = rigid.system
    assert isinstance(model, Model)
    bodies, start = model.bodies[BODY], rigid.state.bodies[BODY]
    floor, push = model.forces[FLOOR], model.forces[PUSH]
    assert isinstance(bodies, RigidBodies)
    assert isinstance(floor, HalfSpaceContact)
    assert isinstance(push, ExternalForces)
    turn = Rotation.from_quat(start.rotation[0].copy()).as_matrix()
    arms = mesh.points - bodies.centers[0]
    spin = np.cross(start.angular_velocity[0], arms)
    solid = NeoHookeanTets(mesh.tets, mesh.points, **material)
    shares = node_shares(mesh)
    forces = {
        SOLID: solid,
        PUSH: ExternalForces(
            np.arange(mesh.n_points), np.multiply.outer(shares, push.force), push.window
        ),
        FLOOR: HalfSpaceContact(
            **{key: getattr(floor, key) for key in PATHS if key != "mass"},
            contact_nodes=mesh.surface().nodes,
        ),
    }
    soft = Model(float(bodies.mass) * shares, forces, gravity=model.gravity)
    state = State(start.position[0] + arms @ turn.T, start.velocity[0] + spin @ turn.T)
    return replace(rigid, system=soft, state=state)


def node_shares(mesh: TetMesh) -> np.ndarray:
    """Return the part of the volume that belongs to each node, (n_nodes,)."""
    lumped = NeoHookeanTets(mesh.tets, mesh.points, mu=1.0, lam=1.0).lumped_mass(1.0)
    return lumped / lumped.sum()
