"""Points of a scan: worlds of one batch have the bits that each has alone."""

from dataclasses import replace

import numpy as np
import pytest

from studies.scans import evaluation
from studies.scans.evaluation import (
    Failure,
    losses_at,
    runs_in_worlds,
    sample_points,
    worlds_at_once,
)
from tests.studies.scans.toy import BEAM, CONTACT, CUBE, grid_of
from tests.studies.toys import TOYS


CASES = {
    "pushed-cube": (CUBE, "mass=0.5:2:3"),
    "beam": (BEAM, "beam.mu=1.1e5:3.1e5:3"),
    "rigid-contact": (CONTACT, "body.mass=1:3:3"),
}


def points_of(study, overrides, over):
    grid = grid_of(study, overrides, over)
    return grid.first, [grid.natural(grid.first, index) for index in grid.order()]


@pytest.mark.parametrize("study", CASES)
def test_worlds_have_the_bits_of_one_at_a_time(study):
    terrain, points = points_of(study, *CASES[study])
    assert runs_in_worlds(terrain)
    together = sample_points(terrain, points)
    for point, sample in zip(points, together, strict=True):
        (alone,) = sample_points(terrain, [point])
        loss, gradient = terrain.problem.loss_and_gradient(point)
        assert np.linalg.norm(gradient) > 0.0
        for other in (alone.loss, loss, losses_at(terrain, [point])[0]):
            assert sample.loss == other
        assert np.array_equal(sample.gradient, alone.gradient)
        assert np.array_equal(sample.gradient, gradient)
        # The loss is the mean of those of the frames, up to the rounding of a mean.
        assert sample.loss == pytest.approx(sample.frame_loss.mean(), rel=1e-14)
    assert losses_at(terrain, points) == [sample.loss for sample in together]


@pytest.mark.parametrize("study", ["beam", "rigid-contact"])
def test_worlds_within_a_budget_have_the_same_bits(study):
    terrain, points = points_of(study, *CASES[study])
    assert worlds_at_once(terrain) > 1
    motion = terrain.problem.motion
    small = replace(motion, checkpoint=f"{8 * len(points) * motion.state_bytes}B")
    assert small.plan().cost.extra_forward_steps > 0
    within = replace(terrain, problem=replace(terrain.problem, motion=small))
    assert worlds_at_once(within) == 1
    pairs = zip(sample_points(terrain, points), sample_points(within, points), strict=True)
    for sample, other in pairs:
        assert other.loss == sample.loss
        np.testing.assert_array_equal(other.gradient, sample.gradient)


def test_the_gradient_is_per_unit_of_the_natural_values():
    terrain, (point, *_) = points_of(*("beam", *CASES["beam"]))
    (sample,) = sample_points(terrain, [point])
    own = terrain.fit.problem
    theta = own.parameters.theta(point)
    loss, gradient = own.loss_and_gradient(theta)
    jacobian = own.parameters.natural_jacobian(theta)
    assert sample.loss == pytest.approx(loss, rel=1e-12)  # exp(log(p)) is p up to rounding
    assert np.allclose(jacobian.T @ sample.gradient, gradient, rtol=1e-9)


def test_a_world_that_diverges_leaves_the_others_their_bits():
    terrain, points = points_of(*("beam", *CASES["beam"]))
    wild = points[1] * np.array([1e9, 1e9])
    first, failed, last = sample_points(terrain, [points[0], wild, points[2]])
    assert isinstance(failed, Failure)
    assert "leaves the finite numbers in step" in failed.reason
    assert "stable below about `time.dt`" in failed.reason
    for sample, point in ((first, points[0]), (last, points[2])):
        (alone,) = sample_points(terrain, [point])
        assert sample.loss == alone.loss
        assert np.array_equal(sample.gradient, alone.gradient)
    assert isinstance(losses_at(terrain, [points[0], wild])[1], Failure)
    assert isinstance(sample_points(terrain, [wild])[0], Failure)


@pytest.mark.parametrize("value", [-1.0, 0.0])
def test_values_that_no_search_could_have_are_failures(value):
    terrain, points = points_of(*("pushed-cube", *CASES["pushed-cube"]))
    bad, good = sample_points(terrain, [np.array([value]), points[0]])
    assert "must be positive" in bad.reason
    assert np.isfinite(good.loss)
    assert sample_points(terrain, [np.array([value])]) == [bad]


def test_lame_values_without_a_stable_rest_state_are_failures():
    terrain, _ = points_of(*("beam", *CASES["beam"]))
    (failed,) = sample_points(terrain, [np.array([1e5, 1e3])])
    assert "stable only for mu > 0 and lam > mu/8" in failed.reason
    assert failed.reason.endswith("Raise lam or lower mu.")
    (failed,) = sample_points(terrain, [np.array([-1e5, 3e5])])
    assert failed.reason.endswith("Raise mu above 0.")


def test_systems_without_worlds_run_one_by_one():
    terrain, points = points_of("pendulum", TOYS["pendulum"].overrides, "length=0.8:1.2:2")
    assert not runs_in_worlds(terrain)
    assert evaluation.worlds_at_once(terrain) == 1
    for point, sample in zip(points, sample_points(terrain, points), strict=True):
        loss, gradient = terrain.problem.loss_and_gradient(point)
        assert sample.loss == loss
        assert np.array_equal(sample.gradient, gradient)
    (failed,) = sample_points(terrain, [-points[0]])
    assert "must be positive" in failed.reason


def test_fewer_worlds_of_larger_motions_run_at_once(monkeypatch):
    terrain, points = points_of(*("beam", *CASES["beam"]))
    assert evaluation.worlds_at_once(terrain) == evaluation.MOST_WORLDS
    motion = terrain.problem.motion
    own = 2 * motion.state.x.size * 8 * (motion.n_steps + 1)
    monkeypatch.setattr(evaluation, "BUDGET", 5 * own)
    assert evaluation.worlds_at_once(terrain) == 5
    monkeypatch.setattr(evaluation, "BUDGET", 1)
    assert evaluation.worlds_at_once(terrain) == 1
    assert np.isfinite(losses_at(terrain, points)).all()
