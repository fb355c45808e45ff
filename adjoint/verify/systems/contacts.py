"""Obstacles of every shape: nodes touch every part of them, in every regime of the law.

Each scene is one obstacle and loose nodes that were put beside it at a known depth and
relative velocity: stick or slip, approaching or leaving, at each spot of the surface; two
stay apart. They move by millimetres and are centimetres away from kinks of the shape. Each shape
is also carried by a rigid body, and touched by balls in place of the nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems.bodies import brick, poses
from adjoint.verify.systems.solids import rollout_problem
from adjsim.courses import Signal
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.contact import Contact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.forces.tracks import AXES
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rotations import rotation_matrix


DT = 1e-4  # [s]
RADIUS = 0.05  # of the nodes [m]
ROUND = 0.12  # radius of the balls [m]
DAMPED = {"stiffness": 600.0, "damping": 4.0, "friction_stiffness": 20.0, "friction": 0.4}
DISSIPATIVE = {"stiffness": 600.0, "dissipation": 0.4, "friction_stiffness": 20.0, "friction": 0.4}
CUBIC = {
    "cubic_stiffness": 1.3e4, "cubic_dissipation": 2e-3,
    "friction_stiffness": 20.0, "friction": 0.34,
}  # fmt: skip
STIFF_CUBIC = {**CUBIC, "cubic_stiffness": 1.3e5, "cubic_dissipation": 2e-4}
# Relative velocity along the normal and across it [m/s].
REGIMES = ((-0.6, 0.03), (-0.6, 1.5), (0.6, 0.03), (0.6, 1.5))
CENTER, TURN = np.array([0.3, -0.2, 0.4]), np.array([0.5, -0.3, 0.7])
V, OMEGA = np.array([0.4, -0.3, 0.2]), np.array([0.8, 0.5, -0.6])
CORNER = np.array([1.0, 2.0, 2.0]) / 3.0
NOMINAL = np.array([0.3, -0.5, 0.1, 0.8])  # of the box and the capsule, not of length 1
TILTED = Rotation.from_quat(NOMINAL).as_matrix()


class Spot(NamedTuple):
    """A point of a surface and its normal, in the obstacle's axes; s: how far above it [m]."""

    point: npt.ArrayLike
    normal: npt.ArrayLike
    s: float


HALF = np.array([0.2, 0.25, 0.3])  # half extents of the box [m]
BOX_SPOTS = (
    Spot((0.2, 0.05, 0.1), (1, 0, 0), 0.035),
    Spot((0.05, -0.25, -0.1), (0, -1, 0), 0.035),
    Spot((0.2, -0.25, 0.1), (0.6, -0.8, 0), 0.035),
    Spot((-0.2, 0.1, 0.3), (-0.6, 0, 0.8), 0.035),
    Spot(HALF * [-1, 1, 1], CORNER * [-1, 1, 1], 0.035),
    Spot((-0.2, 0.05, 0.1), (-1, 0, 0), -0.02),
    Spot((0.02, 0.25, 0.1), (0, 1, 0), -0.02),
    Spot((0.02, 0.05, -0.3), (0, 0, -1), -0.02),
    Spot((0.0, 0.25, 0.0), (0, 1, 0), 0.2),  # apart
)
LENGTH, THICK = 0.3, 0.1  # of the capsule [m]
CAPSULE_SPOTS = (
    Spot((0.06, 0.1, 0.08), (0.6, 0, 0.8), 0.03),
    Spot((-0.1, -0.15, 0.0), (-1, 0, 0), -0.02),
    Spot(LENGTH * np.eye(3)[1] + THICK * CORNER, CORNER, 0.03),
    Spot(-LENGTH * np.eye(3)[1] - THICK * CORNER, -CORNER, -0.02),
    Spot((0.1, 0.0, 0.0), (1, 0, 0), 0.2),  # apart
)
BALL = 0.25  # radius of the sphere [m]
SPHERE_SPOTS = tuple(
    Spot(BALL * np.array(n), n, s)
    for n, s in (
        (CORNER, 0.03),
        ((0, -0.6, 0.8), 0.02),
        ((-0.6, 0.8, 0), -0.02),
        (-CORNER, -0.01),
        ((1, 0, 0), 0.2),  # apart
    )
)
PLANE_SPOTS = tuple(
    Spot((x, 0, z), (0, 1, 0), s)
    for x, z, s in ((0.1, 0.2, 0.03), (-0.2, 0.1, 0.0), (0.3, -0.2, -0.02), (0.0, 0.0, 0.2))
)


def _scene(
    rng: np.random.Generator,
    n_steps: int,
    spots: Sequence[Spot],
    make: Callable[..., Contact],
    omega: np.ndarray = OMEGA,
    axes: np.ndarray = AXES,
) -> Example:
    """Return nodes at each spot in each regime, about an obstacle that `make` gives."""
    R, x, v = rotation_matrix(TURN) @ axes, [], []
    for spot in spots:
        n = R @ np.asarray(spot.normal, float)
        along = np.cross(n, rng.standard_normal(3))
        along /= np.linalg.norm(along)
        for u_n, u_t in REGIMES:
            d = R @ (np.asarray(spot.point) + spot.s * np.asarray(spot.normal, float))
            d = d + 0.005 * rng.standard_normal() * along
            x.append(CENTER + d)
            v.append(V + np.cross(omega, d) + u_n * n + u_t * along)
    mass = 0.3 * rng.uniform(0.8, 1.2, len(x))
    contact = make(n_contacts=len(x))
    return Example(Model(mass, {"obstacle": contact}), State(x, v), DT, n_steps)


def _each(law: dict[str, float], rng: np.random.Generator, n_contacts: int) -> dict[str, Any]:
    """Return the scalars of a law for each contact, all different."""
    return {name: value * rng.uniform(0.9, 1.1, n_contacts) for name, value in law.items()}


def _law(rng: np.random.Generator, n_contacts: int, *, moves: bool) -> dict[str, Any]:
    """Return scalars: damping of each contact, or one dissipation for what moves."""
    if moves:
        return {**DISSIPATIVE, "radius": RADIUS}
    return _each({**DAMPED, "radius": RADIUS}, rng, n_contacts)


def _at_rest(rng: np.random.Generator) -> dict[str, Any]:
    """Return a constant pose; the matter moves all the same, as on a belt."""
    del rng
    return {"center": CENTER, "rotation": TURN, "velocity": V, "angular_velocity": OMEGA}


def _moving(rng: np.random.Generator, n_steps: int) -> dict[str, Any]:
    """Return a path: series of centres and velocities, signals of turns and their rates."""
    t = DT * np.arange(n_steps)[:, None]
    knots = np.array([0.0, 7.5, 20.0])
    shake = 0.02 * rng.standard_normal((2, 3, 3))
    shake[:, 0] = 0.0
    return {
        "center": CENTER + t * V,
        "rotation": Signal(knots, TURN + 0.2 * shake[0]),
        "velocity": V + 5.0 * t * OMEGA,
        "angular_velocity": Signal(knots, OMEGA + shake[1]),
    }


def plane_moving(n_steps: int, law: dict[str, float] = DISSIPATIVE) -> Example:
    """A plane that rises and tilts on a given path; numbers of a law for each contact."""
    rng = np.random.default_rng(11)
    n = rotation_matrix(TURN)[:, 1]
    knots = np.array([0.0, 7.5, 20.0])
    t = DT * np.arange(n_steps)

    def make(n_contacts: int) -> Contact:
        return HalfSpaceContact(
            normal=Signal(knots, 2.0 * n + [[0.0] * 3, [0.002] * 3, [-0.002] * 3]),
            height=float(n @ CENTER) + t * float(n @ V),
            velocity=V + 5.0 * t[:, None] * OMEGA,
            **_each({**law, "radius": RADIUS}, rng, n_contacts),
            deepest=RADIUS,
        )

    return _scene(rng, n_steps, PLANE_SPOTS, make, omega=np.zeros(3))


def sphere(n_steps: int, *, moves: bool) -> Example:
    """A sphere, touched inside and outside; at rest with scalars for each contact, or moving."""
    rng = np.random.default_rng(12)
    pose = _moving(rng, n_steps) if moves else _at_rest(rng)
    del pose["rotation"]

    def make(n_contacts: int) -> Contact:
        law = _law(rng, n_contacts, moves=moves)
        return SphereContact(sphere_radius=BALL, **pose, **law)

    return _scene(rng, n_steps, SPHERE_SPOTS, make)


def box(n_steps: int, *, moves: bool) -> Example:
    """A box, touched at faces, edges, a corner and inside."""
    rng = np.random.default_rng(13)
    pose = _moving(rng, n_steps) if moves else _at_rest(rng)

    def make(n_contacts: int) -> Contact:
        law = _law(rng, n_contacts, moves=moves)
        return BoxContact(half_extents=HALF, orientation=NOMINAL, **pose, **law)

    return _scene(rng, n_steps, BOX_SPOTS, make, axes=TILTED)


def capsule(n_steps: int, *, moves: bool) -> Example:
    """A capsule, touched at the side and at both caps."""
    rng = np.random.default_rng(14)
    pose = _moving(rng, n_steps) if moves else _at_rest(rng)

    def make(n_contacts: int) -> Contact:
        law = _law(rng, n_contacts, moves=moves)
        return CapsuleContact(
            half_length=LENGTH, capsule_radius=THICK, orientation=NOMINAL, **pose, **law
        )

    return _scene(rng, n_steps, CAPSULE_SPOTS, make, axes=TILTED)


def carried(build: Callable[[int], Example], n_steps: int) -> Example:
    """The obstacle of a scene on a body that moves and turns, touched by nodes and a stone.

    The nodes move with the body as they did with the obstacle. Each scalar has one value.
    """
    scene, rng = build(n_steps), np.random.default_rng(15)
    x, v = np.array(scene.state.x), scene.state.v
    obstacle: Any = scene.model.forces["obstacle"]
    start = poses(rng, rng.standard_normal((1, 3)), speed=0.5, spin=2.0, turn=2.0)
    R = Rotation.from_quat(start.pack()[0, 3:7])
    stone = RigidBodies(R.apply(x[:2] - x[0]), mass=0.3, inertia=[0.1] * 3 + [0.01] * 3)
    carrier = RigidBodies(brick(rng), mass=20.0, inertia=[5.0, 6.0, 4.0, 0.2, -0.1, 0.3])
    spins = np.cross(start.angular_velocity[0], x) + v
    placed, moving = start.position[0] + R.apply(x), start.velocity[0] + R.apply(spins)
    first = BodyState(placed[:1], velocity=moving[:1], angular_velocity=[[0.3, -0.2, 0.4]])
    means = {key: float(np.mean(getattr(obstacle, key))) for key in obstacle.scalars}
    contact = replace(
        obstacle, fixed_to="carrier", acts_on=("nodes", "stone"), contact_nodes=None, **means
    )
    model = Model(
        scene.model.mass, {"obstacle": contact}, bodies={"stone": stone, "carrier": carrier}
    )
    state = State(placed, moving, {"stone": first, "carrier": start})
    return Example(model, state, DT, n_steps, inert=("carrier.vertices",))


def balls(build: Callable[[int], Example], n_steps: int) -> Example:
    """The obstacle of a scene, touched by rolling balls, by the cubic law."""
    scene, rng = build(n_steps), np.random.default_rng(16)
    x, v = np.array(scene.state.x), np.array(scene.state.v)
    n = len(x)
    obstacle: Any = scene.model.forces["obstacle"]
    law = {**dict.fromkeys(obstacle.law.scalars), **_each({**CUBIC, "radius": ROUND}, rng, n)}
    contact = replace(
        obstacle, **law, deepest=ROUND, contact_nodes=None, balls=[f"balls.{b}" for b in range(n)]
    )
    inertia = 2e-3 * rng.uniform(0.8, 1.2, (n, 6)) * [1.0, 1.0, 1.0, 0.1, 0.1, 0.1]
    bodies = RigidBodies([np.zeros((1, 3))] * n, mass=scene.model.mass, inertia=inertia)
    turns = rng.standard_normal((n, 4))
    state = BodyState(x, turns, v, 0.1 * rng.standard_normal((n, 3)))
    model = Model(forces={"obstacle": contact}, bodies={"balls": bodies})
    return Example(model, State(bodies={"balls": state}), DT, n_steps, inert=("balls.vertices",))


def rolling_on(build: Callable[[int], Example], n_steps: int) -> Example:
    """The balls of a scene on a body that carries the obstacle, as in `carried`."""
    scene = balls(build, n_steps)
    rolling, rng = scene.state.bodies["balls"], np.random.default_rng(17)
    start = poses(rng, rng.standard_normal((1, 3)), speed=0.5, spin=2.0, turn=2.0)
    R = Rotation.from_quat(start.pack()[0, 3:7])
    x, v = np.array(rolling.position), np.array(rolling.velocity)
    placed = start.position[0] + R.apply(x)
    moving = start.velocity[0] + R.apply(np.cross(start.angular_velocity[0], x) + v)
    O = Rotation.from_quat(np.array(rolling.orientation))
    spinning = rolling.angular_velocity + O.inv().apply(np.array(start.angular_velocity[0]))
    turned = BodyState(placed, (R * O).as_quat(), moving, spinning)
    carrier = RigidBodies(brick(rng), mass=20.0, inertia=[5.0, 6.0, 4.0, 0.2, -0.1, 0.3])
    contact = replace(scene.model.forces["obstacle"], fixed_to="carrier")
    bodies = {**scene.model.bodies, "carrier": carrier}
    model = Model(forces={"obstacle": contact}, bodies=bodies)
    state = State(bodies={"balls": turned, "carrier": start})
    return Example(model, state, DT, n_steps, inert=(*scene.inert, "carrier.vertices"))


SHAPES = {"sphere": sphere, "box": box, "capsule": capsule}
BUILDS: dict[str, Callable[[int], Example]] = {
    "contact/plane-moving": plane_moving,
    "contact/plane-cubic": partial(plane_moving, law=STIFF_CUBIC),
    **{f"contact/{name}": partial(build, moves=False) for name, build in SHAPES.items()},
    **{f"contact/{name}-moving": partial(build, moves=True) for name, build in SHAPES.items()},
    "contact/plane-carried": partial(carried, plane_moving),
    **{
        f"contact/{name}-carried": partial(carried, partial(build, moves=name == "box"))
        for name, build in SHAPES.items()
    },
    "contact/plane-balls": partial(balls, plane_moving),
    **{
        f"contact/{name}-balls": partial(balls, partial(build, moves=True))
        for name, build in SHAPES.items()
    },
    "contact/sphere-balls-carried": partial(rolling_on, partial(sphere, moves=False)),
}
SYSTEMS = systems("contacts", rollout_problem, BUILDS)
