"""What forces share whose elements have a shape at rest and an actuation.

Tests: those of tetrahedra, triangles and hinges in `tests/forces/`.
"""

from typing import Any, ClassVar, Self

from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.element import Force


class RestShapedForce(Force):
    """A force with rest positions, one row per node of the model, and actuated elements."""

    rest_positions: Any
    actuation: Any

    SERIES: ClassVar = ("actuation", ())

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return self if there are rest positions of all nodes."""
        n_nodes = len(rows.indices)
        if len(self.rest_positions) != n_nodes:
            raise ValueError(
                f"`{name}.rest_positions` must have one row per node of the model: expected "
                f"({n_nodes}, 3), got {self.rest_positions.shape}."
            )
        return self
