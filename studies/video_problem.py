r"""The loss of a video as a function of a body's parameters, with both derivatives.

    theta -> values -> model -> rollout -> x -> vertices -> images -> residuals -> loss

`loss_and_gradient` is one forward and one reverse sweep through this chain;
`residuals_and_jacobian` one tangent sweep per component of theta.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from adjoint.render.losses import loss_vjp, residuals_jvp, residuals_vjp
from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.rollout import record, rollout_jvp
from adjsim import RolloutError
from adjsim.model import Model, State, Trajectory
from adjsim.rollout import rollout
from render.camera import Camera
from render.losses import ImageLoss, residuals
from render.scene import Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.optimizers.problem import NotFiniteError
from studies.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Motion:
    """What moves: a model, its initial state, and the steps that are filmed.

    Attributes
    ----------
    model, state : Model, State
    dt : float
        Step [s].
    frames : numpy.ndarray
        Steps that are filmed, increasing, (n_frames,); the last one ends the rollout.
    dtype : str
        float64 or float32.
    """

    model: Model
    state: State
    dt: float
    frames: np.ndarray
    dtype: str = "float64"
    device: str = field(default="cpu", kw_only=True)

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return int(self.frames[-1])

    def with_values(self, values: Mapping[str, Any]) -> "Motion":
        """Return the motion with parameters by path replaced, e.g. "beam.mu"."""
        grouped: dict[str, dict[str, Any]] = {}
        for path, value in values.items():
            owner, _, name = path.rpartition(".")
            grouped.setdefault(owner, {})[name] = value
        # All values of one owner at once: mu and lam are checked together.
        state = replace(self.state, **grouped.pop("state", {}))
        own = grouped.pop("", {})
        forces = dict(self.model.forces)
        for owner, named in grouped.items():
            forces[owner] = replace(cast(Any, forces[owner]), **named)
        return replace(self, model=replace(self.model, forces=forces, **own), state=state)

    def run(self) -> Trajectory:
        """Run forward."""
        return rollout(*self.arguments, **self.how)

    @property
    def arguments(self) -> tuple[Model, State, float, int]:
        """Model, state, step and number of steps: what every sweep takes first."""
        return self.model, self.state, self.dt, self.n_steps

    @property
    def how(self) -> dict[str, Any]:
        """Frames, precision and device, by keyword."""
        return {"frames": self.frames, "dtype": self.dtype, "device": self.device}


@dataclass(frozen=True, eq=False)
class Filming:
    """How a body is seen.

    Attributes
    ----------
    name : str
        Its name in the scene.
    nodes : numpy.ndarray
        The nodes that are the vertices of its mesh, (n_vertices,).
    size : tuple of int
        Height and width [pixels].
    """

    scene: Scene
    camera: Camera
    rasterizer: SoftRasterizer
    name: str
    nodes: np.ndarray
    size: tuple[int, int]

    def shoot(self, x: np.ndarray) -> np.ndarray:
        """Return the images, (n_frames, height, width, 4), of positions of all nodes."""
        return rasterize(*self._arguments(x))

    def _arguments(
        self, x: np.ndarray
    ) -> tuple[Scene, Camera, SoftRasterizer, dict[str, np.ndarray], tuple[int, int]]:
        vertices = {self.name: x[:, self.nodes]}
        return self.scene, self.camera, self.rasterizer, vertices, self.size

    def jvp(self, x: np.ndarray, tan_x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and their tangents."""
        tangents = {f"{self.name}.vertices": tan_x[:, self.nodes]}
        return rasterize_jvp(*self._arguments(x), tangents)

    def vjp(self, x: np.ndarray, adj_images: np.ndarray) -> np.ndarray:
        """Return the cotangent of the positions of all nodes, (n_frames, n_nodes, 3)."""
        path = f"{self.name}.vertices"
        adj_x = np.zeros_like(x)
        recorded = record_images(*self._arguments(x))
        adj_x[:, self.nodes] = recorded.vjp(adj_images, wrt=[path])[path]
        return adj_x


@dataclass(frozen=True, eq=False)
class VideoProblem:
    """A `studies.optimizers.problem.Problem`: film a motion, compare with a target video.

    Parameters
    ----------
    motion, filming : Motion, Filming
    parameters : Parameters
        What is free; its paths are parameters of the motion.
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

    def trajectory(self, theta: np.ndarray) -> Trajectory:
        """Return the motion at theta."""
        try:
            return self._motion(theta).run()
        except RolloutError as error:
            raise NotFiniteError(str(error)) from error

    def images(self, theta: np.ndarray) -> np.ndarray:
        """Return the video at theta, RGBA."""
        return self.filming.shoot(self.trajectory(theta).x)

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
        """Return the residuals and their Jacobian, one tangent rollout a column."""
        pushed = [self._push(theta, column) for column in np.eye(len(theta))]
        return pushed[0][0], np.stack([column for _, column in pushed], axis=1)

    def _motion(self, theta: np.ndarray) -> Motion:
        return self.motion.with_values(self.parameters.values(theta))

    def _push(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        images, tan_images = self.images_jvp(theta, tan_theta)
        return (
            residuals(self.loss, images, self.targets),
            residuals_jvp(self.loss, images, self.targets, tan_images),
        )

    def images_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the video at theta and its derivative along `tan_theta`."""
        motion = self._motion(theta)
        tangents = self.parameters.tangents(theta, tan_theta)
        try:
            run, tan_run = rollout_jvp(*motion.arguments, tangents, **motion.how)
        except RolloutError as error:
            raise NotFiniteError(str(error)) from error
        return self.filming.jvp(run.x, tan_run.x)

    def pull_back(self, theta: np.ndarray, judge: Any) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(images) -> value, adj_images`."""
        motion = self._motion(theta)
        try:
            run = record(*motion.arguments, **motion.how)
        except RolloutError as error:
            raise NotFiniteError(str(error)) from error
        x = run.trajectory.x
        value, adj_images = judge(self.filming.shoot(x))
        adj_x = self.filming.vjp(x, adj_images)
        return value, self.parameters.gradient(theta, run.vjp(adj_x, wrt=self.parameters.paths))
