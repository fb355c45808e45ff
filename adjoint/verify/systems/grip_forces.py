"""The forces of two grips that move and of a node that is pinned, in a rollout and at rest."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from adjoint.examples import Example
from adjoint.forces import grip
from adjoint.grip_force import grip_force_vjp
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.problem import Problem, Values, changed, systems
from adjoint.verify.systems.solids import KERNEL_TOLERANCE, N_STEPS, ROLLOUT_TOLERANCE
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.grip_force import GripForce
from adjsim.model import Model
from adjsim.steps.implicit import ImplicitEuler


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


def force_problem(build: Callable[[int], Example], n_steps: int = N_STEPS) -> Problem:
    """Return the force of all held nodes of a scene at its frames, the first state too."""
    scene = build(n_steps)
    frames, point = sorted({0, *scene.frames}), scene.parameters()
    held = np.flatnonzero(scene.model.pinned)
    sweep = {"step": scene.step, "frames": frames}
    run = record(scene.model, scene.state, scene.dt, n_steps, **sweep)

    def force_of(s: Example) -> GripForce:
        return GripForce(s.model, s.state, held, s.dt, n_steps, s.step)

    force = force_of(scene)
    scale = float(np.std(force.at(run.trajectory)))

    def forward(values: Values) -> np.ndarray:
        moved = scene.at(changed(values, point))
        return force_of(moved).at(moved.run(frames)).ravel() / scale

    def jvp(tangents: Values) -> np.ndarray:
        s = scene
        _, tan = rollout_jvp(s.model, s.state, s.dt, n_steps, tangents, **sweep)
        return force.jvp(run.trajectory, tan, tangents).ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        direct = grip_force_vjp(force, run.trajectory, adj.reshape(-1, 3) / scale, wrt)
        by_frames = run.vjp(direct.x, direct.v, wrt=wrt)
        return {path: by_frames[path] + direct.gradient[path] for path in wrt}

    return Problem(
        point=point,
        owners=scene.owners(),
        forward=forward,
        jvp=jvp,
        vjp=vjp,
        dot_tolerance=ROLLOUT_TOLERANCE if n_steps > 1 else KERNEL_TOLERANCE,
        kernel=force_problem(build, 1) if n_steps > 1 else None,
    )


SYSTEMS = (
    *systems("solids", force_problem, {"grips/force": explicit}),
    *systems("solids", force_problem, {"grips/implicit_force": implicit}, n_steps=3),
)
