r"""The nodes that grips lead, in steps in Python: `adjsim/forces/grip.py` has (1) and (2).

Adjoint: `adjoint/steps/leads.py`. Tests: `tests/forces/test_grip.py`.
"""

import numpy as np

from adjsim.forces.grip import FIRST, STRIDE
from adjsim.tiles.assembly import TILE
from adjsim.tiles.loop_arrays import States


class Leads:
    """Which nodes are led, and where their places lie in a packed series; `led` as in `Nodes`."""

    def __init__(self, led: np.ndarray) -> None:
        self.nodes = np.flatnonzero(led[:, FIRST] >= 0)
        self.first, self.stride = led[self.nodes, FIRST], led[self.nodes, STRIDE]

    def places(self, k: int) -> np.ndarray:
        """Return where the places at the end of step k lie, (n_led, 3)."""
        return (self.first + k * self.stride)[:, None] + TILE * np.arange(3)

    def put(self, k: int, dt: float, series: np.ndarray, x: np.ndarray, end: States) -> None:
        """Write x and v of the led nodes at the end of step k, which began at x.

        The tangents of these, if `series`, `x` and `end` are tangents: it is linear.
        """
        end.x[self.nodes] = series[self.places(k)]  # (1)
        end.v[self.nodes] = (end.x[self.nodes] - x[self.nodes]) / dt  # (2)
