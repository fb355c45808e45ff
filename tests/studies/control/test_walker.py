"""The walker: its mesh, its goal, the gradient of its weights, and bad settings."""

import numpy as np
import pytest

from studies.control import walker
from studies.errors import StudyError
from studies.fit import Fit
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Options
from studies.registry import RunOptions
from tests.studies.control.toys import settings


def fit(*overrides, seed=0):
    job = walker.prepare(settings("control-walker", *overrides), RunOptions(seed=seed))
    assert isinstance(job, Fit)
    return job


def test_the_mesh_is_a_trunk_on_two_legs():
    mesh = walker.walker(0.2)
    assert mesh.points.shape == (76, 3)
    assert mesh.faces.shape == (108, 3)
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    areas = np.cross(b - a, c - a)[:, 2] / 2.0
    np.testing.assert_allclose(areas, 0.02, rtol=1e-12)
    np.testing.assert_allclose(mesh.points.mean(axis=0)[[0, 2]], 0.0, atol=1e-15)
    assert np.unique(mesh.points, axis=0).shape == mesh.points.shape
    assert (mesh.points[:, 1] == 0.0).sum() == 8


def test_at_rest_it_stays_where_it_stands():
    problem = fit("start.size=0.0").problem
    run = problem.trajectory(problem.parameters.start)
    moved = (run.x[-1] - problem.motion.state.x).mean(axis=0)
    assert abs(moved[0]) < 1e-12
    assert -0.05 < moved[1] < 0.0  # it sags under its weight
    assert run.x[..., 2].max() == run.x[..., 2].min() == 0.0


def test_the_goal_is_a_distance_away_and_is_told_so():
    job = fit("start.size=0.0")
    assert job.findings is not None
    cover, away = job.findings(job.problem.parameters.start)
    assert away == "Its centre of mass ends 0.1 m from that of the target."
    assert 0.5 < float(cover.split()[4]) < 0.99


def test_the_gradient_is_that_of_central_differences(rng):
    problem = fit().problem
    theta = problem.parameters.start
    _, gradient = problem.loss_and_gradient(theta)
    along = rng.standard_normal(theta.shape)
    step = 1e-6
    ends = [problem.loss_at(theta + sign * step * along) for sign in (1.0, -1.0)]
    # Differences are good to some 1e-16/1e-6 of a loss of 1e-2.
    assert gradient @ along == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-5)
    assert np.linalg.norm(gradient) > 1e-6


def test_a_few_steps_move_it_towards_the_picture():
    problem = fit().problem
    start = problem.parameters.start
    found = minimize(
        problem,
        start,
        Method.ADAM,
        max_evaluations=8,
        tolerance=1e-6,
        options=Options(learning_rate=0.05, decay=0.8, beta1=0.5, beta2=0.9),
    )
    assert found.loss < 0.9 * problem.loss_at(start)


def test_seeds_draw_other_starts():
    starts = [fit(seed=seed).problem.parameters.start for seed in (0, 1)]
    assert np.std(starts[0]) == pytest.approx(0.005, rel=0.2)
    assert not np.array_equal(starts[0], starts[1])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("walker.cell=0.0", "`walker.cell` must be positive"),
        ("walker.viscosity=-1.0", "`walker.viscosity`"),
        ("walker.color=[1.0]", r"`walker.color` must have shape \(3,\)"),
        ("floor.stiffness=0.0", "`floor.stiffness` must be positive"),
        ("policy.sines=0", "`policy.sines` must be positive"),
        ("start.size=-1.0", "`start.size`"),
        ("random.size=-1.0", "`random.size`"),
        ("time.frames=2", "`time.frames` must be 1, the last picture, got 2"),
        ("optimizer.decay=1.5", r"`optimizer.decay` must be in \(0, 1\], got 1.5"),
        ("optimizer.beta1=1.0", r"`optimizer.beta1` must be in \[0, 1\), got 1"),
        ("optimizer.learning_rate=0.0", "`optimizer.learning_rate` must be positive"),
    ],
)
def test_a_bad_setting_is_refused_by_key(override, message):
    with pytest.raises((ValueError, StudyError), match=message):
        fit(override)
