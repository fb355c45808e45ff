"""What forces share whose elements have a shape at rest and an actuation.

Tests: those of tetrahedra, triangles and hinges in `tests/forces/`.
"""

from typing import Any, Self

import numpy as np

from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.element import Force
from adjsim.series import series_rows, steps_of


class RestShapedForce(Force):
    """A force with rest positions, one row per node of the model, and actuated elements."""

    rest_positions: Any
    actuation: Any

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return self if there are rest positions of all nodes."""
        n_nodes = len(rows.indices)
        if len(self.rest_positions) != n_nodes:
            raise ValueError(
                f"`{name}.rest_positions` must have one row per node of the model: expected "
                f"({n_nodes}, 3), got {self.rest_positions.shape}."
            )
        return self

    def pack_series(self, n_steps: int) -> np.ndarray:
        """The actuation, (1 or n_steps, n_elements, 1)."""
        return series_rows(self.actuation, (len(self.nodes),), n_steps)[..., None]

    def series_steps(self) -> dict[str, int]:
        """Return the number of rows of an actuation that varies in time."""
        return steps_of(self, {"actuation": (len(self.nodes),)})
