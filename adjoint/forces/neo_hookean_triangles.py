r"""Adjoint of `adjsim/forces/neo_hookean_triangles.py`: read the two files side by side.

Every block undoes the forward line with the same number, last line first; each tangent
reads in forward order. Differentiated with respect to positions, velocities, mu A0, lam/2,
alpha, eta A0 and the actuation; the rest shape is frozen.

Cotangents of symmetric 2 x 2 matrices are symmetric too, paired by tr(adj_A dA). Three
linear maps do the work, and each is symmetric in this pairing or has a short transpose:

    A -> cof A and A -> M A M are their own adjoints,
    E -> E^T E has the tangent E^T dE + dE^T E, so adj_E = 2 E adj_g.

The tangent of l = sqrt(det g) is tr(cof(g) dg)/(2 l).
"""

import numpy as np

from adjoint.element import ForceTwin, TwinKind, unbroadcast
from adjoint.series import series_rows_jvp, series_rows_vjp
from adjsim.backend import device_fn, lit
from adjsim.element import broadcast
from adjsim.forces.neo_hookean_triangles import (
    ELASTIC,
    VISCOUS,
    NeoHookeanTriangles,
    add_viscous_stress,
    double_area,
    elastic_stress,
    inverses,
    rest_shape,
)
from adjsim.sym2 import (
    cofactor,
    columns_times,
    columns_times_add,
    frobenius,
    gram,
    gram_rate,
    sandwich,
    saxpy,
    sscale,
    sym_t_matmul,
)
from adjsim.vec3 import neg


@device_fn
def elastic_stress_jvp(g, l, consts, params, series, tan_g, tan_params, tan_series):
    """Push tangents through lines (2) to (7): the tangent of S."""
    M, r = consts[0:3], consts[3]
    mu_a, half_lam, alpha0 = params[0], params[1], params[2]
    C = cofactor(g)
    I_C = frobenius(M, g)  # (3)
    tan_I_C = frobenius(M, tan_g)
    u, over_l = inverses(I_C + lit(1, I_C), l)
    tan_l = lit(0.5, l) * over_l * frobenius(C, tan_g)  # (2)
    tan_s = tan_params[0] * I_C * u + mu_a * u * u * tan_I_C  # (4) s = mu_a I_C u
    stretch = r * l - alpha0 - series[0]
    p = half_lam * stretch  # (5)
    tan_p = tan_params[1] * stretch + half_lam * (r * tan_l - tan_params[2] - tan_series[0])
    q = p * over_l  # (6)
    tan_q = over_l * (tan_p - q * tan_l)
    tan_sM = sscale(tan_s, M)  # (7)
    return saxpy(tan_q, C, saxpy(q, cofactor(tan_g), tan_sM))


@device_fn
def elastic_stress_vjp(g, l, consts, params, series, adj_S):
    """Pull adj_S back through lines (7) to (2): adj_g, adj_params (3), adj_series (1)."""
    M, r = consts[0:3], consts[3]
    mu_a, half_lam, alpha0 = params[0], params[1], params[2]
    I_C = frobenius(M, g)  # (3) replayed
    u, over_l = inverses(I_C + lit(1, I_C), l)
    stretch = r * l - alpha0 - series[0]
    p = half_lam * stretch  # (5) replayed
    q = p * over_l  # (6) replayed
    C = cofactor(g)

    # (7) S = s M + q cof g
    adj_s = frobenius(M, adj_S)
    adj_q = frobenius(C, adj_S)
    adj_g = sscale(q, cofactor(adj_S))

    # (6) q = p/l
    adj_p = over_l * adj_q
    adj_l = -q * adj_p

    # (5) p = lam/2 (r l - alpha0 - a)
    adj_half_lam = stretch * adj_p
    adj_stretch = half_lam * adj_p
    adj_l += r * adj_stretch

    # (4) s = mu_a I_C/(I_C + 1)
    adj_mu_a = I_C * u * adj_s
    adj_I_C = mu_a * u * u * adj_s

    # (3) I_C = tr(M g)
    adj_g = saxpy(adj_I_C, M, adj_g)

    # (2) l = sqrt(det g)
    adj_g = saxpy(lit(0.5, l) * over_l * adj_l, C, adj_g)
    return adj_g, (adj_mu_a, adj_half_lam, -adj_stretch), (-adj_stretch,)


@device_fn
def add_viscous_stress_jvp(dg, M, eta_a, tan_dg, tan_eta_a, tan_S):
    """Push tangents through `add_viscous_stress`: tan_S plus that of the viscous stress."""
    change = saxpy(eta_a, tan_dg, sscale(tan_eta_a, dg))
    return saxpy(lit(1, eta_a), sandwich(M, change), tan_S)  # (9)


@device_fn
def add_viscous_stress_vjp(dg, M, eta_a, adj_S):
    """Pull adj_S back through `add_viscous_stress`: adj_dg, adj_eta_a."""
    # (9) S += eta_a M dg M
    H = sandwich(M, adj_S)
    return sscale(eta_a, H), frobenius(dg, H)


@device_fn
def nodal_forces_jvp(E, S, tan_E, tan_S):
    """Push tangents through `nodal_forces`."""
    tan_H = columns_times_add(E, tan_S, columns_times(tan_E, S))  # (10)
    return (neg(tan_H[0]), neg(tan_H[1]))


@device_fn
def nodal_forces_vjp(E, S, adj_f):
    """Pull adj_f back through `nodal_forces`: adj_E, adj_S."""
    # (10) f_k = -(E S)_k; what f_0 adds to adj_f_k is the assembly's business
    adj_H = (neg(adj_f[0]), neg(adj_f[1]))
    return columns_times(adj_H, S), sym_t_matmul(E, adj_H)


@device_fn
def gram_vjp(E, adj_g, adj_E):
    """Pull adj_g back through g = E^T E: adj_E added to."""
    # (1) g = E^T E
    return columns_times_add(E, sscale(lit(2, adj_g[0]), adj_g), adj_E)


@device_fn
def neo_hookean_triangle_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `neo_hookean_triangle_force`."""
    g = gram(x)  # (1)
    tan_g = gram_rate(x, tan_x)
    l = double_area(x, g)  # (2)
    S = elastic_stress(g, l, consts, params, series)
    tan_S = elastic_stress_jvp(g, l, consts, params, series, tan_g, tan_params, tan_series)
    return nodal_forces_jvp(x, S, tan_x, tan_S)


@device_fn
def neo_hookean_triangle_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `neo_hookean_triangle_force`; adj_v is ()."""
    g = gram(x)  # (1) replayed
    l = double_area(x, g)  # (2) replayed
    S = elastic_stress(g, l, consts, params, series)
    adj_x, adj_S = nodal_forces_vjp(x, S, adj_f)
    adj_g, adj_params, adj_series = elastic_stress_vjp(g, l, consts, params, series, adj_S)
    return gram_vjp(x, adj_g, adj_x), (), adj_params, adj_series


@device_fn
def viscous_neo_hookean_triangle_jvp(
    x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series
):
    """Push tangents through `viscous_neo_hookean_triangle_force`."""
    g = gram(x)  # (1)
    tan_g = gram_rate(x, tan_x)
    l = double_area(x, g)  # (2)
    S = elastic_stress(g, l, consts, params, series)
    tan_S = elastic_stress_jvp(g, l, consts, params, series, tan_g, tan_params, tan_series)
    M, eta_a = consts[0:3], params[3]
    dg = gram_rate(x, v)  # (8)
    one = lit(1, eta_a)
    tan_dg = saxpy(one, gram_rate(tan_x, v), gram_rate(x, tan_v))
    tan_S = add_viscous_stress_jvp(dg, M, eta_a, tan_dg, tan_params[3], tan_S)
    return nodal_forces_jvp(x, add_viscous_stress(dg, M, eta_a, S), tan_x, tan_S)


@device_fn
def viscous_neo_hookean_triangle_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `viscous_neo_hookean_triangle_force`."""
    g = gram(x)  # (1) replayed
    l = double_area(x, g)  # (2) replayed
    S = elastic_stress(g, l, consts, params, series)
    M, eta_a = consts[0:3], params[3]
    dg = gram_rate(x, v)  # (8) replayed
    S = add_viscous_stress(dg, M, eta_a, S)
    adj_x, adj_S = nodal_forces_vjp(x, S, adj_f)
    adj_dg, adj_eta_a = add_viscous_stress_vjp(dg, M, eta_a, adj_S)

    # (8) dg = E^T W + W^T E
    adj_dg = sscale(lit(2, eta_a), adj_dg)
    adj_x = columns_times_add(v, adj_dg, adj_x)
    adj_v = columns_times(x, adj_dg)

    adj_g, adj_params, adj_series = elastic_stress_vjp(g, l, consts, params, series, adj_S)
    return gram_vjp(x, adj_g, adj_x), adj_v, (*adj_params, adj_eta_a), adj_series


ELASTIC_TWIN = TwinKind(ELASTIC, neo_hookean_triangle_jvp, neo_hookean_triangle_vjp)
VISCOUS_TWIN = TwinKind(VISCOUS, viscous_neo_hookean_triangle_jvp, viscous_neo_hookean_triangle_vjp)


class NeoHookeanTrianglesTwin(ForceTwin[NeoHookeanTriangles]):
    """The twin of `NeoHookeanTriangles`.

    Packing: mu_a = mu A0, half_lam = lam/2, alpha0 = 1 + 2 mu/(3 lam), eta_a = eta A0.
    """

    def twin_kind(self, force: NeoHookeanTriangles) -> TwinKind:
        """Return the elastic twin, or the viscous one."""
        return ELASTIC_TWIN if force.viscosity is None else VISCOUS_TWIN

    def pack_vjp(
        self, force: NeoHookeanTriangles, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to mu, lam, viscosity and actuation."""
        _, area = rest_shape(force.rest_positions, force.triangles)
        adj_alpha0 = 2.0 / 3.0 * adj_params[:, 2] / force.lam
        adj_mu = area * adj_params[:, 0] + adj_alpha0
        adj_lam = 0.5 * adj_params[:, 1] - force.mu / force.lam * adj_alpha0
        adj = {
            "mu": unbroadcast(adj_mu, force.mu.shape),
            "lam": unbroadcast(adj_lam, force.lam.shape),
            "actuation": series_rows_vjp(force.actuation, (len(area),), adj_series[..., 0]),
        }
        if force.viscosity is not None:
            adj["viscosity"] = unbroadcast(area * adj_params[:, 3], force.viscosity.shape)
        return adj

    def pack_jvp(
        self, force: NeoHookeanTriangles, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of mu, lam, viscosity and actuation to rows."""
        _, area = rest_shape(force.rest_positions, force.triangles)
        tan_mu, tan_lam = tangents.get("mu", np.zeros(())), tangents.get("lam", np.zeros(()))
        tan_alpha0 = 2.0 / 3.0 * (tan_mu - force.mu / force.lam * tan_lam) / force.lam
        rows = [
            tan_mu * area,
            *(broadcast(row, len(area)) for row in (0.5 * tan_lam, tan_alpha0)),
        ]
        if force.viscosity is not None:
            rows.append(tangents.get("viscosity", np.zeros(())) * area)
        tan_a = tangents.get("actuation")
        tan_series = series_rows_jvp(force.actuation, (len(area),), tan_a, n_steps)
        return np.stack(rows, axis=-1), tan_series[..., None]
