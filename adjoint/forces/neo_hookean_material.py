"""Adjoint of `adjsim/forces/neo_hookean_material.py`.

alpha = 1 + ALPHA mu/lam      adj_mu += s,  adj_lam -= mu/lam s,  s = ALPHA adj_alpha/lam
"""

from typing import TypeVar

import numpy as np

from adjoint.forces.lumping import LumpedForceTwin
from adjoint.series import series_rows_vjp
from adjoint.values import unbroadcast
from adjsim.forces.neo_hookean_material import ETA, LAM, MU, THIRD, NeoHookean


N = TypeVar("N", bound=NeoHookean)


class NeoHookeanTwin(LumpedForceTwin[N]):
    """The twin of elements of a neo-Hookean material, elastic or viscous."""

    def third_row_vjp(self, force: N, adj: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pull a cotangent of the third row back to mu and lam of each element."""
        adj_ratio = force.ALPHA * adj / force.lam
        return adj_ratio, -(force.mu / force.lam * adj_ratio)

    def pack_vjp(
        self, force: N, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to mu, lam, viscosity and actuation."""
        measure = force.rest_measure()
        of_mu, of_lam = self.third_row_vjp(force, adj_params[:, THIRD])
        adj_mu = measure * adj_params[:, MU] + of_mu
        adj_lam = adj_params[:, LAM] / force.LAM_PARTS + of_lam
        adj = {
            "mu": unbroadcast(adj_mu, force.mu.shape),
            "lam": unbroadcast(adj_lam, force.lam.shape),
            "actuation": series_rows_vjp(force.actuation, (len(measure),), adj_series[..., 0]),
        }
        if force.viscosity is not None:
            adj["viscosity"] = unbroadcast(measure * adj_params[:, ETA], force.viscosity.shape)
        return adj

    def adj_measure(self, force: N, adj_params: np.ndarray) -> np.ndarray:
        """Return the cotangents of the measures that mu V and eta V give."""
        adj = force.mu * adj_params[:, MU]
        return adj if force.viscosity is None else adj + force.viscosity * adj_params[:, ETA]
