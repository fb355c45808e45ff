"""Filming smoke: its density is the image, one pixel for each cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from render.smoke import smoke_images
from studies.filming import Filmed, Filming, Pulled
from studies.motion import Motion


@dataclass(frozen=True, eq=False)
class SmokeFilming(Filming):
    """The density of every frame in one colour over another.

    Attributes
    ----------
    color, background : array
        RGB, (3,) [-].
    size : tuple of int
        Rows and columns of the grid.
    """

    color: Any
    background: Any
    size: tuple[int, int]

    def shoot(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the images of a trajectory."""
        del motion
        return smoke_images(run.density, self.color, self.background)

    def jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and their tangents."""
        del tangents
        tan_images = smoke_images_jvp(tan_run.density, self.color, self.background)
        return self.shoot(motion, run), tan_images

    def record(self, motion: Motion, run: Any) -> Filmed:
        """Return the images, and what pulls their cotangents back to the density."""

        def vjp(adj_images: np.ndarray) -> Pulled:
            return Pulled({"density": smoke_images_vjp(adj_images, self.color, self.background)})

        return Filmed(self.shoot(motion, run), vjp)
