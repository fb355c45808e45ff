"""Which steps a synthetic study films, from its table `time`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjsim import checks
from studies.errors import StudyError


def frame_steps(time: Mapping[str, Any]) -> tuple[float, np.ndarray]:
    """Return the step [s], and the steps that are filmed: evenly spaced, the last at the end.

    Raises
    ------
    ValueError
        If a number is not positive, or there are fewer steps than frames.
    """
    checks.positive("time.dt", time["dt"])
    checks.positive("time.frames", time["frames"])
    if time["steps"] < time["frames"]:
        raise StudyError(
            f"`time.steps` must be at least `time.frames`, got {time['steps']} and "
            f"{time['frames']}."
        )
    steps = np.rint(np.linspace(0, time["steps"], time["frames"] + 1)).astype(int)[1:]
    return time["dt"], steps


def first_part(count: int, part: float) -> int:
    """Return how many of the frames are the first part of a video, at least one."""
    return max(1, round(part * count))
