"""The losses about an answer, tried against what its Jacobian promises."""

import numpy as np
import pytest

from studies.answer.trial import ORDERS, SIZES, try_answer


J = np.array([[3.0, 1.0], [0.0, 0.5], [1.0, -2.0]])
WIDE = (np.full(2, -np.inf), np.full(2, np.inf))
SCALE = np.ones(2)


def trial(
    residual,
    half_width=(0.01, 0.02),
    components=(0, 1),
    bounds=WIDE,
    information=J.T @ J,
    scale=SCALE,
):
    points_tried = []

    def residuals(points):
        points_tried.extend(points)
        return [residual(x) for x in points]

    outcome = try_answer(
        residuals, np.zeros(2), information, np.array(half_width),
        scale=np.array(scale), components=components, bounds=bounds,
    )  # fmt: skip
    assert outcome is not None
    assert outcome.evaluations == len(points_tried)
    return outcome, np.array(points_tried)


def bowl(x, at=(0.0, 0.0)):
    return np.append(J @ (x - at), 0.03)


def test_a_loss_that_is_as_promised_leaves_the_interval_as_it_is():
    outcome, points_tried = trial(bowl)
    assert outcome.worst == pytest.approx(1.0, abs=1e-9)
    assert not outcome.is_rough
    assert not outcome.covariance(2.0).any()
    assert np.abs(points_tried).max() == pytest.approx(SIZES[-1])


def test_a_camera_that_stays_at_0_does_not_keep_the_answers_from_being_tried():
    outcome, _ = trial(bowl, components=(0,), scale=(1.0, 0.0))
    assert len(outcome.ends) == 1


def test_a_jacobian_that_is_far_larger_than_the_slope_is_noticed_in_every_direction():
    outcome, _ = trial(bowl, (1e-6, 2e-6), information=1e8 * J.T @ J)
    np.testing.assert_allclose(outcome.widening, 1e4, rtol=1e-6)
    assert outcome.is_rough


def test_an_interval_is_widened_to_where_the_loss_rises_as_promised():
    outcome, _ = trial(bowl, components=(0,), information=16.0 * J.T @ J)
    assert not outcome.is_rough
    assert 1.0 < outcome.worst <= ORDERS
    half = 2.0 * np.sqrt(outcome.covariance(2.0)[0, 0] + (0.01 / 2.0) ** 2)
    assert half == pytest.approx(4.0 * 0.01)


def test_a_lower_loss_beside_the_answer_is_seen_between_all_jumps():
    # The optimum is 2 % away; the Jacobian is that of ramps of a width of 1e-7.
    at = np.array([0.02, 0.0])

    def ramps(x):
        return bowl(x, at) + 1e-6 * np.modf(1e7 * x[0])[0]

    outcome, _ = trial(ramps, (1e-8, 1e-8), information=1e14 * J.T @ J)
    assert outcome.is_rough
    assert outcome.lower is not None
    assert np.linalg.norm(bowl(outcome.lower, at)) < np.linalg.norm(bowl(np.zeros(2), at))
    assert 0.0 < outcome.gain <= 1.0


def test_a_jacobian_that_is_no_slope_is_noticed_where_large_residuals_hide_it():
    # What the answer leaves is a thousand times what moves the optimum, and so is the interval.
    outcome, _ = trial(
        lambda x: np.append(bowl(x), 30.0 + x[0]), (0.05, 0.05), information=1e6 * J.T @ J
    )
    assert outcome.worst > 500.0


def test_points_beyond_the_bounds_are_not_tried():
    bounds = np.array([0.0, -1.0]), np.array([1.0, 1.0])
    outcome, points_tried = trial(bowl, bounds=bounds)
    assert (points_tried >= bounds[0]).all()
    assert outcome.worst == pytest.approx(1.0, abs=1e-9)


def test_points_where_the_simulation_blows_up_are_passed_over():
    outcome, _ = trial(lambda x: None if x[0] > 1e-3 else bowl(x))
    assert outcome.worst == pytest.approx(1.0, abs=1e-9)


def test_without_a_direction_that_is_determined_nothing_is_tried():
    for information in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        assert (
            try_answer(
                lambda points: [bowl(x) for x in points], np.zeros(2), information, np.ones(2),
                scale=SCALE, components=(0,), bounds=WIDE,
            )
            is None
        )  # fmt: skip
