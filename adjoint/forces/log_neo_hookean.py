r"""Adjoint of `adjsim/forces/log_neo_hookean.py`, which has the tangent: read them side by side.

Every block undoes the forward line with the same number, last line first.
Differentiated with respect to positions, velocities, mu V, lam/6, mu/6, eta V and the actuation,
and in functions of their own, `_consts`, with respect to M and 1/(6 V).
"""

import numpy as np

from adjoint.engine.algebra.mat3 import cofactor_vjp
from adjoint.forces.element import TwinKind
from adjoint.forces.neo_hookean import SolidTetsTwin, const_row, stress_matrix_vjp
from adjsim.engine.algebra.logarithm import natural_log
from adjsim.engine.algebra.mat3 import (
    cofactor,
    frobenius,
    madd,
    matmul,
    matmul_t,
    maxpy,
    mscale,
    symmetric,
    symmetric_t_matmul,
    t_matmul,
)
from adjsim.engine.algebra.vec3 import dot
from adjsim.engine.jit.backend import device_fn, lit
from adjsim.forces.log_neo_hookean import (
    ELASTIC,
    SWELL,
    VISCOUS,
    LogNeoHookeanTets,
    elastic_parts,
)
from adjsim.forces.neo_hookean import nodal_forces, stress_matrix


@device_fn
def volume_stress_vjp(J, params, series, adj_q):
    """Pull adj_q back through (5) and (4): adj_J, adj_sixth_lam, adj_sixth_mu, adj_a."""
    r, swell = lit(1, J) / J, lit(SWELL, J)
    stretch, swollen = natural_log(J) - series[0], lit(1, J) + swell * series[0]
    g = params[1] * stretch - params[2] * swollen  # (4) replayed

    # (5) q = r g, r = 1/J
    adj_g = r * adj_q
    adj_J = -g * r * adj_g

    # (4) g = lam/6 (log J - a) - mu/6 (1 + 5/6 a)
    adj_J = adj_J + params[1] * r * adj_g
    adj_sixth_lam = stretch * adj_g
    adj_sixth_mu = -swollen * adj_g
    adj_a = -(params[1] + swell * params[2]) * adj_g
    return adj_J, adj_sixth_lam, adj_sixth_mu, adj_a


@device_fn
def elastic_parts_vjp(E, consts, params, series, adj_C, adj_q, adj_E):
    """Pull back through `elastic_parts`: adj_E added to, adj_sixth_lam, adj_sixth_mu, adj_a.

    What W = E M contributes, the callers undo with line (6).
    """
    C = cofactor(E)  # (2) replayed
    J = consts[6] * dot(E[0], C[0])  # (3) replayed

    adj_J, adj_sixth_lam, adj_sixth_mu, adj_a = volume_stress_vjp(J, params, series, adj_q)

    # (3) J = det(E)/(6 V), and the gradient of det is cof
    adj_E = maxpy(consts[6] * adj_J, C, adj_E)

    # (2) C = cof E
    return madd(cofactor_vjp(E, adj_C), adj_E), adj_sixth_lam, adj_sixth_mu, adj_a


@device_fn
def log_neo_hookean_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `log_neo_hookean_force`; adj_v is ()."""
    W, C, q = elastic_parts(x, consts, params, series)  # replayed
    adj_H = nodal_forces(adj_f)  # f = -H

    # (6) H = mu_v W + q C, (1) W = E M
    adj_mu_v, adj_x = frobenius(W, adj_H), matmul(mscale(params[0], adj_H), symmetric(consts))
    adj_q, adj_C = frobenius(C, adj_H), mscale(q, adj_H)

    adj_x, adj_sixth_lam, adj_sixth_mu, adj_a = elastic_parts_vjp(
        x, consts, params, series, adj_C, adj_q, adj_x
    )
    return adj_x, (), (adj_mu_v, adj_sixth_lam, adj_sixth_mu), (adj_a,)


@device_fn
def viscous_log_neo_hookean_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `viscous_log_neo_hookean_force`."""
    W, C, q = elastic_parts(x, consts, params, series)  # replayed
    T = stress_matrix(x, v, consts, params[3], params[0])  # replayed
    adj_H = nodal_forces(adj_f)  # f = -H

    # (6) H = W T + q C, (1) W = E M; adj_E = adj_H T^T M, and T^T M = M T
    Z = matmul(adj_H, symmetric(consts))
    adj_mu_v, adj_x = frobenius(W, adj_H), matmul(Z, T)
    adj_q, adj_C = frobenius(C, adj_H), mscale(q, adj_H)

    adj_x, adj_v, adj_eta_v = stress_matrix_vjp(x, v, params[3], W, Z, adj_x)
    adj_x, adj_sixth_lam, adj_sixth_mu, adj_a = elastic_parts_vjp(
        x, consts, params, series, adj_C, adj_q, adj_x
    )
    return adj_x, adj_v, (adj_mu_v, adj_sixth_lam, adj_sixth_mu, adj_eta_v), (adj_a,)


@device_fn
def metric_vjp(E, consts, params, series, adj_W, adj_q):
    """Pull back through `elastic_parts` to M, all nine entries, and 1/(6 V)."""
    det = dot(E[0], cofactor(E)[0])  # replayed
    adj_J, _, _, _ = volume_stress_vjp(consts[6] * det, params, series, adj_q)
    # (3) J = det(E)/(6 V), (1) W = E M
    return t_matmul(E, adj_W), adj_J * det


@device_fn
def log_neo_hookean_vjp_consts(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `log_neo_hookean_force` to M and 1/(6 V)."""
    adj_H = nodal_forces(adj_f)
    adj_W, adj_q = mscale(params[0], adj_H), frobenius(cofactor(x), adj_H)  # (6)
    A, adj_r = metric_vjp(x, consts, params, series, adj_W, adj_q)
    return const_row(A, adj_r)


@device_fn
def viscous_log_neo_hookean_vjp_consts(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `viscous_log_neo_hookean_force` to M and 1/(6 V)."""
    W, C, _ = elastic_parts(x, consts, params, series)  # replayed
    T = stress_matrix(x, v, consts, params[3], params[0])  # replayed
    adj_H = nodal_forces(adj_f)
    adj_T, adj_W = t_matmul(W, adj_H), matmul_t(adj_H, T)  # (6)
    # T = mu_v I + eta_v R, R = dg M with dg symmetric
    adj_M = matmul(symmetric_t_matmul(x, v), mscale(params[3], adj_T))
    A, adj_r = metric_vjp(x, consts, params, series, adj_W, frobenius(C, adj_H))
    return const_row(madd(A, adj_M), adj_r)


ELASTIC_TWIN = TwinKind(ELASTIC, log_neo_hookean_vjp, log_neo_hookean_vjp_consts)
VISCOUS_TWIN = TwinKind(VISCOUS, viscous_log_neo_hookean_vjp, viscous_log_neo_hookean_vjp_consts)


class LogNeoHookeanTetsTwin(SolidTetsTwin[LogNeoHookeanTets]):
    """The twin of `LogNeoHookeanTets`. Packing: mu V, lam/6, mu/6, eta V."""

    ELASTIC = ELASTIC_TWIN
    VISCOUS = VISCOUS_TWIN

    def third_row_vjp(
        self, force: LogNeoHookeanTets, adj: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pull a cotangent of mu/6 back to mu."""
        del force
        return adj / 6.0, np.zeros_like(adj)
