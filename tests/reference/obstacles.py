r"""Contact with spheres, boxes and capsules in plain NumPy.

The signed distance s of a point and the normal n = grad s come from the nearest point of the
surface, straight from its definition; then c = r - s, u = v - V - Omega x (x - center), and
the law of the half-space. A rotation vector's matrix is SciPy's exponential.

Branches look at real parts only, so every argument may carry a complex step.

Source: Jatavallabhula et al., gradSim, ICLR 2021, app. A.1 and C.2.
"""

from functools import cache

import numpy as np
from scipy.linalg import expm

from tests.reference.half_space import contact_force


def length(a):
    """Length of a vector, complex or not."""
    return np.sqrt((a * a).sum())


def matrix(theta):
    """exp([theta]x)."""
    return _matrix(*np.asarray(theta))


@cache
def _matrix(a, b, c):
    return expm(np.array([[0 * a, -c, b], [c, 0 * a, -a], [-b, a, 0 * a]]))


def sphere(x, *, center, sphere_radius):
    """Distance and normal."""
    d = x - np.asarray(center)
    if length(d.real) == 0:
        return np.inf, 0 * d  # no direction to push in
    return length(d) - sphere_radius, d / length(d)


def capsule(x, *, center, rotation, half_length, capsule_radius):
    """Distance and normal, from the nearest point of the segment between its two ends."""
    center, axis = np.asarray(center), matrix(rotation) @ np.array([0.0, 1.0, 0.0])
    start, end = center - half_length * axis, center + half_length * axis
    along = ((x - start) * (end - start)).sum() / ((end - start) ** 2).sum()
    if along.real < 0:
        nearest = start
    elif along.real > 1:
        nearest = end
    else:
        nearest = start + along * (end - start)
    d = x - nearest
    if length(d.real) == 0:
        return np.inf, 0 * d
    return length(d) - capsule_radius, d / length(d)


def box(x, *, center, rotation, half_extents):
    """Distance and normal: outside from the nearest point, inside from the nearest face."""
    R, b = matrix(rotation), np.asarray(half_extents)
    y = R.T @ (x - np.asarray(center))
    if (np.abs(y.real) <= b.real).all():
        faces = [(sign * y[i] - b[i], sign * R[:, i]) for i in range(3) for sign in (1.0, -1.0)]
        return max(faces, key=lambda face: face[0].real)  # the first of equals
    nearest = np.array([
        -b[i] if y[i].real < -b[i].real else b[i] if y[i].real > b[i].real else y[i]
        for i in range(3)
    ])  # fmt: skip
    e = y - nearest
    return length(e), R @ (e / length(e))


def forces(
    distance,
    x,
    v,
    *,
    center,
    velocity=(0.0, 0.0, 0.0),
    angular_velocity=(0.0, 0.0, 0.0),
    radius=0.0,
    nodes=None,
    law,
    **shape,
):
    """Nodal forces (n, 3) [N] of a shape, given by its `distance`; `law`: scalars by name."""
    x, v = np.asarray(x), np.asarray(v)
    touching = np.arange(len(x)) if nodes is None else np.asarray(nodes)
    given = (x, v, center, velocity, angular_velocity, radius, *law.values(), *shape.values())
    out = np.zeros(x.shape, np.result_type(*[np.asarray(value) for value in given]))
    for i in touching:
        s, n = distance(x[i], center=center, **shape)
        at = x[i] - np.asarray(center)
        u = v[i] - np.asarray(velocity) - np.cross(angular_velocity, at)
        if np.isfinite(s.real):
            out[i] = contact_force(n, radius - s, u, **law)
    return out
