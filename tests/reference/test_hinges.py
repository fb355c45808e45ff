"""The reference hinges against closed forms and complex-step derivatives."""

import numpy as np
import pytest

from tests.reference import hinges
from tests.reference.test_neo_hookean import complex_gradient


EPS = np.finfo(np.float64).eps
ONE = np.array([[0, 1, 2, 3]])


def folded(phi):
    """x1, x2, x3, x4: two right triangles on an edge along y, bent down by phi about it.

    Their normals point to +z when flat, so bending down makes the upper side convex.
    """
    half = phi / 2
    down, out = -np.sin(half), np.cos(half)
    return np.array([(-out, 0.4, down), (2 * out, 0.7, 2 * down), (0, 0, 0), (0, 1.0, 0)])


@pytest.mark.parametrize("phi", [0.0, 0.3, -0.3, 1.5, 2.0, -2.5, 3.1, -3.1])
def test_the_angle_is_that_of_a_sheet_bent_by_hand(phi):
    x = folded(phi)
    x1, _, x3, x4 = x
    if phi == 0:
        np.testing.assert_array_equal(np.cross(x1 - x3, x1 - x4), [0, 0, 1])
    np.testing.assert_allclose(hinges.angles(x, ONE), [phi], atol=10 * EPS)


def test_the_gradient_of_the_angle_is_its_derivative(rng):
    for phi in (0.0, 0.4, -1.9, 2.9):
        x = folded(phi) + 0.1 * rng.normal(size=(4, 3))
        expected = complex_gradient(lambda x: hinges.angles(x, ONE)[0], x)
        got = hinges.angle_gradient(x, ONE)[0]
        np.testing.assert_allclose(got, expected, atol=500 * EPS)


def test_the_force_is_minus_the_gradient_of_the_energy(rng):
    rest = folded(0.3)
    for phi in (0.1, -2.2):
        x = folded(phi) + 0.1 * rng.normal(size=(4, 3))
        force = hinges.forces(x, 0 * x, rest, ONE, 3.0, 0.3, actuation=0.2)
        gradient = complex_gradient(lambda x: hinges.energy(x, rest, ONE, 3.0, 0.3, 0.2), x)
        np.testing.assert_allclose(force, -gradient, atol=2000 * EPS)
        assert np.abs(force).max() > 0.02


def test_wings_of_a_square_feel_the_moment_worked_by_hand():
    # Wings of length 1 and 2 at right angles to an edge of length 1, flat, phi0 = -pi/3:
    # c0 = 1/(1 + 2), moment = 6/3 sin(pi/6) = 1, and dphi/dx1 = -1/1 along n, dphi/dx2 = -1/2.
    x = folded(0.0)
    force = hinges.forces(x, 0 * x, x, ONE, 6.0, -np.pi / 3)
    np.testing.assert_allclose(force[:2], [(0, 0, 1), (0, 0, 0.5)], atol=10 * EPS)
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=10 * EPS)


def test_damping_resists_the_opening():
    x = folded(0.5)
    v = np.zeros((4, 3))
    v[0] = (0, 0, -1)  # bends further down: phi grows
    force = hinges.forces(x, v, x, ONE, 0.0, 0.0, damping=2.0)
    assert (force * v).sum() < -0.1
