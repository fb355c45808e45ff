r"""The laws of a contact's pressure: the numbers of each, and how stiff it is at a depth.

    damped        p = k_e c + k_d max(0, -u_n)                      gradSim (ICLR 2021)
    dissipative   p = k_e c max(0, 1 - d u_n)                       Hunt and Crossley (1975)
    cubic         p = k c^3 G(gamma u_n/c^2),  G(w) = 1 - w/sqrt(1 + w^2)     ours

By the cubic law a point keeps the same part e of its speed at every speed: with s = c^2 and
v = c', w = -gamma v/s, the motion of a point of mass m is homogeneous in s and v,

    dv/ds = -k s G/(2 m v),   so   ds/s = -w dw/(w^2 + 4 zeta^2 G(w)),   zeta = gamma sqrt(k/(8 m))

from s = 0, w = -infinity, through the deepest point, w = 0, to w = infinity. Hence

    ln e = int_0^inf (F(w) - F(-w)) dw/w,   F(w) = 4 zeta^2 G(w)/(w^2 + 4 zeta^2 G(w))
    deepest: c^4 = 2 m u^2 q/k,   q = 4 zeta^2 exp(2 K)
    K = int_0^inf (w^2/(w^2 + 4 zeta^2 G(-w)) - w^2/(1 + w^2)) dw/w
    at rest under a weight f: c^3 = f/k

So e and the depth C that is reached at u give

    k = 2 m u^2 q/C^4,   gamma = zeta(e) sqrt(8 m/k)

m is what one point carries: several that touch at the same time share a body, and a point off the
centre of mass carries less than all of it. Of twice the mass e is .67 where it is .6 of the mass.

In place of G the obvious max(0, 1 - w) has everything in closed form: p = k c^3 - eta c u_n with
zeta = eta/(2 sqrt(2 k m)), e = exp(-2 zeta acos(zeta)/sqrt(1 - zeta^2)) and q = e. But its pressure
begins with a slope in c, k gamma u, and what a step makes of that changes with where in it the
touch falls. G is bounded, so the pressure begins as c^3. After a fall from 0.11 m, with e = 0.6
and C = 2 mm, the height at 0.3 s has the slope 0.88 by the first height. The exact gradient of the
discrete program is off by (root mean square over where in a step the touch falls)

    steps a touch      20      40      80     160
    max(0, 1 - w)     1.7     0.8     0.7     0.3
    G                0.02   < 0.01  < 0.01  < 0.01

Tests: `tests/forces/test_pressure_laws.py`. Adjoint: of the law, `adjoint/forces/contact_law.py`.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from adjsim import checks


# Of ln w in the integrals: the trapezoidal rule converges exponentially for them.
SPACING, BEYOND = 0.1, 20.0
LEAST_LOG, MOST_LOG = -25.0, 41.0  # of zeta
LEAST = 1e-9  # of a restitution, and of what is lost: less counts as nothing


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
        """Return 6 k c^2, the largest: in fast approach."""
        return 6.0 * contact.cubic_stiffness * np.square(depth)

    def damping(self, contact: Any, depth: Any) -> Any:
        """Return k gamma c."""
        return contact.cubic_stiffness * contact.cubic_dissipation * depth


CUBIC = CubicLaw("cubic_stiffness", "cubic_dissipation", None)
PRESSURE_LAWS = (PressureLaw(), DissipativeLaw(loss="dissipation"), CUBIC)


def choose_law(contact: Any) -> None:
    """Set `law` by the numbers that a contact has, and those of it that are left out.

    Raise a ValueError if no law has all of the numbers that are given.
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
        The part e of the speed that is left, at every speed, 0 < e <= 1 [-].
    depth, speed : float or array
        How deep it goes [m] where it arrives at this speed [m/s].

    Returns
    -------
    dict
        `cubic_stiffness` [N/m^3], `cubic_dissipation` [m s], and `deepest`, the depth.

    Raises
    ------
    ValueError
        If a number is not positive, or the restitution above 1.
    """
    zeta, q = bounce(restitution)[0]
    given = {"mass": mass, "depth": depth, "speed": speed}
    m, C, u = (checks.positive(name, checks.array(name, value)) for name, value in given.items())
    k = 2.0 * m * u**2 * q / C**4
    gamma = zeta * np.sqrt(8.0 * m / k)
    return {"cubic_stiffness": k, "cubic_dissipation": gamma, "deepest": C}


Numbers = tuple[float, float]


def bounce(restitution: float) -> tuple[Numbers, Numbers]:
    """Return zeta and q of a restitution 0 < e <= 1, and their slopes by e."""
    e = float(checks.number("restitution", restitution))
    if not LEAST <= e <= 1.0:
        raise ValueError(f"`restitution` must be above 0 and at most 1, got {e:g}.")
    if e > 1.0 - LEAST:  # ln e = -pi zeta and q = 1 - pi zeta to first order
        return (0.0, 1.0), (-1.0 / np.pi, 1.0)
    return _bounce(e)


@lru_cache
def _bounce(e: float) -> tuple[Numbers, Numbers]:
    from scipy.optimize import brentq

    find: Any = brentq  # SciPy's stubs ask for a float64

    def excess(log_zeta: float) -> float:
        return _integrals(np.exp(log_zeta))[0][0] - np.log(e)

    log_zeta = find(excess, LEAST_LOG, MOST_LOG, xtol=1e-15, rtol=1e-15)
    zeta = float(np.exp(log_zeta))
    (_, K), (by_log, K_by_log) = _integrals(zeta)
    q, rate = 4.0 * zeta**2 * np.exp(2.0 * K), 1.0 / (e * by_log)  # d ln zeta/de
    return (zeta, float(q)), (zeta * rate, float(2.0 * q * (1.0 + K_by_log) * rate))


def restitution_of(zeta: float) -> float:
    """Return the restitution e of a damping ratio."""
    return float(np.exp(_integrals(zeta)[0][0]))


def _integrals(zeta: float) -> tuple[Numbers, Numbers]:
    """Return ln e and K of a damping ratio, and their slopes by its logarithm."""
    corner = np.log(2.0 * zeta)
    t = np.arange(min(corner, 0.0) - BEYOND, max(corner, 0.0) + BEYOND, SPACING)
    w2 = np.exp(2.0 * t)
    r = np.sqrt(1.0 + w2)
    back, into = (4.0 * zeta**2 * G for G in (1.0 / (r * (r + np.exp(t))), 1.0 + np.exp(t) / r))
    lost = back / (w2 + back) - into / (w2 + into)
    deep = w2 / (w2 + into) - w2 / (1.0 + w2)
    by_back, by_into = (2.0 * each * w2 / (w2 + each) ** 2 for each in (back, into))
    ln_e, K, slope, K_slope = (
        SPACING * float(np.sum(each)) for each in (lost, deep, by_back - by_into, -by_into)
    )
    return (ln_e, K), (slope, K_slope)
