"""Fit free parameters to a video."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studies import outcome
from studies.image_fit import ImageFit
from studies.optimizers.problem import NOT_FINITE
from studies.runs.folder import RunFolder
from studies.search.local import Found
from studies.video_problem import VideoProblem


@dataclass(frozen=True, eq=False)
class Fit(ImageFit):
    """A `studies.registry.Job`: fit a video problem.

    Attributes
    ----------
    problem : VideoProblem
    played : numpy.ndarray, optional
        Steps that the videos show, if more than those compared.
    """

    problem: VideoProblem
    played: np.ndarray | None = field(default=None, kw_only=True)

    def facts(self) -> dict[str, Any]:
        """Return frames, step and size of the video."""
        motion = self.problem.motion
        return {
            "frames": motion.frames.tolist(),
            "dt": motion.dt,
            "size": list(self.problem.filming.size),
            "purpose": "identify",
            "n_steps": int(motion.frames[-1]),
            "observations": {
                "video": {"frames": len(motion.frames), "size": list(self.problem.filming.size)}
            },
        }

    def write_seen(self, folder: RunFolder, found: Found) -> None:
        """Write the fitted motion, the frames and the videos."""
        theta = found.best.theta
        outcome.write_frames(folder, self.problem, theta, self.played)
        outcome.write_videos(folder)

    def why_not_finite(self, found: Found) -> str:
        """Return the message of the rollout that blew up at the start, or of its reverse sweep."""
        try:
            self.problem.loss_and_gradient(self.problem.parameters.start)
        except NOT_FINITE as error:
            return f"{error} (At the start of the search.)"
        return super().why_not_finite(found)
