"""What a twin experiment knows and its search does not: the hidden values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Truth:
    """Hidden values."""

    values: Mapping[str, Any]  # by path
    # What an error of a path is relative to, where that is not the truth itself: a velocity may
    # have components that are 0
    scales: Mapping[str, float] = field(default_factory=dict)

    def flat(self, paths: tuple[str, ...]) -> np.ndarray:
        """Return the hidden values of the paths as one vector."""
        return np.concatenate([np.ravel(self.values[path]) for path in paths]).astype(float)

    def errors(self, paths: tuple[str, ...], estimate: np.ndarray) -> np.ndarray:
        """Return the relative error of every component of an estimate, (n,).

        Of a truth that is 0 and has no scale it is the error itself, in the path's unit.
        """
        truth = self.flat(paths)
        sizes = [np.size(self.values[path]) for path in paths]
        scale = np.repeat([self.scales.get(path, np.nan) for path in paths], sizes)
        magnitude = np.where(truth == 0.0, 1.0, np.abs(truth))
        return np.abs(estimate - truth) / np.where(np.isnan(scale), magnitude, scale)
