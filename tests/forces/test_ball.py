"""Rigid balls that touch as balls: friction acts where they touch, and spins them.

The contract of forces is for nodes: there the frame points are nodes, in places that no rigid body
gives them.
"""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.forces.registry import class_twin, register
from adjoint.verify.contract import EPS, ForceContract, nodal_forces
from adjsim import checks
from adjsim.contact_margins import contact_margins
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.pressure_laws import bouncing
from adjsim.forces.sphere import SphereContact
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.forces.contacts import CUBIC, DISSIPATIVE, N_NODES, ObstacleContract, law_of_each
from tests.forces.test_carried import SHAPES


def on_nodes(kind):
    """Return the class of such contacts of balls with nodes 4 k to 4 k + 3 in row k."""

    class BallsOnNodes(kind):
        def _frames(self):
            return ()

        def bind(self, rows, name):
            bound = dataclasses.replace(self)
            checks.freeze(bound, "rows", np.arange(4 * N_NODES).reshape(N_NODES, 4))
            return bound

    register(BallsOnNodes, class_twin(kind))
    return BallsOnNodes


class TestBallsOfNodes(ForceContract):
    @pytest.fixture(params=SHAPES, ids=lambda kind: kind.__name__)
    def kind(self, request):
        return request.param

    @pytest.fixture
    def case(self, rng, kind):
        law = law_of_each(rng, DISSIPATIVE if kind is HalfSpaceContact else CUBIC)
        law.pop("deepest", None)
        deepest = {} if kind is HalfSpaceContact else {"deepest": 0.2}
        centers = ObstacleContract.state(
            ObstacleContract, rng, kind(**SHAPES[kind], **law, **deepest)
        )
        force = on_nodes(kind)(**SHAPES[kind], **law, **deepest, balls=["nobody"] * N_NODES)
        x, v = np.empty((2, N_NODES, 4, 3))
        x[:, 0], v[:, 0] = centers.x, centers.v
        E = Rotation.random(N_NODES, random_state=1).as_matrix()
        x[:, 1:] = x[:, :1] + np.swapaxes(E, 1, 2) + 0.1 * rng.standard_normal((N_NODES, 3, 3))
        v[:, 1:] = v[:, :1] + 0.1 * rng.standard_normal((N_NODES, 3, 3))
        return force.bind(None, "it"), x.reshape(-1, 3), v.reshape(-1, 3)

    def make(self, rng):
        raise NotImplementedError  # `case` makes one of every kind

    state = make

    def test_the_force_acts_where_the_ball_touches(self, kind, case):
        force, x, v = case
        f = nodal_forces(force, x, v).reshape(N_NODES, 4, 3)
        centers, E = x.reshape(N_NODES, 4, 3)[:, :1], x.reshape(N_NODES, 4, 3)[:, 1:]
        total, moment = f.sum(axis=1), np.cross(E - centers, f[:, 1:]).sum(axis=1)
        assert np.abs(total).max() > 1.0
        if kind is HalfSpaceContact:  # whose normal is the same everywhere
            n = np.array(force.normal) / np.linalg.norm(force.normal)
            axes = np.swapaxes(E - centers, 1, 2)
            y = -force.radius[:, None] * np.einsum("bij,i->bj", axes, n)
            arm = np.einsum("bij,bj->bi", axes, y)
            np.testing.assert_allclose(
                moment, np.cross(arm, total), rtol=0, atol=50 * EPS * np.abs(moment).max()
            )


R, MASS, G = 0.1, 2.0, 9.81
E, DEPTH = 0.6, 5e-4


def ball(state, *, friction, gravity=(0.0, -G, 0.0), speed=1.5, inertia=0.4):
    """Return a model with a ball above a floor at 0, and its state."""
    law = bouncing(MASS, E, DEPTH, speed)
    floor = HalfSpaceContact(
        **law, friction=friction, friction_stiffness=3e4, radius=R, balls=["ball"]
    )
    bodies = RigidBodies(
        np.zeros((1, 3)), mass=MASS, inertia=[inertia * MASS * R**2] * 3 + [0.0] * 3
    )
    return Model(forces={"floor": floor}, bodies={"ball": bodies}, gravity=gravity), State(
        bodies={"ball": BodyState(**state)}
    )


def test_a_ball_rolls_down_a_slope_with_five_sevenths_of_the_acceleration():
    angle, dt, n = np.radians(20.0), 2e-5, 20000
    gravity = (G * np.sin(angle), -G * np.cos(angle), 0.0)
    depth = (MASS * G * np.cos(angle) / bouncing(MASS, E, DEPTH, 1.5)["cubic_stiffness"]) ** (1 / 3)
    model, state = ball({"position": [[0, R - depth, 0]]}, friction=0.5, gravity=gravity)
    end = rollout(model, state, dt, n).bodies["ball"]
    wanted = 5.0 / 7.0 * G * np.sin(angle) * n * dt
    # It creeps by its tangential load over k_f, which begins in m/k_f: 1e-4 of 0.4 s.
    assert end.velocity[0, 0, 0] == pytest.approx(wanted, rel=3e-4)
    slip = end.velocity[0, 0, 0] + R * end.angular_velocity[0, 0, 2]
    creep = 2.0 / 7.0 * MASS * G * np.sin(angle) / 3e4
    assert slip == pytest.approx(creep, rel=1e-2)


@pytest.mark.parametrize(("friction", "rolls"), [(0.1, False), (0.8, True)])
def test_an_oblique_bounce_slips_or_rolls_off(friction, rolls):
    along, down = 1.2, 1.5
    start = {"position": [[0, R + 1e-4, 0]], "velocity": [[along, -down, 0.0]]}
    model, state = ball(start, friction=friction, gravity=(0.0, 0.0, 0.0))
    end = rollout(model, state, 1e-6, 4000).bodies["ball"]
    v, w = end.velocity[0, 0], end.angular_velocity[0, 0]
    assert v[1] == pytest.approx(E * down, rel=1e-3)
    # By Coulomb's law, or as much as makes the point that touches stand: 2/7 of its speed.
    kick = 2.0 / 7.0 * along if rolls else friction * (1.0 + E) * down
    assert along - v[0] == pytest.approx(kick, rel=5e-3)
    assert w[2] == pytest.approx(-2.5 * kick / R, rel=5e-3)
    np.testing.assert_allclose(w[:2], 0.0, atol=1e-12)


def test_margins_of_slip_are_those_of_the_point_that_touches():
    rolling = {
        "position": [[0, R - 1e-4, 0]], "velocity": [[0.3, 0, 0]],
        "angular_velocity": [[0, 0, -0.3 / R]],
    }  # fmt: skip
    model, state = ball(rolling, friction=0.5)
    margins = contact_margins(model, rollout(model, state, 1e-9, 1, frames=[0]))["floor"]
    assert margins.touch[0, 0] == pytest.approx(1e-4)
    pressure = bouncing(MASS, E, DEPTH, 1.5)["cubic_stiffness"] * 1e-12
    assert margins.slip[0, 0] == pytest.approx(-0.5 * pressure, rel=1e-6)  # k_f |u_t| is 0


def test_the_stable_step_is_that_of_a_ball_whose_friction_spins_it():
    model, _ = ball({"position": [[0, R, 0]]}, friction=0.5)
    # The slip speed feels k_f (1/m + r^2/I) = 3.5 k_f/m, the centre the stiffness at the deepest.
    law = bouncing(MASS, E, DEPTH, 1.5)
    k = 6.0 * law["cubic_stiffness"] * DEPTH**2 / MASS
    c = 3.5 * 3e4 / MASS
    assert model.stable_dt() == pytest.approx(4.0 / (c + np.sqrt(c * c + 4.0 * k)))
    loose = dataclasses.replace(model.forces["floor"], friction=0.0)
    free = dataclasses.replace(model, forces={"floor": loose})
    c = law["cubic_stiffness"] * law["cubic_dissipation"] * DEPTH / MASS
    assert free.stable_dt() == pytest.approx(4.0 / (c + np.sqrt(c * c + 4.0 * k)))


def test_balls_exclude_other_ways_to_touch():
    with pytest.raises(ValueError, match="`balls` must not be given with `contact_nodes`"):
        SphereContact(radius=0.1, balls=["stone"], contact_nodes=[0])
    with pytest.raises(ValueError, match="`balls` must be other bodies than `fixed_to`"):
        SphereContact(radius=0.1, balls=["stone", "arm"], fixed_to="arm")
    with pytest.raises(ValueError, match="`radius` must be positive"):
        SphereContact(balls=["stone"])
    with pytest.raises(ValueError, match='`balls` must name a body, as "arm"'):
        SphereContact(radius=0.1, balls=[3])


def test_a_ball_of_a_set_is_named_by_its_number():
    bodies = RigidBodies([shape("sphere", radius=R)] * 2, density=500.0)
    floor = HalfSpaceContact(stiffness=1e4, radius=[R], balls=["balls.1"])
    state = State(bodies={"balls": BodyState([[0, 0.5 * R, 0], [1, 0.5 * R, 0]])})
    model = Model(forces={"floor": floor}, bodies={"balls": bodies}, gravity=(0, 0, 0))
    end = rollout(model, state, 1e-4, 1).bodies["balls"].velocity[0]
    assert end[0, 1] == 0.0
    assert end[1, 1] == pytest.approx(1e4 * 0.5 * R * 1e-4 / bodies.masses[1])


def two_balls(law, *, speed=1.0, spin=0.0, aside=0.0):
    """Return a model of a ball that meets another one, with a third of its mass, and its state."""
    contact = SphereContact(
        sphere_radius=0.6 * R, radius=R, balls=["left"], fixed_to="right", **law
    )
    inertia = [0.4 * R**2] * 3 + [0.0] * 3
    bodies = {
        name: RigidBodies(np.zeros((1, 3)), mass=m, inertia=m * np.array(inertia))
        for name, m in (("left", MASS), ("right", MASS / 3.0))
    }
    start = {
        "left": BodyState([0, aside, 0], velocity=[speed, 0, 0], angular_velocity=[0, 0, spin]),
        "right": BodyState([1.61 * R, 0.0, 0.0], angular_velocity=[0.0, 0.0, 0.7 * spin]),
    }
    return Model(forces={"touch": contact}, bodies=bodies, gravity=(0, 0, 0)), State(bodies=start)


@pytest.mark.parametrize("speed", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("e", [0.3, 0.9])
def test_two_balls_part_with_the_declared_restitution(e, speed):
    reduced = MASS / 4.0  # of MASS and a third of it
    model, state = two_balls(bouncing(reduced, e, 1e-3, speed), speed=speed)
    end = rollout(model, state, 1e-6 / speed, int(0.02 * 1e6)).bodies
    left, right = (end[name].velocity[0, 0, 0] for name in ("left", "right"))
    assert right - left == pytest.approx(e * speed, rel=1e-3)
    assert left + right / 3.0 == pytest.approx(speed, rel=1e-12)


def test_two_balls_keep_momentum_and_angular_momentum():
    law = {"stiffness": 2e5, "dissipation": 0.2, "friction": 0.4, "friction_stiffness": 1e4}
    model, state = two_balls(law, spin=40.0, aside=0.5 * R)

    def momenta(positions, velocities, spins):
        masses = {name: bodies.masses[0] for name, bodies in model.bodies.items()}
        linear = sum(m * velocities[name] for name, m in masses.items())
        angular = sum(
            m * (np.cross(positions[name], velocities[name]) + 0.4 * R**2 * spins[name])
            for name, m in masses.items()
        )
        return linear, angular

    start = (
        {name: np.array(getattr(body, key)[0]) for name, body in state.bodies.items()}
        for key in ("position", "velocity", "angular_velocity")
    )
    run = rollout(model, state, 1e-5, 3000).bodies
    end = (
        {name: getattr(body, key)[0, 0] for name, body in run.items()}
        for key in ("position", "velocity", "angular_velocity")
    )
    before, after = momenta(*start), momenta(*end)
    assert np.linalg.norm(run["right"].velocity[0, 0]) > 0.3
    assert abs(run["right"].angular_velocity[0, 0, 2] - 0.7 * 40.0) > 1.0  # friction acts
    np.testing.assert_allclose(after[0], before[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(after[1], before[1], rtol=0, atol=1e-6)
