"""Adjoint of `adjsim/forces/lumping.py`: from node masses back to densities and rest positions.

m_i = sum over the elements of node i of  rho V/n,   so for each element
adj = mean over its nodes of adj_m,   adj_rho = V adj,   adj_V = rho adj
"""

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np

from adjoint.forces.element import ForceTwin, unbroadcast
from adjsim.forces.lumping import LumpedForce, share_equally


L = TypeVar("L", bound=LumpedForce)


class LumpedForceTwin(ForceTwin[L]):
    """The twin of a force with a measure at rest."""

    @abstractmethod
    def measure_vjp(self, force: L, adj_measure: np.ndarray) -> np.ndarray:
        """Pull a cotangent of `force.rest_measure()` back to the rest positions."""

    @abstractmethod
    def measure_jvp(self, force: L, tan_rest: np.ndarray) -> np.ndarray:
        """Push a tangent of the rest positions to the measures, (n_elements,)."""

    def mass_vjp(self, force: L, adj_mass: np.ndarray) -> dict[str, np.ndarray]:
        """Pull a cotangent of the node masses back to density and rest positions."""
        adj = share_equally_vjp(adj_mass, force.nodes)
        return {
            "density": unbroadcast(force.rest_measure() * adj, force.density.shape),
            "rest_positions": self.measure_vjp(force, force.density * adj),
        }

    def mass_jvp(self, force: L, tangents: dict[str, np.ndarray]) -> np.ndarray:
        """Push tangents of density and rest positions to the node masses."""
        amounts: Any = tangents.get("density", np.zeros(())) * force.rest_measure()
        if "rest_positions" in tangents:
            tan_measure = self.measure_jvp(force, tangents["rest_positions"])
            amounts = amounts + force.density * tan_measure
        return share_equally(amounts, force.nodes, len(force.rest_positions))


def share_equally_vjp(adj: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the cotangents of amounts, (n_elements,): the twin of `share_equally`, a mean."""
    return adj[nodes].sum(axis=1) / nodes.shape[1]
