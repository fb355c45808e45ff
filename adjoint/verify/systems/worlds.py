"""A batch of two worlds, different in mesh, gravity, series and bodies: one rollout of both."""

from collections.abc import Sequence

import numpy as np

from adjoint.examples import Example
from adjoint.rollout import record, rollout_jvp
from adjoint.system import cotangents_of
from adjoint.verify.problem import Problem, System, Values, changed
from adjoint.verify.systems.bodies import brick, poses
from adjoint.verify.systems.solids import (
    DENSITY,
    KERNEL_TOLERANCE,
    N_STEPS,
    ROLLOUT_TOLERANCE,
    present_fields,
)
from adjsim.courses import Signal
from adjsim.forces.external import ExternalForces
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State, Trajectory
from adjsim.rigid.bodies import RigidBodies
from adjsim.rollout import rollout
from adjsim.worlds import Batch, numbered, stack


DT = 3e-4  # [s]


def world(n_steps: int, number: int) -> tuple[Model, State]:
    """Return a soft box, of another length in each world, and a lump that is pushed."""
    rng = np.random.default_rng(70 + number)
    mesh = box_tets((2 + number, 1, 1), (0.2 + 0.1 * number, 0.1, 0.1))
    n, n_tets = len(mesh.points), len(mesh.tets)
    series = 0.05 * rng.standard_normal((n_steps, n_tets))
    actuation = Signal([-1.0, 7.5], [0.05, -0.02]) if number else series
    mu, lam = 2e4 * rng.uniform(0.8, 1.2, n_tets), 5e4
    body = NeoHookeanTets(mesh.tets, mesh.points, mu, lam, actuation=actuation, density=DENSITY)
    lump = RigidBodies(brick(rng, 0.02), density=300.0)
    push = ExternalForces([1, 4], 5.0 * rng.standard_normal((2, 3)), acts_on="lump")
    x = mesh.points + 0.003 * rng.standard_normal((n, 3))
    start = poses(rng, rng.standard_normal((1, 3)), speed=1.0, spin=10.0, turn=2.0)
    state = State(x, 0.5 * rng.standard_normal((n, 3)), {"lump": start})
    gravity = rng.standard_normal(3) - [0.0, 9.8, 0.0]
    forces = {"solid": body, "push": push}
    return Model(None, forces, gravity, np.arange(n) < number, {"lump": lump}), state


def batch_problem(n_steps: int = N_STEPS) -> Problem:
    """Return the rollout of the worlds as a problem: nodes and bodies at the last frame."""
    models, states = map(list, zip(*(world(n_steps, k) for k in range(2)), strict=True))
    batch = stack(models)
    point = {**batch.parameters(), **batch.state_parameters(states)}
    scenes = [Example(*pair, DT, n_steps) for pair in zip(models, states, strict=True)]
    owners = numbered([scene.owners() for scene in scenes])
    run = record(batch, states, DT, n_steps)

    def outputs(trajectories: list[Trajectory]) -> np.ndarray:
        fields = [
            field for trajectory in trajectories for field in present_fields(trajectory).values()
        ]
        return np.concatenate([field.ravel() for field in fields])

    def at(values: Values) -> tuple[Batch, list[State]]:
        return batch.with_values(states, changed(values, point))

    def jvp(tangents: Values) -> np.ndarray:
        of_worlds = [of_world(tangents, k) for k in range(batch.n_worlds)]
        return outputs(rollout_jvp(batch, states, DT, n_steps, of_worlds)[1])

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        by_world, rest = [], adj
        for trajectory in run.trajectory:
            fields = present_fields(trajectory)
            ends = np.cumsum([field.size for field in fields.values()])
            *parts, rest = np.split(rest, ends)
            shaped = zip(fields.items(), parts, strict=True)
            by_world.append(cotangents_of({path: a.reshape(f.shape) for (path, f), a in shaped}))
        gradients = run.vjp(**{key: [adj[key] for adj in by_world] for key in by_world[0]})
        return {path: gradients[int(path[0])][path[2:]] for path in wrt}

    return Problem(
        point=point,
        owners=owners,
        forward=lambda values: outputs(rollout(*at(values), DT, n_steps)),
        jvp=jvp,
        vjp=vjp,
        dot_tolerance=ROLLOUT_TOLERANCE if n_steps > 1 else KERNEL_TOLERANCE,
        kernel=batch_problem(1) if n_steps > 1 else None,
    )


def of_world(values: Values, number: int) -> dict[str, np.ndarray]:
    """Return the values of one world, by its own paths."""
    head = f"{number}."
    return {p.removeprefix(head): value for p, value in values.items() if p.startswith(head)}


SYSTEMS = (System("worlds/two", batch_problem, family="bodies"),)
