"""What a camera does to the images of a synthetic study."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from adjsim import checks


@dataclass(frozen=True)
class Noise:
    """What is done to target images: the table `noise` of the settings."""

    level: float
    eight_bit: bool

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Return the noise of the settings' table."""
        for key in ("level", "repeats"):
            checks.non_negative(f"noise.{key}", table.get(key, 0))
        return cls(table["level"], table["eight_bit"])

    def apply(self, images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the noisy images: RGB if there is any noise, else the images themselves.

        An alpha channel would give the silhouette away without noise, and a video file
        has none.
        """
        if not self.level and not self.eight_bit:
            return images
        noisy = images[..., :3] + self.level * rng.standard_normal(images[..., :3].shape)
        return np.rint(255.0 * np.clip(noisy, 0.0, 1.0)) / 255.0 if self.eight_bit else noisy
