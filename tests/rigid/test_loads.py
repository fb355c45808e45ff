"""Given forces on points of bodies: impulses by hand, the reference, every obstacle, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.reference import external, rigid
from tests.rigid.scenes import box, lump


DT, N_STEPS = 1e-3, 20
INERTIA = [0.3, 0.5, 0.4, 0.03, -0.05, 0.02]
POINTS = {"tip": BodyPoint([0.3, 0.4, -0.1]), "middle": BodyPoint(body=1)}


def pair(rng, **forces):
    """Two lumps at random, without gravity."""
    bodies = RigidBodies([lump(rng), lump(rng)], mass=[0.7, 0.5], inertia=INERTIA, points=POINTS)
    states = BodyState(*(rng.standard_normal((2, n)) for n in (3, 4, 3, 3)))
    model = Model(forces=forces, gravity=(0, 0, 0), bodies={"pair": bodies})
    return model, State(bodies={"pair": states})


def test_a_known_impulse_at_a_centre_of_mass_turns_nothing():
    bodies = RigidBodies(box(), mass=2.0, points={"middle": BodyPoint()})
    push = ExternalForces("middle", (6.0, 0, 0), window=(2, 5), acts_on="block")
    model = Model(forces={"push": push}, gravity=(0, 0, 0), bodies={"block": bodies})
    state = State(bodies={"block": BodyState([0, 0, 0])})
    end = rollout(model, state, 0.25, 8, frames=range(9)).bodies["block"]
    v = end.velocity[:, 0, 0]
    np.testing.assert_allclose(v, [0, 0, 0, 0.75, 1.5, 2.25, 2.25, 2.25, 2.25], atol=1e-15)
    np.testing.assert_array_equal(end.angular_velocity, 0.0)


def test_an_impulse_beside_it_turns_the_body_about_its_axis():
    # f at c for one step: dw = dt I^-1 (c x f).
    bodies = RigidBodies(box(), mass=2.0, inertia=INERTIA, points={"tip": [0.3, 0.4, -0.1]})
    push = ExternalForces(["tip"], (6.0, -2.0, 1.0), acts_on="block")
    model = Model(forces={"push": push}, gravity=(0, 0, 0), bodies={"block": bodies})
    end = rollout(model, State(bodies={"block": BodyState([0, 0, 0])}), DT, 1).bodies["block"]
    arm = [0.3, 0.4, -0.1] - bodies.centers[0]
    turn = DT * np.linalg.solve(rigid.tensor(INERTIA), np.cross(arm, [6.0, -2.0, 1.0]))
    np.testing.assert_allclose(end.angular_velocity[0, 0], turn, rtol=1e-12)


def test_points_and_vertices_are_pushed_as_the_reference_does(rng):
    series = rng.standard_normal((N_STEPS, 2, 3))
    named = ExternalForces(["middle", "tip"], series, (3, 15), acts_on="pair")
    vertices = ExternalForces([1, 10], 3.0 * rng.standard_normal((2, 3)), acts_on="pair")
    model, state = pair(rng, named=named, vertices=vertices)
    bodies, start = model.bodies["pair"], state.bodies["pair"]
    rows = {"tip": bodies.point_row("tip"), "middle": bodies.point_row("middle")}
    assert rows == {"tip": 8, "middle": 17}
    ours = rollout(model, state, DT, N_STEPS).bodies["pair"]

    def pushes(k, b, x, v):
        pushed = [rows["middle"], rows["tip"]]
        out = external.forces(k, bodies.n_points, pushed, series, (3, 15))
        out = out + external.forces(k, bodies.n_points, [1, 11], vertices.force)
        return out[bodies.point_ptr[b] : bodies.point_ptr[b + 1]]

    states = [[array[b] for array in vars(start).values()][:4] for b in range(2)]
    arms = [bodies.arms[:9], bodies.arms[9:]]
    weights = [(m, INERTIA, 0.0) for m in (0.7, 0.5)]
    (end,) = rigid.rollout(states, arms, weights, pushes, np.zeros(3), DT, N_STEPS, [N_STEPS])
    for b in range(2):
        for got, expected in zip(vars(ours).values(), end[b], strict=False):
            np.testing.assert_allclose(got[0, b], expected, rtol=0, atol=1e-13)


OBSTACLES = {
    "plane": lambda **law: HalfSpaceContact(height=0.03, **law),
    "sphere": lambda **law: SphereContact([0.1, -0.4, 0.2], 0.55, **law),
    "box": lambda **law: BoxContact([0.1, -0.1, 0.2], [0.1, 0.2, 0.0], [0.3, 0.13, 0.4], **law),
    "capsule": lambda **law: CapsuleContact([0.1, -0.1, 0], [0, 0, 1.4], 0.4, 0.2, **law),
}


@pytest.mark.parametrize("obstacle", OBSTACLES.values(), ids=OBSTACLES)
def test_every_obstacle_treats_vertices_as_it_treats_nodes(rng, obstacle):
    # One step from the same places: the force on the body is the sum of those on free nodes.
    law = {"stiffness": 500.0, "damping": 3.0, "friction_stiffness": 4.0, "friction": 0.4}
    bodies = RigidBodies(box(), mass=2.0, inertia=INERTIA)
    model = Model(forces={"it": obstacle(acts_on="block", **law)}, bodies={"block": bodies})
    start = BodyState([0.1, 0.15, 0.2], [0.1, 0, 0.05, 1], [0.3, -0.5, 0.2], [1.0, 2.0, -1.0])
    end = rollout(model, State(bodies={"block": start}), DT, 1).bodies["block"]
    body = [array[0] for array in vars(start).values()][:4]
    x, v = rigid.points(body, bodies.arms)
    free = Model(np.ones(8), {"it": obstacle(**law)}, gravity=(0, 0, 0))
    forces = (rollout(free, State(x, v), DT, 1).v[0] - v) / DT
    assert 0 < (np.abs(forces).max(axis=1) > 0).sum() < 8
    after = rigid.step(body, forces, bodies.arms, (2.0, INERTIA, 0.0), model.gravity, DT)
    for got, expected in zip(vars(end).values(), after, strict=True):
        np.testing.assert_allclose(got[0, 0], expected, rtol=0, atol=1e-12)


def test_the_gradient_of_a_force_has_its_shape_and_no_other_body_feels_it(rng):
    model, state = pair(rng, push=ExternalForces("tip", (1.0, 2.0, 3.0), acts_on="pair"))
    adj = np.zeros((1, 2, 3))
    adj[0, 1] = 1.0
    run = record(model, state, DT, N_STEPS)
    assert not run.vjp(bodies={"pair": {"position": adj}})["push.force"].any()
    gradient = run.vjp(bodies={"pair": {"position": adj[:, ::-1]}})["push.force"]
    # x_n = sum of dt^2 f/m (n - k): all three components alike.
    expected = DT**2 / 0.7 * N_STEPS * (N_STEPS + 1) / 2
    np.testing.assert_allclose(gradient, np.full(3, expected), rtol=1e-12)


def test_points_that_are_not_there_are_named(rng):
    with pytest.raises(ValueError, match=r"Unknown point in `push.load_nodes` `tip`. Known: none"):
        Model([1.0], {"push": ExternalForces("tip", (1, 0, 0))})
    with pytest.raises(
        ValueError, match=r"Unknown point in `push.load_nodes` `tipp`. Did you mean `tip`"
    ):
        pair(rng, push=ExternalForces("tipp", (1, 0, 0), acts_on="pair"))
    with pytest.raises(ValueError, match=r"`push.load_nodes` must index the 18 points"):
        pair(rng, push=ExternalForces([18], (1, 0, 0), acts_on="pair"))
