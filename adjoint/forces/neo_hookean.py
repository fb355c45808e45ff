r"""Adjoint of `adjsim/forces/neo_hookean.py`: read the two files side by side.

Every block undoes the forward line with the same number, last line first; each tangent
reads in forward order. Differentiated with respect to positions, velocities, mu V, lam V,
alpha, eta V and the actuation, and with respect to B in functions of their own, `_consts`:
a gradient of the rest positions costs nothing where it is not asked for.

The rule behind most lines: for D = A B, adj_A = adj_D B^T and adj_B = A^T adj_D.
"""

import numpy as np

from adjoint.element import TwinKind, add_at_nodes, unbroadcast
from adjoint.lumping import LumpedForceTwin
from adjoint.mat3 import cofactor_vjp
from adjoint.series import series_rows_jvp, series_rows_vjp
from adjsim.backend import device_fn, lit
from adjsim.element import broadcast
from adjsim.forces.neo_hookean import (
    ELASTIC,
    VISCOUS,
    NeoHookeanTets,
    add_viscous_pk1,
    deformation_gradient,
    elastic_pk1,
    nodal_forces,
    rest_shape,
)
from adjsim.mat3 import (
    cofactor,
    frobenius,
    madd,
    matmul,
    matmul_add,
    matmul_t,
    maxpy,
    mscale,
    symmetric_t_matmul,
    t_matmul,
    transpose,
)
from adjsim.meshes.tet_mesh import signed_volumes
from adjsim.vec3 import dot, neg


@device_fn
def elastic_pk1_jvp(F, params, series, tan_F, tan_params, tan_series):
    """Push tangents through `elastic_pk1`: the tangent of V P [N m]."""
    mu_v, lam_v, alpha0 = params[0], params[1], params[2]
    I_C = frobenius(F, F)  # (3)
    tan_I_C = lit(2, I_C) * frobenius(F, tan_F)
    C = cofactor(F)  # (4)
    tan_C = cofactor_vjp(F, tan_F)  # symmetric: tangent = adjoint
    J = dot(F[0], C[0])  # (5)
    tan_J = frobenius(C, tan_F)
    r = lit(1, I_C) / (I_C + lit(1, I_C))
    s = mu_v * I_C * r  # (6)
    tan_s = tan_params[0] * I_C * r + mu_v * r * r * tan_I_C
    stretch = J - alpha0 - series[0]
    p = lam_v * stretch  # (7)
    tan_p = tan_params[1] * stretch + lam_v * (tan_J - tan_params[2] - tan_series[0])
    tan_sF = maxpy(tan_s, F, mscale(s, tan_F))  # (8)
    return maxpy(tan_p, C, maxpy(p, tan_C, tan_sF))


@device_fn
def elastic_pk1_vjp(F, params, series, adj_P):
    """Pull adj_P back through `elastic_pk1`: adj_F, adj_params (3), adj_series (1)."""
    mu_v, lam_v, alpha0 = params[0], params[1], params[2]
    I_C = frobenius(F, F)  # (3) replayed
    C = cofactor(F)  # (4) replayed
    J = dot(F[0], C[0])  # (5) replayed
    r = lit(1, I_C) / (I_C + lit(1, I_C))
    s = mu_v * I_C * r  # (6) replayed
    stretch = J - alpha0 - series[0]
    p = lam_v * stretch  # (7) replayed

    # (8) P = s F + p C
    adj_s = frobenius(F, adj_P)
    adj_p = frobenius(C, adj_P)
    adj_C = mscale(p, adj_P)
    adj_F = mscale(s, adj_P)

    # (7) p = lam_v (J - alpha0 - a)
    adj_lam_v = stretch * adj_p
    adj_J = lam_v * adj_p
    adj_alpha0 = -adj_J
    adj_a = -adj_J

    # (6) s = mu_v I_C / (I_C + 1)
    adj_mu_v = I_C * r * adj_s
    adj_I_C = mu_v * r * r * adj_s

    # (5) J = det F, whose gradient is cof F
    adj_F = maxpy(adj_J, C, adj_F)

    # (4) C = cof F
    adj_F = madd(cofactor_vjp(F, adj_C), adj_F)

    # (3) I_C = tr(F^T F)
    adj_F = maxpy(adj_I_C + adj_I_C, F, adj_F)
    return adj_F, (adj_mu_v, adj_lam_v, adj_alpha0), (adj_a,)


@device_fn
def add_viscous_pk1_jvp(F, dF, eta_v, tan_F, tan_dF, tan_eta_v, tan_P):
    """Push tangents through `add_viscous_pk1`: tan_P plus that of the viscous V P [N m]."""
    S = symmetric_t_matmul(F, dF)  # (9)
    tan_S = madd(symmetric_t_matmul(tan_F, dF), symmetric_t_matmul(F, tan_dF))
    T = mscale(eta_v, S)  # (10)
    tan_T = maxpy(tan_eta_v, S, mscale(eta_v, tan_S))
    return matmul_add(tan_F, T, matmul_add(F, tan_T, tan_P))  # (11)


@device_fn
def add_viscous_pk1_vjp(F, dF, eta_v, adj_P, adj_F):
    """Pull adj_P back through `add_viscous_pk1`: adj_F added to, adj_dF, adj_eta_v."""
    S = symmetric_t_matmul(F, dF)  # (9) replayed
    T = mscale(eta_v, S)  # (10) replayed

    # (11) P += F T, T symmetric
    adj_F = matmul_add(adj_P, T, adj_F)
    adj_T = t_matmul(F, adj_P)

    # (10) T = eta_v S
    adj_eta_v = frobenius(S, adj_T)
    adj_S = mscale(eta_v, adj_T)

    # (9) S = F^T dF + dF^T F, so only the symmetric part of adj_S counts
    M = madd(adj_S, transpose(adj_S))
    adj_F = matmul_add(dF, M, adj_F)
    adj_dF = matmul(F, M)
    return adj_F, adj_dF, adj_eta_v


@device_fn
def nodal_forces_vjp(consts, adj_f):
    """Pull adj_f back through `nodal_forces`: adj_P."""
    # (13) f_k = -H_k; what f_0 adds to adj_f_k is the assembly's business
    adj_H = (neg(adj_f[0]), neg(adj_f[1]), neg(adj_f[2]))
    # (12) H = P B^T
    return matmul(adj_H, (consts[0:3], consts[3:6], consts[6:9]))


@device_fn
def deformation_gradient_vjp(consts, adj_F):
    """Pull adj_F back through `deformation_gradient`: adj_Ds."""
    # (1) F = Ds B
    return matmul_t(adj_F, (consts[0:3], consts[3:6], consts[6:9]))


@device_fn
def neo_hookean_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `neo_hookean_force`."""
    F = deformation_gradient(x, consts)
    tan_F = deformation_gradient(tan_x, consts)
    tan_P = elastic_pk1_jvp(F, params, series, tan_F, tan_params, tan_series)
    return nodal_forces(tan_P, consts)


@device_fn
def neo_hookean_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `neo_hookean_force`; adj_v is ()."""
    F = deformation_gradient(x, consts)
    adj_P = nodal_forces_vjp(consts, adj_f)
    adj_F, adj_params, adj_series = elastic_pk1_vjp(F, params, series, adj_P)
    return deformation_gradient_vjp(consts, adj_F), (), adj_params, adj_series


@device_fn
def viscous_neo_hookean_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `viscous_neo_hookean_force`."""
    F = deformation_gradient(x, consts)
    tan_F = deformation_gradient(tan_x, consts)
    dF = deformation_gradient(v, consts)
    tan_dF = deformation_gradient(tan_v, consts)
    tan_P = elastic_pk1_jvp(F, params, series, tan_F, tan_params, tan_series)
    tan_P = add_viscous_pk1_jvp(F, dF, params[3], tan_F, tan_dF, tan_params[3], tan_P)
    return nodal_forces(tan_P, consts)


@device_fn
def viscous_neo_hookean_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `viscous_neo_hookean_force`."""
    F = deformation_gradient(x, consts)
    dF = deformation_gradient(v, consts)
    adj_P = nodal_forces_vjp(consts, adj_f)
    adj_F, adj_params, adj_series = elastic_pk1_vjp(F, params, series, adj_P)
    adj_F, adj_dF, adj_eta_v = add_viscous_pk1_vjp(F, dF, params[3], adj_P, adj_F)
    adj_x = deformation_gradient_vjp(consts, adj_F)
    adj_v = deformation_gradient_vjp(consts, adj_dF)
    return adj_x, adj_v, (*adj_params, adj_eta_v), adj_series


@device_fn
def rest_matrix_vjp(x, adj_F, P, adj_f):
    """Pull adj_F and adj_f back to B, which lines (1) and (12) read: adj_B by columns."""
    # (13) f_k = -H_k, (12) H = P B^T
    adj_H = (neg(adj_f[0]), neg(adj_f[1]), neg(adj_f[2]))
    adj_B = t_matmul(adj_H, P)
    # (1) F = Ds B
    adj_B = madd(t_matmul(x, adj_F), adj_B)
    return (*adj_B[0], *adj_B[1], *adj_B[2])


@device_fn
def neo_hookean_jvp_consts(x, v, consts, params, series, tan_consts):
    """Push a tangent of B through `neo_hookean_force`."""
    zero = lit(0, consts[0])
    F = deformation_gradient(x, consts)
    tan_F = deformation_gradient(x, tan_consts)  # (1) is linear in B, and so is (12)
    tan_P = elastic_pk1_jvp(F, params, series, tan_F, (zero, zero, zero), (zero,))
    tan_f = nodal_forces(elastic_pk1(F, params, series), tan_consts)
    return madd(nodal_forces(tan_P, consts), tan_f)


@device_fn
def neo_hookean_vjp_consts(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `neo_hookean_force` to B."""
    F = deformation_gradient(x, consts)
    adj_P = nodal_forces_vjp(consts, adj_f)
    adj_F, _, _ = elastic_pk1_vjp(F, params, series, adj_P)
    return rest_matrix_vjp(x, adj_F, elastic_pk1(F, params, series), adj_f)


@device_fn
def viscous_neo_hookean_jvp_consts(x, v, consts, params, series, tan_consts):
    """Push a tangent of B through `viscous_neo_hookean_force`."""
    zero = lit(0, consts[0])
    F = deformation_gradient(x, consts)
    tan_F = deformation_gradient(x, tan_consts)
    dF = deformation_gradient(v, consts)
    tan_dF = deformation_gradient(v, tan_consts)
    tan_P = elastic_pk1_jvp(F, params, series, tan_F, (zero, zero, zero), (zero,))
    tan_P = add_viscous_pk1_jvp(F, dF, params[3], tan_F, tan_dF, zero, tan_P)
    P = add_viscous_pk1(F, dF, params[3], elastic_pk1(F, params, series))
    return madd(nodal_forces(tan_P, consts), nodal_forces(P, tan_consts))


@device_fn
def viscous_neo_hookean_vjp_consts(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `viscous_neo_hookean_force` to B."""
    F = deformation_gradient(x, consts)
    dF = deformation_gradient(v, consts)
    adj_P = nodal_forces_vjp(consts, adj_f)
    adj_F, _, _ = elastic_pk1_vjp(F, params, series, adj_P)
    adj_F, adj_dF, _ = add_viscous_pk1_vjp(F, dF, params[3], adj_P, adj_F)
    P = add_viscous_pk1(F, dF, params[3], elastic_pk1(F, params, series))
    # (1) dF = Dv B beside F = Ds B
    adj_B = t_matmul(v, adj_dF)
    rows = rest_matrix_vjp(x, adj_F, P, adj_f)
    adj_B = madd((rows[0:3], rows[3:6], rows[6:9]), adj_B)
    return (*adj_B[0], *adj_B[1], *adj_B[2])


ELASTIC_TWIN = TwinKind(
    ELASTIC, neo_hookean_jvp, neo_hookean_vjp, neo_hookean_jvp_consts, neo_hookean_vjp_consts
)
VISCOUS_TWIN = TwinKind(
    VISCOUS,
    viscous_neo_hookean_jvp,
    viscous_neo_hookean_vjp,
    viscous_neo_hookean_jvp_consts,
    viscous_neo_hookean_vjp_consts,
)


class NeoHookeanTetsTwin(LumpedForceTwin[NeoHookeanTets]):
    """The twin of `NeoHookeanTets`.

    Packing: mu_v = mu V, lam_v = lam V, alpha0 = 1 + 3 mu/(4 lam), eta_v = eta V.
    """

    def twin_kind(self, force: NeoHookeanTets) -> TwinKind:
        """Return the elastic twin, or the viscous one."""
        return ELASTIC_TWIN if force.viscosity is None else VISCOUS_TWIN

    def pack_vjp(
        self, force: NeoHookeanTets, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to mu, lam, viscosity and actuation."""
        volume = signed_volumes(force.rest_positions, force.tets)
        adj_alpha0 = adj_params[:, 2]
        adj_mu = volume * adj_params[:, 0] + 0.75 / force.lam * adj_alpha0
        adj_lam = volume * adj_params[:, 1] - 0.75 * force.mu / force.lam**2 * adj_alpha0
        adj = {
            "mu": unbroadcast(adj_mu, force.mu.shape),
            "lam": unbroadcast(adj_lam, force.lam.shape),
            "actuation": series_rows_vjp(force.actuation, (len(volume),), adj_series[..., 0]),
        }
        if force.viscosity is not None:
            adj["viscosity"] = unbroadcast(volume * adj_params[:, 3], force.viscosity.shape)
        return adj

    def pack_jvp(
        self, force: NeoHookeanTets, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of mu, lam, viscosity and actuation to rows."""
        volume = signed_volumes(force.rest_positions, force.tets)
        tan_mu, tan_lam = tangents.get("mu", np.zeros(())), tangents.get("lam", np.zeros(()))
        tan_alpha0 = 0.75 * (tan_mu - force.mu / force.lam * tan_lam) / force.lam
        rows = [tan_mu * volume, tan_lam * volume, broadcast(tan_alpha0, len(volume))]
        if force.viscosity is not None:
            rows.append(tangents.get("viscosity", np.zeros(())) * volume)
        tan_a = tangents.get("actuation")
        tan_series = series_rows_jvp(force.actuation, (len(volume),), tan_a, n_steps)
        return np.stack(rows, axis=-1), tan_series[..., None]

    def rest_vjp(
        self, force: NeoHookeanTets, adj_consts: np.ndarray, adj_params: np.ndarray
    ) -> np.ndarray:
        """Pull cotangents of B, mu V, lam V and eta V back to the rest positions."""
        adj_V = force.mu * adj_params[:, 0] + force.lam * adj_params[:, 1]
        if force.viscosity is not None:
            adj_V = adj_V + force.viscosity * adj_params[:, 3]
        adj_B = adj_consts.reshape(-1, 3, 3).transpose(0, 2, 1)
        return rest_shape_vjp(force.rest_positions, force.tets, adj_B, adj_V)

    def rest_jvp(
        self, force: NeoHookeanTets, tan_rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rest positions to B, mu V, lam V and eta V."""
        tan_B, tan_V = rest_shape_jvp(force.rest_positions, force.tets, tan_rest)
        rows = [force.mu * tan_V, force.lam * tan_V, np.zeros_like(tan_V)]
        if force.viscosity is not None:
            rows.append(force.viscosity * tan_V)
        return tan_B.transpose(0, 2, 1).reshape(-1, 9), np.stack(rows, axis=-1)

    def measure_vjp(self, force: NeoHookeanTets, adj_measure: np.ndarray) -> np.ndarray:
        """Pull a cotangent of the volumes back to the rest positions."""
        zero = np.zeros((len(adj_measure), 3, 3))
        return rest_shape_vjp(force.rest_positions, force.tets, zero, adj_measure)

    def measure_jvp(self, force: NeoHookeanTets, tan_rest: np.ndarray) -> np.ndarray:
        """Push a tangent of the rest positions to the volumes."""
        return rest_shape_jvp(force.rest_positions, force.tets, tan_rest)[1]


def rest_shape_jvp(
    rest_positions: np.ndarray, tets: np.ndarray, tan_rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Push a tangent through `rest_shape`: tan_B, tan_V."""
    B, V = rest_shape(rest_positions, tets)
    corners = tan_rest[tets]
    tan_Dm = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    BD = B @ tan_Dm
    return -BD @ B, V * np.trace(BD, axis1=1, axis2=2)


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
