r"""Adjoint of `adjsim/forces/neo_hookean.py`, which has the tangent: read them side by side.

Every block undoes the forward line with the same number, last line first.
Differentiated with respect to positions, velocities, mu V, lam/6, alpha, eta V and the actuation,
and with respect to M and 1/(6 V) in functions of their own, `_consts`: a gradient of the rest
positions costs nothing where it is not asked for.

The rule behind most lines: for D = A B, adj_A = adj_D B^T and adj_B = A^T adj_D. M is
symmetric; the cotangent of an entry off its diagonal counts both.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from adjoint.algebra.mat3 import cofactor_vjp
from adjoint.forces.element import TwinKind
from adjoint.forces.neo_hookean_material import NeoHookeanTwin
from adjoint.forces.registry import register
from adjoint.values import add_at_nodes
from adjsim.algebra.mat3 import (
    frobenius,
    madd,
    matmul,
    matmul_add,
    matmul_t,
    maxpy,
    mscale,
    symmetric,
    symmetric_t_matmul,
    t_matmul,
    trace,
    transpose,
)
from adjsim.algebra.vec3 import dot
from adjsim.forces.neo_hookean import (
    ACTUATION,
    ALPHA_0,
    ELASTIC,
    ETA_V,
    MU_V,
    PER_6V,
    SIXTH_LAM,
    VISCOUS,
    NeoHookeanTets,
    SolidTets,
    invariants,
    nodal_forces,
    rest_shape,
    scalars,
    stress_matrix,
)
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind


@device_fn
def scalars_vjp(I_C, J, params, series, adj_s, adj_q):
    """Pull adj_s and adj_q back through (5) and (6): adj_I_C, adj_J, adj_params, adj_series."""
    r = lit(1, I_C) / (I_C + lit(1, I_C))
    stretch = J - params[ALPHA_0] - series[ACTUATION]

    # (6) q = lam/6 (J - alpha0 - a)
    adj_sixth_lam = stretch * adj_q
    adj_J = params[SIXTH_LAM] * adj_q
    adj_alpha0 = -adj_J
    adj_a = -adj_J

    # (5) s = mu_v I_C / (I_C + 1)
    adj_mu_v = I_C * r * adj_s
    adj_I_C = params[MU_V] * r * r * adj_s
    return adj_I_C, adj_J, (adj_mu_v, adj_sixth_lam, adj_alpha0), (adj_a,)


@device_fn
def invariants_vjp(E, consts, W, C, adj_C, adj_I_C, adj_J, adj_E):
    """Pull back through `invariants`: adj_E added to.

    What W = E M contributes otherwise, the callers undo with line (10).
    """
    # (4) J = det(E)/(6 V), and the gradient of det is cof
    adj_E = maxpy(consts[PER_6V] * adj_J, C, adj_E)

    # (3) C = cof E
    adj_E = madd(cofactor_vjp(E, adj_C), adj_E)

    # (2) I_C = E : E M, whose gradient is 2 E M
    return maxpy(adj_I_C + adj_I_C, W, adj_E)


@device_fn
def stress_matrix_vjp(E, dE, eta_v, W, Z, adj_E):
    """Pull adj_T = W^T adj_H back through `stress_matrix`, with Z = adj_H M.

    Returns adj_E added to, adj_dE and adj_eta_v.
    """
    dg = symmetric_t_matmul(E, dE)  # (7) replayed

    # (9) T = s I + eta_v R, (8) R = dg M: adj_dg = eta_v adj_T M = eta_v W^T Z, of which only
    # the symmetric part counts, as dg is symmetric; and dg : W^T Z is eta_v's own
    Y = symmetric_t_matmul(W, Z)
    adj_eta_v = lit(0.5, eta_v) * frobenius(dg, Y)

    # (7) dg = E^T dE + dE^T E
    N = mscale(eta_v, Y)
    return matmul_add(dE, N, adj_E), matmul(E, N), adj_eta_v


@device_fn
def const_row(A, adj_r):
    """Return the cotangent of the constants: A's upper triangle, which counts both, and adj_r."""
    b = madd(A, transpose(A))
    return (A[0][0], b[0][1], b[0][2], A[1][1], b[1][2], A[2][2], adj_r)


def solid_twin(kind: ElementKind, scalars: Callable, scalars_vjp: Callable) -> TwinKind:
    """Return the twin of the `solid_kind` of a law, from its s and q and their adjoint."""
    viscous = kind.uses_velocity

    @device_fn
    def solid_vjp(x, v, consts, params, series, adj_f):
        """Pull adj_f back through `solid_force`; elastic: adj_v is ()."""
        W, C, I_C, J = invariants(x, consts)  # replayed
        s, q = scalars(I_C, J, params, series)  # replayed
        adj_H = nodal_forces(adj_f)  # (11) f = -H

        # (10) H = W T + q C, elastic T = s I; (1) W = E M
        adj_s, adj_v, adj_eta_v = frobenius(W, adj_H), (), ()
        if viscous:
            T = stress_matrix(x, v, consts, params[ETA_V], s)  # replayed
            Z = matmul(adj_H, symmetric(consts))  # adj_E = adj_H T^T M, and T^T M = M T
            adj_x, adj_v, adj_eta = stress_matrix_vjp(x, v, params[ETA_V], W, Z, matmul(Z, T))
            adj_eta_v = (adj_eta,)
        else:
            adj_x = matmul(mscale(s, adj_H), symmetric(consts))
        adj_q, adj_C = frobenius(C, adj_H), mscale(q, adj_H)

        # (6), (5) q and s of J and I_C
        adj_I_C, adj_J, adj_params, adj_series = scalars_vjp(I_C, J, params, series, adj_s, adj_q)
        adj_x = invariants_vjp(x, consts, W, C, adj_C, adj_I_C, adj_J, adj_x)
        return adj_x, adj_v, (*adj_params, *adj_eta_v), adj_series

    @device_fn
    def solid_vjp_consts(x, v, consts, params, series, adj_f):
        """Pull adj_f back through `solid_force` to M and 1/(6 V)."""
        W, C, I_C, J = invariants(x, consts)  # replayed
        s, _ = scalars(I_C, J, params, series)  # replayed
        adj_H = nodal_forces(adj_f)  # (11)
        adj_q, det = frobenius(C, adj_H), dot(x[0], C[0])

        # (10) H = W T + q C; (4) J = det(E)/(6 V), (2) I_C = E : W, (1) W = E M
        if viscous:
            T = stress_matrix(x, v, consts, params[ETA_V], s)  # replayed
            adj_T, adj_W = t_matmul(W, adj_H), matmul_t(adj_H, T)
            adj_I_C, adj_J, _, _ = scalars_vjp(I_C, J, params, series, trace(adj_T), adj_q)
            # (9) T = s I + eta_v R, (8) R = dg M with dg symmetric
            adj_M = matmul(symmetric_t_matmul(x, v), mscale(params[ETA_V], adj_T))
            A = madd(t_matmul(x, maxpy(adj_I_C, x, adj_W)), adj_M)
            return const_row(A, adj_J * det)
        adj_s = frobenius(W, adj_H)
        adj_I_C, adj_J, _, _ = scalars_vjp(I_C, J, params, series, adj_s, adj_q)
        return const_row(t_matmul(x, maxpy(adj_I_C, x, mscale(s, adj_H))), adj_J * det)

    return TwinKind(kind, solid_vjp, solid_vjp_consts)


S = TypeVar("S", bound=SolidTets)
MATRIX = [0, 1, 2, 1, 3, 4, 2, 4, 5]  # of an upper triangle, row by row
ELASTIC_TWIN = solid_twin(ELASTIC, scalars, scalars_vjp)
VISCOUS_TWIN = solid_twin(VISCOUS, scalars, scalars_vjp)


class SolidTetsTwin(NeoHookeanTwin[S]):
    """The twin of solid tetrahedra of any law.

    Packing: M = B B^T and 1/(6 V); mu V, lam/6, a third row, by default
    alpha0 = 1 + 3 mu/(4 lam), and eta V.
    """

    def rest_vjp(self, force: S, adj_consts: np.ndarray, adj_params: np.ndarray) -> np.ndarray:
        """Pull cotangents of M, 1/(6 V), mu V and eta V back to the rest positions."""
        B, V = rest_shape(force.rest_positions, force.tets)
        adj_V = self.adj_measure(force, adj_params) - adj_consts[:, PER_6V] / (6.0 * V * V)
        # M = B B^T; entries off the diagonal are given once and count twice
        both = adj_consts[:, MATRIX].reshape(-1, 3, 3) * (1.0 + np.eye(3))
        return rest_shape_vjp(force.rest_positions, force.tets, both @ B, adj_V)

    def measure_vjp(self, force: S, adj_measure: np.ndarray) -> np.ndarray:
        """Pull a cotangent of the volumes back to the rest positions."""
        zero = np.zeros((len(adj_measure), 3, 3))
        return rest_shape_vjp(force.rest_positions, force.tets, zero, adj_measure)


def rest_shape_vjp(
    rest_positions: np.ndarray, tets: np.ndarray, adj_B: np.ndarray, adj_V: np.ndarray
) -> np.ndarray:
    """Pull cotangents back through `rest_shape`: adj_rest, (n_nodes, 3)."""
    B, V = rest_shape(rest_positions, tets)
    B_t = B.transpose(0, 2, 1)
    # V = det(Dm)/6, whose gradient is V Dm^-T
    adj_Dm = (adj_V * V)[:, None, None] * B_t
    # B = Dm^-1, so dB = -B dDm B
    adj_Dm = adj_Dm - B_t @ adj_B @ B_t
    # the columns of Dm are X1 - X0, X2 - X0, X3 - X0
    edges = adj_Dm.transpose(0, 2, 1)
    corners = np.concatenate([-edges.sum(axis=1, keepdims=True), edges], axis=1)
    return add_at_nodes(corners, tets, len(rest_positions))


register(NeoHookeanTets, SolidTetsTwin(ELASTIC_TWIN, VISCOUS_TWIN))
