"""What every loss of images is to a search: its value, and both of its derivatives.

A kind of problem says how theta becomes images, and gives the tangent and the adjoint of that;
residuals, gradients and Jacobians follow here, the same for all kinds.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from adjoint.render.losses import loss_vjp, residuals_jvp, residuals_vjp
from adjsim.backend import thread_count
from render.losses import ImageLoss, residuals
from studies.problem.parameters import Parameters
from studies.search.optimizers.problem import NOT_FINITE


Judge = Callable[[np.ndarray], tuple[float, np.ndarray]]


class ImageProblem(ABC):
    """A `studies.search.optimizers.problem.Problem`: images compared with targets."""

    parameters: Parameters  # what is free
    loss: ImageLoss  # Gauss-Newton needs `Mse` or `PyramidMse`
    targets: np.ndarray  # (n_images, height, width, 3 or 4)

    @property
    @abstractmethod
    def dtype(self) -> str:
        """Its precision: float64 or float32."""

    @property
    @abstractmethod
    def device(self) -> str:
        """Where it is computed: cpu or cuda."""

    @property
    def schedule(self) -> str | None:
        """Which states are kept to be reversed, in words; None where nothing moves."""
        return None

    @abstractmethod
    def with_targets(self, targets: np.ndarray) -> Self:
        """Return the same problem with other targets."""

    @abstractmethod
    def with_dtype(self, dtype: str) -> Self:
        """Return the same problem computed in another precision."""

    @abstractmethod
    def on_one_thread(self) -> Self:
        """Return the same problem computed by one thread."""

    @abstractmethod
    def at_stage(self, stage: float) -> Self:
        """Return an easier problem to begin with; 1 is the problem itself."""

    @abstractmethod
    def name_of_stage(self, stage: float) -> str:
        """Return what is looked at in a stage, for log and report."""

    @abstractmethod
    def images(self, theta: np.ndarray) -> np.ndarray:
        """Return the images at theta, RGBA."""

    @abstractmethod
    def images_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the images at theta and their derivative along `tan_theta`."""

    def pushing(self, theta: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return the images at theta, and what pushes any number of directions to them."""
        return self.images(theta), lambda tan_theta: self.images_jvp(theta, tan_theta)[1]

    @abstractmethod
    def pull_back(self, theta: np.ndarray, judge: Judge) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(images) -> value, adj_images`."""

    def penalty(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return what the loss holds beside that of the images, and its gradient in theta."""
        return 0.0, np.zeros_like(theta)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self.parameters.lower, self.parameters.upper

    @property
    def n_pixels(self) -> int:
        """Number of values compared: images, pixels and channels."""
        return self.targets.size

    @property
    def answers(self) -> tuple[int, ...]:
        """Components of theta that are asked for; the others are nuisances, such as a camera."""
        return tuple(range(self.parameters.size))

    @property
    def n_frames(self) -> int:
        """Number of frames, or of pictures."""
        return len(self.targets)

    def frames_between(self, first: int, stop: int) -> Self:
        """Return the problem that compares only these frames."""
        raise TypeError(f"A {type(self).__name__} has no frames to choose from: {first} to {stop}.")

    def losses_by_frame(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """Return the loss of every frame alone, (n_points, n_frames); inf where it blows up."""
        found = np.full((len(thetas), self.n_frames), np.inf)
        for row, theta in zip(found, thetas, strict=True):
            with contextlib.suppress(*NOT_FINITE):
                row[:] = self.frame_losses(self.images(theta))
        return found

    def frame_losses(self, images: np.ndarray) -> np.ndarray:
        """Return the loss of every image alone, (n_frames,)."""
        pairs = zip(images, self.targets, strict=True)
        return np.array([self.loss(image[None], target[None]) for image, target in pairs])

    def frames_of_rows(self) -> np.ndarray:
        """Return the frame of every residual, (n_residuals,); -1 for a prior."""
        per_frame = len(self.residuals_of(self.blank())) // self.n_frames
        return np.repeat(np.arange(self.n_frames), per_frame)

    def blank(self) -> np.ndarray:
        """Return images of nothing, in the shape of those at any theta."""
        return np.zeros((*self.targets.shape[:-1], 4), self.dtype)

    def residual_squares(self, theta: np.ndarray) -> np.ndarray:
        """Return the sum of squares of image - target in every frame, (n_frames,)."""
        off = self.images(theta)[..., : self.targets.shape[-1]] - self.targets
        return np.square(off, dtype=np.float64).sum(axis=(1, 2, 3))

    def still_squares(self) -> np.ndarray:
        """Return the sum of squares of target - first target in every frame, (n_frames,)."""
        off = self.targets - self.targets[:1]
        return np.square(off, dtype=np.float64).sum(axis=(1, 2, 3))

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural values by path."""
        return self.parameters.values(theta)

    def loss_of(self, images: np.ndarray) -> float:
        """Return the loss of images, without the penalty."""
        return self.loss(images, self.targets)

    def loss_cotangent(self, images: np.ndarray) -> np.ndarray:
        """Return the gradient of that loss in the images."""
        return loss_vjp(self.loss, images, self.targets)

    def residuals_of(self, images: np.ndarray) -> np.ndarray:
        """Return r of images, with loss = r @ r."""
        return residuals(self.loss, images, self.targets)

    def residuals_tangent(self, images: np.ndarray, tan_images: np.ndarray) -> np.ndarray:
        """Return the tangent of r."""
        return residuals_jvp(self.loss, images, self.targets, tan_images)

    def residuals_cotangent(self, images: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of images for one of r."""
        return residuals_vjp(self.loss, images, self.targets, adj_r)

    def loss_at(self, theta: np.ndarray) -> float:
        """Return the loss only."""
        return self.loss_of(self.images(theta)) + self.penalty(theta)[0]

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient in theta."""
        value, gradient = self.pull_back(theta, self.judge)
        more, slope = self.penalty(theta)
        return value + more, gradient + slope

    def judge(self, images: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of images, and its cotangent."""
        return self.loss_of(images), self.loss_cotangent(images)

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return r with loss = r @ r, without the penalty."""
        return self.residuals_of(self.images(theta))

    def residuals_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the derivative of the residuals along `tan_theta`."""
        return self.residuals_tangent(*self.images_jvp(theta, tan_theta))

    def residuals_vjp(self, theta: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the gradient in theta for a cotangent of the residuals."""

        def judge(images: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.0, self.residuals_cotangent(images, adj_r)

        return self.pull_back(theta, judge)[1]

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and their Jacobian, one tangent sweep a column.

        The columns share this machine's threads.
        """
        images, push = self.on_one_thread().pushing(theta)
        r = self.residuals_of(images)

        def column(direction: np.ndarray) -> np.ndarray:
            return self.residuals_tangent(images, push(direction))

        return r, filled_columns(column, (len(r), len(theta)), self.device)


def filled_columns(
    column: Callable[[np.ndarray], np.ndarray], shape: tuple[int, int], device: str
) -> np.ndarray:
    """Return a Jacobian of this shape, its columns told by `column(direction)` on all threads."""
    jacobian = np.empty(shape, order="F")

    def fill(i: int) -> None:
        direction = np.zeros(shape[1])
        direction[i] = 1.0
        jacobian[:, i] = column(direction)

    with ThreadPoolExecutor(thread_count(None, large=device == "cpu")) as pool:
        list(pool.map(fill, range(shape[1])))
    return jacobian
