r"""Stable neo-Hookean tetrahedra, with Kelvin-Voigt viscosity and actuation.

    Dm = [X1-X0, X2-X0, X3-X0],  B = Dm^-1,  V = det(Dm)/6 > 0,  F = Ds B
    psi = mu/2 (I_C - 3) + lam/2 (J - alpha)^2 - mu/2 log(I_C + 1)
    I_C = tr(F^T F),  J = det F,  alpha = 1 + 3 mu/(4 lam) + a
    P = mu (1 - 1/(I_C + 1)) F + lam (J - alpha) cof F  [+ eta F (dF^T F + F^T dF)]
    [f1 f2 f3] = -V P B^T,  f0 = -(f1 + f2 + f3)

The volume is folded into the moduli: rows hold mu V, lam V [N m] and eta V [N m s].
`a` is the actuation: 0 at rest, a > 0 swells; dF = Dv B is the rate of F.

The kind is relative: an element sees the edges Ds = [x1-x0, x2-x0, x3-x0] and their rates
Dv, and returns f1, f2, f3; that f0 = -(f1 + f2 + f3) is the assembly's business.

Adjoint: `adjoint/forces/neo_hookean.py`. Tests: `tests/forces/test_neo_hookean.py`.
Source: Smith, de Goes & Kim, ACM Trans. Graph. 37(2), 2018, eq. 14 and sec. 3.4; gradSim
(ICLR 2021) eq. 1 and 6. Ours: the viscous stress, which is objective.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.backend import device_fn, lit
from adjsim.element import ElementKind, Parameter, broadcast
from adjsim.lumping import LumpedForce
from adjsim.mat3 import (
    cofactor,
    frobenius,
    matmul,
    matmul_add,
    matmul_t,
    maxpy,
    mscale,
    symmetric_t_matmul,
)
from adjsim.meshes.tet_mesh import check_positive, signed_volumes
from adjsim.series import freeze_series
from adjsim.vec3 import dot, neg


@device_fn
def deformation_gradient(Ds, consts):
    """Return F [-] of edges Ds, or its rate [1/s] of their velocities; consts hold B."""
    return matmul(Ds, (consts[0:3], consts[3:6], consts[6:9]))  # (1)


@device_fn
def elastic_pk1(F, params, series):
    """Return V times the elastic first Piola-Kirchhoff stress [N m]."""
    mu_v, lam_v, alpha0 = params[0], params[1], params[2]
    I_C = frobenius(F, F)  # (3)
    C = cofactor(F)  # (4)
    J = dot(F[0], C[0])  # (5)
    s = mu_v * (I_C / (I_C + lit(1, I_C)))  # (6) = mu V (1 - 1/(I_C + 1)): no cancellation
    p = lam_v * (J - alpha0 - series[0])  # (7)
    return maxpy(p, C, mscale(s, F))  # (8)


@device_fn
def add_viscous_pk1(F, dF, eta_v, P):
    """Return P plus V times the viscous first Piola-Kirchhoff stress [N m]."""
    S = symmetric_t_matmul(F, dF)  # (9) rate of F^T F
    T = mscale(eta_v, S)  # (10)
    return matmul_add(F, T, P)  # (11)


@device_fn
def nodal_forces(P, consts):
    """Return the forces [N] on nodes 1, 2, 3 of V times a stress P."""
    H = matmul_t(P, (consts[0:3], consts[3:6], consts[6:9]))  # (12)
    return (neg(H[0]), neg(H[1]), neg(H[2]))  # (13)


@device_fn
def neo_hookean_force(x, v, consts, params, series):
    """Return the elastic forces [N] on nodes 1, 2, 3; `x` holds the edges, `v` is ()."""
    F = deformation_gradient(x, consts)
    return nodal_forces(elastic_pk1(F, params, series), consts)


@device_fn
def viscous_neo_hookean_force(x, v, consts, params, series):
    """Return the elastic and viscous forces [N] on nodes 1, 2, 3 of edges x and rates v."""
    F = deformation_gradient(x, consts)
    dF = deformation_gradient(v, consts)
    P = add_viscous_pk1(F, dF, params[3], elastic_pk1(F, params, series))
    return nodal_forces(P, consts)


@device_fn
def neo_hookean_energy(x, consts, params, series):
    """Return the elastic energy V psi [J] of one tetrahedron."""
    mu_v, lam_v, alpha0 = params[0], params[1], params[2]
    F = deformation_gradient(x, consts)
    I_C = frobenius(F, F)
    C = cofactor(F)
    stretch = dot(F[0], C[0]) - alpha0 - series[0]
    half = lit(0.5, I_C)
    shear = I_C - lit(3, I_C) - math.log(I_C + lit(1, I_C))
    return half * mu_v * shear + half * lam_v * stretch * stretch


ELASTIC = ElementKind(
    "neo_hookean", neo_hookean_force, 4, 9, 3, 1, uses_velocity=False, relative=True
)
VISCOUS = ElementKind(
    "viscous_neo_hookean",
    viscous_neo_hookean_force,
    4,
    9,
    4,
    1,
    uses_velocity=True,
    relative=True,
)


@dataclass(frozen=True, eq=False)
class NeoHookeanTets(LumpedForce):
    """Solid tetrahedra of a stable neo-Hookean material.

    `mu` and `lam` are the model's own parameters, not the small-strain Lame constants;
    `lame` converts. Rest is stable only for lam > mu/8.

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
    actuation : float, array or Signal
        Actuation a [-], () or (n_tets,); (n_steps, n_tets) with row k acting in step k; or a
        `Signal` over control points.
    density : float or array, optional
        rho, () or (n_tets,) [kg/m3], positive: each tetrahedron gives rho V/4 to each of its
        nodes. None: masses are given to the model, and there is no parameter of that name.
    """

    tets: Any
    rest_positions: Any
    mu: Any
    lam: Any
    viscosity: Any = None
    actuation: Any = 0.0
    density: Any = None

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mu", "μ", "Pa", "() or (n_tets,)", positive=True),
        Parameter("lam", "λ", "Pa", "() or (n_tets,)", positive=True),
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
        stable = np.broadcast_to(lam > mu / 8, (n_tets,))
        if not stable.all():
            e = int(np.argmin(stable))
            raise ValueError(
                f"`lam` must be greater than mu/8 for a stable rest shape, got lam = "
                f"{broadcast(lam, n_tets)[e]:g} with mu = {broadcast(mu, n_tets)[e]:g} in "
                f"tetrahedron {e}. Raise `lam`, or convert Young's modulus and Poisson's ratio "
                "with `lame`."
            )
        if self.viscosity is not None:
            eta = checks.scalar_or_array("viscosity", self.viscosity, n_tets, "n_tets")
            checks.freeze(self, "viscosity", checks.non_negative("viscosity", eta))
        if self.density is not None:
            checks.freeze(self, "density", self.check_density(self.density))
        for name, value in (("tets", tets), ("rest_positions", rest), ("mu", mu), ("lam", lam)):
            checks.freeze(self, name, value)
        freeze_series(self, "actuation", ((), (n_tets,)))

    @property
    def kind(self) -> ElementKind:
        """Elastic, or viscous where a viscosity was given."""
        return ELASTIC if self.viscosity is None else VISCOUS

    @property
    def nodes(self) -> np.ndarray:
        """Nodes of each tetrahedron, (n_tets, 4)."""
        return self.tets

    def pack_consts(self) -> np.ndarray:
        """B by columns, (n_tets, 9) [1/m]."""
        B, _ = rest_shape(self.rest_positions, self.tets)
        return B.transpose(0, 2, 1).reshape(-1, 9)

    def pack_params(self) -> np.ndarray:
        """Mu V, lam V, alpha at a = 0, and eta V where there is viscosity."""
        volume = signed_volumes(self.rest_positions, self.tets)
        alpha0 = 1.0 + 0.75 * self.mu / self.lam
        rows = [self.mu * volume, self.lam * volume, broadcast(alpha0, len(volume))]
        if self.viscosity is not None:
            rows.append(self.viscosity * volume)
        return np.stack(rows, axis=-1)

    def stiffness_bound(self) -> np.ndarray:
        """V (lam + 2 mu) times the summed squares of the shape functions' gradients."""
        return (self.lam + 2.0 * self.mu) * self._volume_of_squared_gradients()

    def damping_bound(self) -> np.ndarray:
        """2 V eta times the same: at rest the viscous stress is 2 eta times the symmetric dF."""
        eta = 0.0 if self.viscosity is None else self.viscosity
        return 2.0 * eta * self._volume_of_squared_gradients()

    def _volume_of_squared_gradients(self) -> np.ndarray:
        B, volume = rest_shape(self.rest_positions, self.tets)
        gradients = np.concatenate([B, -B.sum(axis=1, keepdims=True)], axis=1)
        return volume * np.square(gradients).sum(axis=(1, 2))

    def rest_measure(self) -> np.ndarray:
        """Volumes, (n_tets,) [m3]."""
        return signed_volumes(self.rest_positions, self.tets)


def rest_shape(rest_positions: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return B = Dm^-1, (n_tets, 3, 3) [1/m], and the volumes, (n_tets,) [m^3]."""
    corners = rest_positions[tets]
    Dm = (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)
    return np.linalg.inv(Dm), signed_volumes(rest_positions, tets)


def lame(youngs_modulus: float, poisson_ratio: float) -> tuple[float, float]:
    """Return the (mu, lam) [Pa] of `NeoHookeanTets` with this small-strain response.

    mu = 4/3 mu_L, lam = lam_L + 5/6 mu_L. Source: Smith et al. 2018, sec. 3.4.

    Parameters
    ----------
    youngs_modulus : float
        E [Pa], positive.
    poisson_ratio : float
        nu in (-1, 0.5) [-].

    Raises
    ------
    ValueError
        If an argument is out of range. In range, lam > mu/8 always holds.
    """
    youngs_modulus = checks.number("youngs_modulus", youngs_modulus)
    poisson_ratio = checks.number("poisson_ratio", poisson_ratio)
    checks.positive("youngs_modulus", youngs_modulus)
    if not -1.0 < poisson_ratio < 0.5:
        raise ValueError(
            f"`poisson_ratio` must be in (-1, 0.5), got {poisson_ratio:g}: "
            "lam is infinite at 0.5; take 0.49 for a nearly incompressible solid."
        )
    mu_small = youngs_modulus / (2.0 * (1.0 + poisson_ratio))
    lam_small = 2.0 * mu_small * poisson_ratio / (1.0 - 2.0 * poisson_ratio)
    return 4.0 / 3.0 * mu_small, lam_small + 5.0 / 6.0 * mu_small
