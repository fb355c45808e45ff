r"""Drag per mass on nodes, as of a thin fluid at rest around them.

    f_i = -kappa m_i v_i

With the node's mass m_i, which the model gives: all nodes slow down alike, v' = -kappa v, and fall
at g/kappa in the end. Rigid bodies have a `drag_rate` of their own (`adjsim/rigid/bodies.py`).

Adjoint: `adjoint/forces/linear_drag.py`. Tests: `tests/forces/test_linear_drag.py`. Source: ours.
"""

import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from adjsim import checks
from adjsim.algebra.vec3 import axpy, scale
from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


@device_fn
def linear_drag_force(x, v, consts, params, series):
    """Return the force [N] on one node."""
    return (scale(-params[0], v[0]),)  # (1)


@device_fn
def linear_drag_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `linear_drag_force`."""
    return (axpy(-params[0], tan_v[0], scale(-tan_params[0], v[0])),)  # (1)


LINEAR_DRAG = ElementKind(
    "linear_drag", linear_drag_force, 1, 0, 1, 0, uses_velocity=True, jvp=linear_drag_jvp
)


@dataclass(frozen=True, eq=False)
class LinearDrag(Force):
    """Drag of nodes per mass: each slows down by `rate` times its velocity.

    Parameters
    ----------
    rate : float or array
        kappa, () or (n_drags,), not negative [1/s].
    drag_nodes : array, optional
        The nodes that it slows down, (n_drags,) integer. None: every node of the model.

    Raises
    ------
    ValueError
        If an array has the wrong shape, is not finite, or a rate is negative.
    """

    rate: Any
    drag_nodes: Any = None
    masses: Any = field(default=None, init=False, repr=False)  # of the nodes, once bound [kg]

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("rate", "κ", "1/s", "() or (n_drags,)", positive=True),
    )
    KIND = LINEAR_DRAG
    ELEMENTS = "drag_nodes"

    def __post_init__(self) -> None:
        rate = checks.array("rate", self.rate)
        checks.freeze(self, "rate", checks.non_negative("rate", rate))
        if self.drag_nodes is not None:
            nodes = checks.integers("drag_nodes", self.drag_nodes, ("n_drags",))
            checks.freeze(self, "drag_nodes", nodes)

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return the drag of nodes of a model, its rate checked against them."""
        bound = super().bind(rows, name)
        checks.scalar_or_array(f"{name}.rate", self.rate, len(bound.rows), "n_drags")
        return bound

    def with_mass(self, mass: np.ndarray) -> "LinearDrag":
        """Return the drag of nodes of these masses."""
        bound = copy.copy(self)
        checks.freeze(bound, "masses", mass[self.rows])
        return bound

    def pack_params(self) -> np.ndarray:
        """Kappa m, (n_drags, 1) [N s/m]."""
        return (self.rate * self.masses)[:, None]

    def damping_bound(self) -> np.ndarray:
        """Kappa m of each node."""
        return self.rate * self.masses

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rate to rows."""
        tan_rate = tangents.get("rate", np.zeros(()))
        return (tan_rate * self.masses)[:, None], self.pack_series(n_steps)

    def with_mass_jvp(self, tan_mass: np.ndarray) -> np.ndarray:
        """Push a tangent of the node masses to rows."""
        return (self.rate * tan_mass[self.rows])[:, None]
