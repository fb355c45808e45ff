"""The force of a grip or an obstacle as something that an observation may read, differentiable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.support_force import support_force_vjp
from adjsim.equilibria import grips_of
from adjsim.jit.device_arrays import to_host
from adjsim.model import Trajectory
from adjsim.rigid.pose import BodyTrajectory
from adjsim.support_force import SupportForce
from studies.scene.filming import ImageCotangents
from studies.scene.maps import Arrays
from studies.scene.motion import Motion, Settled, model_of


FORCE = "force."  # begins the names of what they read
OBSTACLE = f"{FORCE}obstacles."  # the same of obstacles, and of obstacle and body


@dataclass(frozen=True, eq=False)
class ForceSensor:
    """A force on the bodies: at every frame a row of one, [N]."""

    kind: Callable[..., SupportForce]  # `GripForce` or `ObstacleForce`
    what: Any  # of a grip the rows of its nodes, (n,), of an obstacle the names of its contacts

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the force, (n_frames, 1, 3)."""
        return self._force(motion).at(_on_host(run))[:, None]

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        force = self._force(motion)
        values = force.parameters
        felt = {path: np.asarray(tan) for path, tan in tangents.items() if path in values}
        return force.jvp(_on_host(run), _on_host(tan_run), felt)[:, None]

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        force = self._force(motion)
        adj = np.asarray(to_host(adj_vertices), float)[:, 0]
        pulled = support_force_vjp(force, _on_host(run), adj, force.parameters)
        frames = {"x": pulled.x, "v": pulled.v}
        for name, states in pulled.bodies.items():
            frames |= {f"{name}.{key}": value for key, value in vars(states).items()}
        return ImageCotangents(frames, pulled.gradient)

    def _force(self, motion: Motion) -> SupportForce:
        model, step = model_of(motion.system), motion.step
        assert model is not None
        if isinstance(motion.system, Settled):
            model, step = model.without(grips_of(model)), None
        return self.kind(model, motion.state, self.what, motion.dt, motion.n_steps, step)


def _on_host(run: Any) -> Trajectory:
    """Return a trajectory in float64."""

    def host(fields: Any) -> list[np.ndarray]:
        return [np.asarray(to_host(field), float) for field in fields]

    bodies = {name: BodyTrajectory(*host(vars(body).values())) for name, body in run.bodies.items()}
    x, v = host((run.x, run.v))
    return Trajectory(run.steps, run.dt, x, v, bodies)
