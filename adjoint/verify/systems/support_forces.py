"""Toy scenes of the forces of moving grips, of a pinned node and of obstacles.

Of obstacles in a rollout, from nodes and from balls, and at rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from adjoint.equilibria import equilibria_jvp, equilibria_vjp
from adjoint.examples import Example
from adjoint.forces import grip
from adjoint.rollout import record, rollout_jvp
from adjoint.support_force import support_force_vjp
from adjoint.verify.problem import Problem, Values, changed, no_margins, systems
from adjoint.verify.systems.contacts import BUILDS
from adjoint.verify.systems.equilibria import propped
from adjoint.verify.systems.solids import (
    KERNEL_TOLERANCE,
    N_STEPS,
    ROLLOUT_TOLERANCE,
    kink_margins,
)
from adjsim.equilibria import Equilibria, equilibria
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.model import Model, Trajectory
from adjsim.steps.implicit import ImplicitEuler
from adjsim.support_force import GripForce, ObstacleForce, SupportForce


def explicit(n_steps: int) -> Example:
    """A net between two grips, a tetrahedron with a density in it, and a node that is pinned."""
    scene = grip.example(n_steps)
    tets = NeoHookeanTets([(2, 1, 3, 5)], scene.state.x, 2e3, 3e3, viscosity=5.0, density=50.0)
    more = NeoHookeanTets([(4, 0, 6, 2)], scene.state.x, 1e3, 2e3, density=300.0)
    pinned = np.arange(7) == 3
    model = Model(None, {**scene.model.forces, "solid": tets, "more": more}, pinned=pinned)
    return replace(scene, model=model, dt=1e-3)


def implicit(n_steps: int) -> Example:
    """The same net in implicit steps, with a mass for each node."""
    scene = grip.example(n_steps)
    return replace(scene, dt=2e-2, step=ImplicitEuler(tolerance=1e-14))


def of_grips(s: Example) -> SupportForce:
    """Return the force of all held nodes of a scene."""
    held = np.flatnonzero(s.model.pinned)
    return GripForce(s.model, s.state, held, s.dt, s.n_steps, s.step)


def of_obstacle(s: Example) -> SupportForce:
    """Return the force of the obstacle of a scene."""
    return ObstacleForce(s.model, s.state, ["obstacle"], s.dt, s.n_steps, s.step)


def force_problem(
    build: Callable[[int], Example],
    n_steps: int = N_STEPS,
    *,
    force_of: Callable[[Example], SupportForce] = of_grips,
) -> Problem:
    """Return a force of a scene at its frames, the first state too."""
    scene = build(n_steps)
    frames, point = sorted({0, *scene.frames}), scene.parameters()
    sweep = {"step": scene.step, "frames": frames}
    run = record(scene.model, scene.state, scene.dt, n_steps, **sweep)
    force = force_of(scene)
    scale = float(np.std(force.at(run.trajectory)))

    def forward(values: Values) -> np.ndarray:
        moved = scene.at(changed(values, point))
        return force_of(moved).at(moved.run(frames)).ravel() / scale

    def margins(values: Values) -> np.ndarray:
        return kink_margins(scene.at(changed(values, point)))

    def jvp(tangents: Values) -> np.ndarray:
        s = scene
        _, tan = rollout_jvp(s.model, s.state, s.dt, n_steps, tangents, **sweep)
        return force.jvp(run.trajectory, tan, tangents).ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        direct = support_force_vjp(force, run.trajectory, adj.reshape(-1, 3) / scale, wrt)
        by_frames = run.vjp(direct.x, direct.v, bodies=direct.bodies, wrt=wrt)
        return {path: by_frames[path] + direct.gradient.get(path, 0.0) for path in wrt}

    return Problem(
        point=point,
        owners=scene.owners(),
        forward=forward,
        jvp=jvp,
        vjp=vjp,
        margins=margins if scene.touches else no_margins,
        dot_tolerance=ROLLOUT_TOLERANCE if n_steps > 1 else KERNEL_TOLERANCE,
        kernel=force_problem(build, 1, force_of=force_of) if n_steps > 1 else None,
        inert=scene.inert,
    )


def resting_force(build: Callable[[int], Example], n_steps: int = 3) -> Problem:
    """Return the force of the ball of a scene in its equilibria along a path."""
    scene = build(n_steps)
    point, states = scene.parameters(), range(n_steps + 1)

    def at_rest(s: Example) -> tuple[Equilibria, Trajectory, SupportForce]:
        path = equilibria(s.model, s.state, states, n_steps)
        still = path.by_state[0].field.model
        return path, still_run(path.x), ObstacleForce(still, s.state, ["ball"], 1.0, n_steps, None)

    def still_run(x: np.ndarray) -> Trajectory:
        return Trajectory(np.array(states), 1.0, x, np.zeros_like(x))

    path, run, force = at_rest(scene)
    scale = float(np.std(force.at(run)))

    def forward(values: Values) -> np.ndarray:
        _, moved_run, moved_force = at_rest(scene.at(changed(values, point)))
        return moved_force.at(moved_run).ravel() / scale

    def jvp(tangents: Values) -> np.ndarray:
        return force.jvp(run, still_run(equilibria_jvp(path, tangents)), tangents).ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        direct = support_force_vjp(force, run, adj.reshape(-1, 3) / scale, wrt)
        by_frames = equilibria_vjp(path, direct.x, wrt)
        return {key: by_frames[key] + direct.gradient.get(key, 0.0) for key in wrt}

    return Problem(
        point=point,
        owners=scene.owners(),
        forward=forward,
        jvp=jvp,
        vjp=vjp,
        dot_tolerance=ROLLOUT_TOLERANCE,
        inert=scene.inert,
    )


OBSTACLES = {
    "obstacles/force": BUILDS["contact/plane-moving"],
    "obstacles/force-of-balls": BUILDS["contact/capsule-balls"],
}
SYSTEMS = (
    *systems("solids", force_problem, {"grips/force": explicit}),
    *systems("solids", force_problem, {"grips/implicit_force": implicit}, n_steps=3),
    *systems("solids", resting_force, {"obstacles/force-at-rest": propped}),
    *systems("contacts", partial(force_problem, force_of=of_obstacle), OBSTACLES),
)
