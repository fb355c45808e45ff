"""A finite element solver for soft solids: linear tetrahedra and central differences in time.

    v_{k+1/2} = v_{k-1/2} + dt M^-1 (f(x_k, v_{k-1/2}) + M g),   x_{k+1} = x_k + dt v_{k+1/2}

The energies have the same constants at small strain, mu and lam of Hooke's law:

    log     mu/2 (I_C - 3 - 2 log J) + lam/2 (log J)^2
    volume  mu/2 (I_C - 3 - 2 log J) + lam/2 (J - 1)^2
    stvk    mu E:E + lam/2 tr(E)^2,  E = (F^T F - 1)/2

What bodies touch is in `touching`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import factorized


ENERGIES = {"log": 0, "volume": 1, "stvk": 2}
Touch = Callable[[np.ndarray, np.ndarray, float], None]  # positions, velocities, time step
COURANT = 0.2  # part of the time a pressure wave takes through the thinnest tetrahedron


@dataclass(frozen=True, kw_only=True, eq=False)
class Solid:
    """A soft solid."""

    points: np.ndarray  # rest positions, (n, 3) [m]
    tets: np.ndarray  # corners, (n_tets, 4), of positive volume
    E: float  # [Pa]
    nu: float
    density: float  # [kg/m3]
    viscosity: float = 0.0  # of Kelvin and Voigt [Pa s]
    held: np.ndarray  # mask of the nodes that do not move, (n,)
    energy: str = "log"  # a name of `ENERGIES`
    consistent: bool = False  # the consistent mass matrix instead of masses at the nodes

    def lame(self) -> tuple[float, float]:
        """Return mu and lam [Pa]."""
        mu = self.E / (2 * (1 + self.nu))
        return mu, 2 * mu * self.nu / (1 - 2 * self.nu)

    def rest(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the inverse of every rest edge matrix, (n_tets, 3, 3), and the volumes."""
        x = self.points[self.tets]
        edges = np.swapaxes(x[:, 1:] - x[:, :1], 1, 2)
        return np.linalg.inv(edges), np.linalg.det(edges) / 6

    def stable_step(self) -> float:
        """Return a time step well below the limit of central differences [s]."""
        mu, lam = self.lame()
        gradients, _ = self.rest()
        last = -gradients.sum(axis=1, keepdims=True)
        heights = 1 / np.linalg.norm(np.concatenate([gradients, last], axis=1), axis=2)
        h = heights.min()
        wave = h / np.sqrt((lam + 2 * mu) / self.density)
        creep = h * h * self.density / (4 * self.viscosity) if self.viscosity else np.inf
        return COURANT * min(wave, creep)

    def masses(self) -> np.ndarray:
        """Return the mass of every node, a quarter of its tetrahedra, (n,) [kg]."""
        corner_masses = np.repeat(self.rest()[1] * self.density / 4, 4)
        return np.bincount(self.tets.ravel(), corner_masses, len(self.points))

    def accelerations(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function from positions and velocities to accelerations, all (n, 3)."""
        _, volumes = self.rest()
        n, forces = len(self.points), self.forces()
        if not self.consistent:
            weights = np.where(self.held, 0.0, 1 / self.masses())[:, None]
            return lambda x, v: weights * forces(x, v)
        rows, columns = self.tets[:, :, None], self.tets[:, None, :]
        shares = volumes[:, None, None] * self.density / 20 * (1 + np.eye(4))
        rows, columns = np.broadcast_to(rows, shares.shape), np.broadcast_to(columns, shares.shape)
        matrix = sparse.csc_array((shares.ravel(), (rows.ravel(), columns.ravel())), (n, n))
        free = np.flatnonzero(~self.held)
        solve = factorized(sparse.csc_matrix(matrix[free][:, free]))

        def accelerate(x: np.ndarray, v: np.ndarray) -> np.ndarray:
            out, f = np.zeros_like(x), forces(x, v)
            for axis in range(3):
                out[free, axis] = solve(f[free, axis])
            return out

        return accelerate

    def forces(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function from positions and velocities to forces, (n, 3) [N]."""
        inverse, volumes = self.rest()
        mesh = (np.ascontiguousarray(self.tets, dtype=np.int64), inverse, volumes)
        material = (*self.lame(), float(self.viscosity), ENERGIES[self.energy])
        return lambda x, v: element_forces(x, v, mesh, material)


@dataclass(frozen=True, eq=False)
class Solids:
    """Several solids, whose nodes follow each other."""

    solids: Sequence[Solid]

    @property
    def held(self) -> np.ndarray:
        """Mask of the nodes that do not move, (n,)."""
        return np.concatenate([solid.held for solid in self.solids])

    def masses(self) -> np.ndarray:
        """Return the mass of every node, (n,) [kg]."""
        return np.concatenate([solid.masses() for solid in self.solids])

    def stable_step(self) -> float:
        """Return the time step that all of them allow [s]."""
        return min(solid.stable_step() for solid in self.solids)

    def accelerations(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function from positions and velocities to accelerations, all (n, 3)."""
        parts = [solid.accelerations() for solid in self.solids]
        ends = np.cumsum([len(solid.points) for solid in self.solids])[:-1]

        def accelerations(x: np.ndarray, v: np.ndarray) -> np.ndarray:
            solids = zip(parts, np.split(x, ends), np.split(v, ends), strict=True)
            return np.concatenate([of_solid(x_k, v_k) for of_solid, x_k, v_k in solids])

        return accelerations


def simulate(
    body: Any,
    x: np.ndarray,
    v: np.ndarray,
    times: np.ndarray,
    *,
    gravity: np.ndarray,
    touch: Touch | None = None,
) -> np.ndarray:
    """Return the positions at evenly spaced times from 0, (n_times, n, 3).

    The body is a solid, a sheet or several solids; `touch` changes velocities before each step.
    """
    substeps = int(np.ceil((times[1] - times[0]) / body.stable_step()))
    dt = (times[1] - times[0]) / substeps
    accelerate = body.accelerations()
    pull = np.where(body.held[:, None], 0.0, np.asarray(gravity))
    x, v = x.copy(), np.where(body.held[:, None], 0.0, v)
    v -= dt / 2 * (accelerate(x, v) + pull)
    frames = [x.copy()]
    for _ in times[1:]:
        for _ in range(substeps):
            v += dt * (accelerate(x, v) + pull)
            if touch is not None:
                touch(x, v, dt)
            x += dt * v
        if not np.isfinite(x).all():
            raise FloatingPointError("an element turned inside out, or the steps are too long")
        frames.append(x.copy())
    return np.array(frames)


def energy(solid: Solid, x: np.ndarray) -> float:
    """Return the elastic energy [J]."""
    inverse, volumes = solid.rest()
    corners = x[solid.tets]
    F = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2) @ inverse
    mu, lam = solid.lame()
    C = np.swapaxes(F, 1, 2) @ F
    if solid.energy == "stvk":
        G = (C - np.eye(3)) / 2
        density = mu * (G * G).sum((1, 2)) + lam / 2 * np.trace(G, axis1=1, axis2=2) ** 2
    else:
        J = np.linalg.det(F)
        bulk = np.log(J) if solid.energy == "log" else J - 1
        density = mu / 2 * (np.trace(C, axis1=1, axis2=2) - 3 - 2 * np.log(J)) + lam / 2 * bulk**2
    return float(volumes @ density)


@numba.njit(cache=True)
def element_forces(x, v, mesh, material):
    """Return the elastic and viscous forces on the nodes, (n, 3) [N]."""
    tets, inverse, volumes = mesh
    mu, lam, eta, law = material
    forces = np.zeros_like(x)
    edges, rates, F, rate = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    P, H, C, identity = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.eye(3)
    for t in range(len(tets)):
        first = tets[t, 0]
        for k in range(3):
            for i in range(3):
                edges[i, k] = x[tets[t, k + 1], i] - x[first, i]
                rates[i, k] = v[tets[t, k + 1], i] - v[first, i]
        B = inverse[t]
        product(edges, B, F)
        P[:] = 0.0
        if law == 2:
            product(F.T, F, C)
            green = 0.5 * (C - identity)
            product(F, 2 * mu * green + lam * np.trace(green) * identity, P)
        if eta > 0.0:
            product(rates, B, rate)
            product(F.T, rate, C)
            product(F, eta * (C + C.T), H)
            P += H
        if law < 2:
            J = determinant(F, C)
            bulk = np.log(J) if law == 0 else (J - 1) * J
            add(mu, F, P)
            add((lam * bulk - mu) / J, C, P)
        product(P, B.T, H)
        for i in range(3):
            for k in range(3):
                forces[tets[t, k + 1], i] -= volumes[t] * H[i, k]
                forces[first, i] += volumes[t] * H[i, k]
    return forces


@numba.njit(cache=True)
def product(a, b, out):
    """Write a b of 3 x 3 matrices to `out`."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@numba.njit(cache=True)
def add(s, a, out):
    """Add s a to `out`."""
    for i in range(3):
        for j in range(3):
            out[i, j] += s * a[i, j]


@numba.njit(cache=True)
def determinant(F, c):
    """Return det F, NaN where it is not positive; write det F F^-T, its cofactors, to c."""
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for a in range(3):
            b, d = (a + 1) % 3, (a + 2) % 3
            c[i, a] = F[j, b] * F[k, d] - F[j, d] * F[k, b]
    J = F[0, 0] * c[0, 0] + F[0, 1] * c[0, 1] + F[0, 2] * c[0, 2]
    return J if J > 0.0 else np.nan
