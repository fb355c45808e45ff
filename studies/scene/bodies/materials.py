r"""Small-strain constants of solids and sheets as the moduli of their energies.

    mu_L = E/(2 (1 + nu))                       lam_L = E nu/((1 + nu)(1 - 2 nu)), a solid
                                                lam_L = E nu/(1 - nu^2), plane stress
    tetrahedra   mu = 4/3 mu_L,  lam = lam_L + 5/6 mu_L      of the stable law
                 mu = mu_L,      lam = lam_L                 of the logarithmic one
    triangles    mu = 3/2 mu_L,  lam = lam_L + 2/3 mu_L,  with E times the thickness

Each is E times a function g of nu; the functions here return g and dg/dnu.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.forces.log_neo_hookean import LogNeoHookeanTets
from adjsim.forces.neo_hookean import NeoHookeanTets, SolidTets
from studies.runs.errors import StudyError
from studies.scene.maps import Curve


@dataclass(frozen=True)
class SolidLaw:
    """A law of solids: its force, and what mu_L counts in the force's own mu and lam."""

    tets: type[SolidTets]
    in_mu: float
    in_lam: float


SOLID_LAWS = {
    "stable": SolidLaw(NeoHookeanTets, 4.0 / 3.0, 5.0 / 6.0),
    "log": SolidLaw(LogNeoHookeanTets, 1.0, 0.0),
}


def shear(nu: Any) -> tuple[Any, Any]:
    """Return mu_L/E and its slope."""
    return 0.5 / (1.0 + nu), -0.5 / (1.0 + nu) ** 2


def solid_first(nu: Any) -> tuple[Any, Any]:
    """Return lam_L/E of a solid and its slope."""
    below = (1.0 + nu) * (1.0 - 2.0 * nu)
    return nu / below, (1.0 + 2.0 * nu**2) / below**2


def sheet_first(nu: Any) -> tuple[Any, Any]:
    """Return lam_L/E of plane stress and its slope."""
    below = 1.0 - nu**2
    return nu / below, (1.0 + nu**2) / below**2


def plate(nu: Any) -> tuple[Any, Any]:
    """Return 1/(12 (1 - nu^2)) and its slope: D/(E h^3) of a plate."""
    below = 1.0 - nu**2
    return 1.0 / (12.0 * below), nu / (6.0 * below**2)


def combined(*terms: tuple[float, Curve]) -> Curve:
    """Return the sum of functions times factors."""

    def curve(nu: Any) -> tuple[Any, Any]:
        parts = [(factor, term(nu)) for factor, term in terms]
        return (
            sum(factor * value for factor, (value, _) in parts),
            sum(factor * slope for factor, (_, slope) in parts),
        )

    return curve


def solid_curves(name: str, law: SolidLaw) -> dict[str, Curve]:
    """Return mu/E and lam/E of a solid, by target."""
    return {
        f"{name}.mu": combined((law.in_mu, shear)),
        f"{name}.lam": combined((1.0, solid_first), (law.in_lam, shear)),
    }


def sheet_curves(name: str, thickness: float) -> dict[str, Curve]:
    """Return mu/E and lam/E of `NeoHookeanTriangles`, by target."""
    return {
        f"{name}.mu": combined((1.5 * thickness, shear)),
        f"{name}.lam": combined((thickness, sheet_first), (2.0 / 3.0 * thickness, shear)),
    }


def require_pair(key: str, body: Any) -> bool:
    """Whether E is given; complain unless E (with nu) or both mu and lam are."""
    has_E, has_lame = body.E is not None, (body.mu is not None, body.lam is not None)
    if has_E and any(has_lame):
        raise StudyError(f"`{key}` must have `E` and `nu`, or `mu` and `lam`, got some of both.")
    if body.nu is not None and not has_E:
        raise StudyError(f"`{key}.nu` is given, but not `{key}.E`: give both, or `mu` and `lam`.")
    if has_E or all(has_lame):
        return has_E
    missing = "lam" if has_lame[0] else "mu" if has_lame[1] else "E"
    raise StudyError(
        f"`{key}.{missing}` must be given: a soft body needs `E` and `nu`, or `mu` and `lam`, as "
        "small-strain constants [Pa]. Rubber has E = 1e6, soft silicone 1e5, jelly 1e4."
    )


def lumping_of(cells: np.ndarray, measure: np.ndarray, n: int) -> scipy.sparse.csr_array:
    """Return the matrix from densities of elements to node masses, (n, n_elements)."""
    each = cells.shape[1]
    entries = np.repeat(measure / each, each)
    columns = np.repeat(np.arange(len(cells)), each)
    return scipy.sparse.csr_array((entries, (cells.ravel(), columns)), shape=(n, len(cells)))


def mass_of(name: str, values: Mapping[str, np.ndarray], lumping: Any) -> np.ndarray:
    """Return the masses of nodes at the values of a body, (n,) [kg]."""
    density = np.broadcast_to(values[f"{name}.density"], lumping.shape[1:])
    return values[f"{name}.mass_factors"] * (lumping @ density)
