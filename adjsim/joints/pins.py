r"""Pins: two points that are held together, nodes or points of rigid bodies.

    f_j = -k r - c r',  f_i = -f_j,  r = x_j - x_i

Each force acts at its own point. So the damper has the moment r x c r', small as r is; a
`BallJoint` between bodies has none.

Adjoint: `adjoint/joints/pins.py`. Tests: `tests/joints/test_pins.py`. Source: ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from adjsim.algebra.vec3 import axpy, scale
from adjsim.forces.acted_rows import NODES, ActedRows
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast


K, C = range(2)  # of a row's parameters


@device_fn
def pin_force(x, v, consts, params, series):
    """Return the force f_j on point j; `x` holds r and `v` its rate."""
    return (axpy(-params[K], x[0], scale(-params[C], v[0])),)  # (1)


@device_fn
def pin_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `pin_force`."""
    moved = axpy(-params[K], tan_x[0], scale(-params[C], tan_v[0]))
    return (axpy(-tan_params[K], x[0], axpy(-tan_params[C], v[0], moved)),)  # (1)


PIN = ElementKind("pin", pin_force, 2, 0, 2, 0, uses_velocity=True, relative=True, jvp=pin_jvp)


@dataclass(frozen=True, eq=False)
class Pins(Force):
    """Pins between pairs of nodes, or of points of rigid bodies.

    Parameters
    ----------
    pairs : array
        The two nodes of each pin, (n_pins, 2) integer; with bodies in `acts_on` vertices of
        their meshes too, or names of their points, as in [(0, "block.tip")].
    stiffness : float or array
        k, () or (n_pins,), not negative [N/m].
    damping : float or array, optional
        c, () or (n_pins,), not negative [N s/m]. None: no damper, and no parameter.
    acts_on : str or sequence of str
        "nodes", the name of a set of rigid bodies, or several of these: what the pins join.

    Raises
    ------
    ValueError
        If an array has the wrong shape or sign, or a pin joins a point to itself.
    """

    pairs: Any
    stiffness: Any
    damping: Any = None
    acts_on: str | Sequence[str] = NODES

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", "k", "N/m", "() or (n_pins,)", positive=True),
        Parameter("damping", "c", "N s/m", "() or (n_pins,)", positive=True),
    )
    KIND = PIN
    PACKED: ClassVar = {"stiffness": (), "damping": ()}
    ELEMENTS = "pairs"

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return the pins between rows of a model."""
        bound = super().bind(rows, name)
        ends = bound.nodes
        loops = ends[:, 0] == ends[:, 1]
        if loops.any():
            row = int(np.argmax(loops))
            raise ValueError(
                f"`{name}.pairs` must join two different points, got the same one twice at row "
                f"{row}."
            )
        return bound

    def stiffness_bound(self) -> np.ndarray:
        """2 k: the largest eigenvalue of k [[1, -1], [-1, 1]]."""
        return np.array(broadcast(2.0 * self.stiffness, len(self.nodes)))

    def damping_bound(self) -> np.ndarray:
        """2 c, for the same reason."""
        damping = np.zeros(()) if self.damping is None else self.damping
        return np.array(broadcast(2.0 * damping, len(self.nodes)))
