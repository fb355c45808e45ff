"""What every loss of images is to a search: its value, and both of its derivatives.

A kind of problem says how theta becomes images, and gives the tangent and the adjoint of that;
residuals, gradients and Jacobians follow here, the same for all kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from adjoint.render.losses import loss_vjp, residuals_jvp, residuals_vjp
from adjsim.backend import thread_count
from render.losses import ImageLoss, residuals
from studies.parameters import Parameters


Judge = Callable[[np.ndarray], tuple[float, np.ndarray]]


class ImageProblem(ABC):
    """A `studies.optimizers.problem.Problem`: images compared with targets.

    Attributes
    ----------
    parameters : Parameters
        What is free.
    loss : ImageLoss
        Gauss-Newton needs `Mse` or `PyramidMse`.
    targets : numpy.ndarray
        (n_images, height, width, 3 or 4).
    """

    parameters: Parameters
    loss: ImageLoss
    targets: np.ndarray

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

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural values by path."""
        return self.parameters.values(theta)

    def loss_at(self, theta: np.ndarray) -> float:
        """Return the loss only."""
        return self.loss(self.images(theta), self.targets) + self.penalty(theta)[0]

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient in theta."""
        value, gradient = self.pull_back(theta, self.judge)
        more, slope = self.penalty(theta)
        return value + more, gradient + slope

    def judge(self, images: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of images, and its cotangent."""
        return self.loss(images, self.targets), loss_vjp(self.loss, images, self.targets)

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return r with loss = r @ r, without the penalty."""
        return residuals(self.loss, self.images(theta), self.targets)

    def residuals_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the derivative of the residuals along `tan_theta`."""
        images, tan_images = self.images_jvp(theta, tan_theta)
        return residuals_jvp(self.loss, images, self.targets, tan_images)

    def residuals_vjp(self, theta: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the gradient in theta for a cotangent of the residuals."""

        def judge(images: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.0, residuals_vjp(self.loss, images, self.targets, adj_r)

        return self.pull_back(theta, judge)[1]

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and their Jacobian, one tangent sweep a column.

        The columns share this machine's threads.
        """
        images, push = self.on_one_thread().pushing(theta)
        r = residuals(self.loss, images, self.targets)

        def column(direction: np.ndarray) -> np.ndarray:
            return residuals_jvp(self.loss, images, self.targets, push(direction))

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
