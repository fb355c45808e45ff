r"""Adjoint of `adjsim/forces/neo_hookean_triangles.py`, which has the tangent too.

Every block undoes the forward line with the same number, last line first.
Differentiated with respect to positions, velocities, mu A0, lam/2, alpha, eta A0 and the actuation,
and with respect to M and 1/(2 A0) in functions of their own, `_consts`: a gradient of the rest
positions costs nothing where it is not asked for.

Cotangents of symmetric 2 x 2 matrices are symmetric too, paired by tr(adj_A dA). Three
linear maps do the work, and each is symmetric in this pairing or has a short transpose:

    A -> cof A and A -> M A M are their own adjoints,
    E -> E^T E has the tangent E^T dE + dE^T E, so adj_E = 2 E adj_g.

The tangent of l = sqrt(det g) is tr(cof(g) dg)/(2 l).
"""

import numpy as np

from adjoint.forces.element import TwinKind
from adjoint.forces.neo_hookean_material import NeoHookeanTwin
from adjoint.forces.registry import register
from adjoint.values import add_at_nodes
from adjsim.algebra.sym2 import (
    cofactor,
    columns_times,
    columns_times_add,
    frobenius,
    gram,
    gram_rate,
    sandwich,
    sandwich_twice,
    saxpy,
    sscale,
    sym_t_matmul,
)
from adjsim.algebra.vec3 import neg
from adjsim.forces.neo_hookean_triangles import (
    ACTUATION,
    ALPHA_0,
    ELASTIC,
    ETA_A,
    HALF_LAM,
    METRIC,
    MU_A,
    PER_AREA,
    VISCOUS,
    NeoHookeanTriangles,
    add_viscous_stress,
    double_area,
    elastic_stress,
    inverses,
    rest_edges,
    rest_shape,
)
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind


@device_fn
def elastic_stress_vjp(g, l, consts, params, series, adj_S):
    """Pull adj_S back through lines (7) to (2): adj_g, adj_params (3), adj_series (1)."""
    M, r = consts[METRIC], consts[PER_AREA]
    mu_a, half_lam, alpha0 = params[MU_A], params[HALF_LAM], params[ALPHA_0]
    I_C = frobenius(M, g)  # (3) replayed
    u, over_l = inverses(I_C + lit(1, I_C), l)
    stretch = r * l - alpha0 - series[ACTUATION]
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
def add_viscous_stress_vjp(dg, M, eta_a, adj_S):
    """Pull adj_S back through `add_viscous_stress`: adj_dg, adj_eta_a."""
    # (9) S += eta_a M dg M
    H = sandwich(M, adj_S)
    return sscale(eta_a, H), frobenius(dg, H)


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
def elastic_stress_vjp_consts(g, consts, params, adj_S):
    """Pull adj_S back through lines (7) to (3): adj_M, paired by `frobenius`, and adj_r."""
    M = consts[METRIC]
    mu_a, half_lam = params[MU_A], params[HALF_LAM]
    I_C = frobenius(M, g)  # (3) replayed
    u = lit(1, I_C) / (I_C + lit(1, I_C))

    # (7) S = s M + q cof g, with (6), (5) q = lam/2 (r l - alpha0 - a)/l
    adj_M = sscale(mu_a * I_C * u, adj_S)
    adj_r = half_lam * frobenius(cofactor(g), adj_S)

    # (4) s = mu_a I_C/(I_C + 1), (3) I_C = tr(M g)
    adj_I_C = mu_a * u * u * frobenius(M, adj_S)
    return saxpy(adj_I_C, g, adj_M), adj_r


def triangle_twin(kind: ElementKind) -> TwinKind:
    """Return the twin of a `triangle_kind`."""
    viscous = kind.uses_velocity

    @device_fn
    def triangle_vjp(x, v, consts, params, series, adj_f):
        """Pull adj_f back through `triangle_force`; elastic: adj_v is ()."""
        g = gram(x)  # (1) replayed
        l = double_area(x, g)  # (2) replayed
        S = elastic_stress(g, l, consts, params, series)
        if viscous:
            M, eta_a = consts[METRIC], params[ETA_A]
            dg = gram_rate(x, v)  # (8) replayed
            adj_x, adj_S = nodal_forces_vjp(x, add_viscous_stress(dg, M, eta_a, S), adj_f)
            adj_dg, adj_eta_a = add_viscous_stress_vjp(dg, M, eta_a, adj_S)

            # (8) dg = E^T W + W^T E
            adj_dg = sscale(lit(2, eta_a), adj_dg)
            adj_x = columns_times_add(v, adj_dg, adj_x)
            adj_v, adj_eta = columns_times(x, adj_dg), (adj_eta_a,)
        else:
            adj_x, adj_S = nodal_forces_vjp(x, S, adj_f)
            adj_v, adj_eta = (), ()
        adj_g, adj_params, adj_series = elastic_stress_vjp(g, l, consts, params, series, adj_S)
        return gram_vjp(x, adj_g, adj_x), adj_v, (*adj_params, *adj_eta), adj_series

    @device_fn
    def triangle_vjp_consts(x, v, consts, params, series, adj_f):
        """Pull adj_f back through `triangle_force` to M and r."""
        adj_S = sym_t_matmul(x, (neg(adj_f[0]), neg(adj_f[1])))  # (10) f_k = -(E S)_k
        adj_M, adj_r = elastic_stress_vjp_consts(gram(x), consts, params, adj_S)
        if viscous:
            # (9) S += eta_a M dg M
            rate = sandwich_twice(gram_rate(x, v), consts[METRIC], adj_S)
            adj_M = saxpy(params[ETA_A], rate, adj_M)
        return (adj_M[0], adj_M[1] + adj_M[1], adj_M[2], adj_r)  # M12 stands for two entries

    return TwinKind(kind, triangle_vjp, triangle_vjp_consts)


ELASTIC_TWIN, VISCOUS_TWIN = triangle_twin(ELASTIC), triangle_twin(VISCOUS)


class NeoHookeanTrianglesTwin(NeoHookeanTwin[NeoHookeanTriangles]):
    """The twin of `NeoHookeanTriangles`.

    Packing: mu_a = mu A0, half_lam = lam/2, alpha0 = 1 + 2 mu/(3 lam), eta_a = eta A0.
    """

    def rest_vjp(
        self, force: NeoHookeanTriangles, adj_consts: np.ndarray, adj_params: np.ndarray
    ) -> np.ndarray:
        """Pull cotangents of M, 1/(2 A0), mu A0 and eta A0 back to the rest positions."""
        _, area = rest_shape(force.rest_positions, force.triangles)
        adj_M, adj_per_area = adj_consts[:, METRIC], adj_consts[:, PER_AREA]
        adj_area = self.adj_measure(force, adj_params) - 0.5 * adj_per_area / area**2
        return rest_shape_vjp(force.rest_positions, force.triangles, adj_M, adj_area)

    def measure_vjp(self, force: NeoHookeanTriangles, adj_measure: np.ndarray) -> np.ndarray:
        """Pull a cotangent of the areas back to the rest positions."""
        zero = np.zeros((len(adj_measure), 3))
        return rest_shape_vjp(force.rest_positions, force.triangles, zero, adj_measure)


def rest_shape_vjp(
    rest_positions: np.ndarray, triangles: np.ndarray, adj_rows: np.ndarray, adj_area: np.ndarray
) -> np.ndarray:
    """Pull cotangents of M11, M12, M22 and A0 back through `rest_shape`, (n_nodes, 3)."""
    rows, area = rest_shape(rest_positions, triangles)
    M = rows[:, [[0, 1], [1, 2]]]
    adj_M = (adj_rows * [1.0, 0.5, 1.0])[:, [[0, 1], [1, 2]]]  # M12 stands for two entries
    # A0 = sqrt(det G)/2, whose gradient is A0 M/2
    adj_G = (0.5 * adj_area * area)[:, None, None] * M
    # M = G^-1, so dM = -M dG M
    adj_G = adj_G - M @ adj_M @ M
    # G = E^T E
    adj_E = 2.0 * rest_edges(rest_positions, triangles) @ adj_G
    edges = adj_E.transpose(0, 2, 1)
    corners = np.concatenate([-edges.sum(axis=1, keepdims=True), edges], axis=1)
    return add_at_nodes(corners, triangles, len(rest_positions))


register(NeoHookeanTriangles, NeoHookeanTrianglesTwin(ELASTIC_TWIN, VISCOUS_TWIN))
