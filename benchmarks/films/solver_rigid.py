"""Rigid bodies: exact flight, hard contact of corners with a floor; pendula; two links on hinges.

In flight Euler's equations and the quaternion are integrated by SciPy to 1e-10. On a floor,
Moreau's time stepping with small steps: impulses at the corners, with Coulomb's friction, by sweeps
of Gauss and Seidel over the corners, and for bodies with a restitution the blows of
`solver_bounces` before them.
"""

from typing import Any

import numba
import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from benchmarks.films.solver_bounces import strike


SWEEPS = 40
STEP = 5e-4  # of Moreau's time stepping at most [s]


def mass_properties(points: np.ndarray, faces: np.ndarray) -> tuple[float, Any, Any]:
    """Return volume, centre of mass (3,) and inertia about it (3, 3), of density 1."""
    corners = points[faces]
    volumes = np.linalg.det(corners) / 6  # of tetrahedra with the origin
    volume = volumes.sum()
    sums = corners.sum(1)
    centre = volumes @ sums / 4 / volume
    second = np.einsum("t,ti,tj->ij", volumes, sums, sums)
    second = (second + np.einsum("t,tki,tkj->ij", volumes, corners, corners)) / 20
    second -= volume * np.outer(centre, centre)
    return volume, centre, np.trace(second) * np.eye(3) - second


def throw(
    inertia: np.ndarray,
    start: dict[str, np.ndarray],
    times: np.ndarray,
    gravity: np.ndarray,
    *,
    drag: float = 0.0,
) -> tuple[np.ndarray, Rotation]:
    """Return the way of the centre of mass from its start, (n_times, 3), and the rotations.

    `start` has velocity [m/s] and spin [rad/s] in the world's axes, which are the body's at 0. The
    `drag` slows the centre of mass by that part of its velocity a second [1/s].
    """

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, w = y[:4], y[4:]
        turn = Rotation.from_quat(q).as_matrix() @ w
        spin = np.concatenate([turn, [0.0]])
        acceleration = np.linalg.solve(inertia, np.cross(inertia @ w, w))
        return np.concatenate([quaternion_product(spin, q) / 2, acceleration])

    first = np.concatenate([[0.0, 0.0, 0.0, 1.0], start["spin"]])
    y = solve_ivp(rate, times[[0, -1]], first, t_eval=times, rtol=1e-10, atol=1e-10).y.T
    t = times[:, None]
    turns = Rotation.from_quat(y[:, :4])
    if not drag:
        return t * start["velocity"] + t**2 / 2 * gravity, turns
    slowed = -np.expm1(-drag * t) / drag  # of dv/dt = g - drag v
    return slowed * start["velocity"] + (t - slowed) / drag * gravity, turns


def quaternion_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return p q of quaternions (x, y, z, w)."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.append(vector, p[3] * q[3] - p[:3] @ q[:3])


def slide(
    points: np.ndarray,
    inertia: np.ndarray,
    start: dict[str, np.ndarray],
    times: np.ndarray,
    *,
    gravity: np.ndarray,
    floor: float,
    friction: float,
    restitution: float = 0.0,
) -> np.ndarray:
    """Return the positions of the points of a body that meets a floor, (n_times, n, 3).

    `points` are in the world at the start, and `inertia` is that of a mass of 1 kg.
    `start` has the centre of mass, its velocity and the spin.
    """
    x, v, w = (start[name].astype(float) for name in ("centre", "velocity", "spin"))
    body, turn = points - x, Rotation.identity()
    substeps = int(np.ceil((times[1] - times[0]) / STEP))
    dt = (times[1] - times[0]) / substeps
    frames = [points]
    for _ in times[1:]:
        for _ in range(substeps):
            R = turn.as_matrix()
            world = R @ inertia @ R.T
            v = v + dt * gravity
            w = w + dt * np.linalg.solve(world, np.cross(world @ w, w))
            arms = turn.apply(body)
            near = x[1] + arms[:, 1] < floor + 1e-2
            if near.any():
                gaps, inverse = (floor - x[1] - arms[near, 1]) / dt, np.linalg.inv(world)
                reach = v[1] + np.cross(w, arms[near])[:, 1] < gaps
                if restitution and reach.any():
                    contact = (inverse, friction, restitution)
                    v, w = strike(np.stack([v, w]), arms[near][reach], contact)
                contact = (inverse, friction)
                v, w = bounce(np.stack([v, w]), arms[near], gaps, contact)
            x, turn = x + dt * v, Rotation.from_rotvec(dt * w) * turn
        frames.append(x + turn.apply(body))
    return np.array(frames)


@numba.njit(cache=True)
def bounce(motion, arms, gaps, contact):
    """Return velocity and spin, (2, 3), after the impulses that part the corners from a floor.

    Afterwards every corner, at its arm (n, 3) from the centre of mass, is at least as fast upwards
    as its entry of `gaps` says, (n,). `contact` is the inverse inertia and the friction.
    """
    inverse, friction = contact
    v, w = motion[0].copy(), motion[1].copy()
    impulses = np.zeros_like(arms)
    compliance = np.empty_like(arms)
    for k in range(len(arms)):
        for i in range(3):
            turn = np.cross(arms[k], np.eye(3)[i])
            compliance[k, i] = 1 + turn @ inverse @ turn
    for _ in range(SWEEPS):
        for k in range(len(arms)):
            u = v + np.cross(w, arms[k])
            new = impulses[k] - u / compliance[k]
            new[1] = max(0.0, new[1] + gaps[k] / compliance[k, 1])
            bound, size = friction * new[1], np.hypot(new[0], new[2])
            if size > bound:
                new[0], new[2] = new[0] * bound / size, new[2] * bound / size
            change = new - impulses[k]
            v += change
            w += inverse @ np.cross(arms[k], change)
            impulses[k] = new
    return np.stack((v, w))


def pendulum(
    length: np.ndarray,
    angle: np.ndarray,
    times: np.ndarray,
    *,
    mass: np.ndarray,
    damping: np.ndarray,
    gravity: float = 9.81,
) -> np.ndarray:
    """Return the angles of one or two links from rest, (n_times, n_links) [rad].

    The damping is b/m of the rate for one link [kg/s], and a torque for each of two [N m s].
    """
    n = len(length)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, u = y[:n], y[n:]
        if n == 1:
            return np.append(u, -gravity / length * np.sin(q) - damping / mass * u)
        (l1, l2), (m1, m2), d = length, mass, q[0] - q[1]
        couple = m2 * l1 * l2
        matrix = [[(m1 + m2) * l1**2, couple * np.cos(d)], [couple * np.cos(d), m2 * l2**2]]
        torque = couple * np.sin(d) * np.array([-(u[1] ** 2), u[0] ** 2])
        torque -= gravity * np.sin(q) * np.array([(m1 + m2) * l1, m2 * l2]) + damping * u
        return np.append(u, np.linalg.solve(matrix, torque))

    start = np.append(angle, np.zeros(n))
    return solve_ivp(rate, times[[0, -1]], start, t_eval=times, rtol=1e-9, atol=1e-9).y[:n].T


def links(
    arms: tuple[np.ndarray, np.ndarray, np.ndarray],
    mass: tuple[float, float],
    inertia: tuple[float, float],
    times: np.ndarray,
    *,
    viscous: tuple[float, float],
    dry: tuple[float, float],
    gravity: float = 9.81,
    slow: float = 1e-3,
) -> np.ndarray:
    """Return the angles of two links on hinges, from rest, (n_times, 2) [rad].

    At the start both angles are 0. Then the arms (2,) [m] lead from the first hinge to the first
    centre of mass and to the second hinge, and from there to the second centre of mass. The inertia
    [kg m2] is about the centres. Friction is that of the hinges: viscous [N m s], and dry [N m],
    which is viscous below the rate `slow` [rad/s].
    """
    (m1, m2), (middle, elbow, end) = mass, arms
    first = inertia[0] + m1 * middle @ middle + m2 * elbow @ elbow
    second = inertia[1] + m2 * end @ end

    def turned(arm: np.ndarray, angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([c * arm[0] - s * arm[1], s * arm[0] + c * arm[1]])

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, u = y[:2], y[2:]
        to_middle, to_elbow, to_end = turned(middle, q[0]), turned(elbow, q[0]), turned(end, q[1])
        couple = m2 * to_elbow @ to_end
        swirl = m2 * (to_elbow[0] * to_end[1] - to_elbow[1] * to_end[0])
        turns = np.array([u[0], u[1] - u[0]])  # of the hinges
        rubbed = viscous * turns + dry * np.tanh(turns / slow)
        torque = np.array([rubbed[1] - rubbed[0], -rubbed[1]])
        torque += swirl * np.array([u[1] ** 2, -(u[0] ** 2)])
        torque -= gravity * np.array([m1 * to_middle[0] + m2 * to_elbow[0], m2 * to_end[0]])
        return np.append(u, np.linalg.solve([[first, couple], [couple, second]], torque))

    y = solve_ivp(rate, times[[0, -1]], np.zeros(4), "Radau", times, rtol=1e-8, atol=1e-8).y
    return y[:2].T
