r"""Stable neo-Hookean triangles: a thin sheet that stretches, with viscosity and actuation.

    F = [x1-x0, x2-x0] B in R^(3x2),  I_C = tr(F^T F),  J = sqrt(det(F^T F)) = A/A0
    psi = mu/2 (I_C - 2) + lam/2 (J - alpha)^2 - mu/2 log(I_C + 1),  U = A0 psi
    alpha = 1 + 2 mu/(3 lam) + a
    P = mu (1 - 1/(I_C + 1)) F + lam (J - alpha) dJ/dF + eta F (dF^T F + F^T dF)
    [f1 f2] = -A0 P B^T,  f0 = -(f1 + f2)

B is the inverse of the rest edges in a frame of their plane, dF = [v1-v0, v2-v0] B the rate
of F, `a` the actuation: 0 at rest, a > 0 swells. No frame is needed. With the edges
E = [x1-x0, x2-x0] and their metric g = E^T E, and M = B B^T, the inverse of the rest metric,

    F^T F = B^T g B,   so   I_C = tr(M g)   and   J = l/(2 A0),  l = |e1 x e2| = sqrt(det g)

and U depends on g alone. Its force is -dU/dE = -E S with the symmetric 2 x 2 matrix
S = 2 dU/dg, the stress in the basis of the edges. As dl/dg = cof(g)/(2 l),

    S = mu A0 (1 - 1/(I_C + 1)) M + (lam/2) (J - alpha)/l cof g + eta A0 M dg M

where dg is the rate of g: A0 F (dF^T F + F^T dF) B^T = A0 E B (B^T dg B) B^T = E (A0 M dg M).
S is symmetric, so a rotation does no work: forces and torques sum to zero. As that of
tetrahedra, rounding goes with the square of the condition number of the rest edges: at a strain
of a tenth it is up to eps cond^2 of the force, a twentieth of that in the median.

Rows hold M [1/m2] and 1/(2 A0) as constants; mu A0 [N m], lam/2 [N/m], alpha at a = 0, and
eta A0 [N m s]. A triangle whose area is not above rounding has no normal: l counts as 0
there and its forces are not finite, so that the rollout stops.

Adjoint: `adjoint/forces/neo_hookean_triangles.py`.
Tests: `tests/forces/test_neo_hookean_triangles.py`.
Source: Smith, de Goes & Kim, ACM Trans. Graph. 37(2), 2018, eq. 14, in the plane (ours);
gradSim (ICLR 2021) eq. 1 and 6.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
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
)
from adjsim.algebra.vec3 import cross, neg, norm
from adjsim.forces.neo_hookean_material import NeoHookean
from adjsim.jit.backend import device_fn, lit
from adjsim.meshes.triangle_mesh import check_areas, collapsed_triangle
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


MU_A, HALF_LAM, ALPHA_0, ETA_A = range(4)  # of a row's parameters
METRIC, PER_AREA = slice(0, 3), 3  # of its constants: M and 1/(2 A0)
ACTUATION = 0  # of its series


@device_fn
def double_area(E, g):
    """Return l = |e1 x e2| [m2], twice the area; 0 where it is not above rounding."""
    l = norm(cross(E[0], E[1]))
    total = g[0] + g[2]
    return l if total + lit(0.125, l) * l > total else l - l


@device_fn
def inverses(a, b):
    """Return 1/a and 1/b for one division: divisions are what the element waits for."""
    over_ab = lit(1, a) / (a * b)
    return over_ab * b, over_ab * a


@device_fn
def elastic_stress(g, l, consts, params, series):
    """Return S [N/m], with E S the elastic pull on nodes 1 and 2, of a metric and its l."""
    M, r = consts[METRIC], consts[PER_AREA]
    mu_a, half_lam, alpha0 = params[MU_A], params[HALF_LAM], params[ALPHA_0]
    I_C = frobenius(M, g)  # (3)
    u, over_l = inverses(I_C + lit(1, I_C), l)
    s = mu_a * I_C * u  # (4) = mu A0 (1 - 1/(I_C + 1)): no cancellation
    p = half_lam * (r * l - alpha0 - series[ACTUATION])  # (5) = dU/dl
    q = p * over_l  # (6)
    return saxpy(q, cofactor(g), sscale(s, M))  # (7)


@device_fn
def elastic_stress_jvp(g, l, consts, params, series, tan_g, tan_params, tan_series):
    """Push tangents through lines (2) to (7): the tangent of S."""
    M, r = consts[METRIC], consts[PER_AREA]
    mu_a, half_lam, alpha0 = params[MU_A], params[HALF_LAM], params[ALPHA_0]
    C = cofactor(g)
    I_C = frobenius(M, g)  # (3)
    tan_I_C = frobenius(M, tan_g)
    u, over_l = inverses(I_C + lit(1, I_C), l)
    tan_l = lit(0.5, l) * over_l * frobenius(C, tan_g)  # (2)
    tan_s = tan_params[MU_A] * I_C * u + mu_a * u * u * tan_I_C  # (4) s = mu_a I_C u
    stretch = r * l - alpha0 - series[ACTUATION]
    p = half_lam * stretch  # (5)
    tan_stretch = r * tan_l - tan_params[ALPHA_0] - tan_series[ACTUATION]
    tan_p = tan_params[HALF_LAM] * stretch + half_lam * tan_stretch
    q = p * over_l  # (6)
    tan_q = over_l * (tan_p - q * tan_l)
    tan_sM = sscale(tan_s, M)  # (7)
    return saxpy(tan_q, C, saxpy(q, cofactor(tan_g), tan_sM))


@device_fn
def elastic_stress_jvp_consts(g, consts, params, tan_consts):
    """Push a tangent of M and r = 1/(2 A0) through lines (3) to (7): the tangent of S."""
    M, tan_M, tan_r = consts[METRIC], tan_consts[METRIC], tan_consts[PER_AREA]
    mu_a, half_lam = params[MU_A], params[HALF_LAM]
    I_C = frobenius(M, g)  # (3)
    tan_I_C = frobenius(tan_M, g)
    u = lit(1, I_C) / (I_C + lit(1, I_C))
    s = mu_a * I_C * u  # (4)
    tan_s = mu_a * u * u * tan_I_C
    tan_q = half_lam * tan_r  # (5), (6): q = lam/2 (r l - alpha0 - a)/l
    return saxpy(tan_q, cofactor(g), saxpy(tan_s, M, sscale(s, tan_M)))  # (7)


@device_fn
def add_viscous_stress(dg, M, eta_a, S):
    """Return S plus the viscous stress of the rate dg of the metric [m2/s]."""
    return saxpy(eta_a, sandwich(M, dg), S)  # (9)


@device_fn
def add_viscous_stress_jvp(dg, M, eta_a, tan_dg, tan_eta_a, tan_S):
    """Push tangents through `add_viscous_stress`: tan_S plus that of the viscous stress."""
    change = saxpy(eta_a, tan_dg, sscale(tan_eta_a, dg))
    return saxpy(lit(1, eta_a), sandwich(M, change), tan_S)  # (9)


@device_fn
def nodal_forces(E, S):
    """Return the forces [N] on nodes 1 and 2."""
    H = columns_times(E, S)  # (10)
    return (neg(H[0]), neg(H[1]))


@device_fn
def nodal_forces_jvp(E, S, tan_E, tan_S):
    """Push tangents through `nodal_forces`."""
    tan_H = columns_times_add(E, tan_S, columns_times(tan_E, S))  # (10)
    return (neg(tan_H[0]), neg(tan_H[1]))


def rest_edges(positions: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return E = [X1 - X0, X2 - X0], (n, 3, 2)."""
    corners = positions[triangles]
    return (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)


@device_fn
def neo_hookean_triangle_energy(x, consts, params, series):
    """Return the elastic energy A0 psi [J] of one triangle."""
    M, r = consts[METRIC], consts[PER_AREA]
    mu_a, half_lam, alpha0 = params[MU_A], params[HALF_LAM], params[ALPHA_0]
    g = gram(x)
    I_C = frobenius(M, g)
    stretch = r * double_area(x, g) - alpha0 - series[ACTUATION]
    half = lit(0.5, I_C)
    shear = I_C - lit(2, I_C) - math.log(I_C + lit(1, I_C))
    # lam/2 A0 = half_lam/(2 r)
    return half * mu_a * shear + half * half_lam / r * stretch * stretch


def triangle_kind(*, viscous: bool) -> ElementKind:
    """Return the kind of triangles with or without viscosity."""

    @device_fn
    def triangle_force(x, v, consts, params, series):
        """Return the forces [N] on nodes 1, 2 of edges x and rates v; elastic: `v` is ()."""
        g = gram(x)  # (1)
        l = double_area(x, g)  # (2)
        S = elastic_stress(g, l, consts, params, series)
        if viscous:
            S = add_viscous_stress(gram_rate(x, v), consts[METRIC], params[ETA_A], S)  # (8)
        return nodal_forces(x, S)

    @device_fn
    def triangle_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `triangle_force`."""
        g = gram(x)  # (1)
        tan_g = gram_rate(x, tan_x)
        l = double_area(x, g)  # (2)
        S = elastic_stress(g, l, consts, params, series)
        tan_S = elastic_stress_jvp(g, l, consts, params, series, tan_g, tan_params, tan_series)
        if viscous:
            M, eta_a = consts[METRIC], params[ETA_A]
            dg = gram_rate(x, v)  # (8)
            tan_dg = saxpy(lit(1, eta_a), gram_rate(tan_x, v), gram_rate(x, tan_v))
            tan_S = add_viscous_stress_jvp(dg, M, eta_a, tan_dg, tan_params[ETA_A], tan_S)
            S = add_viscous_stress(dg, M, eta_a, S)
        return nodal_forces_jvp(x, S, tan_x, tan_S)

    @device_fn
    def triangle_jvp_consts(x, v, consts, params, series, tan_consts):
        """Push a tangent of M and r through `triangle_force`."""
        tan_S = elastic_stress_jvp_consts(gram(x), consts, params, tan_consts)
        if viscous:
            # (9) eta_a M dg M
            rate = sandwich_twice(consts[METRIC], gram_rate(x, v), tan_consts[METRIC])
            tan_S = saxpy(params[ETA_A], rate, tan_S)
        return nodal_forces(x, tan_S)

    name, n_params = ("viscous_neo_hookean_triangle", 4) if viscous else ("neo_hookean_triangle", 3)
    return ElementKind(
        name, triangle_force, 3, 4, n_params, 1, uses_velocity=viscous, relative=True,
        jvp=triangle_jvp, jvp_consts=triangle_jvp_consts,
    )  # fmt: skip


ELASTIC, VISCOUS = triangle_kind(viscous=False), triangle_kind(viscous=True)


@dataclass(frozen=True, eq=False)
class NeoHookeanTriangles(NeoHookean):
    """Triangles of a thin sheet of a stable neo-Hookean material; they do not bend.

    Moduli of the sheet: the material's times its thickness.

    Parameters
    ----------
    triangles : array
        Nodes of each triangle, (n_triangles, 3) int. Their order does not matter.
    rest_positions : array
        Rest positions X of all nodes, (n_nodes, 3) [m]; they need not lie in one plane. M, A0
        and masses are functions of them.
    mu, lam : float or array
        Moduli, () or (n_triangles,) [N/m], positive.
    viscosity : float or array, optional
        Kelvin-Voigt viscosity eta >= 0, () or (n_triangles,) [N s/m]. None: none, and no
        parameter of that name (saves reading velocities).
    actuation : float, array, Signal or Policy
        Actuation a [-], () or (n_triangles,); (n_steps, n_triangles) with row k acting in
        step k; or a `Signal` over control points, a `Policy` over time.
    density : float or array, optional
        Areal sigma, () or (n_triangles,) [kg/m2], positive: each triangle gives sigma A0/3 to
        each of its nodes. None: masses are given to the model, and there is no parameter of
        that name.

    Raises
    ------
    ValueError
        If a shape does not fit, a modulus is not positive, or a triangle has no area at rest.

    Warns
    -----
    UserWarning
        By a rollout in float32, if a triangle is so thin that rounding may be more than 1e-3 of
        its force: from about 70 times as long as high.
    """

    triangles: Any
    rest_positions: Any
    mu: Any
    lam: Any
    viscosity: Any = None
    actuation: Any = 0.0
    density: Any = None

    ROUNDING: ClassVar[float] = 1.0
    METRIC_DIAGONAL: ClassVar[tuple[int, ...]] = (0, 2)
    ELASTIC: ClassVar[ElementKind] = ELASTIC
    VISCOUS: ClassVar[ElementKind] = VISCOUS
    ALPHA: ClassVar[float] = 2.0 / 3.0
    LAM_PARTS: ClassVar[float] = 2.0
    MU_SHARE: ClassVar[float] = 1.5
    LAM_SHARE: ClassVar[float] = 2.0 / 3.0
    POISSON: ClassVar[tuple[float, float]] = (-0.5, 1.0)  # in plane stress
    POISSON_HINT: ClassVar[str] = "lam is infinite at 1, and not positive at -0.5."
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mu", "μ", "N/m", "() or (n_triangles,)", positive=True),
        Parameter("lam", "λ", "N/m", "() or (n_triangles,)", positive=True),
        Parameter("viscosity", "η", "N s/m", "() or (n_triangles,)", positive=True),
        Parameter("actuation", "a", "-", "(), (n_triangles,) or (n_steps, n_triangles)"),
        Parameter("rest_positions", "X", "m", "(n_nodes, 3)"),
        Parameter("density", "σ", "kg/m2", "() or (n_triangles,)", positive=True),
    )

    def __post_init__(self) -> None:
        rest = checks.array("rest_positions", self.rest_positions, ("n_nodes", 3))
        triangles = checks.indices("triangles", self.triangles, ("n_triangles", 3), len(rest))
        check_areas("triangles", rest, triangles)
        n, size = len(triangles), "n_triangles"
        mu = checks.positive("mu", checks.scalar_or_array("mu", self.mu, n, size))
        lam = checks.positive(
            "lam",
            checks.scalar_or_array("lam", self.lam, n, size),
            hint="The rest shape is stable only then; `from_young` takes Young's modulus and "
            "Poisson's ratio.",
        )
        checks.freeze(self, "triangles", triangles)
        checks.freeze(self, "rest_positions", rest)
        self.freeze_material(mu, lam, size)

    @property
    def nodes(self) -> np.ndarray:
        """Nodes of each triangle, (n_triangles, 3)."""
        return self.triangles

    def collapsed(self, x: np.ndarray, name: str) -> str | None:
        """Name the first triangle without area."""
        return collapsed_triangle(name, x, self.triangles)

    def pack_consts(self) -> np.ndarray:
        """M11, M12, M22 [1/m2] and 1/(2 A0) [1/m2], (n_triangles, 4)."""
        M, area = rest_shape(self.rest_positions, self.triangles)
        return np.concatenate([M, 0.5 / area[:, None]], axis=1)

    def squared_gradients(self) -> np.ndarray:
        """A0 times the summed squares of the shape functions' gradients, (n_triangles,) [-]."""
        M, area = rest_shape(self.rest_positions, self.triangles)
        return area * 2.0 * (M[:, 0] + M[:, 1] + M[:, 2])

    def rest_measure(self) -> np.ndarray:
        """Areas, (n_triangles,) [m2]."""
        return rest_shape(self.rest_positions, self.triangles)[1]

    def rest_jvp(self, tan_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rest positions to M, 1/(2 A0), mu A0 and eta A0."""
        _, area = rest_shape(self.rest_positions, self.triangles)
        tan_M, tan_area = rest_shape_jvp(self.rest_positions, self.triangles, tan_rest)
        tan_r = -0.5 * tan_area / area**2
        return np.concatenate([tan_M, tan_r[:, None]], axis=1), self.tan_params(tan_area)

    def measure_jvp(self, tan_rest: np.ndarray) -> np.ndarray:
        """Push a tangent of the rest positions to the areas."""
        return rest_shape_jvp(self.rest_positions, self.triangles, tan_rest)[1]


def rest_shape(rest_positions: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return M = G^-1 of the rest metric G, (n, 3) [1/m2] as M11, M12, M22, and A0, (n,) [m2]."""
    corners = rest_positions[triangles]
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(e1, e2)
    det = (normal * normal).sum(axis=1)
    dots = [(e2 * e2).sum(axis=1), -(e1 * e2).sum(axis=1), (e1 * e1).sum(axis=1)]
    return np.stack(dots, axis=1) / det[:, None], 0.5 * np.sqrt(det)


def rest_shape_jvp(
    rest_positions: np.ndarray, triangles: np.ndarray, tan_rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Push a tangent through `rest_shape`: tan_M, tan_area."""
    rows, area = rest_shape(rest_positions, triangles)
    M = rows[:, [[0, 1], [1, 2]]]
    E, tan_E = rest_edges(rest_positions, triangles), rest_edges(tan_rest, triangles)
    half = E.transpose(0, 2, 1) @ tan_E
    MG = M @ (half + half.transpose(0, 2, 1))  # G = E^T E
    tan_M = -MG @ M  # M = G^-1
    tan_area = 0.5 * area * np.trace(MG, axis1=1, axis2=2)  # A0 = sqrt(det G)/2
    return tan_M.reshape(-1, 4)[:, [0, 1, 3]], tan_area
