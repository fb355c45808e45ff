"""The force of a grip as something that an observation may read, with tangent and adjoint."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.support_force import support_force_vjp
from adjsim.equilibria import grips_of
from adjsim.jit.device_arrays import to_host
from adjsim.model import Trajectory
from adjsim.support_force import GripForce
from studies.scene.filming import ImageCotangents
from studies.scene.maps import Arrays
from studies.scene.motion import Motion, Settled, model_of


FORCE = "force."  # begins the names of what they read


@dataclass(frozen=True, eq=False)
class GripSensor:
    """The force that the nodes in these rows need, (n,): at every frame a row of one, [N]."""

    rows: np.ndarray

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the force, (n_frames, 1, 3)."""
        return self._force(motion).at(_on_host(run))[:, None]

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        """Return its tangent."""
        force = self._force(motion)
        values = force.model.parameters() | force.model.state_parameters(force.state)
        felt = {path: np.asarray(tan) for path, tan in tangents.items() if path in values}
        return force.jvp(_on_host(run), _on_host(tan_run), felt)[:, None]

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        """Return the cotangents of the frames and of the parameters that it depends on."""
        force = self._force(motion)
        paths = [*force.model.parameters(), *force.model.state_parameters(force.state)]
        adj = np.asarray(to_host(adj_vertices), float)[:, 0]
        pulled = support_force_vjp(force, _on_host(run), adj, paths)
        return ImageCotangents({"x": pulled.x, "v": pulled.v}, pulled.gradient)

    def _force(self, motion: Motion) -> GripForce:
        model, step = model_of(motion.system), motion.step
        assert model is not None
        if isinstance(motion.system, Settled):
            model, step = model.without(grips_of(model)), None
        return GripForce(model, motion.state, self.rows, motion.dt, motion.n_steps, step)


def _on_host(run: Any) -> Trajectory:
    x, v = (np.asarray(to_host(field), float) for field in (run.x, run.v))
    return Trajectory(run.steps, run.dt, x, v)
