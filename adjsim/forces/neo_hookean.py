r"""Stable neo-Hookean tetrahedra, with Kelvin-Voigt viscosity and actuation.

    Dm = [X1-X0, X2-X0, X3-X0],  B = Dm^-1,  V = det(Dm)/6 > 0,  F = Ds B
    psi = mu/2 (I_C - 3) + lam/2 (J - alpha)^2 - mu/2 log(I_C + 1)
    I_C = tr(F^T F),  J = det F,  alpha = 1 + 3 mu/(4 lam) + a
    P = mu (1 - 1/(I_C + 1)) F + lam (J - alpha) cof F  [+ eta F (dF^T F + F^T dF)]
    [f1 f2 f3] = -V P B^T,  f0 = -(f1 + f2 + f3)

`a` is the actuation: 0 at rest, a > 0 swells; dF is the rate of F.

Nothing here needs F. With the edges E = Ds, the rate dg = E^T dE + dE^T E of their metric
E^T E, and M = B B^T, the inverse of the rest metric,

    I_C = tr(E^T E M),   J = det(E)/(6 V),
    F B^T = E M,   cof(F) B^T = cof(E)/(6 V),   F (dF^T F + F^T dF) B^T = E M dg M

(the last as dF^T F + F^T dF = B^T dg B), so that, with W = E M,

    [f1 f2 f3] = -(s W + q cof E),   s = mu V (1 - 1/(I_C + 1)),   q = lam/6 (J - alpha)

and with viscosity s is the matrix T = s I + eta V dg M in W T. That is three quarters of the
products that F and P take. The price is paid by slivers: rounding grows with the
square of the condition number of Dm, with F in place of M only with the number itself. At a
strain of a tenth it is up to 0.2 eps cond^2 of the force, a tenth of that in the median: up to
2e-10 in a sliver 1000 times as long as thick, and 0.1 in float32, of which a warning is given
(`adjsim/forces/lumping.py`).

Rows hold M [1/m2] and 1/(6 V) [1/m3] as constants; mu V [N m], lam/6 [Pa], alpha at a = 0, and
eta V [N m s].

The kind is relative: an element sees the edges E = [x1-x0, x2-x0, x3-x0] and their rates
dE, and returns f1, f2, f3; that f0 = -(f1 + f2 + f3) is the assembly's business.

`solid_kind` makes the element of any law of this form from its s and q; of another law see
`adjsim/forces/log_neo_hookean.py`.

Adjoint: `adjoint/forces/neo_hookean.py`. Tests: `tests/forces/test_neo_hookean.py`.
Source: Smith, de Goes & Kim, ACM Trans. Graph. 37(2), 2018, eq. 14 and sec. 3.4; gradSim
(ICLR 2021) eq. 1 and 6. Ours: the viscous stress, which is objective.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.algebra.mat3 import (
    add_diagonal,
    cofactor,
    cofactor_jvp,
    frobenius,
    madd,
    matmul,
    matmul_add,
    maxpy,
    mscale,
    symmetric,
    symmetric_t_matmul,
)
from adjsim.algebra.vec3 import dot, neg, scale
from adjsim.forces.neo_hookean_material import NeoHookean
from adjsim.jit.backend import device_fn, lit
from adjsim.meshes.tet_mesh import check_positive, signed_volumes
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast


MU_V, SIXTH_LAM, ALPHA_0, ETA_V = range(4)  # of a row's parameters
PER_6V = 6  # of its constants, behind the six numbers of M
ACTUATION = 0  # of its series


@device_fn
def invariants(E, consts):
    """Return W [1/m], cof E [m2], I_C and J."""
    W = matmul(E, symmetric(consts))  # (1)
    I_C = frobenius(E, W)  # (2)
    C = cofactor(E)  # (3)
    return W, C, I_C, consts[PER_6V] * dot(E[0], C[0])  # (4)


@device_fn
def invariants_jvp(E, consts, W, C, tan_E):
    """Push a tangent of the edges through `invariants`."""
    tan_W = matmul(tan_E, symmetric(consts))  # (1)
    tan_I_C = lit(2, W[0][0]) * frobenius(tan_E, W)  # (2) M symmetric
    tan_C = cofactor_jvp(E, tan_E)  # (3)
    return tan_W, tan_C, tan_I_C, consts[PER_6V] * frobenius(C, tan_E)  # (4)


@device_fn
def scalars(I_C, J, params, series):
    """Return s [N m] and q [Pa] of the stable law."""
    s = params[MU_V] * (I_C / (I_C + lit(1, I_C)))  # (5) mu V (1 - 1/(I_C + 1)): no cancellation
    return s, params[SIXTH_LAM] * (J - params[ALPHA_0] - series[ACTUATION])  # (6)


@device_fn
def scalars_jvp(I_C, J, params, series, tan_I_C, tan_J, tan_params, tan_series):
    """Push tangents through `scalars`."""
    r = lit(1, I_C) / (I_C + lit(1, I_C))
    stretch = J - params[ALPHA_0] - series[ACTUATION]
    tan_s = tan_params[MU_V] * I_C * r + params[MU_V] * r * r * tan_I_C  # (5)
    tan_stretch = tan_J - tan_params[ALPHA_0] - tan_series[ACTUATION]
    tan_q = tan_params[SIXTH_LAM] * stretch + params[SIXTH_LAM] * tan_stretch  # (6)
    return tan_s, tan_q


@device_fn
def stress_matrix(E, dE, consts, eta_v, s):
    """Return T = s I + eta V dg M [N m]."""
    dg = symmetric_t_matmul(E, dE)  # (7)
    R = matmul(dg, symmetric(consts))  # (8)
    return add_diagonal(s, mscale(eta_v, R))  # (9)


@device_fn
def stress_matrix_jvp(E, dE, consts, eta_v, tan_E, tan_dE, tan_eta_v, tan_s):
    """Push tangents through `stress_matrix`: tan_T."""
    M = symmetric(consts)
    dg = symmetric_t_matmul(E, dE)  # (7)
    tan_dg = madd(symmetric_t_matmul(tan_E, dE), symmetric_t_matmul(E, tan_dE))
    R, tan_R = matmul(dg, M), matmul(tan_dg, M)  # (8)
    return add_diagonal(tan_s, maxpy(tan_eta_v, R, mscale(eta_v, tan_R)))  # (9)


@device_fn
def nodal_forces(H):
    """Return the forces [N] on nodes 1, 2, 3 of H = V P B^T."""
    return (neg(H[0]), neg(H[1]), neg(H[2]))  # (11)


@device_fn
def rest_constants(X):
    """Return the constants of the edges X at rest: rows of B are those of cof X / det X."""
    C = cofactor(X)
    inverse = lit(1, X[0][0]) / dot(X[0], C[0])
    B0, B1, B2 = scale(inverse, C[0]), scale(inverse, C[1]), scale(inverse, C[2])
    first = (dot(B0, B0), dot(B0, B1), dot(B0, B2))
    return (*first, dot(B1, B1), dot(B1, B2), dot(B2, B2), inverse)


@device_fn
def neo_hookean_energy(x, consts, params, series):
    """Return the elastic energy V psi [J] of one tetrahedron."""
    mu_v, sixth_lam, alpha0 = params[MU_V], params[SIXTH_LAM], params[ALPHA_0]
    I_C = frobenius(x, matmul(x, symmetric(consts)))
    stretch = consts[PER_6V] * dot(x[0], cofactor(x)[0]) - alpha0 - series[ACTUATION]
    half = lit(0.5, I_C)
    shear = I_C - lit(3, I_C) - math.log(I_C + lit(1, I_C))
    # lam V = sixth_lam 6 V
    return half * mu_v * shear + half * sixth_lam / consts[PER_6V] * stretch * stretch


def solid_kind(
    name: str, scalars: Callable, scalars_jvp: Callable, *, viscous: bool
) -> ElementKind:
    """Return the kind of tetrahedra of a law, from its s and q, lines (5) and (6)."""

    @device_fn
    def solid_force(x, v, consts, params, series):
        """Return the forces [N] on nodes 1, 2, 3 of edges x and rates v; elastic: `v` is ()."""
        W, C, I_C, J = invariants(x, consts)
        s, q = scalars(I_C, J, params, series)
        if viscous:
            T = stress_matrix(x, v, consts, params[ETA_V], s)
            return nodal_forces(matmul_add(W, T, mscale(q, C)))  # (10)
        return nodal_forces(maxpy(q, C, mscale(s, W)))  # (10)

    @device_fn
    def solid_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `solid_force`."""
        W, C, I_C, J = invariants(x, consts)
        s, q = scalars(I_C, J, params, series)
        tan_W, tan_C, tan_I_C, tan_J = invariants_jvp(x, consts, W, C, tan_x)
        tan_s, tan_q = scalars_jvp(I_C, J, params, series, tan_I_C, tan_J, tan_params, tan_series)
        if viscous:
            eta_v, tan_eta_v = params[ETA_V], tan_params[ETA_V]
            T = stress_matrix(x, v, consts, eta_v, s)
            tan_T = stress_matrix_jvp(x, v, consts, eta_v, tan_x, tan_v, tan_eta_v, tan_s)
            tan_H = matmul_add(tan_W, T, matmul(W, tan_T))  # (10)
        else:
            tan_H = maxpy(tan_s, W, mscale(s, tan_W))  # (10)
        return nodal_forces(maxpy(tan_q, C, maxpy(q, tan_C, tan_H)))

    @device_fn
    def solid_jvp_consts(x, v, consts, params, series, tan_consts):
        """Push a tangent of M and 1/(6 V) through `solid_force`."""
        zero = lit(0, consts[0])
        W, C, I_C, J = invariants(x, consts)
        s, _ = scalars(I_C, J, params, series)
        tan_W = matmul(x, symmetric(tan_consts))  # (1)
        tan_J = tan_consts[PER_6V] * dot(x[0], C[0])  # (4)
        tan_I_C, none = frobenius(x, tan_W), (zero, zero, zero)  # (2)
        tan_s, tan_q = scalars_jvp(I_C, J, params, series, tan_I_C, tan_J, none, (zero,))
        if viscous:
            T = stress_matrix(x, v, consts, params[ETA_V], s)
            tan_T = stress_matrix(x, v, tan_consts, params[ETA_V], tan_s)  # linear in M and s
            return nodal_forces(maxpy(tan_q, C, matmul_add(tan_W, T, matmul(W, tan_T))))  # (10)
        return nodal_forces(maxpy(tan_q, C, maxpy(tan_s, W, mscale(s, tan_W))))  # (10)

    return ElementKind(
        f"viscous_{name}" if viscous else name, solid_force, 4, 7, 4 if viscous else 3, 1,
        uses_velocity=viscous, relative=True, rest=rest_constants,
        jvp=solid_jvp, jvp_consts=solid_jvp_consts,
    )  # fmt: skip


ELASTIC = solid_kind("neo_hookean", scalars, scalars_jvp, viscous=False)
VISCOUS = solid_kind("neo_hookean", scalars, scalars_jvp, viscous=True)


@dataclass(frozen=True, eq=False)
class SolidTets(NeoHookean):
    """Solid tetrahedra of a neo-Hookean material: what all its volume laws share.

    A law has its `ELASTIC` and `VISCOUS` kinds, and says what their third row holds. Rest is stable
    for lam > LEAST_LAM mu.
    """

    tets: Any
    rest_positions: Any
    mu: Any
    lam: Any
    viscosity: Any = None
    actuation: Any = 0.0
    density: Any = None

    ROUNDING: ClassVar[float] = 0.2
    METRIC_DIAGONAL: ClassVar[tuple[int, ...]] = (0, 3, 5)
    LAM_PARTS: ClassVar[float] = 6.0
    POISSON: ClassVar[tuple[float, float]] = (-1.0, 0.5)
    POISSON_HINT: ClassVar[str] = (
        "lam is infinite at 0.5; take 0.49 for a nearly incompressible solid."
    )
    LEAST_LAM: ClassVar[float]
    LEAST_LAM_TEXT: ClassVar[str]
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("viscosity", "η", "Pa s", "() or (n_tets,)", positive=True),
        Parameter("actuation", "a", "-", "(), (n_tets,) or (n_steps, n_tets)"),
        Parameter("rest_positions", "X", "m", "(n_nodes, 3)"),
        Parameter("density", "ρ", "kg/m3", "() or (n_tets,)", positive=True),
    )

    def __post_init__(self) -> None:
        rest = checks.array("rest_positions", self.rest_positions, ("n_nodes", 3))
        tets = checks.indices("tets", self.tets, ("n_tets", 4), len(rest))
        check_positive(rest, tets)
        n_tets = len(tets)
        mu = checks.positive("mu", checks.scalar_or_array("mu", self.mu, n_tets, "n_tets"))
        lam = checks.scalar_or_array("lam", self.lam, n_tets, "n_tets")
        stable = np.broadcast_to(lam > self.LEAST_LAM * mu, (n_tets,))
        if not stable.all():
            e = int(np.argmin(stable))
            raise ValueError(
                f"`lam` must be greater than {self.LEAST_LAM_TEXT} for a stable rest shape, got "
                f"lam = {broadcast(lam, n_tets)[e]:g} with mu = {broadcast(mu, n_tets)[e]:g} in "
                f"tetrahedron {e}. Raise `lam`, or give Young's modulus and Poisson's ratio "
                "to `from_young`."
            )
        checks.freeze(self, "tets", tets)
        checks.freeze(self, "rest_positions", rest)
        self.freeze_material(mu, lam, "n_tets")

    @property
    def nodes(self) -> np.ndarray:
        """Nodes of each tetrahedron, (n_tets, 4)."""
        return self.tets

    def pack_consts(self) -> np.ndarray:
        """M by its upper triangle and 1/(6 V), (n_tets, 7) [1/m2] and [1/m3]."""
        B, volume = rest_shape(self.rest_positions, self.tets)
        M = upper_triangle(B @ B.transpose(0, 2, 1))
        return np.concatenate([M, 1.0 / (6.0 * volume[:, None])], axis=1)

    def squared_gradients(self) -> np.ndarray:
        """V times the summed squares of the shape functions' gradients, (n_tets,) [m]."""
        B, volume = rest_shape(self.rest_positions, self.tets)
        gradients = np.concatenate([B, -B.sum(axis=1, keepdims=True)], axis=1)
        return volume * np.square(gradients).sum(axis=(1, 2))

    def rest_measure(self) -> np.ndarray:
        """Volumes, (n_tets,) [m3]."""
        return signed_volumes(self.rest_positions, self.tets)

    def rest_jvp(self, tan_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rest positions to M, 1/(6 V), mu V and eta V."""
        B, V = rest_shape(self.rest_positions, self.tets)
        tan_B, tan_V = rest_shape_jvp(self.rest_positions, self.tets, tan_rest)
        half = tan_B @ B.transpose(0, 2, 1)
        tan_M = upper_triangle(half + half.transpose(0, 2, 1))
        tan_r = -tan_V / (6.0 * V * V)
        return np.concatenate([tan_M, tan_r[:, None]], axis=1), self.tan_params(tan_V)

    def measure_jvp(self, tan_rest: np.ndarray) -> np.ndarray:
        """Push a tangent of the rest positions to the volumes."""
        return rest_shape_jvp(self.rest_positions, self.tets, tan_rest)[1]


@dataclass(frozen=True, eq=False)
class NeoHookeanTets(SolidTets):
    """Solid tetrahedra of a stable neo-Hookean material.

    `mu` and `lam` are the law's own parameters, not Lame's constants at small strains, which are
    mu_L = 3/4 mu and lam_L = lam - 5/8 mu (Smith et al. 2018, sec. 3.4): with nu = 0.4 who takes
    one for the other has a body a quarter too soft. `from_young` takes E and nu, `from_lame` mu_L
    and lam_L. Rest is stable only for lam > mu/8.

    Parameters
    ----------
    tets : array
        Nodes of each tetrahedron, (n_tets, 4) integer, positively oriented.
    rest_positions : array
        Rest positions X of all nodes, (n_nodes, 3) [m]; B, V and masses are functions of them.
    mu, lam : float or array
        Moduli, () or (n_tets,) [Pa]; mu > 0, lam > mu/8.
    viscosity : float or array, optional
        Kelvin-Voigt viscosity eta >= 0, () or (n_tets,) [Pa s]. None: none, and no
        parameter of that name (saves reading velocities).
    actuation : float, array, Signal or Policy
        Actuation a [-], () or (n_tets,); (n_steps, n_tets) with row k acting in step k; or a
        `Signal` over control points, a `Policy` over time.
    density : float or array, optional
        rho, () or (n_tets,) [kg/m3], positive: each tetrahedron gives rho V/4 to each of its
        nodes. None: masses are given to the model, and there is no parameter of that name.

    Warns
    -----
    UserWarning
        By a rollout in float32, if a tetrahedron is so thin that rounding may be more than 1e-3
        of its force: from about 100 times as long as thick.
    """

    ELASTIC: ClassVar[ElementKind] = ELASTIC
    VISCOUS: ClassVar[ElementKind] = VISCOUS
    ALPHA: ClassVar[float] = 0.75
    MU_SHARE: ClassVar[float] = 4.0 / 3.0
    LAM_SHARE: ClassVar[float] = 5.0 / 6.0
    LEAST_LAM: ClassVar[float] = 0.125
    LEAST_LAM_TEXT: ClassVar[str] = "mu/8"
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mu", "μ", "Pa", "() or (n_tets,)", positive=True),
        Parameter("lam", "λ", "Pa", "() or (n_tets,)", positive=True),
        *SolidTets.PARAMETERS,
    )


def rest_shape(rest_positions: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return B = Dm^-1, (n_tets, 3, 3) [1/m], and the volumes, (n_tets,) [m^3]."""
    corners = rest_positions[tets]
    Dm = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    return np.linalg.inv(Dm), signed_volumes(rest_positions, tets)


def rest_shape_jvp(
    rest_positions: np.ndarray, tets: np.ndarray, tan_rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Push a tangent through `rest_shape`: tan_B, tan_V."""
    B, V = rest_shape(rest_positions, tets)
    corners = tan_rest[tets]
    tan_Dm = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    BD = B @ tan_Dm
    return -BD @ B, V * np.trace(BD, axis1=1, axis2=2)


def upper_triangle(A: np.ndarray) -> np.ndarray:
    """Return the upper triangles of symmetric matrices (n, 3, 3), row by row, (n, 6)."""
    return A[:, (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)]
