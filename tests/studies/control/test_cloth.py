"""The thrown cloth: its mesh, its goal, the gradient of its velocity, and bad settings."""

import numpy as np
import pytest

from studies.control import cloth
from studies.control.case import Measured, Supervision
from studies.errors import StudyError
from studies.optimizers.minimize import minimize
from studies.registry import RunOptions
from tests.studies.control.toys import settings


def make(*overrides, seed=0, instance=0):
    return cloth.make(settings("control-cloth", *overrides), RunOptions(seed=seed), instance)


def hidden(case):
    """The velocity behind the target."""
    return np.asarray(case.fit.truth.values["velocity"])


def test_the_cloth_is_a_square_of_cells_that_lies_across_the_view(rng):
    table = settings("control-cloth", "cloth.cells=[4, 4]", "corner.y=[2.0, 2.0]")
    mesh = cloth.thrown(table, rng)
    assert (len(mesh.points), len(mesh.faces)) == (25, 32)
    np.testing.assert_allclose(mesh.points[0], [-5.0, 2.0, 0.0], atol=1e-12)
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 0.125**2, rtol=1e-12)
    # A quarter turn about (2, 1, 0) takes z to (1, -2, 0), and the other side up.
    expected = np.broadcast_to(np.array([-1.0, 2.0, 0.0]) / np.sqrt(5.0), normals.shape)
    np.testing.assert_allclose(normals / 0.125**2, expected, atol=1e-12)


def test_without_forces_all_of_it_flies_with_the_velocity_sought():
    case = make("air.lift=0.0", "air.drag=0.0")
    problem = case.fit.problem
    velocity = np.array([2.0, -1.0, 0.5])
    run = problem.trajectory(velocity)
    begin = problem.motion.state.x
    # Semi-implicit Euler falls by g dt^2 (n + 1) n/2.
    fall = 9.8 * 1e-3**2 * 500 * 501 / 2
    expected = begin + 0.5 * velocity - [0.0, fall, 0.0]
    np.testing.assert_allclose(run.x[-1], expected, rtol=1e-12)


def test_the_hidden_velocity_gets_to_the_goal_and_shows_its_picture():
    case = make()
    truth = hidden(case)
    problem = case.fit.problem
    motion = problem.motion_at(truth)
    found = case.measure(motion, motion.run())
    assert found["distance"] == pytest.approx(0.0, abs=1e-12)
    assert found["cover"] == 1.0
    assert problem.loss_at(truth) == 0.0
    assert case.fit.errors(problem.parameters.start)["velocity"]["mean"] > 0.1


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("kind", [Supervision.PICTURE, Supervision.STATES])
def test_the_gradient_is_that_of_central_differences(kind, frames, rng):
    problem = make(f"time.frames={frames}").problem(kind)
    theta = problem.parameters.start
    value, gradient = problem.loss_and_gradient(theta)
    along = rng.standard_normal(theta.shape)
    step = 1e-5
    ends = [problem.loss_at(theta + sign * step * along) for sign in (1.0, -1.0)]
    # Rounding is some 1e-11 of the loss; a pixel that another face takes moves the slope by 1e-6.
    difference = (ends[0] - ends[1]) / (2.0 * step)
    assert gradient @ along == pytest.approx(difference, rel=1e-5, abs=1e-9 * value)
    assert np.linalg.norm(gradient) > 1e-6


def test_every_frame_is_held_against_the_one_picture():
    problem = make("time.frames=4").fit.problem
    assert problem.targets.shape == (4, 24, 32, 4)
    np.testing.assert_array_equal(problem.targets, problem.targets[-1:].repeat(4, axis=0))
    single = make().fit.problem.targets
    np.testing.assert_array_equal(problem.targets[-1], single[0])


def test_the_search_finds_the_throw_without_overlap_at_first():
    case = make()
    problem = Measured(case.problem(Supervision.PICTURE), case.measure)
    start, seen = case.fit.problem.parameters.start, []
    how = case.fit.search
    minimize(problem, start, how.method, max_evaluations=30, tolerance=1e-6, callback=seen.append)
    assert seen[0].values["cover"] < 0.05
    assert seen[0].values["distance"] > 0.5
    assert seen[-1].values["distance"] < 1e-3


def test_an_instance_is_a_seed():
    moved = make(seed=0, instance=2), make(seed=2)
    np.testing.assert_array_equal(moved[0].fit.problem.targets, moved[1].fit.problem.targets)
    assert not np.array_equal(hidden(make(seed=1)), hidden(moved[0]))


def test_throws_at_random_are_drawn_from_where_the_hidden_one_is(rng):
    thrown = np.array([make().drawn(rng) for _ in range(20)])
    assert (thrown >= [2.5, 0.5, -0.5]).all()
    assert (thrown <= [3.5, 2.5, 0.5]).all()
    assert (np.ptp(thrown, axis=0) > 0.4).all()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "cloth.cells=[0, 4]",
            r"`cloth.cells` must be \[low, high\], both at least 1, got \[0, 4\]",
        ),
        ("cloth.cells=[5, 4]", r"`cloth.cells` must be \[low, high\]"),
        ("cloth.axis=[0.0, 0.0, 0.0]", "`cloth.axis` must not be 0"),
        ("cloth.mass=0.0", "`cloth.mass` must be positive"),
        ("cloth.bending=-1.0", "`cloth.bending`"),
        ("cloth.color=[1.0]", r"`cloth.color` must have shape \(3,\)"),
        ("air.drag=-1.0", "`air.drag`"),
        ("hidden.x=[3.0, 2.0]", r"`hidden.x` must be \[low, high\]"),
        ("bounds.velocity=[-1.0, 2.0]", "hidden `velocity` must lie inside its bounds"),
        ("start.x=[30.0, 30.0]", "start of `velocity` must lie inside its bounds"),
        ("loss.growth=0.0", "`loss.growth` must be positive"),
        ("time.frames=0", "`time.frames` must be positive"),
        ("supervision=pictures", "name in `supervision`"),
    ],
)
def test_a_bad_setting_is_refused_by_key(override, message):
    with pytest.raises((ValueError, StudyError), match=message):
        cloth.prepare(settings("control-cloth", override), RunOptions())
