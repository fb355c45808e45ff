r"""Contact with the half-space {p : n.p >= h} in plain NumPy.

    c = max(0, h + r - n.x),   u_n = n.v,   u_t = v - u_n n,   n = m/|m|
    p = k_e c + k_d max(0, -u_n)   where c > 0, else 0
    f = p n - min(mu p, k_f |u_t|) u_t/|u_t|

Branches look at real parts only, so every argument may carry a complex step.

Source: Jatavallabhula et al., gradSim, ICLR 2021, app. A.1 and C.2.
"""

import numpy as np


def forces(
    x,
    v,
    normal,
    height,
    *,
    stiffness,
    damping=0.0,
    friction_stiffness=0.0,
    friction=0.0,
    radius=0.0,
    nodes=None,
):
    """Nodal forces (n, 3) [N].

    `normal` (3,) of any length, `height` and `radius` [m], `stiffness` [N/m], `damping`
    and `friction_stiffness` [N s/m], `friction` [-]: scalars. `nodes`: the nodes that
    may touch, all by default.
    """
    x, v, normal = np.asarray(x), np.asarray(v), np.asarray(normal)
    n = normal / np.sqrt((normal * normal).sum())
    touching = np.arange(len(x)) if nodes is None else np.asarray(nodes)
    parameters = (height, stiffness, damping, friction_stiffness, friction, radius)
    out = np.zeros(x.shape, np.result_type(x, v, n, *parameters))
    for i in touching:
        c = height + radius - (n * x[i]).sum()
        if c.real <= 0:  # c = 0 counts as apart
            continue
        u_n = (n * v[i]).sum()
        u_t = v[i] - u_n * n
        p = stiffness * c + (damping * -u_n if u_n.real < 0 else 0)
        out[i] = p * n + friction_force(u_t, friction * p, friction_stiffness)
    return out


def friction_force(u_t, cone, friction_stiffness):
    """Stick, -k_f u_t, up to the radius of the cone [N]; beyond it, slip."""
    speed = np.sqrt((u_t * u_t).sum())
    if np.real(cone) <= 0 and (friction_stiffness * speed).real <= 0:
        return 0 * u_t  # no friction at all, and none to differentiate
    if (friction_stiffness * speed).real <= np.real(cone):
        return -friction_stiffness * u_t
    return -cone * u_t / speed
