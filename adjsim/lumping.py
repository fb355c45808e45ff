"""Masses from densities: an element shares density times measure equally among its nodes.

    m_i = sum over the elements of node i of  rho V/n

V is the volume, area or length of the element at rest, n the number of its nodes.

Adjoint: `adjoint/lumping.py`. Tests: `tests/test_lumping.py`.
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.rest_shaped import RestShapedForce


class LumpedForce(RestShapedForce):
    """A force whose elements have a measure at rest, and may have a `density`."""

    density: Any

    @abstractmethod
    def rest_measure(self) -> np.ndarray:
        """Volume [m3] or area [m2] of each element at rest, (n_elements,)."""

    def check_density(self, density: Any) -> np.ndarray:
        """Return a density as a positive array, () or (n_elements,)."""
        given = checks.scalar_or_array("density", density, len(self.nodes), "n_elements")
        return checks.positive("density", given)

    def lumped_mass(self, density: Any) -> np.ndarray:
        """Return the node masses of a density, to be given to a `Model`.

        Parameters
        ----------
        density : float or array
            () or (n_elements,), positive: per volume [kg/m3], or per area [kg/m2] of a sheet.

        Returns
        -------
        array
            (n_nodes,) [kg]; 0 where a node is in no element.

        Raises
        ------
        ValueError
            If the density has another shape, or is not positive.
        """
        amounts = self.check_density(density) * self.rest_measure()
        return share_equally(amounts, self.nodes, len(self.rest_positions))

    def node_mass(self) -> np.ndarray | None:
        """Masses of the force's own `density`, (n_nodes,) [kg]; None without."""
        return None if self.density is None else self.lumped_mass(self.density)


def share_equally(amounts: np.ndarray, nodes: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return the sums over nodes, (n_nodes,), of amounts that elements share equally."""
    n_each = nodes.shape[1]
    return np.bincount(nodes.ravel(), np.repeat(amounts / n_each, n_each), minlength=n_nodes)
