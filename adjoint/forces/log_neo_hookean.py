r"""Adjoint of `adjsim/forces/log_neo_hookean.py`, which has the tangent: read them side by side.

Every block undoes the forward line with the same number, last line first.
Differentiated with respect to positions, velocities, mu V, lam/6, mu/6, eta V and the actuation,
and in functions of their own, `_consts`, with respect to M and 1/(6 V). Lines (5) and (6) are here,
the others in `adjoint/forces/neo_hookean.py`. Tests: `tests/forces/test_log_neo_hookean.py`.
"""

import numpy as np

from adjoint.examples import Example
from adjoint.forces.neo_hookean import SolidTetsTwin, solid_twin
from adjoint.forces.registry import register
from adjsim.algebra.logarithm import natural_log
from adjsim.forces.log_neo_hookean import (
    ELASTIC,
    SIXTH_MU,
    SWELL,
    VISCOUS,
    LogNeoHookeanTets,
    scalars,
)
from adjsim.forces.neo_hookean import ACTUATION, SIXTH_LAM
from adjsim.jit.backend import device_fn, lit
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State


@device_fn
def scalars_vjp(I_C, J, params, series, adj_s, adj_q):
    """Pull adj_s and adj_q back through (6) and (5): adj_I_C, adj_J, adj_params, adj_series."""
    r, swell = lit(1, J) / J, lit(SWELL, J)
    stretch, swollen = natural_log(J) - series[ACTUATION], lit(1, J) + swell * series[ACTUATION]
    g = params[SIXTH_LAM] * stretch - params[SIXTH_MU] * swollen  # (5) replayed

    # (6) q = r g, r = 1/J, s = mu_v
    adj_g = r * adj_q
    adj_J = -g * r * adj_g

    # (5) g = lam/6 (log J - a) - mu/6 (1 + 5/6 a)
    adj_J = adj_J + params[SIXTH_LAM] * r * adj_g
    adj_sixth_lam = stretch * adj_g
    adj_sixth_mu = -swollen * adj_g
    adj_a = -(params[SIXTH_LAM] + swell * params[SIXTH_MU]) * adj_g
    return lit(0, J), adj_J, (adj_s, adj_sixth_lam, adj_sixth_mu), (adj_a,)


ELASTIC_TWIN = solid_twin(ELASTIC, scalars, scalars_vjp)
VISCOUS_TWIN = solid_twin(VISCOUS, scalars, scalars_vjp)


class LogNeoHookeanTetsTwin(SolidTetsTwin[LogNeoHookeanTets]):
    """The twin of `LogNeoHookeanTets`. Packing: mu V, lam/6, mu/6, eta V."""

    def third_row_vjp(
        self, force: LogNeoHookeanTets, adj: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pull a cotangent of mu/6 back to mu."""
        del force
        return adj / 6.0, np.zeros_like(adj)


def example(n_steps: int) -> Example:
    """Two bodies of the same nodes: an elastic one, and one with all parameters, one lam < 0."""
    rng = np.random.default_rng(13)
    mesh = box_tets((2, 1, 1), (0.2, 0.1, 0.1))
    n, tets = len(mesh.points), len(mesh.tets)
    gel = LogNeoHookeanTets(
        mesh.tets,
        mesh.points,
        2e4 * rng.uniform(0.8, 1.2, tets),
        np.where(np.arange(tets) == 3, -5e3, 5e4),
        20.0 * rng.uniform(0.5, 1.5, tets),
        0.1 * rng.standard_normal((n_steps, tets)),
        1000.0 * rng.uniform(0.5, 1.5, tets),
    )
    gum = LogNeoHookeanTets(mesh.tets, mesh.points, 2e4, 5e4, actuation=0.02)
    x = mesh.points + 0.004 * rng.standard_normal((n, 3))
    model = Model(None, {"gel": gel, "gum": gum}, pinned=np.isin(np.arange(n), (0, 1)))
    return Example(model, State(x, rng.standard_normal((n, 3))), 5e-4, n_steps)


register(
    LogNeoHookeanTets, LogNeoHookeanTetsTwin(ELASTIC_TWIN, VISCOUS_TWIN), {"tets/log": example}
)
