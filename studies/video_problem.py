r"""The loss of a video as a function of free parameters, with both derivatives.

    theta -> values -> system -> rollout -> trajectory -> images -> residuals -> loss

`loss_and_gradient` is one forward and one reverse sweep through this chain;
`residuals_and_jacobian` one tangent sweep per component of theta.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from render.losses import ImageLoss
from studies.filming import Filming, Pulled
from studies.image_problem import ImageProblem, Judge
from studies.motion import Motion, pull_frames
from studies.parameters import Parameters
from studies.timeline import first_part


@dataclass(frozen=True, eq=False)
class VideoProblem(ImageProblem):
    """A `studies.optimizers.problem.Problem`: film a motion, compare with a target video.

    Parameters
    ----------
    motion, filming : Motion, Filming
    parameters : Parameters
        What is free; its targets are parameters of the motion.
    loss : ImageLoss
        Gauss-Newton needs `Mse` or `PyramidMse`.
    targets : numpy.ndarray
        The video, (n_frames, height, width, 3 or 4).

    Raises
    ------
    StudyError
        If the motion's budget has no room for two states.
    """

    motion: Motion
    filming: Filming
    parameters: Parameters
    loss: ImageLoss
    targets: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", np.asarray(self.targets, self.dtype))
        replace(self.motion, dtype="float64").plan()  # as certificates need it; complains

    @property
    def dtype(self) -> str:
        """Its precision: float64 or float32."""
        return self.motion.dtype

    @property
    def device(self) -> str:
        """Where it is computed: cpu or cuda."""
        return self.motion.device

    @property
    def schedule(self) -> str:
        """Which states of its rollout are kept to be reversed, in words."""
        return self.motion.plan().told()

    def with_targets(self, targets: np.ndarray) -> "VideoProblem":
        """Return the same problem with another video."""
        return replace(self, targets=targets)

    def with_dtype(self, dtype: str) -> "VideoProblem":
        """Return the same problem computed in another precision."""
        return replace(self, motion=replace(self.motion, dtype=dtype))

    def on_one_thread(self) -> "VideoProblem":
        """Return the same problem, its rollouts run by one thread."""
        return replace(self, motion=replace(self.motion, threads=1))

    def at_stage(self, stage: float) -> "VideoProblem":
        """Return the problem of this part of the frames, at least one."""
        if stage == 1.0:
            return self
        return self.frames_between(0, first_part(len(self.motion.frames), stage))

    def name_of_stage(self, stage: float) -> str:
        """Return how many frames are looked at in a stage."""
        count = len(self.motion.frames)
        return f"{first_part(count, stage)} of {count} frames"

    def frames_between(self, first: int, stop: int) -> "VideoProblem":
        """Return the problem that compares only these frames; its rollout ends with them."""
        motion = self.motion.at(self.motion.frames[first:stop])
        return replace(self, motion=motion, targets=self.targets[first:stop])

    def motion_at(self, theta: np.ndarray) -> Motion:
        """Return the motion with the values at theta."""
        return self.motion.with_values(self.parameters.rollout_values(theta))

    def trajectory(self, theta: np.ndarray) -> Any:
        """Return the trajectory at theta, at the frames."""
        return self.motion_at(theta).run()

    def images(self, theta: np.ndarray) -> np.ndarray:
        """Return the video at theta, RGBA."""
        motion = self.motion_at(theta)
        return self.filming.shoot(motion, motion.run())

    def images_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the video at theta and its derivative along `tan_theta`."""
        motion = self.motion_at(theta)
        tangents = self.parameters.tangents(theta, tan_theta)
        run, tan_run = motion.jvp(tangents)
        return self.filming.jvp(motion, run, tan_run, tangents)

    def pull_back(self, theta: np.ndarray, judge: Judge) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(images) -> value, adj_images`."""
        motion = self.motion_at(theta)
        recorded = motion.record()
        value, pulled = self.judged(motion, recorded.trajectory, judge)
        adjoints = pull_frames(recorded, pulled.frames, self.parameters.targets)
        return value, self.gathered(theta, adjoints, pulled)

    def judged(self, motion: Motion, run: Any, judge: Judge) -> tuple[float, Pulled]:
        """Film a trajectory and judge it; return the value and the cotangents of the motion."""
        filmed = self.filming.record(motion, run)
        value, adj_images = judge(filmed.images)
        return value, filmed.vjp(adj_images)

    def gathered(
        self, theta: np.ndarray, adjoints: Mapping[str, np.ndarray], pulled: Pulled
    ) -> np.ndarray:
        """Return the gradient in theta, of what the rollout gave and what images show directly."""
        adjoints = dict(adjoints)
        for path, adj in pulled.values.items():
            if path in adjoints:
                adjoints[path] = adjoints[path] + adj
        return self.parameters.gradient(theta, adjoints)
