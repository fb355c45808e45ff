"""The reference contact against the values of its branches, worked by hand."""

import numpy as np
import pytest

from tests.reference import half_space


EPS = np.finfo(np.float64).eps
FLOOR = {
    "normal": (0.0, 2.0, 0.0),  # any length
    "height": 0.5,
    "stiffness": 100.0,
    "damping": 10.0,
    "friction_stiffness": 20.0,
    "friction": 0.5,
}


def contact(x, v, **overrides):
    """Force on one node; it sinks 0.1 deep at y = 0.4."""
    return half_space.forces(np.array([x]), np.array([v]), **{**FLOOR, **overrides})[0]


def test_a_node_above_or_just_at_the_plane_feels_nothing():
    assert not contact((0.0, 0.6, 0.0), (1.0, -9.0, 0.0)).any()
    assert not contact((0.0, 0.5, 0.0), (1.0, -9.0, 0.0)).any()


def test_a_resting_node_is_pushed_along_the_normal_by_the_penetration():
    force = contact((3.0, 0.4, 2.0), (0.0, 0.0, 0.0))
    np.testing.assert_allclose(force, [0, 10.0, 0], rtol=8 * EPS)


def test_damping_acts_on_approach_only():
    np.testing.assert_allclose(contact((0, 0.4, 0), (0, -2.0, 0)), [0, 30.0, 0], rtol=8 * EPS)
    np.testing.assert_allclose(contact((0, 0.4, 0), (0, 2.0, 0)), [0, 10.0, 0], rtol=8 * EPS)


def test_slow_sliding_sticks_and_fast_sliding_lies_on_the_cone():
    # p = 10, the cone is 5; 20 |u_t| reaches it at |u_t| = 0.25.
    np.testing.assert_allclose(contact((0, 0.4, 0), (0.2, 0, 0)), [-4.0, 10.0, 0], rtol=8 * EPS)
    np.testing.assert_allclose(
        contact((0, 0.4, 0), (3.0, 0, 4.0)), [-3.0, 10.0, -4.0], rtol=8 * EPS
    )


def test_damping_widens_the_cone():
    # p = 10 + 10 * 2 = 30, the cone is 15.
    np.testing.assert_allclose(
        contact((0, 0.4, 0), (3.0, -2.0, 4.0)), [-9.0, 30.0, -12.0], rtol=8 * EPS
    )


@pytest.mark.parametrize("speed", [0.1, 1.0, 50.0])
def test_friction_never_leaves_the_cone_nor_pushes_along_the_motion(speed):
    force = contact((0, 0.4, 0), (0.6 * speed, 0.0, -0.8 * speed))
    assert np.hypot(force[0], force[2]) <= 0.5 * force[1] * (1 + 4 * EPS)
    assert 0.6 * force[0] - 0.8 * force[2] < 0


def test_a_radius_raises_the_plane():
    force = contact((0, 0.6, 0), (0, 0, 0), radius=0.2)
    np.testing.assert_allclose(force, [0, 10.0, 0], rtol=16 * EPS)


def test_only_the_named_nodes_touch():
    x, v = np.zeros((3, 3)), np.zeros((3, 3))
    force = half_space.forces(x, v, **FLOOR, nodes=[1])
    assert force[1, 1] > 0
    assert not force[[0, 2]].any()


def test_a_complex_step_in_the_normal_turns_the_force():
    # d/dm of n = m/|m| at m = (0, 2, 0) along x is (1/2, 0, 0); p n with p = 10.
    step = 1e-30
    force = contact((0, 0.4, 0), (0, 0, 0), normal=np.array([1j * step, 2.0, 0.0]))
    np.testing.assert_allclose(force.imag / step, [5.0, 0, 0], atol=16 * EPS)
