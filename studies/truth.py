"""What a synthetic study knows and its search does not: hidden values and clean images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studies.errors import StudyError
from studies.parameters import Parameters


Noise = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def no_noise(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the images as they are."""
    del rng
    return images


@dataclass(frozen=True, eq=False)
class Truth:
    """Hidden values, the video without noise, and the noise of this study.

    Attributes
    ----------
    values : mapping
        Natural values by path.
    images : numpy.ndarray
        The video without noise.
    noise : callable
        noise(images, rng) is what a camera would have seen.
    scales : mapping
        What an error of a path is relative to, where that is not the truth itself: a
        velocity may have components that are 0.
    """

    values: Mapping[str, Any]
    images: np.ndarray
    noise: Noise = no_noise
    scales: Mapping[str, float] = field(default_factory=dict)

    def require_reachable(self, parameters: Parameters) -> None:
        """Complain of a hidden value outside the bounds of the search."""
        for block in parameters.blocks:
            for path, low, high in zip(block.paths, block.lower, block.upper, strict=True):
                value = np.asarray(self.values[path])
                if not ((low <= value) & (value <= high)).all():
                    raise StudyError(
                        f"The hidden `{path}` must lie inside its bounds too, {low.min():g} to "
                        f"{high.max():g}, got {value.min():g} to {value.max():g}: no search could "
                        "find it. Widen the bounds, or hide another value."
                    )

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
        own = np.where(truth == 0.0, 1.0, np.abs(truth))
        return np.abs(estimate - truth) / np.where(np.isnan(scale), own, scale)
