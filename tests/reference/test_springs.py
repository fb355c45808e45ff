"""The reference springs against closed forms and complex-step derivatives."""

import numpy as np

from tests.reference import springs
from tests.reference.test_neo_hookean import complex_gradient


EPS = np.finfo(np.float64).eps
EDGES = np.array([[0, 1], [1, 2], [3, 1], [0, 3]])
X = np.array([(0.0, 0.0, 0.0), (1.0, 0.1, 0.0), (0.1, 1.2, 0.0), (0.0, 0.1, 0.9)])
K, L0 = np.array([3.0, 5.0, 2.0, 4.0]), np.array([0.8, 1.3, 1.1, 0.7])


def test_the_force_is_minus_the_gradient_of_the_energy():
    force = springs.forces(X, 0 * X, EDGES, K, L0)
    gradient = complex_gradient(lambda x: springs.energy(x, EDGES, K, L0), X)
    np.testing.assert_allclose(force, -gradient, atol=100 * EPS)
    assert np.abs(force).max() > 0.1


def test_a_stretched_and_stretching_spring_pulls_with_the_force_worked_by_hand():
    x = np.array([(0.0, 0, 0), (3.0, 4.0, 0)])  # l = 5, d from node 1 to node 0 = (-3, -4)/5
    v = np.array([(0.0, 0, 0), (5.0, 0, 9.0)])  # it lengthens by 3 m/s
    force = springs.forces(x, v, EDGES[:1], 2.0, 1.0, damping=4.0)
    # (2 (5 - 1) + 4 3) = 20 towards each other
    np.testing.assert_allclose(force, [(12.0, 16, 0), (-12, -16, 0)], atol=50 * EPS)
