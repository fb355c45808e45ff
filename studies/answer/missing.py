"""A term that the model of a scene lacks, and what it would change."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class MissingTerm:
    """A number of the scene that explains what an answer leaves."""

    path: str
    value: np.ndarray  # that explains most, () or (k,)
    unit: str
    left: float  # part of the motion that is unexplained without it
    left_with: float  # and with it
    change: np.ndarray  # of the answer, theta with it less theta without it, (p,)

    @property
    def line(self) -> str:
        """What makes it free, in the table `free` of a scene file."""
        start = ", ".join(f"{number:.3g}" for number in np.ravel(self.value))
        start = start if np.ndim(self.value) == 0 else f"[{start}]"
        return f'"{self.path}" = {{ start = {start} }}'

    def to_dict(self) -> dict[str, Any]:
        """Return what it explains, ready for JSON."""
        return {
            "path": self.path,
            "value": np.asarray(self.value).tolist(),
            "unit": self.unit,
            "unexplained": self.left,
            "unexplained_with": self.left_with,
            "line": self.line,
        }
