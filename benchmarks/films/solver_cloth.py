"""A cloth solver: St. Venant-Kirchhoff triangles, quadratic bending.

    membrane   A0 h E / (2 (1 - nu^2)) ((1 - nu) G:G + nu tr(G)^2),   G = (F^T F - 1)/2
    bending    D/2 x^T Q x, one term 1/(A + B) |sum_i c_i x_i|^2 for every inner edge

The bending energy is that of Bergou et al. 2006 (A quadratic bending model for inextensible
surfaces) for a flat rest shape; the c_i are sums of cotangents, A and B the areas at the edge.
They have 3/(A + B). A third of it gives a cylinder of curvature k the energy D/2 k^2 per area, D
the flexural rigidity, on squares with alternating diagonals and on equilateral triangles.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse


COURANT = 0.25


@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """A sheet that is flat at rest."""

    points: np.ndarray  # rest positions, (n, 3) [m]
    triangles: np.ndarray  # corners, (n_triangles, 3)
    E: float  # [Pa]
    nu: float
    thickness: float  # [m]
    density: float  # [kg/m3]
    bending: float | None = None  # flexural rigidity D [N m]; None: E h^3 / (12 (1 - nu^2))
    held: np.ndarray  # mask of the nodes that do not move, (n,)

    @property
    def rigidity(self) -> float:
        """Flexural rigidity D [N m]."""
        if self.bending is not None:
            return self.bending
        return self.E * self.thickness**3 / (12 * (1 - self.nu**2))

    @cached_property
    def areas(self) -> np.ndarray:
        """Rest areas, (n_triangles,) [m2]."""
        a, b, c = np.moveaxis(self.points[self.triangles], 1, 0)
        return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2

    @cached_property
    def gradient(self) -> sparse.csr_array:
        """Matrix from positions (n, 3) to the rows of F^T, (2 n_triangles, 3)."""
        a, b, c = np.moveaxis(self.points[self.triangles], 1, 0)
        first = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
        normal = np.cross(b - a, c - a)
        second = np.cross(normal / np.linalg.norm(normal, axis=1, keepdims=True), first)
        edges = np.stack([b - a, c - a], 2)  # (n_triangles, 3, 2)
        inverse = np.linalg.inv(np.stack([first, second], 1) @ edges)
        shares = np.concatenate([-inverse.sum(1, keepdims=True), inverse], 1)  # (n_t, 3, 2)
        n = len(self.triangles)
        rows = np.broadcast_to(np.arange(2 * n).reshape(n, 1, 2), shares.shape)
        columns = np.broadcast_to(self.triangles[:, :, None], shares.shape)
        shape = (2 * n, len(self.points))
        return sparse.csr_array((shares.ravel(), (rows.ravel(), columns.ravel())), shape)

    @cached_property
    def bending_matrix(self) -> sparse.csr_array:
        """Q, (n, n) [1/m2]."""
        rows, columns, shares = [], [], []
        for nodes, areas in inner_edges(self.triangles, self.areas):
            c = edge_weights(self.points[nodes])
            rows.append(np.repeat(nodes, 4))
            columns.append(np.tile(nodes, 4))
            shares.append((np.outer(c, c) / areas).ravel())
        n = len(self.points)
        entries = (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_array((np.concatenate(shares), entries), (n, n))

    def masses(self) -> np.ndarray:
        """Return the mass of every node, (n,) [kg]."""
        corner_masses = np.repeat(self.areas * self.density * self.thickness / 3, 3)
        return np.bincount(self.triangles.ravel(), corner_masses, len(self.points))

    def accelerations(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function from positions and velocities to accelerations, all (n, 3)."""
        weights = ~self.held[:, None] / self.masses()[:, None]
        return lambda x, _: weights * self.forces(x)

    def strain(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F^T, (n_triangles, 2, 3), and Green's strain, (n_triangles, 2, 2)."""
        Ft = (self.gradient @ x).reshape(-1, 2, 3)
        return Ft, (Ft @ np.swapaxes(Ft, 1, 2) - np.eye(2)) / 2

    def forces(self, x: np.ndarray) -> np.ndarray:
        """Return the forces on the nodes, (n, 3) [N]."""
        Ft, G = self.strain(x)
        S = self.areas[:, None, None] * self.stress(G)
        return -(self.gradient.T @ (S @ Ft).reshape(-1, 3)) - self.rigidity * (
            self.bending_matrix @ x
        )

    def stress(self, G: np.ndarray) -> np.ndarray:
        """Return the membrane's stress, (n_triangles, 2, 2) [N/m], of Green's strain."""
        trace = np.trace(G, axis1=1, axis2=2)[:, None, None]
        stiffness = self.E * self.thickness / (1 - self.nu**2)
        return stiffness * ((1 - self.nu) * G + self.nu * trace * np.eye(2))

    def energy(self, x: np.ndarray) -> float:
        """Return the elastic energy [J]."""
        _, G = self.strain(x)
        membrane = self.areas @ (self.stress(G) * G).sum((1, 2)) / 2
        return float(membrane + self.rigidity / 2 * (x * (self.bending_matrix @ x)).sum())

    def stable_step(self) -> float:
        """Return a time step well below the limit of central differences [s]."""
        lengths = np.linalg.norm(self.gradient.toarray().reshape(-1, 2, len(self.points)), axis=1)
        wave = np.sqrt(self.E / (1 - self.nu**2) / self.density) * lengths.max()
        bend = self.rigidity * abs(self.bending_matrix).sum(axis=1) / self.masses()
        return COURANT * min(1 / wave, 2 / np.sqrt(bend.max()))


def inner_edges(triangles: np.ndarray, areas: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return, for every edge of two triangles, its ends and their apexes, and both areas' sum."""
    first: dict[tuple[int, int], tuple[int, float]] = {}
    edges = []
    for triangle, area in zip(triangles.tolist(), areas, strict=True):
        for k in range(3):
            a, b, apex = triangle[k], triangle[(k + 1) % 3], triangle[(k + 2) % 3]
            if (a, b) in first or (b, a) in first:
                other, other_area = first.get((a, b)) or first[b, a]
                edges.append((np.array([a, b, apex, other]), other_area + area))
            else:
                first[a, b] = (apex, area)
    return edges


def edge_weights(x: np.ndarray) -> np.ndarray:
    """Return the c of two triangles with a common edge, of rest positions (4, 3)."""

    def cotangent(corner: int, left: int, right: int) -> float:
        a, b = x[left] - x[corner], x[right] - x[corner]
        return a @ b / np.linalg.norm(np.cross(a, b))

    at_0 = [cotangent(0, 1, apex) for apex in (2, 3)]
    at_1 = [cotangent(1, 0, apex) for apex in (2, 3)]
    return np.array([sum(at_1), sum(at_0), -at_0[0] - at_1[0], -at_0[1] - at_1[1]])
