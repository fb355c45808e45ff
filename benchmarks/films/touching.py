"""Hard contact of nodes with a floor, a sphere and the surfaces of other bodies.

A node that would end inside gets the impulse that puts it on the surface (Moreau's time stepping
without restitution), and friction up to Coulomb's bound. Functions change velocities in place.
"""

from dataclasses import dataclass

import numba
import numpy as np


SWEEPS = 8


def hit_floor(
    x: np.ndarray,
    v: np.ndarray,
    dt: float,
    *,
    height: float,
    friction: float,
    restitution: float = 0.0,
) -> None:
    """Let no node end below the floor, and nodes leave it with this part of their speed."""
    below = np.flatnonzero(x[:, 1] + dt * v[:, 1] < height)
    normals = np.broadcast_to([0.0, 1.0, 0.0], (len(below), 3))
    needed = np.maximum((height - x[below, 1]) / dt, -restitution * v[below, 1])
    _stop(v, below, (normals, needed), friction)


def hit_sphere(
    x: np.ndarray, v: np.ndarray, dt: float, *, center: np.ndarray, radius: float, friction: float
) -> None:
    """Let no node end inside a sphere that does not move."""
    arms = x + dt * v - center
    inside = np.flatnonzero(np.linalg.norm(arms, axis=1) < radius)
    normals = arms[inside] / np.linalg.norm(arms[inside], axis=1, keepdims=True)
    depths = radius - (normals * (x[inside] - center)).sum(1)
    _stop(v, inside, (normals, depths / dt), friction)


def _stop(
    v: np.ndarray, nodes: np.ndarray, wanted: tuple[np.ndarray, np.ndarray], friction: float
) -> None:
    """Give nodes (n,) the wanted speed (n,) along normals (n, 3), and slow their slip."""
    normals, needed = wanted
    speed = (normals * v[nodes]).sum(1)
    slip = v[nodes] - speed[:, None] * normals
    fast = np.maximum(np.linalg.norm(slip, axis=1), 1e-12)
    left = np.maximum(0.0, 1 - friction * (needed - speed) / fast)
    v[nodes] = left[:, None] * slip + needed[:, None] * normals


@dataclass(frozen=True, eq=False)
class Surfaces:
    """Two surfaces that part each other: nodes of each with the faces of the other.

    A node is inside where it lies behind the face that is nearest to it, which convex surfaces
    allow. Impulses are found by sweeps of Gauss and Seidel, and conserve momentum.
    """

    faces: tuple[np.ndarray, np.ndarray]  # outward, of each surface, nodes counted in x
    mobility: np.ndarray  # 1 over the mass of every node, 0 for held ones, (n,) [1/kg]
    friction: float

    def __call__(self, x: np.ndarray, v: np.ndarray, dt: float) -> None:
        """Change the velocities so that no node ends in the other surface."""
        reach = 3 * dt * float(np.abs(v).max())
        touches = []
        for faces, other in (self.faces, self.faces[::-1]):
            nodes = np.unique(faces)
            lower = x[np.unique(other)].min(0) - reach
            upper = x[np.unique(other)].max(0) + reach
            near = nodes[((x[nodes] >= lower) & (x[nodes] <= upper)).all(1)]
            touches.append(nearest(x, near, other, reach))
        quads, weights, normals, gaps = map(np.concatenate, zip(*touches, strict=True))
        if len(quads):
            separate(v, (quads, weights, normals, gaps / dt), self.mobility, self.friction)


@numba.njit(cache=True)
def nearest(x, nodes, faces, reach):
    """Return node and face, weights, normal and gap of each node less than `reach` outside."""
    quads = np.empty((len(nodes), 4), np.int64)
    weights, normals = np.empty((len(nodes), 4)), np.empty((len(nodes), 3))
    gaps = np.empty(len(nodes))
    n = 0
    for node in nodes:
        best = np.inf
        for face in faces:
            b = on_triangle(x[node], x[face[0]], x[face[1]], x[face[2]])
            away = x[node] - b[0] * x[face[0]] - b[1] * x[face[1]] - b[2] * x[face[2]]
            if away @ away < best:
                best = away @ away
                quads[n, 0], quads[n, 1:], weights[n, 0], weights[n, 1:] = node, face, 1.0, -b
                outward = np.cross(x[face[1]] - x[face[0]], x[face[2]] - x[face[0]])
                side = 1.0 if away @ outward >= 0.0 else -1.0
                gaps[n] = side * np.sqrt(best)
                if best > 1e-20:
                    normals[n] = away / gaps[n]
                else:
                    normals[n] = outward / np.sqrt(outward @ outward)
        if gaps[n] < reach:
            n += 1
    return quads[:n], weights[:n], normals[:n], gaps[:n]


@numba.njit(cache=True)
def on_triangle(p, a, b, c):  # noqa: PLR0911
    """Return the weights of the corners of the point of a triangle that is nearest to p, (3,).

    Ericson, Real-Time Collision Detection, 2005, section 5.1.5: by regions.
    """
    ab, ac = b - a, c - a
    d1, d2 = ab @ (p - a), ac @ (p - a)
    if d1 <= 0 and d2 <= 0:
        return np.array([1.0, 0.0, 0.0])
    d3, d4 = ab @ (p - b), ac @ (p - b)
    if d3 >= 0 and d4 <= d3:
        return np.array([0.0, 1.0, 0.0])
    vc = d1 * d4 - d3 * d2
    if vc <= 0 and d1 >= 0 and d3 <= 0:
        s = d1 / (d1 - d3)
        return np.array([1 - s, s, 0.0])
    d5, d6 = ab @ (p - c), ac @ (p - c)
    if d6 >= 0 and d5 <= d6:
        return np.array([0.0, 0.0, 1.0])
    vb = d5 * d2 - d1 * d6
    if vb <= 0 and d2 >= 0 and d6 <= 0:
        s = d2 / (d2 - d6)
        return np.array([1 - s, 0.0, s])
    va = d3 * d6 - d5 * d4
    if va <= 0 and d4 >= d3 and d5 >= d6:
        s = (d4 - d3) / (d4 - d3 + d5 - d6)
        return np.array([0.0, 1 - s, s])
    total = va + vb + vc
    return np.array([va, vb, vc]) / total


@numba.njit(cache=True)
def separate(v, touches, mobility, friction):
    """Change velocities so that the gaps of nodes and faces, over the time step, stay open."""
    quads, weights, normals, gaps = touches
    impulses = np.zeros((len(quads), 3))
    for _ in range(SWEEPS):
        for k in range(len(quads)):
            compliance, speed = 0.0, np.zeros(3)
            for i in range(4):
                compliance += weights[k, i] ** 2 * mobility[quads[k, i]]
                speed += weights[k, i] * v[quads[k, i]]
            if compliance == 0.0:
                continue
            new = impulses[k] - speed / compliance
            along = new @ normals[k]
            push = max(0.0, along - gaps[k] / compliance)
            slip = new - along * normals[k]
            size = np.sqrt(slip @ slip)
            if size > friction * push:
                slip *= friction * push / size
            new = push * normals[k] + slip
            for i in range(4):
                v[quads[k, i]] += weights[k, i] * mobility[quads[k, i]] * (new - impulses[k])
            impulses[k] = new
