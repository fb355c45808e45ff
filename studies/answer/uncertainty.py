"""How well observations determine their parameters: intervals, and the spectrum of the Jacobian.

The spectrum is that of J itself, its singular values: those of J^T J would hide all below the
root of the rounding error. A direction with a singular value at rounding leaves no trace. Intervals
are those of `studies.answer.intervals`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.answer.intervals import LEVEL, Intervals, triangle


SHOWN, LEAST_SHOWN = 8, 0.05  # components told of the worst and the best direction


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Intervals and what they rest on."""

    intervals: Intervals
    noise: float  # estimated standard deviation of a pixel [-]
    # Of J in theta: values descending, (n,), and a unit direction in each row, (n, n)
    singular_values: np.ndarray
    directions: np.ndarray

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the natural values by pixel noise, `(n,)`; NaN if unknown."""
        return self.intervals.pixel

    @property
    def reason(self) -> str:
        """Why there are no intervals, if there are none."""
        return self.intervals.reason

    def to_dict(self, labels: tuple[str, ...]) -> dict[str, Any]:
        """Return the spectrum and the noise as plain numbers, ready for JSON."""
        values = self.singular_values
        n = self.directions.shape[1]
        is_whole = 0 < n == len(self.directions)
        is_known = 0 < n == len(values) and values[-1] > 0.0
        return {
            "level": LEVEL,
            "reason": self.reason,
            "sources": self.intervals.to_dict()["sources"],
            "noise": self.noise,
            "singular_values": values.tolist(),
            "condition": float(values[0] / values[-1]) if is_known else None,
            "worst_direction": _told(self.directions[-1], labels) if is_whole else {},
            "best_direction": _told(self.directions[0], labels) if values.size else {},
        }


def _told(direction: np.ndarray, labels: tuple[str, ...]) -> dict[str, float]:
    """Return the largest components of a direction by name."""
    order = np.argsort(-np.abs(direction), kind="stable")[:SHOWN]
    sign = np.sign(direction[order[0]])
    told = {labels[i]: float(sign * direction[i]) for i in order}
    return {label: weight for label, weight in told.items() if abs(weight) >= LEAST_SHOWN}


def spectrum(jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of J, descending, and their directions in rows."""
    _, values, directions = np.linalg.svd(triangle(jacobian))
    return values, directions
