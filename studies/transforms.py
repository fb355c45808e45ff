r"""Maps between the optimizer's coordinates theta and natural parameters.

    Identity    p = theta
    Scaled      p = unit theta
    Log         p = exp(theta)                                  p > 0
    LamePair    mu = exp(theta_0),  lam = exp(theta_1) + mu/8   mu > 0, lam > mu/8

`LamePair` covers exactly the stable neo-Hookean materials (bulk modulus lam - mu/8 > 0).
Every transform acts on arrays whose first axis runs over its paths, `(n_paths, ...)`,
and has a tangent (`jvp`) and a cotangent (`vjp`) map at theta.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Transform(Protocol):
    """A smooth map from theta to natural values, both `(n_paths, ...)`."""

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        ...

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values; ValueError outside the transform's range."""
        ...

    def jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the tangent of the natural values."""
        ...

    def vjp(self, theta: np.ndarray, adj_natural: np.ndarray) -> np.ndarray:
        """Return the cotangent of theta from that of the natural values."""
        ...

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        ...

    def labels(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return what the components of theta are called."""
        ...


@dataclass(frozen=True)
class Identity:
    """p = theta."""

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        return theta

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values."""
        return np.asarray(natural, dtype=np.float64)

    def jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the tangent of the natural values."""
        del theta
        return tan_theta

    def vjp(self, theta: np.ndarray, adj_natural: np.ndarray) -> np.ndarray:
        """Return the cotangent of theta."""
        del theta
        return adj_natural

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        return lower, upper

    def labels(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return what theta's components are called."""
        return paths


@dataclass(frozen=True, eq=False)
class Scaled:
    """p = unit theta, for quantities that the images feel unequally.

    Attributes
    ----------
    unit : numpy.ndarray
        A positive number for each value, or one that fits by broadcasting.
    """

    unit: np.ndarray

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        return self.unit * theta

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values."""
        return np.asarray(natural, dtype=np.float64) / self.unit

    def jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the tangent of the natural values."""
        del theta
        return self.unit * tan_theta

    def vjp(self, theta: np.ndarray, adj_natural: np.ndarray) -> np.ndarray:
        """Return the cotangent of theta."""
        del theta
        return self.unit * adj_natural

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        return lower / self.unit, upper / self.unit

    def labels(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return what theta's components are called."""
        return tuple(f"scaled {path}" for path in paths)


LINEAR = (Identity, Scaled)  # what may be of either sign


@dataclass(frozen=True)
class Log:
    """p = exp(theta), for positive quantities."""

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        return np.exp(theta)

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values."""
        value = np.asarray(natural, dtype=np.float64)
        if not (value > 0.0).all():
            raise ValueError(f"A value under the log transform must be positive, got {value}.")
        return np.log(value)

    def jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the tangent of the natural values."""
        return np.exp(theta) * tan_theta

    def vjp(self, theta: np.ndarray, adj_natural: np.ndarray) -> np.ndarray:
        """Return the cotangent of theta."""
        return np.exp(theta) * adj_natural

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(lower, 0.0)), np.log(upper)

    def labels(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return what theta's components are called."""
        return tuple(f"log {path}" for path in paths)


@dataclass(frozen=True)
class LamePair:
    """(mu, lam) = (exp(theta_0), exp(theta_1) + mu/8)."""

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        mu = np.exp(theta[0])  # (1)
        bulk = np.exp(theta[1])  # (2)
        return np.stack([mu, bulk + mu / 8.0])  # (3)

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values."""
        mu, lam = np.asarray(natural, dtype=np.float64)
        if not ((mu > 0.0).all() and (lam > mu / 8.0).all()):
            remedy = "Raise lam or lower mu." if (mu > 0.0).all() else "Raise mu above 0."
            raise ValueError(
                f"A rest state is stable only for mu > 0 and lam > mu/8, got mu = {mu}, "
                f"lam = {lam}. {remedy}"
            )
        return np.stack([np.log(mu), np.log(lam - mu / 8.0)])

    def jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the tangent of the natural values."""
        tan_mu = np.exp(theta[0]) * tan_theta[0]  # (1)
        tan_bulk = np.exp(theta[1]) * tan_theta[1]  # (2)
        return np.stack([tan_mu, tan_bulk + tan_mu / 8.0])  # (3)

    def vjp(self, theta: np.ndarray, adj_natural: np.ndarray) -> np.ndarray:
        """Return the cotangent of theta."""
        # (3) mu, bulk + mu/8
        adj_mu = adj_natural[0] + adj_natural[1] / 8.0
        adj_bulk = adj_natural[1]
        # (2) bulk = exp(theta_1), (1) mu = exp(theta_0)
        return np.stack([np.exp(theta[0]) * adj_mu, np.exp(theta[1]) * adj_bulk])

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        # lam - mu/8 over the natural box, kept above a thousandth of the smallest lam
        low = np.stack([lower[0], np.maximum(lower[1] - upper[0] / 8.0, 1e-3 * lower[1])])
        high = np.stack([upper[0], upper[1] - lower[0] / 8.0])
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(low, 0.0)), np.log(high)

    def labels(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return what theta's components are called."""
        mu, lam = paths
        return f"log {mu}", f"log({lam} - {mu}/8)"
