"""Tetrahedra, alone and in contact: rollouts of a few dozen steps with every parameter.

The contact scenes are held away from touch: the nodes at the bottom are inside the obstacle
through the whole rollout, the others never are.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.examples import Example
from adjoint.rollout import record, rollout_jvp
from adjoint.system import cotangents_of, fields_of
from adjoint.verify.problem import Problem, Values, changed, no_event, no_margins, systems
from adjsim.contact_margins import ContactMargins, contact_margins, nearest_touch
from adjsim.courses import Policy
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State


N_STEPS = 24
ROLLOUT_TOLERANCE = 1e-10
KERNEL_TOLERANCE = 1e-12
DENSITY = 1000.0  # kg/m3
CELLS, SIZE = (2, 1, 1), (0.2, 0.1, 0.1)  # of the box, in metres


def rollout_problem(
    build: Callable[[int], Example],
    n_steps: int = N_STEPS,
    margins: Callable[[Example], np.ndarray] | None = None,
) -> Problem:
    """Return the rollout of a scene as a problem: its fields at two frames.

    A scene without `margins` takes the margins of its contacts.
    """
    scene = build(n_steps)
    point = scene.parameters()
    run = record(
        scene.model, scene.state, scene.dt, scene.n_steps, step=scene.step, frames=scene.frames
    )
    fields = present_fields(run.trajectory)
    scales = {path: float(np.std(field)) or 1.0 for path, field in fields.items()}

    def outputs(trajectory: Any) -> np.ndarray:
        fields = present_fields(trajectory)
        return np.concatenate([field.ravel() / scales[path] for path, field in fields.items()])

    def moved(values: Values) -> Example:
        return scene.at(changed(values, point))

    def jvp(tangents: Values) -> np.ndarray:
        s = scene
        _, tan = rollout_jvp(
            s.model, s.state, s.dt, s.n_steps, tangents, step=s.step, frames=s.frames
        )
        return outputs(tan)

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        ends = np.cumsum([field.size for field in fields.values()])[:-1]
        adj_fields = {
            path: adj_field.reshape(field.shape) / scales[path]
            for (path, field), adj_field in zip(fields.items(), np.split(adj, ends), strict=True)
        }
        return run.vjp(**cotangents_of(adj_fields), wrt=wrt)

    margins = kink_margins if margins is None and scene.touches else margins
    return Problem(
        point=point,
        owners=scene.owners(),
        forward=lambda values: outputs(moved(values).run(scene.frames)),
        jvp=jvp,
        vjp=vjp,
        margins=no_margins if margins is None else lambda values: margins(moved(values)),
        dot_tolerance=ROLLOUT_TOLERANCE if n_steps > 1 else KERNEL_TOLERANCE,
        kernel=rollout_problem(build, 1) if n_steps > 1 else None,
        inert=scene.inert,
        event=(lambda: nearest_event(scene)) if scene.touches else no_event,
    )


def present_fields(trajectory: Any) -> dict[str, np.ndarray]:
    """Return the fields of a trajectory, or of a tangent of one, that are not empty."""
    return {name: x for name, x in fields_of(trajectory).items() if x.size}


def nearest_event(scene: Example) -> str:
    """Say how near a scene is to a touch in another step; nothing without contact."""
    touch = nearest_touch(scene.model, scene.run(range(scene.n_steps)))
    return "" if touch is None else touch.sentence(scene.dt)


def scene_margins(scene: Example) -> dict[str, ContactMargins]:
    """Return the distances of all nodes and steps to the kinks of every contact."""
    return contact_margins(scene.model, scene.run(range(scene.n_steps)))


def kink_margins(scene: Example) -> np.ndarray:
    """Return the same as one flat array, each changing sign at a kink, NaN where none is."""
    return np.concatenate([margins.all() for margins in scene_margins(scene).values()])


def beam(rng: np.random.Generator, **parameters: object) -> tuple[NeoHookeanTets, np.ndarray]:
    """Return tetrahedra of a small box and their positions, slightly out of rest."""
    mesh = box_tets(CELLS, SIZE)
    tets = NeoHookeanTets(mesh.tets, mesh.points, **parameters)  # pyright: ignore[reportArgumentType]
    return tets, mesh.points + 0.004 * rng.standard_normal(mesh.points.shape)


def elastic(n_steps: int) -> Example:
    """Moduli per tetrahedron, two pinned nodes, everything moving."""
    rng = np.random.default_rng(1)
    mu, lam = 2e4 * rng.uniform(0.8, 1.2, 10), 5e4 * rng.uniform(0.8, 1.2, 10)
    tets, x = beam(rng, mu=mu, lam=lam, actuation=0.02)
    pinned = np.isin(np.arange(len(x)), (0, 1))
    model = Model(tets.lumped_mass(DENSITY), {"solid": tets}, pinned=pinned)
    return Example(model, State(x, rng.standard_normal(x.shape)), 5e-4, n_steps)


def viscous(n_steps: int) -> Example:
    """Viscosity per tetrahedron and an actuation for every step."""
    rng = np.random.default_rng(2)
    phase = rng.uniform(0.0, 6.0, 10)
    series = 0.1 * np.sin(np.arange(n_steps)[:, None] / 4.0 + phase)
    eta = 20.0 * rng.uniform(0.5, 1.5, 10)
    tets, x = beam(rng, mu=2e4, lam=5e4, viscosity=eta, actuation=series)
    model = Model(tets.lumped_mass(DENSITY), {"solid": tets})
    return Example(model, State(x, rng.standard_normal(x.shape)), 5e-4, n_steps)


def driven(n_steps: int) -> Example:
    """Actuation by a policy, some of whose outputs are near their bound."""
    rng = np.random.default_rng(12)
    policy = Policy(rng.standard_normal((10, 3)), rate=0.3, scale=0.2)
    tets, x = beam(rng, mu=2e4, lam=5e4, actuation=policy)
    model = Model(tets.lumped_mass(DENSITY), {"solid": tets})
    return Example(model, State(x, rng.standard_normal(x.shape)), 5e-4, n_steps)


def _on_the_floor(
    rng: np.random.Generator, speed: float, n_steps: int, inert: str, **contact: object
) -> Example:
    """Return a box pressed into a tilted floor and sliding along it at `speed` [m/s]."""
    tets, x = beam(rng, mu=2e4, lam=5e4, viscosity=5.0)
    normal = np.array([0.1, 1.0, -0.05])
    along = np.array([1.0, -0.1, 0.0])
    # The bottom is 15 mm inside, less the tilt; the top is 80 mm away.
    floor = HalfSpaceContact(normal=2.0 * normal, height=0.03, radius=0.005, **contact)  # pyright: ignore[reportArgumentType]
    model = Model(tets.lumped_mass(DENSITY), {"solid": tets, "floor": floor})
    v = speed * along + 0.05 * rng.standard_normal(x.shape) - 0.6 * normal
    return Example(model, State(x, v), 3e-4, n_steps, (inert,))


def stick(n_steps: int) -> Example:
    """Contact with friction in stick, where mu does not act; scalar parameters."""
    return _on_the_floor(
        np.random.default_rng(3), 0.1, n_steps, "floor.friction", stiffness=600.0,
        damping=2.0, friction_stiffness=3.0, friction=0.9,
    )  # fmt: skip


def slip(n_steps: int) -> Example:
    """Contact with friction in slip, where k_f does not act; parameters per contact."""
    rng = np.random.default_rng(4)
    each = rng.uniform(0.8, 1.2, (4, 12))
    return _on_the_floor(
        rng, 2.0, n_steps, "floor.friction_stiffness", stiffness=600.0 * each[0],
        damping=2.0 * each[1], friction_stiffness=50.0 * each[2], friction=0.4 * each[3],
    )  # fmt: skip


SYSTEMS = systems(
    "solids",
    rollout_problem,
    {
        "tets/elastic": elastic,
        "tets/viscous": viscous,
        "tets/driven": driven,
        "contact/stick": stick,
        "contact/slip": slip,
    },
)
