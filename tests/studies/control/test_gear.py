"""The gear: where it begins, its goal, the gradient of its weights, and bad settings."""

import numpy as np
import pytest

from studies import config
from studies.control import gear
from studies.control.case import Measured, Supervision
from studies.errors import StudyError
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Options
from studies.registry import RunOptions
from tests.studies.control.toys import settings


def make(*overrides, seed=0, instance=0):
    return gear.make(settings("control-fem", *overrides), RunOptions(seed=seed), instance)


def test_the_gear_is_that_of_the_paper_by_its_counts_and_volume():
    mesh = gear.gear(config.resolve("control-fem").values)
    assert (mesh.n_points, mesh.n_tets) == (480, 1152)
    assert mesh.volumes.sum() == pytest.approx(9.677, abs=1e-3)
    assert mesh.points[:, 1].min() > 0.0


def test_the_goal_is_the_gear_as_it_begins_moved_along_x():
    case = make("target.x=[-3.5, -3.5]")
    np.testing.assert_allclose(case.center, [-3.5, 2.52, 0.0], atol=1e-12)
    problem = case.fit.problem
    still = problem.motion.at(np.ones(1, int))
    run = still.run()
    found = case.measure(still, run)
    # One step of 1.5 m/s is not there yet: the goal is half a metre away.
    assert found["distance"] == pytest.approx(0.5, abs=1e-2)
    assert 0.3 < found["cover"] < 0.95


@pytest.mark.parametrize("kind", [Supervision.PICTURE, Supervision.STATES])
def test_the_gradient_is_that_of_central_differences(kind, rng):
    problem = make().problem(kind)
    theta = problem.parameters.start
    _, gradient = problem.loss_and_gradient(theta)
    along = rng.standard_normal(theta.shape)
    step = 1e-6
    ends = [problem.loss_at(theta + sign * step * along) for sign in (1.0, -1.0)]
    # Differences are good to some 1e-16/1e-6 of a loss of 1e-2, and contact curves.
    assert gradient @ along == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-4)
    assert np.linalg.norm(gradient) > 1e-6


def test_a_few_steps_move_it_towards_the_picture():
    case = make()
    problem = Measured(case.problem(Supervision.PICTURE), case.measure)
    seen = []
    minimize(
        problem,
        case.fit.problem.parameters.start,
        Method.ADAM,
        max_evaluations=8,
        tolerance=1e-6,
        options=Options(learning_rate=0.05, beta1=0.5, beta2=0.9),
        callback=seen.append,
    )
    assert seen[-1].values["distance"] < 0.9 * seen[0].values["distance"]


def test_an_instance_is_a_seed():
    moved = make(seed=0, instance=2).fit.problem, make(seed=2).fit.problem
    np.testing.assert_array_equal(moved[0].targets, moved[1].targets)
    np.testing.assert_array_equal(moved[0].parameters.start, moved[1].parameters.start)
    other = make(seed=1).fit.problem
    assert not np.array_equal(other.targets, moved[0].targets)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("gear.density=0.0", "`gear.density` must be positive"),
        ("gear.viscosity=-1.0", "`gear.viscosity`"),
        ("gear.color=[1.0]", r"`gear.color` must have shape \(3,\)"),
        ("gear.position=[0.0, 2.0, 0.0]", "`gear.position` must be above the floor by more than"),
        ("target.x=[5.0, 0.0]", r"`target.x` must be \[low, high\]"),
        ("policy.scale=0.0", "`policy.scale` must be positive"),
        ("time.frames=2", "`time.frames` must be 1, the last picture, got 2"),
        ("instances=0", "`instances` must be positive"),
        ("supervision=pictures", "name in `supervision`"),
    ],
)
def test_a_bad_setting_is_refused_by_key(override, message):
    with pytest.raises((ValueError, StudyError), match=message):
        gear.prepare(settings("control-fem", override), RunOptions())


def test_many_instances_compare_all_kinds_of_supervision():
    with pytest.raises(StudyError, match="`supervision=random` is for a single instance, got 2"):
        gear.prepare(settings("control-fem", "supervision=random", "instances=2"), RunOptions())
