"""The pieces of gap functions: values by hand, derivatives against differences."""

import numpy as np
import pytest

from adjoint.forces.gap import direction_vjp, relative_velocity_vjp
from adjoint.verify.contract import EPS, flat, vectors
from adjsim.forces.gap import direction, direction_jvp, relative_velocity, relative_velocity_jvp


def test_direction_and_length_of_a_vector():
    n, s = direction((3.0, 0.0, -4.0))
    assert s == 5.0
    np.testing.assert_allclose(n, [0.6, 0.0, -0.8], rtol=2 * EPS)


def test_a_vector_of_no_length_has_no_direction():
    assert direction((0.0, 0.0, 0.0)) == ((0.0, 0.0, 0.0), 0.0)


def test_the_matter_of_a_turning_obstacle_moves_with_v_plus_omega_cross_d():
    u = relative_velocity((5.0, 5.0, 5.0), (1.0, 0.0, 0.0), (1.0, 2.0, 3.0), (0.0, 0.0, 4.0))
    assert u == (4.0, 3.0 - 4.0, 2.0)


def direction_of(z):
    n, s = direction(tuple(z))
    return np.array([*n, s])


def test_derivatives_of_a_direction(rng):
    d, h = rng.standard_normal(3), 1e-6
    n, s = direction(tuple(d))
    J = np.array([[*t, r] for t, r in (direction_jvp(n, s, tuple(e)) for e in np.eye(3))]).T
    steps = h * np.eye(3)
    differences = [(direction_of(d + e) - direction_of(d - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(np.array(differences).T, J, rtol=0, atol=1e-9)
    rows = [direction_vjp(n, s, tuple(e[:3]), e[3]) for e in np.eye(4)]
    np.testing.assert_allclose(rows, J, rtol=0, atol=10 * EPS)


@pytest.mark.parametrize("k", range(12))
def test_derivatives_of_the_relative_velocity(rng, k):
    # It is bilinear: a central difference is exact but for rounding.
    z, e = rng.standard_normal(12), np.eye(12)[k]
    v, d, V, Omega = vectors(z.reshape(4, 3))
    tan = relative_velocity_jvp(d, Omega, *(vectors(e.reshape(4, 3))))
    ahead, behind = (
        np.array(relative_velocity(*vectors((z + s * e).reshape(4, 3)))) for s in (0.5, -0.5)
    )
    np.testing.assert_allclose(tan, ahead - behind, rtol=0, atol=20 * EPS)
    adj = tuple(rng.standard_normal(3))
    back = flat(relative_velocity_vjp(d, Omega, adj))
    assert back[k] == pytest.approx(np.dot(adj, tan), abs=20 * EPS)
    del v, V
