"""Least squares without derivatives."""

import numpy as np
import pytest

from studies.optimizers.secants import secant_jacobian, secant_search


WIDE = (np.full(2, -np.inf), np.full(2, np.inf))
TRUTH = np.array([1.0, 2.0])
TIMES = np.linspace(0.0, 1.0, 30)


def smooth(theta):
    return np.exp(-theta[0] * TIMES) * np.sin(4.0 * theta[1] * TIMES)


def jagged(theta):
    """Ramps whose slope is a thousand times that of what they follow, and has the other sign."""
    u = np.floor(theta / 1e-3) * 1e-3
    return smooth(u) - 1e3 * (smooth(u + 1e-3 * (theta - u)) - smooth(u))


def search(model, start, most=400, bounds=WIDE):
    target, spent = smooth(TRUTH), []

    def residuals(points):
        spent.extend(points)
        return [None if x[0] > 2.0 else model(x) - target for x in points]

    result = secant_search(residuals, np.array(start), scale=np.ones(2), bounds=bounds, most=most)
    assert result.evaluations == len(spent)
    return result


def test_a_smooth_problem_is_solved():
    result = search(smooth, (0.7, 1.7))
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-6)
    assert result.loss < 1e-12


def test_a_problem_whose_gradient_is_no_slope_is_solved_to_its_ramps():
    np.testing.assert_allclose(search(jagged, (0.7, 1.7)).theta, TRUTH, atol=5e-3)


def test_bounds_are_kept_and_points_without_residuals_are_passed_over():
    low, high = np.array([1.2, 0.0]), np.array([3.0, 3.0])
    result = search(smooth, (1.95, 2.2), bounds=(low, high))
    assert result.theta[0] == pytest.approx(1.2, abs=1e-6)
    assert search(smooth, (2.5, 2.0)).loss == np.inf


def test_the_number_of_evaluations_is_kept_to_a_round():
    assert search(smooth, (0.7, 1.7), most=20).evaluations <= 20 + 4 + 5


def test_secants_are_the_jacobian_of_a_smooth_problem():
    def residuals(points):
        return [smooth(x) for x in points]

    secants = secant_jacobian(residuals, TRUTH, np.full(2, 1e-4), WIDE)
    assert secants is not None
    r, J = secants
    h = 1e-30j
    exact = np.stack([smooth(TRUTH + h * e).imag / h.imag for e in np.eye(2)], axis=1)
    np.testing.assert_array_equal(r, smooth(TRUTH))
    np.testing.assert_allclose(J, exact, atol=1e-6)
    assert secant_jacobian(lambda points: [None] * len(points), TRUTH, np.ones(2), WIDE) is None
