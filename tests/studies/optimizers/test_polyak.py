"""Polyak's step, its limits, and the memory of L-BFGS."""

import numpy as np
import pytest

from studies.optimizers.minimize import minimize, two_loops
from studies.optimizers.problem import Status
from studies.scene.declared import Search
from tests.studies.toy import Decay


START = np.zeros(3)


def how(budget, tolerance, rate, **settings):
    return Search(method="polyak", max_evaluations=budget, tolerance=tolerance,
                  learning_rate=rate, **settings)  # fmt: skip


def steps(rate, **settings):
    """Return the evaluations of a search."""
    seen = []
    minimize(Decay(), START, how(12, 1e-12, rate, **settings), callback=seen.append)
    return seen


def polyaks(evaluation):
    """Polyak's step from an evaluation, and its length."""
    step = -evaluation.loss / (evaluation.gradient @ evaluation.gradient) * evaluation.gradient
    return step, np.sqrt(np.mean(step**2))


def test_the_first_step_is_polyaks():
    expected, length = polyaks(steps(1.0)[0])
    first, second = steps(2.0 * length)[:2]
    np.testing.assert_allclose(second.theta - first.theta, expected, rtol=1e-14)


def test_far_from_the_goal_a_step_is_no_shorter_than_a_part_of_the_rate():
    expected, length = polyaks(steps(1.0)[0])
    first, second = steps(10.0 * length)[:2]
    np.testing.assert_allclose(second.theta - first.theta, 2.0 * expected, rtol=1e-12)


class Spike(Decay):
    """A loss that does not fall, however steep it says it is."""

    def loss_and_gradient(self, theta):
        return 1.0, np.array([10.0, 0.0, 0.0])


def test_a_step_that_changes_nothing_is_followed_by_a_longer_one():
    seen = []
    minimize(Spike(), START, how(4, 1e-12, 0.45 / np.sqrt(3.0)), callback=seen.append)
    moves = -np.diff([evaluation.theta[0] for evaluation in seen])
    np.testing.assert_allclose(moves, [0.1, 0.4, 0.45], rtol=1e-12)


def test_no_step_is_longer_than_the_rate():
    moves = np.diff([evaluation.theta for evaluation in steps(1e-3)], axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean(moves**2, axis=1)), 1e-3, rtol=1e-9)


def test_the_two_loops_are_the_dense_update_of_bfgs(rng):
    root = rng.standard_normal((5, 5))
    hessian = root @ root.T + np.eye(5)
    pairs = [(s, hessian @ s) for s in rng.standard_normal((3, 5))]
    dense = 0.3 * np.eye(5)
    for s, y in pairs:  # Nocedal & Wright, Numerical Optimization, eq. 6.17
        left = np.eye(5) - np.outer(s, y) / (s @ y)
        dense = left @ dense @ left.T + np.outer(s, s) / (s @ y)
    g = rng.standard_normal(5)
    np.testing.assert_allclose(two_loops(g, pairs, 0.3), dense @ g, rtol=1e-10)
    np.testing.assert_allclose(two_loops(g, [], 0.3), 0.3 * g)


def test_it_converges_in_tens_of_evaluations():
    assert minimize(Decay(), START, how(60, 1e-6, 1.0)).status is Status.CONVERGED


@pytest.mark.parametrize("wall", [-1.0, 0.3])
def test_a_blow_up_ends_it(wall):
    assert minimize(Decay(wall=wall), START, how(50, 1e-8, 1.0)).status is Status.NOT_FINITE
