"""Rollouts and pictures that both bridges are tested with, each with values to differentiate at."""

from typing import Any, NamedTuple

import numpy as np

from adjoint.bridges.functions import Function, Images, Rollout
from adjoint.verify.systems import pixels
from adjsim.forces.external import ExternalForces
from adjsim.forces.springs import Springs
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import Smoke, SmokeState
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from render.picture import Picture


X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
NET = Springs([(0, 1), (1, 2)], 40.0, 0.8, damping=0.2)
MODEL = Model([1.0, 1.0, 2.0], {"net": NET}, pinned=[True, False, False])
SPRINGS = (MODEL, State(X), 5e-3, 20)


class Case(NamedTuple):
    """What a bridge's `rollout` or `rasterize` takes, and the paths to differentiate by."""

    name: str
    arguments: tuple[Any, ...]
    wrt: tuple[str, ...]
    settings: dict[str, Any] = {"frames": [10, 20]}  # noqa: RUF012  (not changed)

    @property
    def is_picture(self):
        return isinstance(self.arguments[0], type(pixels.over().scene))

    def values(self, dtype=np.float64):
        """Values by path, of all that is differentiated."""
        if self.is_picture:
            known = Picture(*self.arguments).parameters()
        else:
            model, state = self.arguments[:2]
            known = {**model.parameters(), **model.state_parameters(state)}
        return {path: np.array(known[path], dtype) for path in self.wrt}

    def function(self, **settings) -> Function:
        """What the bridges share."""
        if self.is_picture:
            return Images(Picture(*self.arguments), settings.pop("dtype", np.float64), **settings)
        return Rollout(*self.arguments, **self.settings, **settings)


def bodies():
    push = ExternalForces(["tip"], (0.0, 0.0, 1.0), acts_on="cube")
    cube = RigidBodies(shape("cube", radius=0.1), mass=2.0, points={"tip": (0.1, 0.0, 0.0)})
    state = State(bodies={"cube": BodyState(position=[[0.0, 0.0, 0.0]])})
    return Model(forces={"push": push}, bodies={"cube": cube}), state, 5e-3, 20


def smoke():
    rng = np.random.default_rng(3)
    state = SmokeState(0.3 * rng.standard_normal((5, 4, 2)), rng.random((5, 4)))
    return Smoke((5, 4)), state, 1.0, 2


PENDULUM = (SimplePendulum(0.7), PendulumState(0.4, 0.1), 5e-3, 20)
CASES = [
    Case("springs", SPRINGS, ("net.stiffness", "state.v")),
    Case("bodies", bodies(), ("push.force", "cube.velocity")),
    Case("pendulum", PENDULUM, ("length", "state.angle")),
    Case("smoke", smoke(), ("state.velocity", "state.density"), {"frames": [1, 2]}),
    Case(
        "picture", pixels.over().arguments,
        ("near.vertices", "sun.direction", "camera.eye", "rasterizer.background"), {},
    ),
    Case("film", pixels.softmax().arguments, ("near.vertices", "camera.fov_y"), {}),
]  # fmt: skip
