"""Where nodes rest: a block that a belt presses and drags, a chain that hangs, stacked blocks.

And springs at several places of a grip that pulls them, also with a ball that moves below them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from adjoint.equilibria import equilibria_jvp, equilibria_vjp
from adjoint.equilibrium import equilibrium_jvp, equilibrium_vjp
from adjoint.examples import Example
from adjoint.verify.problem import Problem, Values, changed, systems
from adjoint.verify.systems.solids import DENSITY, ROLLOUT_TOLERANCE, beam
from adjsim.courses import Signal
from adjsim.equilibria import equilibria
from adjsim.equilibrium import equilibrium
from adjsim.forces.grip import Grip
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.sphere import SphereContact
from adjsim.forces.springs import Springs
from adjsim.joints.pins import Pins
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rotations import rotation_matrix


POSTS = 4  # what cords hold the upper block by
NEAR = 0.7  # part of the way to the known equilibrium at which the search for others begins
INERT = ("state.v", "belt.dissipation", "belt.friction", "belt.friction_stiffness")


def pressed() -> Example:
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
    return Example(model, State(x), dt=1.0, n_steps=1, inert=INERT)


def hanging() -> Example:
    """Three nodes in a row, the first held, on springs; a fourth is pinned to the last."""
    x = [[0.0, 0.0, 0.0], [0.1, -0.3, 0.0], [0.1, -0.6, 0.1], [0.1, -0.62, 0.1]]
    forces = {
        "net": Springs([[0, 1], [1, 2]], [50.0, 40.0], 0.25),
        "pin": Pins([(2, 3)], stiffness=90.0, damping=1.0),
    }
    masses, pinned = [0.1, 0.2, 0.15, 0.05], np.arange(4) == 0
    model = Model(masses, forces, (0.5, -9.8, 0.3), pinned)
    inert = ("state.v", "net.damping", "pin.damping")
    return Example(model, State(x), dt=1.0, n_steps=1, inert=inert)


def blocks() -> Example:
    """A block that rests on another, turned; cords to four posts keep it from sliding away.

    No corner comes near an edge of the face that it lies on.
    """
    rng = np.random.default_rng(33)
    lower, upper = box_tets((1, 1, 1), (0.2, 0.1, 0.2)), box_tets((1, 1, 1), (0.1, 0.1, 0.1))
    turned = (upper.points - [0.05, 0.0, 0.05]) @ rotation_matrix(np.array([0.0, 0.5, 0.0])).T
    above = np.array([0.0, 0.015, 0.0])
    x = np.concatenate([lower.points - [0.1, 0.1, 0.1], turned + above])
    x += 0.001 * rng.standard_normal(x.shape)
    n = len(lower.points)
    high = n + np.flatnonzero(upper.points[:, 1] > 0.05)
    posts = x[high] * [4.0, 1.0, 4.0]
    tets = np.concatenate([lower.tets, upper.tets + n])
    rest = np.concatenate([x, posts])
    touch = SurfaceContact(
        triangles=lower.surface().faces,
        other_triangles=upper.surface().faces + n,
        radius=0.007,
        other_radius=0.009,
        stiffness=3e3,
        dissipation=0.4,
        friction_stiffness=2.0,
        friction=0.3,
    )
    forces = {
        "solid": NeoHookeanTets(tets, rest, mu=2e4 * rng.uniform(0.8, 1.2, len(tets)), lam=4e4),
        "cords": Springs(np.stack([high, len(x) + np.arange(POSTS)], 1), 60.0, rest_positions=rest),
        "touch": touch,
    }
    pinned = np.arange(len(rest)) >= len(x)
    pinned[:n] = lower.points[:, 1] < 0.05
    mass = np.r_[np.full(n, 0.1), np.full(n, 0.12), np.ones(POSTS)]
    model = Model(mass, forces, (0.2, -9.8, 0.1), pinned)
    inert = ("state.v", "cords.damping", "touch.dissipation", "touch.friction")
    return Example(model, State(rest), 1.0, 1, (*inert, "touch.friction_stiffness"))


def resting(build: Callable[[], Example]) -> Problem:
    """Return the equilibrium of a scene as a problem: all its positions.

    A search for a changed one begins near it: few steps, and the last ones go beyond rounding.
    """
    scene = build()
    point, rest = scene.parameters(), equilibrium(scene.model, scene.state)
    way = rest.state.x - scene.state.x
    scale = float(np.std(way))

    def forward(values: Values) -> np.ndarray:
        changed_scene = scene.at(changed(values, point))
        start = State(changed_scene.state.x + NEAR * way)
        return equilibrium(changed_scene.model, start).state.x.ravel() / scale

    def jvp(tangents: Values) -> np.ndarray:
        return equilibrium_jvp(rest, tangents).ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return equilibrium_vjp(rest, adj.reshape(rest.state.x.shape) / scale, wrt)

    return Problem(
        point=point,
        owners=scene.owners(),
        forward=forward,
        jvp=jvp,
        vjp=vjp,
        dot_tolerance=ROLLOUT_TOLERANCE,
        inert=scene.inert,
    )


def pulled(n_steps: int) -> Example:
    """Three nodes in a row on springs, a grip at one end and a pin at the other, in a wind.

    What the wind does has no energy, so K is not symmetric.
    """
    x = np.array([[0.0, 0.0, 0.0], [0.2, -0.1, 0.0], [0.4, -0.1, 0.1], [0.6, 0.0, 0.1]])
    net = Springs([[0, 1], [1, 2], [2, 3], [0, 2]], [50.0, 40.0, 60.0, 20.0], 0.15)
    path = Signal([-1.0, 0.5, 2.0], [[[0.0, 0.0, 0.0]], [[-0.1, 0.05, 0.02]], [[0.0, 0.1, 0.1]]])
    air = LiftDrag([[0, 1, 2]], 0.9, 1.1, [1.0, 0.5, 9.0])
    forces, pinned = {"net": net, "air": air, "grip": Grip([0], path)}, np.arange(4) == 3
    model = Model([0.1, 0.2, 0.15, 0.05], forces, (0.5, -9.8, 0.3), pinned)
    return Example(model, State(x), dt=1.0, n_steps=n_steps, inert=("state.v", "net.damping"))


def propped(n_steps: int) -> Example:
    """The same net over a ball that rises; two nodes touch it all the time."""
    scene = pulled(n_steps)
    rises = Signal([0.0, 1.5, 3.0], [[0.24, -0.33, 0.05], [0.23, -0.28, 0.06], [0.24, -0.26, 0.05]])
    ball = SphereContact(
        rises,
        0.3,
        contact_nodes=[1, 2],
        radius=0.01,
        stiffness=300.0,
        dissipation=0.5,
        friction=0.4,
        friction_stiffness=3.0,
    )
    model = replace(scene.model, forces={**scene.model.forces, "ball": ball})
    law = ("ball.dissipation", "ball.friction", "ball.friction_stiffness")
    return replace(scene, model=model, inert=(*scene.inert, *law))


def along_path(build: Callable[[int], Example], n_steps: int = 3) -> Problem:
    """Return the equilibria of a scene along its path as a problem: all positions in each state."""
    scene = build(n_steps)
    point, states = scene.parameters(), range(n_steps + 1)
    path = equilibria(scene.model, scene.state, states, n_steps)
    scale = float(np.std(path.x - scene.state.x))

    def forward(values: Values) -> np.ndarray:
        moved = scene.at(changed(values, point))
        return equilibria(moved.model, moved.state, states, n_steps).x.ravel() / scale

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return equilibria_vjp(path, adj.reshape(path.x.shape) / scale, wrt)

    return Problem(
        point=point,
        owners=scene.owners(),
        forward=forward,
        jvp=lambda tangents: equilibria_jvp(path, tangents).ravel() / scale,
        vjp=vjp,
        dot_tolerance=ROLLOUT_TOLERANCE,
        inert=scene.inert,
    )


SYSTEMS = (
    *systems(
        "solids",
        resting,
        {f"equilibrium/{build.__name__}": build for build in (pressed, hanging, blocks)},
    ),
    *systems("solids", along_path, {f"equilibrium/{b.__name__}": b for b in (pulled, propped)}),
)
