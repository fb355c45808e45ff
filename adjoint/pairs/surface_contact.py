"""The twin of the packing of `adjsim/pairs/surface_contact.py`."""

import numpy as np

from adjoint.forces.element import ForceTwin
from adjoint.forces.registry import register
from adjoint.pairs.pair_force import PAIR_TWIN
from adjsim.pairs.surface_contact import SurfaceContact


class SurfaceContactTwin(ForceTwin[SurfaceContact]):
    """The twin of contact between surfaces."""

    def __init__(self) -> None:
        super().__init__(PAIR_TWIN)

    def pack_vjp(
        self, force: SurfaceContact, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the scalars."""
        adj_rows = adj_params.copy()
        if force.other_radius is None:  # the one radius counts twice
            adj_rows[:, -2] += adj_rows[:, -1]
        return super().pack_vjp(force, adj_rows, adj_series)


register(SurfaceContact, SurfaceContactTwin())
