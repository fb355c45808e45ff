r"""Adjoint and tangent of `adjsim/equilibrium.py`.

    r(x, theta) = f(x, 0, theta) + m g = 0 on the nodes that are not pinned          (1)
    tangent:  K tan_x = (dr/dtheta) tan_theta,   K = -df/dx                          (2)
    adjoint:  K^T lambda = adj_x,  adj_theta = (dr/dtheta)^T lambda                  (3)

Tests: `tests/test_equilibrium.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from adjoint.field import pull
from adjsim import checks
from adjsim.equilibrium import Equilibrium


def equilibrium_jvp(resting: Equilibrium, tangents: Mapping[str, Any]) -> np.ndarray:
    """Push tangents of parameters forward to the resting positions, (n_nodes, 3) [m].

    Only the pinned nodes of "state.x" have an effect: the others rest where they do.
    """
    model, by_path = resting.field.model, dict(tangents)
    tan_x = np.zeros((model.n_nodes, 3))
    if "state.x" in by_path:
        start = checks.array("state.x", by_path["state.x"], tan_x.shape)
        tan_x[model.pinned] = start[model.pinned]
        by_path["state.x"] = tan_x
    by_path.pop("state.v", None)
    tan_r = resting.field.push(resting.state, by_path, resting.row)
    rest = tan_x.copy()
    if resting.factor is not None:
        rest.ravel()[resting.free] = resting.factor.solve(tan_r.ravel()[resting.free])
    return rest


def equilibrium_vjp(
    resting: Equilibrium, adj_x: Any, wrt: Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """Pull the adjoint of the resting positions, (n_nodes, 3), back to parameters.

    Parameters
    ----------
    resting : Equilibrium
    adj_x : array_like
        (n_nodes, 3).
    wrt : iterable of str, optional
        Paths of the gradients wanted, by default all.

    Returns
    -------
    dict of str to numpy.ndarray
        Path to gradient, each of the shape of its parameter. That of "state.x" is 0 but for
        pinned nodes, that of "state.v" is 0.
    """
    field = checks.instance("resting", resting, Equilibrium).field
    model = field.model
    adj = checks.array("adj_x", adj_x, (model.n_nodes, 3))
    lam = np.zeros((model.n_nodes, 3))
    if resting.factor is not None:
        lam.ravel()[resting.free] = resting.factor.solve(adj.ravel()[resting.free], trans="T")
    gradient = pull(field, resting.state, lam, wrt, resting.row)
    if "state.x" in gradient:
        gradient["state.x"] = np.where(model.pinned[:, None], gradient["state.x"] + adj, 0.0)
    if "state.v" in gradient:
        gradient["state.v"] = np.zeros_like(adj)
    return gradient
