"""The largest stable step of semi-implicit Euler, from bounds of stiffness and damping at rest.

M x'' = -K x - C x' is stable while dt^2 K + 2 dt C < 4 M, so a rate C + sqrt(C^2 + 4 K), of C and
K over M, allows dt = 4/rate. The sums of its elements' bounds are diagonal bounds at a node.

Points of a rigid body with stiffness k, damping c and arms a act on its velocity and spin by K =
sum of k J^T J, J = [1, -[a]x], and C alike; their largest eigenvalues over the inertia count.
Contacts, also of surfaces with each other, do not act at all points at once, but at those on one
side of the body's convex hull, to within `SINK` of its size, or at any single point. Of several the
two stiffest count as touched at the same time; so do shapes that a body carries, all of whose
contacts act at the worst place. A contact that stops what arrives at an expected speed damps by at
most a multiple of sqrt(K M) (`arrival_loss`), however many points share in that. A force on the
pose of a body gives such matrices itself.

Tests: `tests/test_stable_step.py`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from adjsim.forces.element import CarriedBound, Force
from adjsim.rigid.bodies import FRAME, RigidBodies
from adjsim.rigid.mass_properties import from_six
from adjsim.rotations import cross_matrix


SINK = 0.03  # how deep a body may be pressed into what it touches, of its size
CHUNK = 1 << 22  # numbers of masks at a time


def step_of(rate: float) -> float:
    """Return the step that a rate allows [s]; inf where nothing acts."""
    return 4.0 / rate if rate > 0.0 else float("inf")


def rate_of(stiffness: np.ndarray, damping: np.ndarray) -> float:
    """Return the largest C + sqrt(C^2 + 4 K) [1/s], of both over the inertia."""
    rates = damping + np.sqrt(np.square(damping) + 4.0 * stiffness)  # nothing cancels
    return float(rates.max(initial=0.0))


def rate_of_nodes(forces: Sequence[Force], inverse_mass: np.ndarray) -> float:
    """Return the largest rate of any node [1/s]."""
    k, c = np.zeros((2, len(inverse_mass)))
    for force in forces:
        own_k, own_c = (inverse_mass * bound for bound in force.row_bounds(len(inverse_mass)))
        k += own_k
        c += np.maximum(own_c, force.arrival_loss * np.sqrt(own_k))
    return rate_of(k, c)


def rate_of_bodies(forces: Sequence[Force], bodies: RigidBodies, first: int) -> float:
    """Return the largest rate of any body of a set whose points are rows of X from `first` on."""
    last = first + bodies.n_points
    bounds = []
    for force in forces:
        k, c = (bound[first:] for bound in force.row_bounds(last))
        if k.any() or c.any():
            bounds.append((force, k, c))
    rates, poses = 2.0 * bodies.drag_rates, _of_poses(forces, bodies, first)
    shapes = [shape for force in forces if (shape := force.carried_bound())]
    for b, (lo, hi) in enumerate(zip(bodies.point_ptr[:-1], bodies.point_ptr[1:], strict=True)):
        body_bounds = [(force, k[lo:hi], c[lo:hi]) for force, k, c in bounds]
        carried = [shape for shape in shapes if first + lo <= shape.center < first + hi]
        rates[b] += _rate_of_body(bodies, b, body_bounds, poses.get(b), carried)
    return float(rates.max(initial=0.0))


def _of_poses(
    forces: Sequence[Force], bodies: RigidBodies, first: int
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the sums of what forces do to the pose of each body: stiffness, damping (6, 6)."""
    sums = {}
    of_row = {first + bodies.frame_row(b): b for b in bodies.framed}
    for rows, stiffness, damping in (bounds for force in forces for bounds in force.frame_bounds()):
        for row, k, c in zip(rows.tolist(), stiffness, damping, strict=True):
            if row in of_row:
                k_sum, c_sum = sums.get(of_row[row], (0.0, 0.0))
                sums[of_row[row]] = k_sum + k, c_sum + c
    return sums


def _rate_of_body(
    bodies: RigidBodies,
    b: int,
    bounds: list[tuple[Force, np.ndarray, np.ndarray]],
    of_pose: tuple[np.ndarray, np.ndarray] | None,
    carried: list[CarriedBound],
) -> float:
    """Return the rate of a body from bounds of what forces do at its points, and to its pose.

    `carried` are the shapes that it carries.
    """
    if not bounds and of_pose is None and not carried:
        return 0.0
    lo, hi = bodies.point_ptr[b : b + 2]
    arms = bodies.arms[lo:hi]
    inertia = np.eye(6) * bodies.masses[b]
    inertia[3:, 3:] = from_six(bodies.inertias)[b]
    lower = np.linalg.inv(np.linalg.cholesky(inertia))
    each = _products(arms, lower)
    always = [pair for force, *pair in bounds if not force.touches]
    k, c = np.sum(always, axis=0) if always else np.zeros((2, len(arms)))
    sums = _sums(np.ones((1, len(arms))), each, k, c)
    if of_pose is not None:
        sums = [total + lower @ pose @ lower.T for total, pose in zip(sums, of_pose, strict=True)]
    rate = rate_of(*map(_largest, sums))
    touched = [(force.arrival_loss, k, c) for force, k, c in bounds if force.touches]
    alone = [
        _touch_rate(loss, *(_largest(w[:, None, None] * each) for w in pair))
        for loss, *pair in touched
    ]
    n_frame = len(FRAME) if b in bodies.framed else 0  # nothing touches these
    vertices = arms[: len(arms) - n_frame]
    if touched:
        for own_sides in sides_of(vertices):
            sides = np.pad(own_sides, ((0, 0), (0, n_frame)))
            alone = [
                max(most, _touch_rate(loss, *map(_largest, _sums(sides, each, *pair))))
                for most, (loss, *pair) in zip(alone, touched, strict=True)
            ]
    for shape in carried:
        at = (vertices if points is None else points for points in (shape.pressed, shape.rubbed))
        pressed, rubbed = (_largest(_products(points, lower)).max() for points in at)
        alone.append(rate_of(shape.stiffness * pressed, shape.damping * rubbed))
    return rate + sum(sorted(alone)[-2:])


def _products(arms: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Return J^T J of points at arms, (n, 6, 6), by the inverse root of the inertia."""
    J = np.concatenate([np.broadcast_to(np.eye(3), (len(arms), 3, 3)), -cross_matrix(arms)], axis=2)
    whitened = J @ lower.T
    return np.einsum("nki,nkj->nij", whitened, whitened)


def _touch_rate(loss: float, stiffness: np.ndarray, damping: np.ndarray) -> float:
    """Return the largest rate of a contact with an `arrival_loss`."""
    return rate_of(stiffness, np.maximum(damping, loss * np.sqrt(stiffness)))


def _sums(sides: np.ndarray, each: np.ndarray, k: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
    """Return the stiffness and the damping of sides of points, (n_sides, 6, 6) each."""
    flat = each.reshape(len(each), 36)
    return [((sides * w) @ flat).reshape(-1, 6, 6) for w in (k, c)]


def _largest(matrices: np.ndarray) -> np.ndarray:
    """Return the largest eigenvalue of each of (n, 6, 6)."""
    return np.linalg.eigvalsh(matrices)[:, -1]


def sides_of(points: np.ndarray) -> Iterator[np.ndarray]:
    """Yield which points lie together on sides of their convex hull, masks (n_sides, n), in parts.

    All do where they lie in a plane, or are fewer than four.
    """
    from scipy.spatial import ConvexHull, QhullError

    near = SINK * float(np.ptp(points, axis=0).max())
    try:
        planes = np.unique(ConvexHull(points).equations.round(9), axis=0)
    except (QhullError, ValueError):
        yield np.ones((1, len(points)))
        return
    size = max(1, CHUNK // len(points))
    for at in range(0, len(planes), size):
        normals, offsets = np.split(planes[at : at + size], [3], axis=1)
        yield (normals @ points.T + offsets > -near).astype(float)
