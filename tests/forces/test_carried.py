"""Shapes that rigid bodies carry: as in the world from the node's side, with all of the reaction.

The contract of forces is for nodes: there the frame points are nodes, four behind each that
touches, in places that no rigid body gives them.
"""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.forces.registry import class_twin, register
from adjoint.rollout import record
from adjoint.verify.contract import EPS, ForceContract, nodal_forces
from adjoint.verify.systems import contacts
from adjsim import checks
from adjsim.contact_margins import contact_margins
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.model import Model, State, Trajectory
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.forces.contacts import DISSIPATIVE, LAW, N_NODES, ObstacleContract, law_of_each
from tests.joints.scenes import frame_points, pose_points, pose_velocities
from tests.rigid.scenes import box


MOTION = {"velocity": (0.1, 0.2, -0.1), "angular_velocity": (0.3, -0.2, 0.4)}
PLACE = {"center": (0.1, -0.05, 0.08)}
POSE = {**PLACE, "rotation": (0.5, -0.3, 0.7)}
SHAPES = {
    HalfSpaceContact: {"normal": (0.3, 2.0, -0.4), "height": 0.1, "velocity": (0.1, 0.2, -0.1)},
    SphereContact: {**PLACE, **MOTION, "sphere_radius": 0.4},
    BoxContact: {**POSE, **MOTION, "half_extents": (0.3, 0.2, 0.35)},
    CapsuleContact: {**POSE, **MOTION, "half_length": 0.25, "capsule_radius": 0.3},
}
EACH = pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)


def on_nodes(kind):
    """Return the class of such contacts with nodes 5 k to 5 k + 4 in row k."""

    class OnNodes(kind):
        def __post_init__(self):
            super().__post_init__()
            object.__setattr__(self, "framed", ())

        def bind(self, rows, name):
            n = len(rows.indices) // 5
            bound = dataclasses.replace(self, contact_nodes=np.arange(n))
            checks.freeze(bound, "rows", np.arange(5 * n).reshape(n, 5))
            return bound

    register(OnNodes, class_twin(kind))
    return OnNodes


class TestCarriedByNodes(ForceContract):
    @pytest.fixture(params=SHAPES, ids=lambda kind: kind.__name__)
    def kind(self, request):
        return request.param

    @pytest.fixture
    def case(self, rng, kind):
        law = law_of_each(rng, DISSIPATIVE if kind is BoxContact else LAW)
        seen = ObstacleContract.state(ObstacleContract, rng, kind(**SHAPES[kind], **law))
        force = on_nodes(kind)(**SHAPES[kind], **law, fixed_to="nobody")
        x, v = 0.3 * rng.standard_normal((2, N_NODES, 5, 3))
        E = Rotation.random(N_NODES, random_state=1).as_matrix()
        E += 0.1 * rng.standard_normal(E.shape)  # columns of no rotation
        x[:, 2:] = x[:, 1:2] + np.swapaxes(E, 1, 2)
        back = np.linalg.inv(np.swapaxes(E, 1, 2))
        D = np.swapaxes(v[:, 2:] - v[:, 1:2], 1, 2)
        x[:, 0] = x[:, 1] + (back @ seen.x[..., None])[..., 0]
        s = back @ seen.v[..., None] + D @ seen.x[..., None]
        v[:, 0] = v[:, 1] + s[..., 0]
        return force.bind(_Rows(5 * N_NODES), "it"), x.reshape(-1, 3), v.reshape(-1, 3)

    def make(self, rng):
        raise NotImplementedError  # `case` makes one of every kind

    state = make

    def test_the_forces_sum_up_to_zero(self, case):
        force, x, v = case
        f = nodal_forces(force, x, v).reshape(N_NODES, 5, 3)
        assert np.abs(f.sum(axis=1)).max() <= 20 * EPS * np.abs(f).max()


class _Rows:
    """So many nodes."""

    def __init__(self, n):
        self.indices = np.arange(n)


def shape(kind, **changed):
    """Return an obstacle on the first body of "carrier", and the same in the world."""
    values = {"stiffness": 300.0, "dissipation": 0.3, "friction_stiffness": 20.0, "friction": 0.5}
    values = {**SHAPES[kind], **values, "radius": 0.02, **changed}
    return kind(**values, fixed_to="carrier"), values


def element(force, points, velocities):
    """Forces (5, 3) of an obstacle on a body, on a node and the body's frame points."""
    bound = dataclasses.replace(force, contact_nodes=[0])
    checks.freeze(bound, "rows", np.arange(5)[None])
    rows = bound.pack_params()[0], bound.pack_series(1)[0, 0]
    return np.array(force.kind.force(*map(tuples, (points, velocities)), (), *map(tuple, rows)))


def tuples(rows):
    """Rows of vectors as tuples of numbers."""
    return tuple(tuple(map(float, row)) for row in rows)


def touching(rng, kind, force, n=20):
    """Yield points and velocities of a node that touches and of a body, (5, 3) each."""
    count = 0
    while count < n:
        frame = frame_points(rng)
        node = frame[0][0] + rng.uniform(-0.4, 0.4, 3), rng.standard_normal(3)
        x, v = (np.vstack(pair) for pair in zip(node, frame, strict=True))
        if np.abs(element(force, x, v)).max() > 1.0:
            count += 1
            yield x, v


@EACH
def test_momentum_and_angular_momentum_are_exchanged_without_loss(rng, kind):
    force, _ = shape(kind)
    for x, v in touching(rng, kind, force):
        f = element(force, x, v)
        size = np.abs(f).max()
        assert np.abs(f.sum(axis=0)).max() <= 1e-14 * size
        assert np.abs(np.cross(x, f).sum(axis=0)).max() <= 1e-13 * size


@EACH
def test_a_node_feels_a_moving_obstacle_of_the_world(rng, kind):
    force, values = shape(kind)
    for x, v in touching(rng, kind, force, 10):
        center, V, R = x[1], v[1], (x[2:] - x[1]).T
        omega = 0.5 * np.cross(x[2:] - x[1], v[2:] - v[1]).sum(axis=0)
        turned = dict(values)
        if kind is HalfSpaceContact:
            normal = np.array(values["normal"]) / np.linalg.norm(values["normal"])
            turned["normal"] = R @ normal
            turned["height"] = values["height"] + R @ normal @ center
            matter = V + np.cross(omega, x[0] - center)
            turned["velocity"] = matter + R @ values["velocity"]
        else:
            arm = R @ values["center"]
            turned["center"] = center + arm
            turned["velocity"] = V + np.cross(omega, arm) + R @ values["velocity"]
            turned["angular_velocity"] = omega + R @ values["angular_velocity"]
        if kind in (BoxContact, CapsuleContact):
            turn = Rotation.from_matrix(R) * Rotation.from_rotvec(values["rotation"])
            turned["rotation"] = turn.as_rotvec()
        world = Model([1.0], {"it": kind(**turned)}, gravity=(0.0, 0.0, 0.0))
        expected = nodal_forces(world.forces["it"], x[:1], v[:1])
        np.testing.assert_allclose(element(force, x, v)[:1], expected, rtol=0, atol=1e-11)


@EACH
def test_an_elastic_force_is_minus_the_slope_of_the_energy_by_every_pose(rng, kind):
    force, _ = shape(kind, dissipation=0.0, friction=0.0)
    k = 300.0

    def energy(x):
        return 0.5 * np.sum(element(force, x, np.zeros_like(x))[0] ** 2) / k  # |f| = k c

    for x, _ in touching(rng, kind, force, 5):
        f = element(force, x, np.zeros_like(x))
        E, h = (x[2:] - x[1]).T, 1e-5
        for _ in range(3):
            node, shift, turn = rng.standard_normal((3, 3))

            def moved(s, x=x, E=E, node=node, shift=shift, turn=turn):
                R = Rotation.from_rotvec(s * turn).as_matrix() @ E
                return np.vstack([x[:1] + s * node, pose_points(x[1] + s * shift, R)])

            U = [energy(moved(s * h)) for s in (-2, -1, 1, 2)]
            slope = (8.0 * (U[2] - U[1]) - (U[3] - U[0])) / (12.0 * h)
            rates = np.vstack([node, pose_velocities(shift, turn, E)])
            # eps U/h of rounding, h^4 of truncation.
            assert abs(slope + np.vdot(f, rates)) <= 1e-9 * np.abs(f).max()


def test_friction_acts_against_the_matter_of_the_body_beside_the_node():
    # The body turns about z: beside the node, at (0, 1, 0), its matter moves along -x.
    plate, _ = shape(HalfSpaceContact, normal=(0, 1, 0), height=1.1, velocity=(0, 0, 0), radius=0.0)
    E = np.eye(3)
    v = pose_velocities(np.zeros(3), np.array([0.0, 0.0, 0.2]), E)
    x = np.vstack([[[0.0, 1.0, 0.0]], pose_points(np.zeros(3), E)])
    f = element(plate, x, np.vstack([np.zeros((1, 3)), v]))[0]
    np.testing.assert_allclose(f, [-20.0 * 0.2, 300.0 * 0.1, 0.0], rtol=1e-13)
    beside = np.vstack([[[-0.2, 0.0, 0.0]], v])
    np.testing.assert_allclose(element(plate, x, beside)[0], [0.0, 30.0, 0.0], atol=1e-12)


def balls(stiffness=1e4):
    """Two bodies: the first carries a sphere, which the middle of the second may touch."""
    points = {"middle": BodyPoint(body=1)}
    bodies = RigidBodies(
        [np.zeros((1, 3))] * 2, mass=[1.0, 3.0], inertia=[0.1, 0.1, 0.1, 0, 0, 0], points=points
    )
    ball = SphereContact(
        sphere_radius=0.1, radius=0.1, stiffness=stiffness, fixed_to="balls", acts_on="balls"
    )
    return Model(forces={"touch": ball}, bodies={"balls": bodies}, gravity=(0.0, 0.0, 0.0))


def test_two_balls_that_collide_have_the_speeds_of_the_closed_form():
    model = balls()
    start = BodyState([[0.0, 0.0, 0.0], [0.25, 0.0, 0.0]], velocity=[[1.0, 0, 0], [0.0, 0.0, 0.0]])
    end = rollout(model, State(bodies={"balls": start}), 1e-5, 20_000).bodies["balls"]
    v = end.velocity[-1, :, 0]
    np.testing.assert_allclose(v, [(1 - 3) / 4, 2 / 4], rtol=0, atol=1e-4)
    assert abs(v @ [1.0, 3.0] - 1.0) <= 1e-13


def test_the_points_of_the_body_itself_do_not_touch():
    crate = RigidBodies([box(), box()], density=100.0)
    floor = HalfSpaceContact(fixed_to="crate.1", acts_on=("nodes", "crate"))
    model = Model([1.0], {"floor": floor}, bodies={"crate": crate})
    bound = model.forces["floor"]
    assert bound.contact_nodes.tolist() == list(range(9))
    assert bound.nodes.shape == (9, 5)
    assert bound.nodes[0].tolist() == [0, 17, 18, 19, 20]
    assert model.bodies["crate"].framed == (1,)
    on_carrier = dataclasses.replace(floor, contact_nodes=[0, 12])
    with pytest.raises(ValueError, match=r"`floor.contact_nodes` must not be points of `crate.1`"):
        Model([1.0], {"floor": on_carrier}, bodies={"crate": crate})


def test_a_contact_with_other_values_is_bound_again_only_if_the_rows_change():
    model = balls()
    state = State(bodies={"balls": BodyState(np.zeros((2, 3)))})
    same, _ = model.with_values(state, {"gravity": (0.0, -1.0, 0.0)})
    assert same.forces["touch"] is model.forces["touch"]
    stiffer, _ = model.with_values(state, {"touch.stiffness": 2.0})
    assert stiffer.forces["touch"].nodes.tolist() == model.forces["touch"].nodes.tolist()
    assert stiffer.forces["touch"].frame == model.forces["touch"].frame


@pytest.mark.parametrize("name", ["", "crate.x", 3])
def test_a_body_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=r"`fixed_to` must name a body, as .*arm"):
        SphereContact(fixed_to=name)


def test_a_body_that_the_model_does_not_have_is_refused():
    crate = RigidBodies(box(), density=100.0)
    for name, message in (("crates", "Did you mean"), ("crate.1", "`crate` has 1, numbered")):
        with pytest.raises(ValueError, match=message):
            Model([1.0], {"floor": HalfSpaceContact(fixed_to=name)}, bodies={"crate": crate})


def test_margins_are_those_of_the_obstacle_where_it_is(rng):
    scene = contacts.carried(lambda n: contacts.box(n, moves=False), 1)
    run = rollout(scene.model, scene.state, scene.dt, 1, frames=[0])
    margins = contact_margins(scene.model, run)["obstacle"]
    still = contacts.box(1, moves=False)
    first = Trajectory(np.array([0]), 1.0, still.state.x[None], still.state.v[None])
    obstacle = still.model.forces["obstacle"]
    means = {key: float(np.mean(getattr(obstacle, key))) for key in obstacle.scalars}
    plain = dataclasses.replace(obstacle, **means)
    expected = contact_margins(Model(still.model.mass, {"obstacle": plain}), first)["obstacle"]
    n = still.model.n_nodes
    for name in ("touch", "leaving", "slip"):
        margin = getattr(margins, name)[:, :n]
        np.testing.assert_allclose(margin, getattr(expected, name), rtol=0, atol=1e-11)
    assert margins.shape.shape == (1, n + 2, 3)


@pytest.mark.parametrize("build", ["plane", "box"])
def test_threads_change_no_bit(build):
    scene = contacts.BUILDS[f"contact/{build}-carried"](8)
    runs = [record(scene.model, scene.state, 1e-4, 8, threads=threads) for threads in (1, 2)]
    first, second = (run.trajectory.bodies["carrier"] for run in runs)
    np.testing.assert_array_equal(first.velocity, second.velocity)
    np.testing.assert_array_equal(first.angular_velocity, second.angular_velocity)
    adj = np.ones((1, scene.model.n_nodes, 3))
    gradients = [run.vjp(adj, adj) for run in runs]
    for path, gradient in gradients[0].items():
        np.testing.assert_array_equal(gradient, gradients[1][path], err_msg=path)


@pytest.mark.parametrize("mass", [0.05, 20.0])
@EACH
def test_the_stable_step_is_that_of_the_worst_place_to_touch(rng, kind, mass):
    k, half = 50.0, 0.15
    force, _ = shape(kind, stiffness=k, dissipation=0.0, friction=0.0)
    carrier = RigidBodies(box((2 * half,) * 3, (-half,) * 3), mass=mass)
    model = Model([1.0], {"it": force}, (0.0, 0.0, 0.0), bodies={"carrier": carrier})
    frame, worst = pose_points(np.zeros(3), np.eye(3)), 0.0
    for x in rng.uniform(-0.8, 0.8, (4000, 3)):
        if kind is HalfSpaceContact and np.abs(x).max() > half:
            continue  # it counts as touched no farther from the body's centre than a vertex
        f = element(force, np.vstack([x, frame]), np.zeros((5, 3)))
        size = np.linalg.norm(f[0])
        if size == 0.0:
            continue
        moment = np.cross(frame, f[1:]).sum(axis=0) / size
        turns = moment @ moment / carrier.inertias[0, 0]
        worst = max(worst, k * (1.0 + 1.0 / mass + turns))
    # The bounds of node and body apart cost a factor of 2 in the stiffness; as much does a force of
    # any direction at the corner of a box, where a pressure has that of a face.
    assert 0.5 * 2.0 / np.sqrt(worst) < model.stable_dt() <= 2.0 / np.sqrt(worst)
