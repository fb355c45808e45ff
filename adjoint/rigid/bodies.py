r"""Adjoint of the packing in `adjsim/rigid/bodies.py`: w = 1/m, I, J = I^-1 and kappa.

    dJ = -J dI J,   dw = -w^2 dm
    given a density: m = rho V, I = rho U;   given a mass: I = m U/V      unless I is given

with U the inertia at density 1. Six numbers stand for a symmetric matrix; one off the diagonal
counts both entries.

The vertices act in two ways: by V, U and the centre of mass c of a mesh that is weighed, and by
the arms X - c of all points, as do the positions of the named ones.
"""

import numpy as np

from adjoint.rigid.mass_properties import mass_properties_vjp
from adjoint.values import unbroadcast
from adjsim.rigid.bodies import RigidBodies, is_weighed
from adjsim.rigid.mass_properties import MassProperties, from_six, to_six
from adjsim.rigid.rows import INERTIA, INVERSE, W


TWICE = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])


def pack_params_vjp(
    bodies: RigidBodies, adj: np.ndarray, adj_arms: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Pull cotangents of packed rows, (n_bodies, 14), back to the parameters.

    With those of the arms, (n_points, 3), to the vertices and the positions of points too.
    """
    packed = bodies.packed_params
    w, J = packed[:, W], from_six(packed[:, INVERSE])
    adj_J = from_six(adj[:, INVERSE] / TWICE)
    adj_inertia = adj[:, INERTIA] - to_six(J @ adj_J @ J) * TWICE
    adj_mass = -w * w * adj[:, W]
    gradient, adj_volumes = {}, np.zeros(bodies.n_bodies)
    adj_unit = np.zeros((bodies.n_bodies, 6))
    if bodies.inertia is not None:
        alike = bodies.inertia.ndim == 1
        gradient["inertia"] = adj_inertia.sum(axis=0) if alike else adj_inertia
    else:
        # I = m U/V
        per_mass = bodies.unit_inertia / bodies.volumes[:, None]
        along = np.einsum("bi,bi->b", per_mass, adj_inertia)
        adj_mass = adj_mass + along
        rho = bodies.masses / bodies.volumes
        adj_unit, adj_volumes = rho[:, None] * adj_inertia, -rho * along
    name, value = "mass", bodies.mass
    if bodies.density is not None:
        # m = rho V
        name, value = "density", bodies.density
        adj_volumes = adj_volumes + value * adj_mass
        adj_mass = adj_mass * bodies.volumes
    gradient[name] = unbroadcast(adj_mass, value.shape)
    if bodies.drag_rate is not None:
        gradient["drag_rate"] = unbroadcast(adj[:, 13], bodies.drag_rate.shape)
    if adj_arms is not None:
        gradient |= arms_vjp(bodies, adj_arms, adj_volumes, adj_unit)
    return gradient


def arms_vjp(
    bodies: RigidBodies, adj_arms: np.ndarray, adj_volumes: np.ndarray, adj_unit: np.ndarray
) -> dict[str, np.ndarray]:
    """Pull cotangents of arms, volumes and inertias at density 1 back to vertices and points."""
    adj_vertices = adj_arms[bodies.hull]
    rows = [bodies.point_row(name) for name in bodies.placed]
    owner = np.repeat(np.arange(bodies.n_bodies), np.diff(bodies.point_ptr))
    first = 0
    for b, mesh in enumerate(bodies.meshes):
        body_vertices = slice(first, first + len(mesh.points))
        first = body_vertices.stop
        if not is_weighed(bodies, b):
            continue
        adj_center = np.zeros(3)
        if bodies.center is None:
            placed = adj_arms[[row for row in rows if owner[row] == b]]
            adj_center = -adj_vertices[body_vertices].sum(axis=0) - placed.sum(axis=0)
        adj = MassProperties(float(adj_volumes[b]), adj_center, adj_unit[b])
        adj_vertices[body_vertices] += mass_properties_vjp(mesh, adj)
    gradient = {"vertices": adj_vertices}
    return {**gradient, "point_positions": adj_arms[rows]} if rows else gradient
