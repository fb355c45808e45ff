"""A finite element solver for soft solids at rest: quadratic hexahedra and Newton's method.

A hexahedron has 27 nodes and 27 Gauss points. The energy is `log` of `solver_soft`:

    P = mu F + p F^-T,   p = lam log J - mu
    dP_iJ/dF_kL = mu d_ik d_JL + lam G_Ji G_Lk - p G_Jk G_Li,   G = F^-1
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve


TOLERANCE = 1e-10  # of the forces, as a part of the largest reaction
MOST_STEPS = 30


def bricks(size: tuple[float, ...], cells: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return centred points of a box, (n, 3), and the nodes of each hexahedron, (n_cells, 27)."""
    axes = [np.linspace(-s / 2, s / 2, 2 * n + 1) for s, n in zip(size, cells, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    number = np.arange(len(points)).reshape([len(axis) for axis in axes])
    nodes = [
        number[tuple(slice(k, k + 2 * n, 2) for k, n in zip(node, cells, strict=True))].ravel()
        for node in np.ndindex(3, 3, 3)
    ]
    return points, np.stack(nodes, 1)


@dataclass(frozen=True, eq=False)
class Bricks:
    """A soft solid."""

    points: np.ndarray  # rest positions, (n, 3) [m]
    cells: np.ndarray  # nodes, (n_cells, 27)
    E: float  # [Pa]
    nu: float

    @cached_property
    def _rest(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of the shape functions by rest positions, (n_cells, 27, 27, 3), and weights."""
        places, weights = np.polynomial.legendre.leggauss(3)
        value = np.stack([places * (places - 1) / 2, 1 - places**2, places * (places + 1) / 2], 1)
        slope = np.stack([places - 0.5, -2 * places, places + 0.5], 1)
        by_axis = [
            np.einsum("ad,be,cf->abcdef", *(slope if axis == k else value for k in range(3)))
            for axis in range(3)
        ]
        local = np.stack(by_axis, -1).reshape(27, 27, 3)
        jacobian = np.einsum("qna,cni->cqia", local, self.points[self.cells])
        gradients = np.einsum("qna,cqai->cqni", local, np.linalg.inv(jacobian))
        volumes = np.einsum("a,b,c->abc", weights, weights, weights).ravel()
        return gradients, volumes * np.linalg.det(jacobian)

    def _lame(self) -> tuple[float, float]:
        mu = self.E / (2 * (1 + self.nu))
        return mu, 2 * mu * self.nu / (1 - 2 * self.nu)

    def _state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F, F^-1 and p at every Gauss point."""
        F = np.einsum("cni,cqnj->cqij", x[self.cells], self._rest[0])
        mu, lam = self._lame()
        return F, np.linalg.inv(F), lam * np.log(np.linalg.det(F)) - mu

    def forces(self, x: np.ndarray) -> np.ndarray:
        """Return what has to act on the nodes to hold them at x, (n, 3) [N]."""
        gradients, weights = self._rest
        F, inverse, p = self._state(x)
        P = self._lame()[0] * F + p[..., None, None] * np.swapaxes(inverse, 2, 3)
        cell_forces = np.einsum("cq,cqij,cqnj->cni", weights, P, gradients).reshape(-1, 3)
        return np.stack([np.bincount(self.cells.ravel(), f, len(x)) for f in cell_forces.T], 1)

    def stiffness(self, x: np.ndarray) -> sparse.csc_array:
        """Return the derivative of the forces by x, (3 n, 3 n) [N/m]."""
        gradients, weights = self._rest
        _, inverse, p = self._state(x)
        mu, lam = self._lame()
        g = np.einsum("cqnj,cqjk->cqnk", gradients, inverse)  # gradients by x
        blocks = mu * np.einsum("cq,cqnj,cqmj->cnm", weights, gradients, gradients)
        K = np.einsum("cnm,ik->cnimk", blocks, np.eye(3))
        K += lam * np.einsum("cq,cqni,cqmk->cnimk", weights, g, g, optimize=True)
        K -= np.einsum("cq,cqnk,cqmi->cnimk", weights * p, g, g, optimize=True)
        rows = (3 * self.cells[..., None] + np.arange(3)).reshape(len(self.cells), -1)
        entries = K.reshape(len(rows), 81, 81)
        row, column = np.broadcast_arrays(rows[:, :, None], rows[:, None, :])
        shape = (x.size, x.size)
        return sparse.csc_array((entries.ravel(), (row.ravel(), column.ravel())), shape)

    def rest_under(self, x: np.ndarray, is_led: np.ndarray) -> np.ndarray:
        """Return where the nodes rest, (n, 3), from x on; those of the mask stay where x has them.

        Raises
        ------
        FloatingPointError
            Newton's method does not converge.
        """
        x, free = x.copy(), np.flatnonzero(np.repeat(~is_led, 3))
        for _ in range(MOST_STEPS):
            f = self.forces(x).ravel()
            if np.abs(f[free]).max() <= TOLERANCE * np.abs(f).max():
                return x
            K = self.stiffness(x)[free][:, free]
            x.reshape(-1)[free] -= spsolve(sparse.csc_matrix(K), f[free])
        raise FloatingPointError("the loads are too far apart for Newton's method")
