r"""The laws of a contact's pressure: the numbers of each, and how stiff it is at a depth.

    damped        p = k_e c + k_d max(0, -u_n)      gradSim (ICLR 2021)
    dissipative   p = k_e c max(0, 1 - d u_n)       Hunt and Crossley (1975)
    cubic         p = k c max(0, c^2 - gamma u_n)   ours

By the cubic law a point keeps the same part e of its speed at every speed. Of a point of mass m
that arrives at u, with s = c^2 and v = c' along a time tau in which ds/dtau = v,

    dv/dtau = 2 c v dv/ds = -k (s + gamma v)/(2 m)

so s is a damped oscillator of the rate sqrt(k/(2 m)) and the damping ratio zeta, from s = 0. The
pressure ends where v is least, which is the speed at which the point leaves; s is largest at v = 0:

    zeta = gamma sqrt(k/(8 m)),   g(zeta) = zeta arccos(zeta)/sqrt(1 - zeta^2)
    e = exp(-2 g),   deepest: c^4 = 2 m u^2 e/k,   at rest under a weight w: c^3 = w/k

(zeta > 1: arccosh(zeta)/sqrt(zeta^2 - 1); g(1) = 1.) So e and the depth C that is reached at u give

    k = 2 m u^2 e/C^4,   gamma = zeta(e) sqrt(8 m/k)

m is what one point carries: several that touch at the same time share a body, and a point off the
centre of mass carries less than all of it.

Tests: `tests/forces/test_pressure_laws.py`. Adjoint: of the law, `adjoint/forces/contact_law.py`.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from adjsim import checks


NEAR_ONE = 1e-6  # within which g is taken from its slope at 1


@dataclass(frozen=True)
class PressureLaw:
    """A law by the names of its stiffness and of what loses energy."""

    stiffness: str = "stiffness"
    loss: str = "damping"
    default_stiffness: float | None = 1e4  # None: it must be given

    @property
    def scalars(self) -> tuple[str, str]:
        """The names of its numbers."""
        return (self.stiffness, self.loss)

    def slope(self, contact: Any, depth: Any) -> Any:
        """Return dp/dc at a depth [N/m]; `contact` has the numbers."""
        del depth
        return contact.stiffness

    def damping(self, contact: Any, depth: Any) -> Any:
        """Return -dp/du_n at a depth [N s/m]."""
        del depth
        return contact.damping


class DissipativeLaw(PressureLaw):
    """Hunt and Crossley's."""

    def damping(self, contact: Any, depth: Any) -> Any:
        """Return k_e d c."""
        return contact.stiffness * contact.dissipation * depth


class CubicLaw(PressureLaw):
    """The one whose restitution is the same at every speed."""

    def slope(self, contact: Any, depth: Any) -> Any:
        """Return 3 k c^2."""
        return 3.0 * contact.cubic_stiffness * np.square(depth)

    def damping(self, contact: Any, depth: Any) -> Any:
        """Return k gamma c."""
        return contact.cubic_stiffness * contact.cubic_dissipation * depth


CUBIC = CubicLaw("cubic_stiffness", "cubic_dissipation", None)
PRESSURE_LAWS = (PressureLaw(), DissipativeLaw(loss="dissipation"), CUBIC)


def choose_law(contact: Any) -> None:
    """Set `law` by the numbers that a contact has, and those of it that are left out.

    Raises
    ------
    ValueError
        If no law has all of the numbers that are given.
    """
    names = dict.fromkeys(name for law in PRESSURE_LAWS for name in law.scalars)
    given = [name for name in names if getattr(contact, name) is not None]
    for pair in combinations(given, 2):
        if not any(set(pair) <= set(law.scalars) for law in PRESSURE_LAWS):
            jumps = " Leave out the `damping`, whose force jumps at touch." * ("damping" in pair)
            raise ValueError(
                f"`{pair[0]}` and `{pair[1]}` must not both be given: a contact has one law of its "
                f"pressure.{jumps}"
            )
    law = next(law for law in PRESSURE_LAWS if set(given) <= set(law.scalars))
    object.__setattr__(contact, "law", law)
    if getattr(contact, law.stiffness) is None:
        if law.default_stiffness is None:
            raise ValueError(
                f"`{law.stiffness}` must be given with `{law.loss}`, got None. `bouncing` has both "
                "from a restitution and a depth."
            )
        object.__setattr__(contact, law.stiffness, law.default_stiffness)
    if getattr(contact, law.loss) is None:
        object.__setattr__(contact, law.loss, 0.0)


def bouncing(mass: Any, restitution: float, depth: Any, speed: Any) -> dict[str, Any]:
    """Return the numbers of a cubic contact in which points bounce, as keywords of a contact.

    Parameters
    ----------
    mass : float or array
        m that a point carries [kg].
    restitution : float
        The part e of the speed that is left, at every speed, between 0 and 1 [-].
    depth, speed : float or array
        How deep it goes [m] where it arrives at this speed [m/s].

    Returns
    -------
    dict
        `cubic_stiffness` [N/m^3], `cubic_dissipation` [m s], and `deepest`, the depth.

    Raises
    ------
    ValueError
        If a number is not positive, or the restitution not between 0 and 1.
    """
    zeta = damping_ratio(restitution)[0]
    given = {"mass": mass, "depth": depth, "speed": speed}
    m, C, u = (checks.positive(name, checks.array(name, value)) for name, value in given.items())
    k = 2.0 * m * u**2 * restitution / C**4
    gamma = zeta * np.sqrt(8.0 * m / k)
    return {"cubic_stiffness": k, "cubic_dissipation": gamma, "deepest": C}


def restitution_of(zeta: float) -> float:
    """Return the restitution e of a damping ratio."""
    return float(np.exp(-2.0 * _loss(zeta)[0]))


def damping_ratio(restitution: float) -> tuple[float, float]:
    """Return the damping ratio zeta of a restitution 0 < e < 1, and d zeta/de."""
    from scipy.optimize import brentq

    e = checks.number("restitution", restitution)
    if not 0.0 < e < 1.0:
        raise ValueError(
            f"`restitution` must be between 0 and 1, got {e:g}. For a contact that loses nothing "
            "give a `cubic_stiffness` alone."
        )
    wanted = -0.5 * np.log(e)
    find: Any = brentq  # SciPy's stubs ask for a float64
    zeta = find(lambda z: _loss(z)[0] - wanted, 0.0, np.exp(wanted), xtol=1e-16, rtol=1e-14)
    return zeta, -0.5 / (e * _loss(zeta)[1])


def _loss(zeta: float) -> tuple[float, float]:
    """Return g of a damping ratio and its slope."""
    if abs(zeta - 1.0) < NEAR_ONE:
        return 1.0 + 2.0 / 3.0 * (zeta - 1.0), 2.0 / 3.0
    if zeta < 1.0:
        angle = np.arccos(zeta)
        sine = np.sin(angle)
        return zeta * angle / sine, (angle - sine * zeta) / sine**3
    angle = np.arccosh(zeta)
    sine = np.sinh(angle)
    return zeta * angle / sine, (sine * zeta - angle) / sine**3
