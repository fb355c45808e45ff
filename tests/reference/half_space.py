r"""Contact with the half-space {p : n.p >= h} in plain NumPy.

    c = max(0, h + r - n.x),   u = v - V,   u_n = n.u,   u_t = u - u_n n,   n = m/|m|
    p = k_e c max(0, 1 - d u_n) + k_d max(0, -u_n) + k c^3 (1 - w/sqrt(1 + w^2))
        where c > 0, w = gamma u_n/c^2
    f = p n - min(mu p, k_f |u_t|) u_t/|u_t|

Branches look at real parts only, so every argument may carry a complex step.

Source: Jatavallabhula et al., gradSim, ICLR 2021, app. A.1 and C.2; for d
Hunt and Crossley, J. Applied Mechanics 1975.
"""

import numpy as np


def forces(x, v, normal, height, *, velocity=(0.0, 0.0, 0.0), radius=0.0, nodes=None, **law):
    """Nodal forces (n, 3) [N].

    `normal` (3,) of any length, `height` and `radius` [m], `velocity` (3,) [m/s]; `law`: the
    scalars of `contact_force`. `nodes`: the nodes that may touch, all by default.
    """
    x, v, normal = np.asarray(x), np.asarray(v), np.asarray(normal)
    n = normal / np.sqrt((normal * normal).sum())
    touching = np.arange(len(x)) if nodes is None else np.asarray(nodes)
    given = (x, v, n, height, radius, velocity, *law.values())
    out = np.zeros(x.shape, np.result_type(*[np.asarray(value) for value in given]))
    for i in touching:
        c = height + radius - (n * x[i]).sum()
        out[i] = contact_force(n, c, v[i] - np.asarray(velocity), **law)
    return out


def contact_force(
    n, c, u, *, stiffness=0.0, damping=0.0, dissipation=0.0, cubic_stiffness=0.0,
    cubic_dissipation=0.0, friction_stiffness=0.0, friction=0.0,
):  # fmt: skip
    """Force (3,) [N] at depth c [m] on a node with relative velocity u [m/s].

    `stiffness` [N/m], `damping` and `friction_stiffness` [N s/m], `dissipation` [s/m],
    `cubic_stiffness` [N/m^3], `cubic_dissipation` [m s], `friction` [-]: scalars.
    """
    if c.real <= 0:  # c = 0 counts as apart
        return 0 * n
    u_n = (n * u).sum()
    u_t = u - u_n * n
    opened = 1 - dissipation * u_n
    p = stiffness * c * (opened if np.real(opened) > 0 else 0)
    p = p + (damping * -u_n if u_n.real < 0 else 0)
    w = cubic_dissipation * u_n / (c * c)
    p = p + cubic_stiffness * c**3 * (1.0 - w / np.sqrt(1.0 + w * w))
    return p * n + friction_force(u_t, friction * p, friction_stiffness)


def friction_force(u_t, cone, friction_stiffness):
    """Stick, -k_f u_t, up to the radius of the cone [N]; beyond it, slip."""
    speed = np.sqrt((u_t * u_t).sum())
    if np.real(cone) <= 0 and (friction_stiffness * speed).real <= 0:
        return 0 * u_t  # no friction at all, and none to differentiate
    if (friction_stiffness * speed).real <= np.real(cone):
        return -friction_stiffness * u_t
    return -cone * u_t / speed
