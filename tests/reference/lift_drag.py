r"""Lift and drag of triangles in plain NumPy.

    v_r = (v0 + v1 + v2)/3 - wind,  n = unit normal,  A = area,  s = sqrt(v_r.v_r + eps^2)
    f_drag = -k_drag A |n.v_r| v_r,   f_lift = -k_lift A s (n.v_r) n,   eps = 1e-6 m/s

The absolute value looks at real parts only, so every argument may carry a complex step.
"""

import numpy as np

from tests.reference.neo_hookean import add_at_nodes


EPSILON = 1e-6


def forces(x, v, triangles, lift, drag, wind):
    """Nodal forces (n, 3) [N]; lift, drag scalars or (nt,) [kg/m3], wind (3,) or (nt, 3)."""
    corners = np.asarray(x)[triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.sqrt((normal * normal).sum(axis=1))
    n, area = normal / length[:, None], length / 2
    v_r = np.asarray(v)[triangles].sum(axis=1) / 3 - wind
    u = (n * v_r).sum(axis=1)
    s = np.sqrt((v_r * v_r).sum(axis=1) + EPSILON**2)
    pulled = (-drag * area * np.sign(u.real) * u)[:, None] * v_r
    lifted = (-lift * area * s * u)[:, None] * n
    third = np.repeat(((pulled + lifted) / 3)[:, None, :], 3, axis=1)
    return add_at_nodes(len(x), triangles, third)
