"""Rollouts of rigid bodies: the reference and its complex steps, bits, float32, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.system import RolloutError
from tests.reference import half_space, rigid
from tests.rigid.scenes import FLOOR, box, referenced, tumbling, values_of


DT, N_STEPS, FRAMES = 1e-3, 60, [0, 25, 60]
STEP = 1e-30


def packed(trajectory):
    """States of all bodies, (n_frames, n_bodies, 13)."""
    return np.concatenate(
        [
            np.concatenate(list(vars(poses).values()), axis=-1)
            for poses in trajectory.bodies.values()
        ],
        axis=1,
    )


def split(model, adj):
    """Cotangents of packed states as `Record.vjp` takes them."""
    names = ("position", "orientation", "velocity", "angular_velocity")
    return {
        name: dict(zip(names, np.split(adj[:, rows], (3, 7, 10), axis=-1), strict=True))
        for name, rows in model.body_slices().items()
    }


@pytest.fixture(scope="module")
def scene():
    return tumbling(np.random.default_rng(3))


@pytest.fixture(scope="module")
def run(scene):
    return record(*scene, DT, N_STEPS, frames=FRAMES)


@pytest.fixture(scope="module")
def adj():
    return np.random.default_rng(4).standard_normal((len(FRAMES), 3, 13))


@pytest.fixture(scope="module")
def gradient(scene, run, adj):
    return run.vjp(bodies=split(scene[0], adj))


PATHS = list(values_of(*tumbling(np.random.default_rng(3))))


def test_states_agree_with_the_reference_to_rounding(scene, run):
    # 60 steps with contact forces of 100 N, which enter with dt/m = 1e-3 and dt/I = 0.3.
    theirs = referenced(*scene, DT, N_STEPS, FRAMES)
    np.testing.assert_allclose(packed(run.trajectory), theirs, rtol=0, atol=2e-12)


def test_some_points_are_apart_some_stick_and_some_slip(scene):
    model, state = scene
    frames = packed(rollout(model, state, DT, N_STEPS, frames=range(N_STEPS + 1)))
    normal = FLOOR["normal"] / np.linalg.norm(FLOOR["normal"])
    bodies, slips = model.bodies["blocks"], []
    for p in frames[:, 0]:
        x, v = rigid.points(np.split(p, (3, 7, 10)), bodies.arms[: bodies.point_ptr[1]])
        force = half_space.forces(x, v, **FLOOR)
        assert not force.any(axis=1).all()  # some are apart
        pressure = force @ normal
        touching = pressure > 0
        friction = np.linalg.norm(force - pressure[:, None] * normal, axis=1)[touching]
        slips += list(friction > (1 - 1e-9) * FLOOR["friction"] * pressure[touching])
    assert 10 < sum(slips) < len(slips) - 10


@pytest.mark.parametrize("path", PATHS)
def test_the_gradient_agrees_with_the_complex_step(path, scene, gradient, adj):
    value = values_of(*scene)[path]
    direction = np.random.default_rng(5).normal(size=value.shape)
    moved = referenced(*scene, DT, N_STEPS, FRAMES, {path: value + 1j * STEP * direction})
    exact = np.vdot(adj, moved.imag / STEP)
    products = gradient[path] * direction
    assert gradient[path].shape == value.shape
    assert np.abs(products).sum() > 0
    # Rounding, amplified by the contact's stiffness; relative to the terms of the product.
    assert abs(products.sum() - exact) <= 1e-10 * np.abs(products).sum()


@pytest.mark.parametrize("path", PATHS)
def test_tangent_and_adjoint_are_transposes(path, scene, gradient, adj):
    value = values_of(*scene)[path]
    direction = np.random.default_rng(6).normal(size=value.shape)
    states, tangent = rollout_jvp(*scene, DT, N_STEPS, {path: direction}, frames=FRAMES)
    left, right = adj * packed(tangent), gradient[path] * direction
    assert abs(left.sum() - right.sum()) <= 1e-12 * (np.abs(left).sum() + np.abs(right).sum())
    np.testing.assert_array_equal(
        packed(states), packed(record(*scene, DT, N_STEPS, frames=FRAMES).trajectory)
    )


@pytest.mark.parametrize("schedule", [EveryK(7), Binomial(4), "5kB"], ids=str)
def test_every_schedule_gives_the_same_bits(schedule, scene, run, gradient, adj):
    other = record(*scene, DT, N_STEPS, frames=FRAMES, checkpoint=schedule)
    np.testing.assert_array_equal(packed(other.trajectory), packed(run.trajectory))
    again = other.vjp(bodies=split(scene[0], adj))
    for path, value in gradient.items():
        np.testing.assert_array_equal(again[path], value, err_msg=path)


@pytest.fixture(scope="module")
def mixed():
    """Three bodies beside a soft box, and everything that can be asked of it."""
    return tumbling(np.random.default_rng(3), soft=True)


def everything(scene, threads, **options):
    model, state = scene
    run = record(model, state, DT, N_STEPS, frames=FRAMES, threads=threads, **options)
    rng = np.random.default_rng(7)
    adj = split(model, rng.standard_normal((len(FRAMES), model.n_bodies, 13)))
    x = rng.standard_normal(run.trajectory.x.shape)
    arrays = run.vjp(x, 0.1 * x, bodies=adj)
    tangents = {path: rng.standard_normal(v.shape) for path, v in values_of(*scene).items()}
    _, tangent = rollout_jvp(
        model, state, DT, N_STEPS, tangents, frames=FRAMES, threads=threads, **options
    )
    arrays |= {"x": run.trajectory.x, "p": packed(run.trajectory)}
    return arrays | {"tan x": tangent.x, "tan p": packed(tangent)}


def test_two_threads_give_the_bits_of_one(mixed):
    by_one_thread, by_two = everything(mixed, 1), everything(mixed, 2)
    assert len(by_one_thread) > 30
    for path, value in by_one_thread.items():
        np.testing.assert_array_equal(by_two[path], value, err_msg=path)
        assert np.abs(value).max() > 0, path


def test_bodies_beside_a_soft_one_do_not_feel_it(scene, run, mixed, gradient, adj):
    model, state = mixed
    beside = record(model, state, DT, N_STEPS, frames=FRAMES)
    np.testing.assert_array_equal(packed(beside.trajectory), packed(run.trajectory))
    again = beside.vjp(bodies=split(model, adj))
    for path in gradient:
        if path != "gravity":  # summed over nodes and bodies
            np.testing.assert_array_equal(again[path], gradient[path], err_msg=path)
    assert beside.trajectory.x.shape == (len(FRAMES), model.n_nodes, 3)
    for path in ("mass", "state.x", "solid.mu"):
        assert not again[path].any(), path


def test_nodes_beside_bodies_do_not_feel_them(mixed):
    model, state = mixed
    forces = {name: model.forces[name] for name in ("solid", "under")}
    alone = Model(model.mass, forces, model.gravity), State(state.x, state.v)
    x = np.random.default_rng(8).standard_normal((1, model.n_nodes, 3))
    runs = [record(*scene, DT, N_STEPS) for scene in (mixed, alone)]
    np.testing.assert_array_equal(runs[0].trajectory.x, runs[1].trajectory.x)
    ours, theirs = (run.vjp(x, x) for run in runs)
    for path, value in theirs.items():
        np.testing.assert_array_equal(ours[path], value, err_msg=path)
    assert not ours["blocks.density"].any()


def test_float32_follows_float64(mixed):
    exact, single = everything(mixed, 1), everything(mixed, 1, dtype=np.float32)
    assert single["p"].dtype == np.float32
    for path, value in exact.items():
        # 60 steps at eps = 6e-8, amplified by stiff contact.
        atol = 1e-3 * np.abs(value).max()
        np.testing.assert_allclose(single[path], value, rtol=0, atol=atol, err_msg=path)


@pytest.mark.parametrize("turn", [1e-8, 1e-6, 1e-4, 4e-4, 3e-3, 0.1, 1.0])
def test_quaternions_keep_their_length_in_float32(turn):
    # A steady turn about no axis in particular, [rad] in a step: what rounding does to its
    # exponential is the same in every one of 1e5 steps.
    omega = turn / DT * np.array([0.36, 0.48, 0.8])
    ball = RigidBodies(box(), mass=1.0, inertia=[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], center=[0, 0, 0])
    model = Model(bodies={"ball": ball}, gravity=(0.0, 0.0, 0.0))
    state = State(bodies={"ball": BodyState((0.0, 0.0, 0.0), angular_velocity=omega)})
    options = {"frames": range(0, 100_001, 1000)}
    single = rollout(model, state, DT, 100_000, dtype=np.float32, **options).bodies["ball"]
    r = single.orientation[:, 0].astype(float)
    # Each of four numbers is rounded once, and so are the length and its inverse.
    assert np.abs(np.linalg.norm(r, axis=1) - 1.0).max() <= 4 * 6e-8
    exact = rollout(model, state, DT, 100_000, **options).bodies["ball"].orientation[:, 0]
    assert np.abs(np.linalg.norm(exact, axis=1) - 1.0).max() <= 4 * 1.2e-16
    # A step rounds r by 6e-8 and the angle by 6e-8 of itself, at worst all to one side.
    assert np.abs(r - exact).max() <= 100_000 * 6e-8 * (1.0 + turn)


def test_a_new_value_of_every_path_arrives(mixed):
    model, state = mixed
    values = {path: 1.01 * value for path, value in values_of(model, state).items()}
    moved = model.with_values(state, values)
    for path, value in values_of(*moved).items():
        np.testing.assert_array_equal(value, values[path], err_msg=path)
    again = moved[0].with_values(moved[1], values)
    np.testing.assert_array_equal(
        rollout(*again, DT, 3).bodies["blocks"].position,
        rollout(*moved, DT, 3).bodies["blocks"].position,
    )


@pytest.mark.parametrize("mass", [1.0, 1e-3])
def test_a_gram_moves_like_a_kilogram(mass):
    # Everything that has kg in its unit scaled with it: the same motion to rounding.
    block = RigidBodies(box((0.02, 0.03, 0.04)), mass=mass)
    floor = HalfSpaceContact(
        stiffness=1e4 * mass, damping=20 * mass, friction_stiffness=50 * mass, friction=0.5,
        acts_on="block",
    )  # fmt: skip
    model = Model(forces={"floor": floor}, bodies={"block": block})
    start = BodyState([0, 0.03, 0], velocity=[0.5, 0, 0.1], angular_velocity=[3.0, 1.0, -2.0])
    state = State(bodies={"block": start})
    run = record(model, state, 1e-4, 2000)
    end = run.trajectory.bodies["block"]
    assert np.linalg.norm(end.velocity) < 0.5
    values = {"stiffness": 1e4, "damping": 20.0, "friction_stiffness": 50.0}
    heavy = {f"floor.{key}": value for key, value in values.items()} | {"block.mass": 1.0}
    other = rollout(*model.with_values(state, heavy), 1e-4, 2000)
    np.testing.assert_allclose(end.position, other.bodies["block"].position, rtol=0, atol=1e-9)
    gradient = run.vjp(bodies={"block": {"position": np.ones((1, 1, 3))}})
    assert np.isfinite(gradient["block.mass"])
    assert gradient["block.mass"] != 0.0


def test_half_the_estimated_step_is_stable_with_bodies():
    model, state = tumbling(np.random.default_rng(3))
    dt = 0.5 * model.stable_dt()
    assert 1e-4 < dt < 1e-2
    end = rollout(model, state, dt, 4000).bodies
    assert all(np.abs(poses.velocity).max() < 5.0 for poses in end.values())


def test_a_body_that_explodes_is_named():
    model, state = tumbling(np.random.default_rng(3))
    wild = model.with_values(state, {"stone.angular_velocity": np.full((1, 3), 1e155)})
    with pytest.raises(RolloutError, match=r"step \d+ .* first at body 0 of `stone`"):
        rollout(*wild, DT, 5)


def test_a_model_needs_nodes_or_bodies():
    with pytest.raises(ValueError, match=r"`mass` must not be empty.*bodies"):
        Model(())


def body():
    return RigidBodies(box(), mass=1.0)


def test_names_of_forces_and_bodies_differ():
    with pytest.raises(ValueError, match="different names, got 'block' in both"):
        Model(bodies={"block": body()}, forces={"block": HalfSpaceContact(acts_on="block")})
    with pytest.raises(ValueError, match="`bodies` must have names that are identifiers"):
        Model(bodies={"state": body()})
    with pytest.raises(TypeError, match=r"`bodies\['block'\]` must be RigidBodies, got float"):
        Model(bodies={"block": 1.0})


def test_a_force_names_bodies_that_are_there():
    with pytest.raises(
        ValueError, match=r"`floor.acts_on` must name what .* got 'blok'. Did you mean `block`"
    ):
        Model(bodies={"block": body()}, forces={"floor": HalfSpaceContact(acts_on="blok")})
    with pytest.raises(ValueError, match=r"`floor.acts_on` must .* got 'nodes'. Known: block"):
        Model(bodies={"block": body()}, forces={"floor": HalfSpaceContact()})
    with pytest.raises(ValueError, match=r"`floor.contact_nodes` must index the 8 points"):
        Model(
            bodies={"block": body()},
            forces={"floor": HalfSpaceContact(acts_on="block", contact_nodes=[8])},
        )


def test_a_state_has_the_models_bodies(scene):
    model, state = scene
    with pytest.raises(ValueError, match=r"`state.bodies` must have .* blocks, stone, got none"):
        rollout(model, State(), DT, 1)
    with pytest.raises(ValueError, match=r"`state.bodies\['blocks'\]` must have 2 bodies, got 1"):
        rollout(model, State(bodies={**state.bodies, "blocks": BodyState([0, 0, 0])}), DT, 1)
    with pytest.raises(TypeError, match=r"`bodies\['blocks'\]` must be BodyState, got list"):
        State(bodies={"blocks": [0, 0, 0]})


def test_cotangents_of_bodies_are_checked(run):
    with pytest.raises(ValueError, match=r"Unknown set of bodies `block`. Did you mean `blocks`"):
        run.vjp(bodies={"block": {}})
    with pytest.raises(
        ValueError, match=r"Unknown cotangent of .* `positions`. Did you mean `position`"
    ):
        run.vjp(bodies={"blocks": {"positions": 0}})
    with pytest.raises(
        ValueError, match=r"`bodies\['blocks'\].position` must have shape \(3, 2, 3\)"
    ):
        run.vjp(bodies={"blocks": {"position": np.ones((1, 2, 3))}})
    with pytest.raises(ValueError, match=r"must be given, .* got None"):
        run.vjp()
    with pytest.raises(ValueError, match=r"must be given, .* got None"):
        run.vjp(bodies={})
    pendulum = record(SimplePendulum(1.0, 1.0), PendulumState(0.3, 0.0), 0.01, 3)
    with pytest.raises(ValueError, match=r"`bodies` must not be given.* has angle and rate"):
        pendulum.vjp(np.ones(1), bodies={"blocks": {}})


def test_a_gradient_of_some_paths_has_the_same_bits(scene, run, adj, gradient):
    wanted = ["stone.inertia", "floor.friction"]
    some = run.vjp(bodies=split(scene[0], adj), wrt=wanted)
    assert list(some) == wanted
    for path in wanted:
        np.testing.assert_array_equal(some[path], gradient[path])
