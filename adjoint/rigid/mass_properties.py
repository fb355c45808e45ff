r"""Adjoint of `adjsim/rigid/mass_properties.py`, which has the tangent: read them side by side.

The mean of the points, o, cancels in a closed mesh: it is held. With G the cotangent of the second
moment C about the centre of mass as a symmetric matrix, of I = tr(C) 1 - C,

    G_ii = tr(adj_I) - adj_I_ii,    G_ij = -adj_I_ij/2

where I_ij is one number that stands for both entries off the diagonal.
"""

import numpy as np

from adjoint.values import add_at_nodes
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.mass_properties import ENTRIES, MassProperties, tetrahedra


def mass_properties_vjp(mesh: TriangleMesh, adj: MassProperties) -> np.ndarray:
    """Pull cotangents of volume, centre and inertia back to the points, (n_points, 3)."""
    x, opposite, volumes, s = tetrahedra(mesh)
    volume = volumes.sum()
    center = volumes @ s / (4.0 * volume)

    # I = tr(C) 1 - C
    G = np.zeros((3, 3))
    for k, (i, j) in enumerate(ENTRIES):
        G[i, j] = G[j, i] = -adj.inertia[k] if i == j else -0.5 * adj.inertia[k]
    G += adj.inertia[:3].sum() * np.eye(3)

    # C = second/20 - V c c^T
    adj_volume = adj.volume - center @ G @ center
    adj_center = adj.center - 2.0 * volume * (G @ center)
    G = G / 20.0

    # c = sum V_e s_e/(4 V)
    adj_moment = adj_center / (4.0 * volume)
    adj_volume -= adj_center @ center / volume

    # second = sum V_e (sum x_a x_a^T + s s^T),  V = sum V_e
    adj_volumes = adj_volume + s @ adj_moment
    adj_volumes += np.einsum("eai,ij,eaj->e", x, G, x) + np.einsum("ei,ij,ej->e", s, G, s)
    adj_s = volumes[:, None] * (adj_moment + 2.0 * (s @ G))

    # s = sum x_a,  V_e = x_0 . (x_1 x x_2)/6
    adj_x = adj_s[:, None] + 2.0 * volumes[:, None, None] * (x @ G)
    adj_x += adj_volumes[:, None, None] / 6.0 * opposite
    return add_at_nodes(adj_x, mesh.faces, len(mesh.points))
