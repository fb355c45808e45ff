"""Contact with a sphere: closed forms, inside and outside, kinks, the contract."""

import numpy as np
import pytest

from adjoint.verify.contract import EPS
from adjsim.forces.sphere import SphereContact
from tests.forces.contacts import ObstacleContract, force_on, gap_of, jacobians, law_of_each


BALL = {"center": (1.0, 2.0, 3.0), "sphere_radius": 0.5, "stiffness": 100.0, "damping": 5.0,
        "friction_stiffness": 4.0, "friction": 0.5}  # fmt: skip


class TestSphereContact(ObstacleContract):
    def make(self, rng):
        return SphereContact(
            center=(0.1, -0.05, 0.08), sphere_radius=0.5, velocity=(0.1, 0.2, -0.1),
            angular_velocity=(0.3, -0.2, 0.4), **law_of_each(rng),
        )  # fmt: skip


def test_depth_and_normal_worked_out_by_hand():
    # 0.4 above the centre: 0.1 deep, pushed up, falling at 2: p = 10 + 10; slips at 5.
    x, v = (1.0, 2.4, 3.0), (3.0, -2.0, 4.0)
    np.testing.assert_allclose(force_on(SphereContact(**BALL), x, v), [-6, 20, -8], rtol=50 * EPS)
    n, c, _ = gap_of(SphereContact(**BALL, radius=0.2), (1.0 + 0.36, 2.0 + 0.48, 3.0))
    np.testing.assert_allclose(n, [0.6, 0.8, 0.0], rtol=0, atol=10 * EPS)
    assert c == pytest.approx(0.1, abs=10 * EPS)


def test_the_matter_of_a_spinning_sphere_drags_the_node_along():
    # Omega x d = (0, 0, 2) x (0, 0.4, 0) = (-0.8, 0, 0): u_t = 0.8 along x, and it sticks.
    f = force_on(SphereContact(**BALL, angular_velocity=(0.0, 0.0, 2.0)), (1.0, 2.4, 3.0))
    np.testing.assert_allclose(f, [-3.2, 10.0, 0.0], rtol=0, atol=200 * EPS)
    carried = SphereContact(**BALL, angular_velocity=(0, 0, 2.0), velocity=(0.8, 0, 0))
    np.testing.assert_allclose(force_on(carried, (1.0, 2.4, 3.0)), [0, 10, 0], atol=200 * EPS)


REGIONS = {"inside": (1.1, 2.3, 2.9), "outside, by the node's radius": (1.3, 2.4, 2.8)}


@pytest.mark.parametrize("x", REGIONS.values(), ids=REGIONS)
@pytest.mark.parametrize("v", [(0.2, -0.3, 0.1), (2.0, -3.0, 1.0), (0.9, 2.0, -2.0)])
def test_jacobians_inside_and_outside(x, v):
    turning = SphereContact(**BALL, radius=0.1, angular_velocity=(0.3, 0.5, -0.2))
    tangent, adjoint, differences = jacobians(turning, x, v)
    size = np.abs(tangent).max()
    assert size > 10.0
    np.testing.assert_allclose(adjoint, tangent, rtol=0, atol=50 * EPS * size)
    np.testing.assert_allclose(differences, tangent, rtol=0, atol=1e-8 * size)


def test_kink_at_touch_counts_as_apart():
    ball, v = SphereContact(**BALL), (0.3, -2.0, 0.1)
    assert not force_on(ball, (1.0, 2.5, 3.0), v).any()
    for jacobian in jacobians(ball, (1.0, 2.5, 3.0), v)[:2]:
        assert not jacobian.any()
    assert force_on(ball, (1.0, 2.5 - 1e-9, 3.0), v)[1] == pytest.approx(5.0 * 2.0, rel=1e-6)


def test_at_the_very_centre_there_is_no_direction_and_no_force():
    ball, v = SphereContact(**BALL), (0.3, -2.0, 0.1)
    assert not force_on(ball, BALL["center"], v).any()
    for jacobian in jacobians(ball, BALL["center"], v)[:2]:
        assert not jacobian.any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sphere_radius": 0.0}, "`sphere_radius` must be positive, got 0"),
        ({"sphere_radius": [1.0]}, r"`sphere_radius` must have shape \(\), got \(1,\)"),
        ({"center": (0, 1)}, r"`center` must have shape \(n_steps, 3\), or one of \(3,\)"),
        ({"angular_velocity": 1.0}, r"`angular_velocity` must have shape .* got \(\)"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        SphereContact(**given)
