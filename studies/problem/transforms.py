r"""Maps between the optimizer's coordinates theta and natural parameters.

    Scaled      p = unit theta
    Identity    p = theta
    Log         p = exp(theta)                                  p > 0

Every transform acts on arrays and has a tangent (`jvp`) and a cotangent (`vjp`) map at theta.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Scaled:
    """p = unit theta, for quantities of either sign that the images feel unequally."""

    unit: np.ndarray | float  # positive, for each value, or one that fits by broadcasting
    prefix: ClassVar[str] = "scaled "  # of the label of theta

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


@dataclass(frozen=True, eq=False)
class Identity(Scaled):
    """p = theta."""

    unit: np.ndarray | float = 1.0
    prefix: ClassVar[str] = ""


@dataclass(frozen=True)
class Log:
    """p = exp(theta), for positive quantities."""

    prefix: ClassVar[str] = "log "

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        return np.exp(theta)

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values; raise ValueError if one is not positive."""
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


Transform = Scaled | Log
