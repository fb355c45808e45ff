r"""Neo-Hookean tetrahedra with a logarithmic volume law, the one of textbooks.

    psi = mu/2 (I_C - 3) - mu log J + lam/2 (log J)^2 - (lam + 5/6 mu) a log J,   J > 0
    P = mu F + (lam log J - mu - (lam + 5/6 mu) a) F^-T  [+ eta F (dF^T F + F^T dF)]
    [f1 f2 f3] = -V P B^T,  f0 = -(f1 + f2 + f3)

mu and lam are Lame's own constants. F, B, V, I_C, J and the viscous stress are those of
`adjsim/forces/neo_hookean.py`, and so are the elements: only the stress differs. The actuation a
is 0 at rest and swells for a > 0. Its pressure (ours) is that of the stable law with the same
small-strain constants, whose lam is lam + 5/6 mu here: both laws agree there with the same a.

With the edges E, their cofactors C = cof E, and W = E M as there, F^-T B^T = C/det E, so that

    V P B^T = s W + q C,   s = mu V,   q = (lam/6 (log J - a) - mu/6 (1 + 5/6 a))/J

and with viscosity s is the matrix T = s I + eta V dg M in W T. The force is the larger the flatter
an element, without bound: it cannot invert. Where a step inverts it all the same (J <= 0), its
forces are not finite, so that the rollout stops and names it.

Rows hold M [1/m2] and 1/(6 V) [1/m3] as constants; mu V [N m], lam/6 and mu/6 [Pa], and eta V
[N m s].

Adjoint: `adjoint/forces/log_neo_hookean.py`. Tests: `tests/forces/test_log_neo_hookean.py`.
Source: Bonet & Wood, Nonlinear Continuum Mechanics for Finite Element Analysis, 2nd ed., 2008,
sec. 6.4.3.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adjsim.algebra.logarithm import natural_log
from adjsim.algebra.mat3 import cofactor, frobenius, matmul, symmetric
from adjsim.algebra.vec3 import dot
from adjsim.forces.neo_hookean import ACTUATION, MU_V, PER_6V, SIXTH_LAM, SolidTets, solid_kind
from adjsim.jit.backend import device_fn, lit
from adjsim.meshes.tet_mesh import signed_volumes
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


SIXTH_MU = 2  # of a row's parameters, in the place of alpha
SWELL = 5.0 / 6.0  # part of mu in the pressure of an actuation


@device_fn
def scalars(I_C, J, params, series):
    """Return s [N m] and q [Pa] of the logarithmic law."""
    r, swollen = lit(1, J) / J, lit(1, J) + lit(SWELL, J) * series[ACTUATION]
    g = params[SIXTH_LAM] * (natural_log(J) - series[ACTUATION]) - params[SIXTH_MU] * swollen  # (5)
    return params[MU_V], r * g  # (6)


@device_fn
def scalars_jvp(I_C, J, params, series, tan_I_C, tan_J, tan_params, tan_series):
    """Push tangents through `scalars`."""
    r, swell = lit(1, J) / J, lit(SWELL, J)
    stretch, swollen = natural_log(J) - series[ACTUATION], lit(1, J) + swell * series[ACTUATION]
    g = params[SIXTH_LAM] * stretch - params[SIXTH_MU] * swollen  # (5)
    tan_g = tan_params[SIXTH_LAM] * stretch - tan_params[SIXTH_MU] * swollen
    tan_a = tan_series[ACTUATION]
    tan_g += params[SIXTH_LAM] * (r * tan_J - tan_a) - params[SIXTH_MU] * swell * tan_a
    return tan_params[MU_V], r * (tan_g - g * r * tan_J)  # (6)


@device_fn
def log_neo_hookean_energy(x, consts, params, series):
    """Return the elastic energy V psi [J] of one tetrahedron."""
    mu_v, sixth_lam, sixth_mu = params[MU_V], params[SIXTH_LAM], params[SIXTH_MU]
    I_C = frobenius(x, matmul(x, symmetric(consts)))
    L = natural_log(consts[PER_6V] * dot(x[0], cofactor(x)[0]))
    half, push = lit(0.5, I_C), sixth_lam + lit(SWELL, I_C) * sixth_mu
    volume = half * sixth_lam * L * L - (sixth_mu + push * series[ACTUATION]) * L
    return half * mu_v * (I_C - lit(3, I_C)) + volume / consts[PER_6V]  # lam V = sixth_lam 6 V


ELASTIC = solid_kind("log_neo_hookean", scalars, scalars_jvp, viscous=False)
VISCOUS = solid_kind("log_neo_hookean", scalars, scalars_jvp, viscous=True)


@dataclass(frozen=True, eq=False)
class LogNeoHookeanTets(SolidTets):
    """Solid tetrahedra of a neo-Hookean material with a logarithmic volume law.

    `mu` and `lam` are Lame's constants. No element may invert: the rollout stops with an error
    that names it. Rest is stable only for lam > -2/3 mu, a positive bulk modulus.

    The fields are those of `NeoHookeanTets`.
    """

    ELASTIC: ClassVar[ElementKind] = ELASTIC
    VISCOUS: ClassVar[ElementKind] = VISCOUS
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mu", "μ", "Pa", "() or (n_tets,)", positive=True),
        Parameter("lam", "λ", "Pa", "() or (n_tets,)"),
        *SolidTets.PARAMETERS,
    )
    MU_SHARE: ClassVar[float] = 1.0
    LAM_SHARE: ClassVar[float] = 0.0
    LEAST_LAM: ClassVar[float] = -2.0 / 3.0
    LEAST_LAM_TEXT: ClassVar[str] = "-2/3 mu"

    def third_row(self) -> np.ndarray:
        """mu/6 [Pa]."""
        return self.mu / 6.0

    def third_row_jvp(self, tan_mu: np.ndarray, tan_lam: np.ndarray) -> np.ndarray:
        """Push a tangent to mu/6."""
        del tan_lam
        return tan_mu / 6.0

    def stiffness_bound(self) -> np.ndarray:
        """Return (lam + 7/2 mu) times `squared_gradients`: that of the stable law's constants."""
        return (self.lam + 3.5 * self.mu) * self.squared_gradients()

    def collapsed(self, x: np.ndarray, name: str) -> str | None:
        """Name the first tetrahedron that is flat or inverted."""
        J = signed_volumes(x, self.tets) / self.rest_measure()
        if not (J <= 0.0).any():
            return None
        e = int(np.argmax(J <= 0.0))
        return (
            f"tetrahedron {e} of `{name}`, nodes {self.tets[e].tolist()}, has turned inside out "
            f"(J = {J[e]:.3g}), and its law, with log J, has no force there"
        )
