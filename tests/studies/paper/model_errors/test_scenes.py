"""One body, several models: what they share, and what each of them has otherwise."""

import numpy as np
import pytest

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rigid.pose import BodyTrajectory
from adjsim.rollout import rollout
from studies import config
from studies.paper.model_errors import scenes, soft
from studies.paper.model_errors.scenes import PHOTOGRAPHERS, Kind
from studies.registry import RunOptions
from tests.studies.toys import TOYS


def make(kind, *overrides, k=0):
    """Return a toy case."""
    settings = config.resolve("model-error", [*TOYS["model-error"].overrides, *overrides]).values
    return scenes.make_case(settings, RunOptions(), kind, k)


def test_a_perfect_model_shows_the_video_at_the_truth():
    for kind in (Kind.PERFECT, Kind.PERFECT_DEFORMABLE):
        case = make(kind)
        truth = np.log([case.body.mass])
        assert case.problem.loss_at(truth) <= 1e-28  # rounding of log and exp
        assert case.problem.loss_at(case.problem.parameters.start) > 1e-6


def test_kinds_of_a_rigid_body_are_one_scene_that_differs_in_the_contact_alone():
    perfect = make(Kind.PERFECT)
    for kind, key, value in (
        (Kind.NO_FRICTION, "friction", 0.0),
        (Kind.NO_ELASTICITY, "damping", 150.0),
    ):
        case = make(kind)
        assert np.array_equal(case.problem.targets, perfect.problem.targets)
        ours, theirs = (one.problem.motion.system.parameters() for one in (case, perfect))
        assert ours[f"floor.{key}"] == value != theirs[f"floor.{key}"]
        others = [path for path in ours if path != f"floor.{key}"]
        assert all(np.array_equal(ours[path], theirs[path]) for path in others)
        assert case.problem.loss_at(np.log([case.body.mass])) > 1e-6
        assert case.own.loss_at(np.log([case.body.mass])) <= 1e-28


def test_the_soft_body_is_the_rigid_one_at_first():
    body = make(Kind.RIGID_AS_DEFORMABLE, "thrown.spin=[2.0, 2.0]").body
    rigid, model = body.motion, body.motion.system
    moved = soft.soften(rigid, body.tets, {"mu": 100.0, "lam": 100.0, "viscosity": 2.0})
    shares = soft.node_shares(body.tets)
    nodes = body.tets.surface().nodes
    start = rigid.state.bodies["body"]
    at_first = BodyTrajectory.unpack(start.pack()[None])
    hull = scenes.vertices(model.bodies["body"], at_first)[0]
    np.testing.assert_allclose(moved.state.x[nodes], hull, atol=1e-13)
    # the centre of lumped masses is that of the volume but for the mesh
    m = body.mass * shares
    assert m.sum() == pytest.approx(body.mass, rel=1e-14)
    np.testing.assert_allclose(moved.system.mass, m, rtol=1e-14)
    at = m @ moved.state.x / m.sum()
    np.testing.assert_allclose(at, start.position[0], atol=0.05)
    spin = start.velocity[0] + np.cross(
        soft.Rotation.from_quat(start.rotation[0].copy()).apply(start.angular_velocity[0].copy()),
        at - start.position[0],
    )
    np.testing.assert_allclose(m @ moved.state.v / m.sum(), spin, atol=1e-13)
    push = moved.system.forces["push"]
    np.testing.assert_allclose(push.force.sum(axis=0), model.forces["push"].force, rtol=1e-14)
    assert push.window == model.forces["push"].window
    for key in ("stiffness", "damping", "friction_stiffness", "friction"):
        assert getattr(moved.system.forces["floor"], key) == getattr(model.forces["floor"], key)


@pytest.mark.parametrize("name", soft.SHAPES)
def test_soft_shapes_reach_as_far_as_they_say(name):
    mesh = soft.soft_shape(name, 0.7)
    assert np.linalg.norm(mesh.points, axis=1).max() == pytest.approx(0.7, rel=1e-14)
    surface = soft.skin(mesh)
    surface.require_closed()
    np.testing.assert_allclose(surface.centroid, 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", [Kind.RIGID_AS_DEFORMABLE, Kind.NO_ELASTICITY])
def test_the_gradient_of_a_wrong_model_is_that_of_its_loss(kind):
    problem = make(kind).problem
    theta, h = problem.parameters.start, 1e-5
    slope = (problem.loss_at(theta + h) - problem.loss_at(theta - h)) / (2.0 * h)
    # central differences: h^2 times a third derivative of order 1 of the loss
    assert problem.loss_and_gradient(theta)[1][0] == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("ratio", [3.0, 6.0])
def test_a_damped_contact_gives_back_what_the_module_says(ratio):
    m, k_e, speed, dt = 2.0, 300.0, 1.5, 1e-5
    k_d = 2.0 * ratio * np.sqrt(k_e * m)
    floor = HalfSpaceContact(stiffness=k_e, damping=k_d)
    state = State(np.array([[0.0, 1e-9, 0.0]]), np.array([[0.0, -speed, 0.0]]))
    steps = 60_000
    run = rollout(
        Model([m], {"floor": floor}, gravity=(0.0, 0.0, 0.0)), state, dt, steps, frames=[steps]
    )
    assert run.x[0, 0, 1] > 0.0
    back = run.v[0, 0, 1] / speed
    # On the way in c'' + 2 z w c' + w^2 c = 0; the deepest point, times w, is the speed of return.
    root = np.sqrt(ratio**2 - 1.0)
    t = np.log((ratio + root) / (ratio - root)) / (2.0 * root)
    deepest = (np.exp(-(ratio - root) * t) - np.exp(-(ratio + root) * t)) / (2.0 * root)
    assert back == pytest.approx(deepest, rel=1e-3)
    assert back == pytest.approx(1.0 / (2.0 * ratio), rel=0.1)


def test_next_to_nothing_bounces_without_elasticity():
    """The body leaves the floor slower than in the video, in which it bounces."""
    still = ("push.force=[1e-9, 0.0, 0.0]", "thrown.spin=[0.0, 0.0]", "hidden.friction=[0.2, 0.2]")
    case = make(
        Kind.NO_ELASTICITY, *still, "time.steps=400", "time.frames=40", "body.stretch=[1, 1]"
    )
    up = []
    for problem in (case.own, case.problem):
        run = problem.trajectory(np.log([case.body.mass]))
        up.append(run.bodies["body"].velocity[:, 0, 1].max())
    assert up[0] > 0.5
    assert up[1] < 0.35 * up[0]


@pytest.mark.parametrize("kind", list(PHOTOGRAPHERS))
def test_a_photorealistic_video_shows_the_same_body_at_the_same_place(kind):
    if problem := PHOTOGRAPHERS[kind].missing():
        pytest.skip(problem)
    size = ("image.height=40", "image.width=56", "photo.samples=64")
    case = make(kind, *size)
    problem, own = case.problem, case.own
    assert problem.targets.shape == own.targets.shape
    empty = problem.filming.rasterizer.background
    covered = own.images(np.log([case.body.mass]))[..., 3] > 0.5
    # where it is redder than the empty scene is the body: its shadow is grey
    red = problem.targets[..., 0] - problem.targets[..., 2] - (empty[..., 0] - empty[..., 2])
    changed = red > 0.1
    both, any_of = (covered & changed).sum(), (covered | changed).sum()
    assert both > 0.8 * any_of
    assert np.abs(problem.targets - own.targets).max() > 0.1
    assert np.isfinite(problem.loss_and_gradient(problem.parameters.start)[1]).all()
    again = make(kind, *size).problem.targets
    assert np.array_equal(again, problem.targets)
