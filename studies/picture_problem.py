r"""The loss of pictures of a scene at rest as a function of free parameters.

    theta -> values -> scene and cameras -> pictures -> loss,   loss = of pictures + penalty

The penalty is a weighted sum of losses of shape of the vertices of objects. To begin with, a
search may look at the scene with wide edges: the targets stay as sharp as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from adjoint.render.shape_losses import shape_loss_vjp
from render.losses import ImageLoss
from render.shape_losses import ShapeLoss
from studies.image_problem import ImageProblem, Judge
from studies.parameters import Parameters
from studies.scenery import Scenery


@dataclass(frozen=True, eq=False)
class PictureProblem(ImageProblem):
    """A `studies.optimizers.problem.Problem`: draw a scene, compare with target pictures.

    Parameters
    ----------
    scenery : Scenery
    parameters : Parameters
        What is free; its targets are paths of the scenery.
    loss : ImageLoss
        Gauss-Newton needs `Mse` or `PyramidMse`, and no penalty.
    targets : numpy.ndarray
        (n_pictures, height, width, 3 or 4).
    penalties : mapping of str to sequence of (float, ShapeLoss)
        Weights and losses of the free vertices of objects, by path such as "ball.vertices".
    """

    scenery: Scenery
    parameters: Parameters
    loss: ImageLoss
    targets: np.ndarray
    penalties: Mapping[str, tuple[tuple[float, ShapeLoss], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", np.asarray(self.targets, self.dtype))

    @property
    def dtype(self) -> str:
        """Its precision: float64 or float32."""
        return self.scenery.dtype

    @property
    def device(self) -> str:
        """Where it is computed: cpu or cuda."""
        return self.scenery.device

    def with_targets(self, targets: np.ndarray) -> "PictureProblem":
        """Return the same problem with other pictures."""
        return replace(self, targets=targets)

    def with_dtype(self, dtype: str) -> "PictureProblem":
        """Return the same problem computed in another precision."""
        return replace(self, scenery=replace(self.scenery, dtype=dtype))

    def on_one_thread(self) -> "PictureProblem":
        """Return the same problem, drawn by one thread."""
        return replace(self, scenery=replace(self.scenery, threads=1))

    def at_stage(self, stage: float) -> "PictureProblem":
        """Return the problem with edges drawn wider by this factor."""
        return self if stage == 1.0 else replace(self, scenery=self.scenery.softened(stage))

    def name_of_stage(self, stage: float) -> str:
        """Return how wide soft edges are at a stage."""
        return f"edges {self.softness(stage):.3g} pixels soft"

    def softness(self, stage: float = 1.0) -> float:
        """Return how wide soft edges are at a stage [pixels]."""
        return float(stage * np.sqrt(self.scenery.rasterizer.sigma) * self.scenery.size[0] / 2.0)

    def scenery_at(self, theta: np.ndarray) -> Scenery:
        """Return the scenery with the values at theta."""
        return self.scenery.with_values(self.parameters.rollout_values(theta))

    def images(self, theta: np.ndarray) -> np.ndarray:
        """Return the pictures at theta, RGBA."""
        return self.scenery_at(theta).shoot()

    def images_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pictures at theta and their derivative along `tan_theta`."""
        return self.scenery_at(theta).jvp(self.parameters.tangents(theta, tan_theta))

    def pushing(self, theta: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return the pictures at theta, drawn once for all directions, and what pushes these."""
        record = self.scenery_at(theta).record()
        return record.images, lambda tan: record.jvp(self.parameters.tangents(theta, tan))

    def pull_back(self, theta: np.ndarray, judge: Judge) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(images) -> value, adj_images`."""
        record = self.scenery_at(theta).record()
        value, adj_images = judge(record.images)
        adjoints = record.vjp(adj_images, wrt=self.parameters.targets)
        return value, self.parameters.gradient(theta, adjoints)

    def penalty(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the weighted losses of shape, and their gradient in theta."""
        if not self.penalties:
            return super().penalty(theta)
        values = self.parameters.rollout_values(theta)
        adjoints = {path: np.zeros(np.shape(value)) for path, value in values.items()}
        total = 0.0
        for path, losses in self.penalties.items():
            for weight, loss in losses:
                total += weight * loss(values[path])
                adjoints[path] += shape_loss_vjp(loss, values[path], weight)
        return total, self.parameters.gradient(theta, adjoints)
