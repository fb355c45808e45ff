r"""Adjoint of `adjsim/forces/external.py`, which has the tangent: read them side by side.

The map from the given forces to rows to nodes is linear. Nodes and velocities do not enter.
"""

import numpy as np

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjoint.series import series_rows_vjp
from adjsim.forces.external import EXTERNAL, ExternalForces, windowed
from adjsim.jit.backend import device_fn, lit
from adjsim.series import series_rows


@device_fn
def external_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `external_force`; adj_x is 0 and adj_v ()."""
    zero = lit(0, series[0])
    # (1) f = series
    return ((zero, zero, zero),), (), (), adj_f[0]


EXTERNAL_TWIN = TwinKind(EXTERNAL, external_vjp)


class ExternalForcesTwin(ForceTwin[ExternalForces]):
    """The twin of `ExternalForces`. Packing: rows outside the window are 0."""

    def pack_vjp(
        self, force: ExternalForces, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the force."""
        adj = windowed(adj_series, force.window, len(adj_series))
        full_shape = adj_series.shape[1:]
        if len(series_rows(force.force, full_shape, len(adj))) == 1:
            adj = adj.sum(axis=0, keepdims=True)  # a constant, also where a window repeats it
        return {"force": series_rows_vjp(force.force, full_shape, adj)}


register(ExternalForces, ExternalForcesTwin(EXTERNAL_TWIN))
