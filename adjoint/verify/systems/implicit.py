"""Steps of implicit Euler: a block on a belt, a cloth that is held, a chain, surfaces, bodies.

A few long steps, above the stable one of semi-implicit Euler.
"""

from dataclasses import replace

import numpy as np

from adjoint.examples import Example
from adjoint.forces import grip
from adjoint.verify.problem import systems
from adjoint.verify.systems import surfaces
from adjoint.verify.systems.bodies import brick, poses
from adjoint.verify.systems.solids import DENSITY, beam, rollout_problem
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.springs import Springs
from adjsim.joints.pins import Pins
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.steps.implicit import ImplicitEuler


N_STEPS = 3
STEP = ImplicitEuler(tolerance=1e-14)  # differences feel what is left of a residual
CLOTH = sheet((2, 2), (0.2, 0.2))


def block(n_steps: int) -> Example:
    """Viscous tetrahedra on a belt that slips below them, one node held, a series of actuations.

    Four nodes touch the belt, 15 mm inside it; the others are far away.
    """
    rng = np.random.default_rng(51)
    series = 0.05 * rng.standard_normal((n_steps, 10))
    tets, x = beam(rng, mu=2e5, lam=5e5, viscosity=50.0, actuation=series, density=DENSITY)
    belt = HalfSpaceContact(
        normal=(0.1, 2.0, -0.05),
        height=0.01,
        velocity=(-2.0, 0.1, 0.3),
        radius=0.005,
        stiffness=600.0,
        damping=2.0,
        friction=0.3,
        friction_stiffness=50.0,
    )
    pinned = np.arange(len(x)) == len(x) - 1
    model = Model(None, {"solid": tets, "belt": belt}, pinned=pinned)
    v = 0.1 * rng.standard_normal(x.shape)
    return Example(model, State(x, v), 3e-3, n_steps, ("belt.friction_stiffness",), step=STEP)


def cloth(n_steps: int) -> Example:
    """Triangles, damped hinges and springs, pulled at two corners by a series of forces."""
    rng = np.random.default_rng(52)
    rest, n = CLOTH.points + 0.005 * rng.standard_normal(CLOTH.points.shape), len(CLOTH.points)
    hinges = mesh_hinges(CLOTH.faces)
    edges = np.unique(np.sort(CLOTH.faces[:, :2]), axis=0)
    forces = {
        "cloth": NeoHookeanTriangles(CLOTH.faces, rest, mu=600.0, lam=900.0, viscosity=0.5),
        "bend": Hinges(hinges, rest, stiffness=0.02, damping=1e-3),
        "net": Springs(edges, 500.0, damping=2.0, rest_positions=CLOTH.points),
        "pull": ExternalForces([2, n - 1], 0.1 * rng.standard_normal((n_steps, 2, 3))),
    }
    x = 1.05 * rest + 0.003 * rng.standard_normal(rest.shape)
    model = Model(rng.uniform(0.8, 1.2, n) * 0.01, forces, pinned=np.arange(n) == 0)
    return Example(model, State(x, 0.1 * rng.standard_normal(x.shape)), 5e-3, n_steps, step=STEP)


def chain(n_steps: int) -> Example:
    """Damped springs in a row whose first node is carried along, and a node pinned to the last."""
    rng = np.random.default_rng(53)
    links = np.stack([np.arange(3), np.arange(1, 4)], axis=1)
    x = 0.3 * np.arange(4.0)[:, None] * [0.8, -0.6, 0.0] + 0.02 * rng.standard_normal((4, 3))
    x = np.concatenate([x, x[-1:] + 0.01])
    forces = {
        "net": Springs(links, 200.0, 0.25, damping=3.0),
        "pin": Pins([(3, 4)], stiffness=90.0, damping=2.0),
    }
    model = Model(rng.uniform(0.1, 0.2, 5), forces, pinned=np.arange(5) == 0)
    return Example(model, State(x, rng.standard_normal(x.shape)), 0.05, n_steps, step=STEP)


def touching(n_steps: int) -> Example:
    """A corner that slips on a face, and two edges that cross and stick."""
    scene = surfaces.scene(n_steps, dissipation=0.4, friction_stiffness=4.0)
    return replace(scene, dt=2e-3, step=STEP)


def tied(n_steps: int) -> Example:
    """A brick with a drag, tied to a node that is carried along and to one that hangs on it."""
    rng = np.random.default_rng(54)
    bricks = RigidBodies(brick(rng, 0.01), density=300.0, drag_rate=4.0)
    start = poses(rng, np.zeros((1, 3)), speed=0.5, spin=5.0, turn=0.5)
    pins = Pins([(0, 2), (1, 7)], [300.0, 200.0], [0.5, 0.4], acts_on=("nodes", "bricks"))
    x = np.array([[-0.1, 0.2, 0.0], [0.1, -0.1, 0.05]])
    model = Model([0.1, 0.2], {"pins": pins}, pinned=[True, False], bodies={"bricks": bricks})
    state = State(x, rng.standard_normal((2, 3)), {"bricks": start})
    return Example(model, state, 1e-2, n_steps, step=STEP)


def led(n_steps: int) -> Example:
    """A damped net between two grips that move."""
    return replace(grip.example(n_steps), dt=2e-2, step=STEP)


SYSTEMS = systems(
    "solids",
    rollout_problem,
    {f"implicit/{build.__name__}": build for build in (block, cloth, chain, touching, tied, led)},
    n_steps=N_STEPS,
)
