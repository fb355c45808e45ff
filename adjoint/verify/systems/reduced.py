"""Pendula and smoke: rollouts of a few dozen steps with every parameter, and their drawing."""

from collections.abc import Sequence

import numpy as np

from adjoint.examples import Example
from adjoint.render.pendulum import rods_and_bobs_jvp, rods_and_bobs_vjp
from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from adjoint.verify.problem import Problem, System, Values, systems
from adjoint.verify.systems.solids import rollout_problem
from adjsim.courses import Signal
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import Smoke, SmokeState
from render.pendulum import RodsAndBobs
from render.smoke import smoke_images


N_SMOKE_STEPS = 8


class ReducedScene(Example):
    """A pendulum or smoke at its initial state, and how it is run."""

    @property
    def touches(self) -> bool:
        """Whether there are contacts: there are none."""
        return False

    def owners(self) -> dict[str, tuple[str, str]]:
        """Return for each path the class that declares it and its name there."""
        of_state, of_system = type(self.state).__name__, type(self.model).__name__
        return {
            path: (of_state if path.startswith("state.") else of_system, path.split(".")[-1])
            for path in self.parameters()
        }


def lookup_margins(scene: Example) -> np.ndarray:
    """Return for every lookup of every step what changes sign on the border of its cell."""
    velocity = scene.run(range(scene.n_steps + 1)).velocity
    return np.sin(np.pi * velocity).ravel()


def swinging(n_steps: int) -> ReducedScene:
    """A simple pendulum that swings, with dry friction and a constant torque."""
    link = {"inertia": 0.2, "friction": 0.3, "friction_width": 0.5}
    system = SimplePendulum(1.3, 0.7, 0.4, 9.8, 0.5, **link)
    return ReducedScene(system, PendulumState(1.1, -0.8), 0.02, n_steps)


def circling(n_steps: int) -> ReducedScene:
    """A bar with dry friction that goes over the top, with a torque in every step."""
    torque = np.random.default_rng(51).standard_normal(n_steps)
    link = {"center_of_mass": 0.4, "inertia": 0.15, "friction": 0.6, "friction_width": 0.8}
    system = SimplePendulum(0.6, 1.7, 0.2, 9.8, torque, **link)
    return ReducedScene(system, PendulumState(2.6, 7.0), 0.02, n_steps)


def both_hanging(n_steps: int) -> ReducedScene:
    """Two links that swing with dry friction, with torques as a signal of three control points."""
    values = np.random.default_rng(52).standard_normal((3, 2))
    torque = Signal(np.array([-0.5, 0.3, 0.9]) * n_steps, values)
    links = {"inertia": (0.1, 0.07), "friction": (0.2, 0.3), "friction_width": 0.5}
    system = DoublePendulum((1.2, 0.7), (0.8, 1.3), (0.3, 0.2), 9.8, torque, **links)
    return ReducedScene(system, PendulumState((0.9, -0.5), (0.4, 1.2)), 0.01, n_steps)


def tumbling(n_steps: int) -> ReducedScene:
    """Two bars let go above the level, the lower one tumbling, constant torques."""
    links = {"center_of_mass": (0.5, 0.6), "inertia": (0.1, 0.07), "friction": (0.4, 0.3)}
    given = {**links, "friction_width": 0.8, "torque": (0.7, -0.3)}
    system = DoublePendulum((0.8, 1.1), (1.5, 0.6), (0.1, 0.4), 9.8, **given)
    return ReducedScene(system, PendulumState((2.2, 1.4), (-2.0, 6.0)), 0.01, n_steps)


def drifting(n_steps: int, speed: float = 0.2, seed: int = 53) -> ReducedScene:
    """Smoke that moves by part of a cell a step."""
    rng = np.random.default_rng(seed)
    state = SmokeState(speed * rng.standard_normal((6, 7, 2)), rng.random((6, 7)))
    return ReducedScene(Smoke((6, 7)), state, 1.0, n_steps)


def racing(n_steps: int) -> ReducedScene:
    """Smoke that moves by several cells a step, across the grid's border."""
    return drifting(n_steps, 3.0, 54)


def drawn_pendulum() -> Problem:
    """Return the vertices of two links at two instants."""
    rng = np.random.default_rng(55)
    shape = RodsAndBobs((0.2, 0.3), 0.05, pivot=(0.1, 1.0, 0.0))
    point = {"angle": rng.standard_normal((2, 2)), "length": np.array([1.2, 0.7])}
    size = (2, len(shape.link), 3)

    def jvp(tangents: Values) -> np.ndarray:
        tan = {path: tangents.get(path, np.zeros_like(value)) for path, value in point.items()}
        angle, length = point.values()
        return rods_and_bobs_jvp(shape, angle, length, tan["angle"], tan["length"]).ravel()

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        angle, length = point.values()
        pulled = rods_and_bobs_vjp(shape, angle, length, adj.reshape(size))
        gradient = dict(zip(point, pulled, strict=True))
        return {path: gradient[path] for path in wrt}

    return Problem(
        point=point,
        owners={path: ("RodsAndBobs", path) for path in point},
        forward=lambda values: shape.vertices(values["angle"], values["length"]).ravel(),
        jvp=jvp,
        vjp=vjp,
    )


def drawn_smoke() -> Problem:
    """Return the images of two densities."""
    look = ((0.9, 0.8, 0.1), (0.2, 0.3, 0.4))
    density = np.random.default_rng(56).random((2, 3, 4))

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return {path: smoke_images_vjp(adj.reshape(*density.shape, 4), *look) for path in wrt}

    return Problem(
        point={"density": density},
        owners={"density": ("smoke_images", "density")},
        forward=lambda values: smoke_images(values["density"], *look).ravel(),
        jvp=lambda tangents: smoke_images_jvp(tangents["density"], *look).ravel(),
        vjp=vjp,
    )


SYSTEMS = (
    *systems(
        "reduced",
        rollout_problem,
        {
            "pendulum/swing": swinging,
            "pendulum/circle": circling,
            "double-pendulum/swing": both_hanging,
            "double-pendulum/tumble": tumbling,
        },
    ),
    *systems(
        "reduced",
        rollout_problem,
        {"smoke/drift": drifting, "smoke/race": racing},
        n_steps=N_SMOKE_STEPS,
        margins=lookup_margins,
    ),
    System("draw/pendulum", drawn_pendulum, family="reduced"),
    System("draw/smoke", drawn_smoke, family="reduced"),
)
