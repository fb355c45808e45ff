r"""Maps between the optimizer's coordinates theta and natural parameters.

    Identity    p = theta
    Scaled      p = unit theta
    Log         p = exp(theta)                                  p > 0

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
    """p = unit theta, for quantities that the images feel unequally."""

    unit: np.ndarray  # A positive number for each value, or one that fits by broadcasting

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
