"""Where nodes rest: a block held at its top whose bottom a moving belt presses and drags."""

from collections.abc import Sequence

import numpy as np

from adjoint.equilibrium import equilibrium_jvp, equilibrium_vjp
from adjoint.verify.problem import Problem, System, Values, changed
from adjoint.verify.systems.solids import DENSITY, ROLLOUT_TOLERANCE, Scene, beam
from adjsim.equilibrium import equilibrium
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State


INERT = ("state.v", "belt.dissipation", "belt.friction", "belt.friction_stiffness")


def pressed() -> Scene:
    """Four nodes touch the belt, which lies 4 mm inside the block; the others are far from it."""
    rng = np.random.default_rng(31)
    tets, _ = beam(rng, mu=2e4 * rng.uniform(0.8, 1.2, 10), lam=5e4, actuation=0.03)
    x = np.array(tets.rest_positions)
    x[x[:, 1] > 0.05] += 0.003 * rng.standard_normal((x[:, 1] > 0.05).sum())[:, None]
    belt = HalfSpaceContact(
        height=0.002,
        radius=0.002,
        stiffness=200.0,
        dissipation=0.5,
        friction=0.4,
        friction_stiffness=3.0,
    )
    masses = tets.lumped_mass(DENSITY)
    model = Model(masses, {"solid": tets, "belt": belt}, pinned=x[:, 1] > 0.05)
    return Scene(model, State(x), dt=1.0, n_steps=1, inert=INERT)


def resting() -> Problem:
    """Return the equilibrium of the block as a problem: all its positions."""
    scene = pressed()
    point, found = scene.parameters(), equilibrium(scene.model, scene.state)
    scale = float(np.std(found.state.x - scene.state.x))

    def forward(values: Values) -> np.ndarray:
        changed_scene = scene.at(changed(values, point))
        return equilibrium(changed_scene.model, changed_scene.state).state.x.ravel() / scale

    def jvp(tangents: Values) -> np.ndarray:
        return equilibrium_jvp(found, tangents).ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return equilibrium_vjp(found, adj.reshape(found.state.x.shape) / scale, wrt)

    return Problem(
        point=point,
        owners=scene.owners(),
        forward=forward,
        jvp=jvp,
        vjp=vjp,
        dot_tolerance=ROLLOUT_TOLERANCE,
        inert=scene.inert,
    )


SYSTEMS = (
    System("equilibrium/pressed", "Where a block rests on a belt", resting, family="solids"),
)
