"""The reference lift and drag against closed forms."""

import numpy as np
from scipy.spatial.transform import Rotation

from tests.reference import lift_drag


TRIANGLES = np.array([[0, 1, 2]])
X = np.array([[0.0, 0, 0], [2, 0, 0], [0, 3, 0]])  # n = z, A = 3


def test_lift_and_drag_of_one_triangle_worked_out_by_hand():
    # v_r = (3, 0, -4): n.v_r = -4, s = 5. f_drag = -2 3 4 v_r, f_lift = +0.5 3 5 4 z.
    v = np.array([[4.0, 0, -4], [4, 0, -5], [4, 0, -3]])
    f = lift_drag.forces(X, v, TRIANGLES, 0.5, 2.0, np.array([1.0, 0, 0]))
    expected = (-24 * np.array([3.0, 0, -4]) + 30 * np.array([0.0, 0, 1])) / 3
    np.testing.assert_allclose(f, [expected] * 3, rtol=1e-12)


def test_they_turn_with_the_scene(rng):
    v, wind = rng.normal(size=(3, 3)), rng.normal(size=3)
    Q = Rotation.random(rng=rng).as_matrix()
    f = lift_drag.forces(X, v, TRIANGLES, 0.5, 2.0, wind)
    turned = lift_drag.forces(X @ Q.T, v @ Q.T, TRIANGLES, 0.5, 2.0, Q @ wind)
    np.testing.assert_allclose(turned, f @ Q.T, atol=1e-13)


def test_only_the_velocity_relative_to_the_wind_counts(rng):
    v, wind = rng.normal(size=(3, 3)), rng.normal(size=3)
    f = lift_drag.forces(X, v, TRIANGLES, 0.5, 2.0, wind)
    still = lift_drag.forces(X, v - wind, TRIANGLES, 0.5, 2.0, np.zeros(3))
    np.testing.assert_allclose(still, f, atol=1e-13)
