"""REINFORCE: its estimate by hand, its draws, and what it does where a rollout blows up."""

import numpy as np
import pytest

from studies import config, running
from studies.optimizers.problem import NotFiniteError
from studies.paper.tables.reinforce import REINFORCE, score_gradient, value_of
from studies.paper.tables.table import Case
from studies.paper.tables.tasks import find_table
from studies.registry import RunOptions
from tests.studies.paper.tables.toy import TABLE1


def make_case(*overrides):
    settings = config.resolve("table1", (*TABLE1, *overrides)).values
    return Case(settings, find_table("table1").scene("mass"), RunOptions(), 0)


def test_the_estimate_by_hand():
    drawn = np.array([[1.0, 0.5], [-1.0, 0.5]])
    # advantages 1 and -1, so g = ((1, .5) - (-1, .5)) / (2 sigma)
    found = score_gradient(np.array([3.0, 1.0]), drawn, 0.25)
    np.testing.assert_allclose(found, [4.0, 0.0], rtol=1e-15)
    assert not score_gradient(np.array([2.0, 2.0]), drawn, 0.25).any()


def test_its_mean_points_along_the_gradient(rng):
    slope = np.array([0.3, -0.7, 0.1])
    found = [
        score_gradient(drawn @ slope, drawn, 0.05) for drawn in rng.standard_normal((4000, 5, 3))
    ]
    mean = np.mean(found, axis=0)
    cosine = mean @ slope / np.linalg.norm(mean) / np.linalg.norm(slope)
    assert cosine > 0.999  # 4000 estimates of 3 components: each off by a few hundredths


def test_a_rollout_that_blew_up_is_the_worst_of_its_step():
    drawn = np.array([[1.0], [-1.0], [0.5]])
    with_nan = score_gradient(np.array([2.0, np.nan, 1.0]), drawn, 0.1)
    assert np.array_equal(with_nan, score_gradient(np.array([2.0, 1.0, 1.0]), drawn, 0.1))
    with pytest.raises(NotFiniteError, match="No rollout of a step"):
        score_gradient(np.array([np.nan, np.nan]), drawn[:2], 0.1)


def test_the_return_is_the_discounted_loss_of_the_frames():
    problem = make_case().problem
    theta = problem.parameters.start
    pairs = zip(problem.images(theta), problem.targets, strict=True)
    losses = [problem.loss(image[None], target[None]) for image, target in pairs]
    assert value_of(problem, theta, 1.0) == pytest.approx(-sum(losses), rel=1e-14)
    expected = -(losses[0] + 0.5 * losses[1] + 0.25 * losses[2])
    assert value_of(problem, theta, 0.5) == pytest.approx(expected, rel=1e-14)


def test_it_comes_nearer_the_same_way_each_time():
    case = make_case("reinforce.rate=2e-3", "reinforce.steps=60")
    first, again = (REINFORCE.estimate(case).theta for _ in range(2))
    assert np.array_equal(first, again)
    ended, began = (
        case.fit.errors(theta)["body.mass"]["mean"]
        for theta in (first, case.problem.parameters.start)
    )
    assert ended < 0.3 * began
    assert ended > 1e-6  # it walks at random about the optimum


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("reinforce.samples=1", "`reinforce.samples` must be a whole number of at least 2"),
        ("reinforce.steps=0", "`reinforce.steps` must be positive"),
        ("reinforce.deviation=0.0", "`reinforce.deviation` must be positive"),
        ("reinforce.rate=-1.0", "`reinforce.rate` must be positive"),
        ("reinforce.decay=1.5", r"`reinforce.decay` must be in \(0, 1\], got 1.5"),
    ],
)
def test_a_bad_setting_is_named(override, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        running.start("table1", (*TABLE1, override), tmp_path / "run", {})
