r"""Adjoint of the packing in `adjsim/rigid/bodies.py`: w = 1/m, I, J = I^-1 of mass properties.

    dJ = -J dI J,   dw = -w^2 dm
    given a density: m = rho V, I = rho U;   given a mass: I = m U/V      unless I is given

with U the inertia at density 1. Six numbers stand for a symmetric matrix; one off the diagonal
counts both entries.
"""

import numpy as np

from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.mass_properties import from_six, to_six


TWICE = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])


def pack_params_jvp(bodies: RigidBodies, tangents: dict[str, np.ndarray]) -> np.ndarray:
    """Push tangents of parameters to packed rows, (n_bodies, 13); a missing one is zero."""
    n = bodies.n_bodies
    packed = bodies.packed_params
    w, J = packed[:, 0], from_six(packed[:, 7:])
    name = "mass" if bodies.density is None else "density"
    tan = np.broadcast_to(tangents.get(name, 0.0), (n,))
    tan_mass = tan if bodies.density is None else tan * bodies.volumes
    tan_inertia = np.broadcast_to(tangents.get("inertia", 0.0), (n, 6))
    if bodies.inertia is None:
        tan_inertia = (tan_mass / bodies.volumes)[:, None] * bodies.unit_inertia
    tan_J = to_six(-J @ from_six(np.array(tan_inertia)) @ J)
    return np.concatenate([(-w * w * tan_mass)[:, None], tan_inertia, tan_J], axis=1)


def pack_params_vjp(bodies: RigidBodies, adj: np.ndarray) -> dict[str, np.ndarray]:
    """Pull cotangents of packed rows, (n_bodies, 13), back to the parameters."""
    packed = bodies.packed_params
    w, J = packed[:, 0], from_six(packed[:, 7:])
    adj_J = from_six(adj[:, 7:] / TWICE)
    adj_inertia = adj[:, 1:7] - to_six(J @ adj_J @ J) * TWICE
    adj_mass = -w * w * adj[:, 0]
    gradient = {}
    if bodies.inertia is not None:
        alike = bodies.inertia.ndim == 1
        gradient["inertia"] = adj_inertia.sum(axis=0) if alike else adj_inertia
    else:
        per_mass = bodies.unit_inertia / bodies.volumes[:, None]
        adj_mass = adj_mass + np.einsum("bi,bi->b", per_mass, adj_inertia)
    name, value = "mass", bodies.mass
    if bodies.density is not None:
        name, value, adj_mass = "density", bodies.density, adj_mass * bodies.volumes
    gradient[name] = adj_mass if value.ndim else np.asarray(adj_mass.sum())
    return gradient
