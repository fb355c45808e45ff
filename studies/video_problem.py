r"""The loss of a video as a function of free parameters, with both derivatives.

    theta -> values -> system -> rollout -> trajectory -> images -> residuals -> loss

`loss_and_gradient` is one forward and one reverse sweep through this chain;
`residuals_and_jacobian` one tangent sweep per component of theta.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjoint.render.losses import loss_vjp, residuals_jvp, residuals_vjp
from adjsim.backend import thread_count
from render.losses import ImageLoss, residuals
from studies.filming import Filming
from studies.motion import Motion, pull_frames
from studies.parameters import Parameters


@dataclass(frozen=True, eq=False)
class VideoProblem:
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
    """

    motion: Motion
    filming: Filming
    parameters: Parameters
    loss: ImageLoss
    targets: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", np.asarray(self.targets, self.motion.dtype))

    def with_targets(self, targets: np.ndarray) -> "VideoProblem":
        """Return the same problem with another video."""
        return replace(self, targets=targets)

    def first_frames(self, count: int) -> "VideoProblem":
        """Return the problem of the first frames only; its rollout ends with them."""
        motion = self.motion.at(self.motion.frames[:count])
        return replace(self, motion=motion, targets=self.targets[:count])

    def with_dtype(self, dtype: str) -> "VideoProblem":
        """Return the same problem computed in another precision."""
        return replace(self, motion=replace(self.motion, dtype=dtype))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self.parameters.lower, self.parameters.upper

    @property
    def n_pixels(self) -> int:
        """Number of values compared: frames, pixels and channels."""
        return self.targets.size

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural values by path."""
        return self.parameters.values(theta)

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

    def loss_at(self, theta: np.ndarray) -> float:
        """Return the loss only."""
        return self.loss(self.images(theta), self.targets)

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient in theta."""
        return self.pull_back(
            theta,
            lambda images: (
                self.loss(images, self.targets),
                loss_vjp(self.loss, images, self.targets),
            ),
        )

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return r with loss = r @ r."""
        return residuals(self.loss, self.images(theta), self.targets)

    def residuals_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the derivative of the residuals along `tan_theta`."""
        return self._push(theta, tan_theta)[1]

    def residuals_vjp(self, theta: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the gradient in theta for a cotangent of the residuals."""
        return self.pull_back(
            theta,
            lambda images: (0.0, residuals_vjp(self.loss, images, self.targets, adj_r)),
        )[1]

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and their Jacobian, one tangent rollout a column.

        The columns share this machine's threads.
        """
        r = self.residuals(theta)
        jacobian = np.empty((len(r), len(theta)), order="F")
        lone = replace(self, motion=replace(self.motion, threads=1))

        def fill(i: int) -> None:
            direction = np.zeros(len(theta))
            direction[i] = 1.0
            jacobian[:, i] = lone.residuals_jvp(theta, direction)

        on_cpu = self.motion.device == "cpu"
        with ThreadPoolExecutor(thread_count(None, large=on_cpu)) as pool:
            list(pool.map(fill, range(len(theta))))
        return r, jacobian

    def _push(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        images, tan_images = self.images_jvp(theta, tan_theta)
        return (
            residuals(self.loss, images, self.targets),
            residuals_jvp(self.loss, images, self.targets, tan_images),
        )

    def images_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the video at theta and its derivative along `tan_theta`."""
        motion = self.motion_at(theta)
        tangents = self.parameters.tangents(theta, tan_theta)
        run, tan_run = motion.jvp(tangents)
        return self.filming.jvp(motion, run, tan_run, tangents)

    def pull_back(self, theta: np.ndarray, judge: Any) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(images) -> value, adj_images`."""
        motion = self.motion_at(theta)
        recorded = motion.record()
        run = recorded.trajectory
        value, adj_images = judge(self.filming.shoot(motion, run))
        pulled = self.filming.vjp(motion, run, adj_images)
        adjoints = pull_frames(recorded, pulled.frames, self.parameters.targets)
        for path, adj in pulled.values.items():
            if path in adjoints:
                adjoints[path] = adjoints[path] + adj
        return value, self.parameters.gradient(theta, adjoints)
