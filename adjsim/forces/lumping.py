"""Masses from densities: an element shares density times measure equally among its nodes.

    m_i = sum over the elements of node i of  rho V/n

V is the volume, area or length of the element at rest, n the number of its nodes.

What such elements pack of their rest shape is M = (Dm^T Dm)^-1, Dm their rest edges, and with
cond = |Dm| |Dm^-1| (Frobenius norms; 3.7 for a regular tetrahedron, 1 to 3 times L/h for elements
of thickness h and length L) its rounding is up to

    ROUNDING eps cond^2

of an element's force at a strain of a tenth, more where the strain is less: the strain that it
takes for its own is wrong by a tenth of that. In float32 it is a thousandth from cond = 200 on
(tetrahedra; 90 for triangles).

Adjoint: `adjoint/forces/lumping.py`. Tests: `tests/forces/test_lumping.py`.
"""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.forces.rest_shaped import RestShapedForce


TOLERATED = 1e-3  # of a force, lost to the rounding of the rest shape


class LumpedForce(RestShapedForce):
    """A force whose elements have a measure at rest, and may have a `density`."""

    ROUNDING: ClassVar[float]  # the worst of some thousand elements, thin in every way there is
    METRIC_DIAGONAL: ClassVar[tuple[int, ...]]  # which of the constants are the diagonal of M
    density: Any
    _thin: ClassVar[str | None] = None  # not looked for yet; an instance has its own

    @abstractmethod
    def rest_measure(self) -> np.ndarray:
        """Volume [m3] or area [m2] of each element at rest, (n_elements,)."""

    def check_precision(self, consts: np.ndarray, dtype: np.dtype, name: str) -> None:
        """Warn by `name` of elements that are too thin for float32."""
        if dtype == np.float64:
            return
        if self._thin is None:  # a force never changes: what is found is kept
            object.__setattr__(
                self, "_thin", self._describe_thin(consts, float(np.finfo(dtype).eps))
            )
        if self._thin:
            warnings.warn(f"`{name}` has elements too thin for {dtype}: {self._thin}", stacklevel=2)

    def _describe_thin(self, consts: np.ndarray, eps: float) -> str:
        """Return how much rounding takes of whose force; nothing if it is tolerated."""
        corners = self.rest_positions[self.nodes]
        squares = np.square(corners[:, 1:] - corners[:, :1]).sum(axis=(1, 2))
        squares *= consts[:, self.METRIC_DIAGONAL].sum(axis=1)  # cond^2
        lost = self.ROUNDING * eps * squares
        if lost.max(initial=0.0) <= TOLERATED:
            return ""
        worst = int(lost.argmax())
        return (
            f"rounding may be more than {TOLERATED:g} of the force, at a strain of a tenth, in "
            f"{int((lost > TOLERATED).sum())} of {len(lost)}. The worst is element {worst}, nodes "
            f"{self.nodes[worst].tolist()}, of condition number {np.sqrt(squares[worst]):.3g}: up "
            f"to {lost[worst]:.1g} of its force. Pass dtype=float64, or mesh without slivers."
        )

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

    @abstractmethod
    def measure_jvp(self, tan_rest: np.ndarray) -> np.ndarray:
        """Push a tangent of the rest positions to the measures, (n_elements,)."""

    def mass_jvp(self, tangents: dict[str, np.ndarray]) -> np.ndarray:
        """Push tangents of density and rest positions to the node masses."""
        amounts: Any = tangents.get("density", np.zeros(())) * self.rest_measure()
        if "rest_positions" in tangents:
            tan_measure = self.measure_jvp(tangents["rest_positions"])
            amounts = amounts + self.density * tan_measure
        return share_equally(amounts, self.nodes, len(self.rest_positions))


def share_equally(amounts: np.ndarray, nodes: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return the sums over nodes, (n_nodes,), of amounts that elements share equally."""
    n_each = nodes.shape[1]
    return np.bincount(nodes.ravel(), np.repeat(amounts / n_each, n_each), minlength=n_nodes)
