"""Contact with a capsule: closed forms, side and caps, kinks, the contract."""

import numpy as np
import pytest

from adjoint.verify.contract import EPS
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.contact_law import SIZE
from tests.forces.contacts import ObstacleContract, force_on, gap_of, jacobians, law_of_each


LYING = {"rotation": (0.0, 0.0, -np.pi / 2), "half_length": 1.0, "capsule_radius": 0.25,
         "stiffness": 100.0, "damping": 5.0, "friction_stiffness": 4.0,
         "friction": 0.5}  # fmt: skip  # its axis turned from y to x


class TestCapsuleContact(ObstacleContract):
    def make(self, rng):
        return CapsuleContact(
            center=(0.1, -0.05, 0.08), rotation=(0.5, -0.3, 0.7), half_length=0.25,
            capsule_radius=0.3, velocity=(0.1, 0.2, -0.1), angular_velocity=(0.3, -0.2, 0.4),
            **law_of_each(rng),
        )  # fmt: skip

    def test_both_the_side_and_the_caps_are_touched(self, case):
        contact, x, _ = case
        h = [float(contact.GEOMETRY.kinks(p, *rows(contact))[0]) + 0.25 for p in x]
        assert {abs(a) > 0.25 for a in h} == {True, False}
        assert min(h) < -0.25 < 0.25 < max(h)


def rows(contact):
    """Params and series of its first contact."""
    return tuple(contact.pack_params()[0]), tuple(contact.pack_series(1)[0, 0])


def test_it_lies_along_its_own_y_axis():
    n, c, _ = gap_of(CapsuleContact(half_length=2.0, capsule_radius=0.5), (0.2, 1.7, 0.0))
    np.testing.assert_array_equal(n, [1, 0, 0])
    assert c == pytest.approx(0.3, abs=4 * EPS)


@pytest.mark.parametrize(
    ("x", "normal", "depth"),
    [
        ((0.5, 0.2, 0.0), (0, 1, 0), 0.05),  # side
        ((-0.9, 0.0, -0.1), (0, 0, -1), 0.15),
        ((1.12, 0.0, 0.16), (0.6, 0, 0.8), 0.05),  # cap at x = 1
        ((-1.06, -0.08, 0.0), (-0.6, -0.8, 0), 0.15),  # the other one
    ],
)
def test_depth_and_normal_worked_out_by_hand(x, normal, depth):
    n, c, _ = gap_of(CapsuleContact(**LYING), x)
    np.testing.assert_allclose(n, normal, rtol=0, atol=20 * EPS)
    assert c == pytest.approx(depth, abs=10 * EPS)
    f = force_on(CapsuleContact(**LYING), x)
    np.testing.assert_allclose(f, 100.0 * depth * np.array(normal), rtol=0, atol=1e4 * EPS)


REGIONS = {
    "side, inside": (0.5, 0.1, 0.05),
    "side, by the node's radius": (0.5, 0.2, 0.18),
    "cap": (1.1, 0.1, -0.05),
    "other cap": (-1.1, 0.1, -0.05),
}


@pytest.mark.parametrize("x", REGIONS.values(), ids=REGIONS)
@pytest.mark.parametrize("v", [(0.2, -0.3, 0.1), (2.0, -3.0, 1.0), (0.9, 2.0, -2.0)])
def test_jacobians_in_every_region(x, v):
    turning = CapsuleContact(**LYING, radius=0.1, angular_velocity=(0.3, 0.5, -0.2))
    tangent, adjoint, differences = jacobians(turning, x, v)
    size = np.abs(tangent).max()
    assert size > 10.0
    np.testing.assert_allclose(adjoint, tangent, rtol=0, atol=50 * EPS * size)
    np.testing.assert_allclose(differences, tangent, rtol=0, atol=1e-7 * size)


def test_kink_between_side_and_cap_takes_the_slope_of_the_side():
    # A capsule along y, to be exact at h = L = 1. Along y the normal of the cap turns, that
    # of the side does not: the force 100 c n with n = (1, 0, 0), c = 0.05.
    standing = CapsuleContact(half_length=1.0, capsule_radius=0.25, stiffness=100.0)
    at, h = np.array([0.2, 1.0, 0.0]), 1e-6
    up = np.array([0.0, h, 0.0])
    below = (force_on(standing, at) - force_on(standing, at - up)) / h
    above = (force_on(standing, at + up) - force_on(standing, at)) / h
    assert below[1] == 0.0
    assert above[1] == pytest.approx(100.0 * 0.05 / 0.2, rel=1e-5)
    for jacobian in jacobians(standing, at)[:2]:
        assert jacobian[1, 1] == 0.0
        half_length = 3 + 3 + SIZE
        assert not jacobian[:, half_length].any()


def test_kink_at_touch_counts_as_apart():
    standing, v = CapsuleContact(**{**LYING, "rotation": (0, 0, 0)}), (-2.0, 0.3, 0.1)
    assert not force_on(standing, (0.25, 0.5, 0.0), v).any()
    for jacobian in jacobians(standing, (0.25, 0.5, 0.0), v)[:2]:
        assert not jacobian.any()
    inside = force_on(standing, (0.25 - 1e-9, 0.5, 0.0), v)
    assert inside[0] == pytest.approx(5.0 * 2.0, rel=1e-6)


def test_on_the_segment_there_is_no_direction_and_no_force():
    standing, v = CapsuleContact(**{**LYING, "rotation": (0, 0, 0)}), (-2.0, 0.3, 0.1)
    assert not force_on(standing, (0.0, 0.5, 0.0), v).any()
    for jacobian in jacobians(standing, (0.0, 0.5, 0.0), v)[:2]:
        assert not jacobian.any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"half_length": 0.0}, "`half_length` must be positive, got 0"),
        ({"capsule_radius": -1.0}, "`capsule_radius` must be positive, got -1"),
        ({"rotation": (0, 1)}, r"`rotation` must have shape \(n_steps, 3\), or one of \(3,\)"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        CapsuleContact(**given)
