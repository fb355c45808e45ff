"""Adjoint of `adjsim/forces/lumping.py`: from node masses back to densities and rest positions.

m_i = sum over the elements of node i of  rho V/n,   so for each element
adj = mean over its nodes of adj_m,   adj_rho = V adj,   adj_V = rho adj
"""

from abc import abstractmethod
from typing import TypeVar

import numpy as np

from adjoint.forces.element import ForceTwin
from adjoint.values import unbroadcast
from adjsim.forces.lumping import LumpedForce


L = TypeVar("L", bound=LumpedForce)


class LumpedForceTwin(ForceTwin[L]):
    """The twin of a force with a measure at rest."""

    @abstractmethod
    def measure_vjp(self, force: L, adj_measure: np.ndarray) -> np.ndarray:
        """Pull a cotangent of `force.rest_measure()` back to the rest positions."""

    def mass_vjp(self, force: L, adj_mass: np.ndarray) -> dict[str, np.ndarray]:
        """Pull a cotangent of the node masses back to density and rest positions."""
        adj = share_equally_vjp(adj_mass, force.nodes)
        return {
            "density": unbroadcast(force.rest_measure() * adj, force.density.shape),
            "rest_positions": self.measure_vjp(force, force.density * adj),
        }


def share_equally_vjp(adj: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the cotangents of amounts, (n_elements,): the twin of `share_equally`, a mean."""
    return adj[nodes].sum(axis=1) / nodes.shape[1]
