"""The target video of a synthetic study: the hidden truth, filmed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.errors import StudyError
from studies.filming import Filming
from studies.motion import Motion


VISIBLE = 4.0  # pixels that must be covered in some frame


def film(filming: Filming, motion: Motion, values: Mapping[str, Any]) -> np.ndarray:
    """Return the video of a motion with other values of the rollout's parameters.

    Raises
    ------
    StudyError
        If the camera sees next to nothing: any search would call that a perfect fit.
    NotFiniteError
        If the rollout leaves the finite numbers.
    """
    shown = motion.with_values(values)
    images = filming.shoot(shown, shown.run())
    covered = float(images[..., 3].sum(axis=(1, 2)).max())
    if covered < VISIBLE:
        raise StudyError(
            f"`camera` sees nothing of the motion: at most {covered:.1f} pixels of a frame are "
            "covered. Move it, look elsewhere, or check that the motion is what was meant."
        )
    return images
