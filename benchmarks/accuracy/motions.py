"""Things that move: a ball falls and bounces, a block slides down a slope and stops."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from adjoint.rollout import Record, record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.pressure_laws import bounce, bouncing
from adjsim.meshes.grid import box_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from benchmarks.accuracy.rows import Row, measure


G = 9.80665  # [m/s2]
MASS, HEIGHT, RESTITUTION, UNTIL = 0.2, 0.48, 0.6, 0.5  # [kg], [m], [-], [s]
# How deep a touch goes [m], and its step [s]. A touch takes time, which grows with the depth and as
# the restitution falls. By the height the exact gradient of the discrete program is the slope of
# the closed form only as far as a touch has many steps, and differences must stay within one step.
BY_HEIGHT, BY_RESTITUTION = (1e-3, 5e-6), (1e-4, 1e-6)


def contact_numbers(e: float, deep: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of a contact with the restitution e, and their derivatives by it."""
    numbers = bouncing(MASS, e, deep, float(np.sqrt(2.0 * G * HEIGHT)))
    (zeta, q), (by_zeta, by_q) = bounce(e)
    k, gamma = float(numbers["cubic_stiffness"]), float(numbers["cubic_dissipation"])
    slopes = {
        "floor.cubic_stiffness": k * by_q / q,
        "floor.cubic_dissipation": gamma * (by_zeta / zeta - 0.5 * by_q / q),
    }
    return numbers, slopes


def fallen(
    touch: tuple[float, float], *, height: float = HEIGHT, e: float = RESTITUTION, g: float = G,
    until: float = UNTIL, frames: Iterable[int] | None = None,
) -> Record:  # fmt: skip
    """Return the record of a ball, a node, that falls and bounces; `touch` is depth and step."""
    deep, dt = touch
    floor = HalfSpaceContact(**contact_numbers(e, deep)[0])
    model = Model([MASS], {"floor": floor}, gravity=(0.0, -g, 0.0))
    # Half a step early: then a fall is exact at every step.
    state = State([[0.0, height, 0.0]], [[0.0, 0.5 * dt * g, 0.0]])
    return record(model, state, dt, round(until / dt), frames=frames)


def height_of(run: Record) -> float:
    """Return the height at the end [m]."""
    return float(run.trajectory.x[-1, 0, 1])


def bounced(height: float, e: float) -> float:
    """Return the height at `UNTIL` of a ball that is let go at a height [m]."""
    speed = np.sqrt(2.0 * G * height)
    after = UNTIL - speed / G
    return float(e * speed * after - 0.5 * G * after**2)


def dropping() -> Iterator[Row]:
    """Yield the fall, and the bounce by the height and by the restitution."""
    up = np.array([[[0.0, 1.0, 0.0]]])
    early = 0.3

    def fall() -> tuple[float, float]:
        run = fallen(BY_HEIGHT, until=early)
        gradient = run.vjp(up)
        slope = -gradient["gravity"][1] + 0.5 * BY_HEIGHT[1] * gradient["state.v"][0, 1]
        return HEIGHT - height_of(run), -float(slope)

    yield measure(
        f"falls in {early:g} s by", "m", ("gravity", G), fall,
        value=lambda g: HEIGHT - height_of(fallen(BY_HEIGHT, g=g, until=early)),
        exact=lambda g: 0.5 * g * early**2,
    )  # fmt: skip

    def by_height() -> tuple[float, float]:
        run = fallen(BY_HEIGHT)
        return height_of(run), float(run.vjp(up)["state.x"][0, 1])

    yield measure(
        f"height at {UNTIL:g} s, after a bounce", "m", ("height", HEIGHT), by_height,
        value=lambda h: height_of(fallen(BY_HEIGHT, height=h)),
        exact=lambda h: bounced(h, RESTITUTION), step=SMALL,
    )  # fmt: skip

    def by_restitution() -> tuple[float, float]:
        run = fallen(BY_RESTITUTION)
        gradient = run.vjp(up)
        slopes = contact_numbers(RESTITUTION, BY_RESTITUTION[0])[1]
        return height_of(run), sum(float(gradient[path]) * by for path, by in slopes.items())

    yield measure(
        "the same, a shorter touch", "m", ("restitution", RESTITUTION), by_restitution,
        value=lambda e: height_of(fallen(BY_RESTITUTION, e=e)), exact=lambda e: bounced(HEIGHT, e),
    )  # fmt: skip


SMALL = 2e-6  # step of differences where steps touch or slip: between kinks
# A block of 0.2 x 0.1 x 0.2 m on a slope; friction sticks slower than mu m g/k_f
SIZE, DENSITY, ANGLE = (0.2, 0.1, 0.2), 500.0, np.deg2rad(30.0)
FRICTION, STICKS, SPEED, SLIDING = 0.3, 0.8, 1.0, 1.0  # [-], [-], [m/s], [s]
STIFF, DISSIPATION, FRICTION_STIFFNESS, DT = 1e6, 1.0, 2e3, 5e-5  # [N/m], [s/m], [N s/m], [s]
DOWN = np.array([np.cos(ANGLE), -np.sin(ANGLE), 0.0])
UP = np.array([np.sin(ANGLE), np.cos(ANGLE), 0.0])


def slid(friction: float, speed: float = 0.0) -> Record:
    """Return the record of a block that starts on the slope at a speed."""
    grid = box_tets((1, 1, 1), SIZE, tuple(-0.5 * s for s in SIZE))
    block = RigidBodies([TriangleMesh(grid.points, grid.surface().faces)], density=DENSITY)
    weight = DENSITY * float(np.prod(SIZE)) * G
    slope = HalfSpaceContact(
        normal=UP, stiffness=STIFF, dissipation=DISSIPATION, friction=friction,
        friction_stiffness=FRICTION_STIFFNESS, acts_on="block",
    )  # fmt: skip
    sunk = 0.25 * weight * np.cos(ANGLE) / STIFF
    turn = [[0.0, 0.0, -ANGLE]]
    start = BodyState(
        [(0.5 * SIZE[1] - sunk) * UP], rotation=turn, velocity=[speed * DOWN],
        angular_velocity=[[0.0, 0.0, 0.0]],
    )  # fmt: skip
    model = Model(forces={"slope": slope}, bodies={"block": block}, gravity=(0.0, -G, 0.0))
    return record(model, State(bodies={"block": start}), DT, round(SLIDING / DT))


def way_of(run: Record) -> float:
    """Return how far the block went down the slope [m]."""
    return float(run.trajectory.bodies["block"].position[0, 0] @ DOWN)


def sliding() -> Iterator[Row]:
    """Yield a block that slides, and one that is pushed and stops."""

    def measured(friction: float, speed: float) -> tuple[float, float]:
        run = slid(friction, speed)
        adj = {"block": {"position": DOWN[None, None]}}
        return way_of(run), float(run.vjp(bodies=adj)["slope.friction"])

    pull = G * np.sin(ANGLE)
    yield measure(
        f"slides in {SLIDING:g} s by", "m", ("friction", FRICTION),
        partial(measured, FRICTION, 0.0), value=lambda mu: way_of(slid(mu)),
        exact=lambda mu: 0.5 * (pull - mu * G * np.cos(ANGLE)) * SLIDING**2, step=SMALL,
    )  # fmt: skip
    yield measure(
        f"stops from {SPEED:g} m/s after", "m", ("friction", STICKS),
        partial(measured, STICKS, SPEED), value=lambda mu: way_of(slid(mu, SPEED)),
        exact=lambda mu: 0.5 * SPEED**2 / (mu * G * np.cos(ANGLE) - pull), step=SMALL,
    )  # fmt: skip
