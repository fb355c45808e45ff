"""The estimate of the stable step: exact for one node, safe for a body, with damping."""

import dataclasses
import warnings

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.springs import Springs
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rollout import rollout
from adjsim.stable_step import sides_of
from adjsim.worlds import stack
from tests.physics import sliding_box
from tests.rigid.scenes import box


def test_without_damping_it_is_two_over_omega_and_without_forces_infinite():
    assert Model(np.ones(2)).stable_dt() == np.inf
    floor = HalfSpaceContact(stiffness=100.0)
    assert Model(np.full(2, 4.0), {"floor": floor}).stable_dt() == pytest.approx(2 / 5.0)


def test_with_damping_alone_it_is_two_masses_over_the_damping():
    brake = HalfSpaceContact(stiffness=0.0, damping=3.0, friction_stiffness=7.0, friction=0.2)
    assert Model(np.full(2, 4.0), {"floor": brake}).stable_dt() == pytest.approx(8 / 7.0)
    smooth = dataclasses.replace(brake, friction=0.0)  # k_f does not act alone
    assert Model(np.full(2, 4.0), {"floor": smooth}).stable_dt() == pytest.approx(8 / 3.0)
    pinned = Model(np.full(2, 4.0), {"floor": brake}, pinned=[True, True])
    assert pinned.stable_dt() == np.inf


@pytest.mark.parametrize(("factor", "grows"), [(0.99, False), (1.01, True)])
def test_a_node_that_sticks_by_a_stiff_friction_is_stable_up_to_it_and_not_beyond(factor, grows):
    # It rests 100 m deep on a soft floor, so that it sticks: v' = v - dt k_f/m v.
    floor = HalfSpaceContact(stiffness=0.1, friction_stiffness=50.0, friction=1.0)
    model = Model([2.0], {"floor": floor}, gravity=(0.0, -5.0, 0.0))
    state = State([[0.0, -100.0, 0.0]], [[1e-9, 0.0, 0.0]])
    dt = factor * model.stable_dt()
    assert dt == pytest.approx(factor * 2 * 2.0 / 50.0, rel=0.01)
    assert (abs(rollout(model, state, dt, 1000).v[0, 0, 0]) > 1e-9) == grows


@pytest.mark.parametrize("viscosity", [2.0, 50.0, 1000.0])
def test_a_viscous_body_is_stable_at_it_whatever_governs(rng, viscosity):
    model, state = sliding_box(rng, 1, viscosity=viscosity, height=-10.0)
    tets = dataclasses.replace(model.forces["solid"], actuation=0.0)
    solid = Model(model.mass, {"solid": tets}, gravity=(0.0, 0.0, 0.0))
    elastic = Model(model.mass, {"solid": dataclasses.replace(tets, viscosity=0.0)})
    assert solid.stable_dt() < elastic.stable_dt()
    small = State(tets.rest_positions, 1e-3 * state.v)
    run = rollout(solid, small, solid.stable_dt(), 500, frames=range(0, 501, 25))
    kinetic = (solid.mass[:, None] * run.v**2).sum(axis=(1, 2))
    assert kinetic.max() == kinetic[0]


def block(size=(0.2, 0.2, 0.2)):
    return RigidBodies(box(size), mass=2.0, points={"middle": BodyPoint(), "end": [0.1, 0.1, 0.2]})


def held(point, stiffness, damping=0.0):
    """A body that a spring holds at a point, and a node that stands still."""
    spring = Springs([(0, point)], stiffness, 0.1, damping, acts_on=("nodes", "block"))
    return Model([1.0], {"held": spring}, bodies={"block": block()}, pinned=[True])


def test_a_spring_at_a_body_counts_its_mass_and_its_lever():
    mass, inertia, arm = 2.0, 2.0 * 2 * 0.2**2 / 12, 0.1
    k = 2.0 * 50.0  # the bound of a spring at each of its ends
    numbers = {"middle": 9, "end": 10}
    middle = 2.0 * np.sqrt(mass / k)
    assert held(numbers["middle"], 50.0).stable_dt() == pytest.approx(middle, rel=1e-12)
    end = 2.0 / np.sqrt(k * (1.0 / mass + arm**2 / inertia))
    assert held(numbers["end"], 50.0).stable_dt() == pytest.approx(end, rel=1e-12)
    damped = held(numbers["middle"], 0.0, 3.0).stable_dt()
    assert damped == pytest.approx(2.0 * mass / 6.0, rel=1e-12)


def test_a_box_counts_as_touched_on_one_side_and_by_the_two_stiffest_obstacles():
    floor = HalfSpaceContact(stiffness=100.0, acts_on="block", contact_nodes=range(8))
    inertia, arm = 2.0 * 2 * 0.2**2 / 12, 0.1
    # Four corners of a side with normal z: a force along x there turns the body about y.
    coupling = 4 * arm / np.sqrt(2.0 * inertia)
    of_side = np.array([[4 / 2.0, coupling], [coupling, 4 * 2 * arm**2 / inertia]])
    largest = 100.0 * np.linalg.eigvalsh(of_side)[-1]
    alone = Model(forces={"a": floor}, bodies={"block": block()})
    assert alone.stable_dt() == pytest.approx(2.0 / np.sqrt(largest), rel=1e-9)
    forces = {name: dataclasses.replace(floor) for name in "abc"}
    three = Model(forces=forces, bodies={"block": block()})
    assert three.stable_dt() == pytest.approx(alone.stable_dt() / 2.0, rel=1e-12)


def test_points_in_a_plane_are_touched_all_at_once():
    flat = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(next(sides_of(flat)), np.ones((1, 4)))
    np.testing.assert_array_equal(next(sides_of(box().points)).sum(axis=1), np.full(6, 4.0))


def test_surfaces_that_meet_touch_on_one_side():
    """A finer sphere touches with no more points of its side, where all of them would be many."""

    def stable(n):
        ball = ball_tets(n, radius=0.05)
        hull = ball.surface()
        mesh = TriangleMesh(ball.points[hull.nodes], hull.local_faces)
        second = len(mesh.points)
        touch = SurfaceContact(
            triangles=mesh.faces, other_triangles=mesh.faces + second, radius=0.002,
            other_radius=0.002, stiffness=1e3, acts_on="balls",
        )  # fmt: skip
        bodies = {"balls": RigidBodies([mesh, mesh], density=500.0)}
        return Model(forces={"touch": touch}, bodies=bodies).stable_dt(), len(mesh.points)

    (coarse, few), (fine, many) = stable(2), stable(6)
    assert many > 8 * few
    assert fine > 0.5 * coarse


def two_boxes(**law):
    mesh = TriangleMesh(*box_surface())
    touch = SurfaceContact(
        triangles=mesh.faces, other_triangles=mesh.faces + len(mesh.points), radius=0.002,
        other_radius=0.002, stiffness=1e4, acts_on="boxes", **law,
    )  # fmt: skip
    return Model(forces={"touch": touch}, bodies={"boxes": RigidBodies([mesh, mesh], mass=1.0)})


def box_surface():
    grid = box_tets((1, 1, 1), (0.2, 0.2, 0.2))
    return grid.points, grid.surface().faces


@pytest.mark.parametrize("speed", [0.01, 0.5, 20.0])
def test_a_dissipation_counts_with_the_depth_that_a_speed_reaches(speed):
    """By the motion of a point that arrives: its largest d omega c is that of the closed form."""
    d, omega, dt = 2.0, 100.0, 1e-6
    c, v = 0.0, speed
    while v > 0.0:
        v -= dt * omega**2 * c * (1.0 + d * v)
        c += dt * v
    loss = two_boxes(dissipation=d, speed=speed).forces["touch"].arrival_loss
    assert loss == pytest.approx(d * omega * c, rel=1e-2)
    alone, lossy = two_boxes().stable_dt(), two_boxes(dissipation=d, speed=speed).stable_dt()
    assert alone / lossy == pytest.approx(0.5 * (loss + np.sqrt(loss**2 + 4.0)), rel=1e-9)
    rubs = two_boxes(dissipation=d, speed=speed, friction=0.1, friction_stiffness=1e4)
    assert rubs.stable_dt() < 0.1 * lossy


def test_without_a_speed_a_dissipation_counts_at_half_of_the_thickness():
    unknown = two_boxes(dissipation=2.0).stable_dt()
    assert unknown < two_boxes(dissipation=2.0, speed=1e-3).stable_dt()
    assert unknown == pytest.approx(two_boxes(damping=2.0 * 1e4 * 0.002).stable_dt(), rel=1e-12)


FLOOR = HalfSpaceContact(stiffness=100.0)


@pytest.mark.parametrize("run", [rollout, record])
def test_a_long_rollout_above_it_warns_and_auto_is_half_of_it(run):
    model, state = Model(np.full(2, 4.0), {"floor": FLOOR}), State(np.ones((2, 3)))
    stable = model.stable_dt()
    with pytest.warns(UserWarning, match="`dt` = 0.56 s is above the estimated stable step"):
        run(model, state, 1.4 * stable, 500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(model, state, 0.9 * stable, 500)
        run(model, state, 1.4 * stable, 499)
        outcome = run(model, state, "auto", 500)
    assert getattr(outcome, "trajectory", outcome).dt == 0.5 * stable
    heavy = Model(np.full(2, 16.0), {"floor": FLOOR})
    (trajectory, _) = rollout(stack([model, heavy]), [state, state], "auto", 3)
    assert trajectory.dt == 0.5 * stable
    for bad, its in ((Model(np.ones(2)), state), (SimplePendulum(1.0), PendulumState(0.1))):
        with pytest.raises(ValueError, match=r"`dt` must be a number of seconds: a .* without"):
            run(bad, its, "auto", 3)
    with pytest.raises(ValueError, match="`dt` must be a number of seconds or 'auto', got 'best'"):
        run(model, state, "best", 3)
