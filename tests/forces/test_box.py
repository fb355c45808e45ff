"""Contact with a box: closed forms, faces, edges, corners and inside, kinks, the contract."""

import numpy as np
import pytest

from adjoint.verify.contract import EPS
from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.box import BoxContact
from tests.forces.contacts import ObstacleContract, force_on, gap_of, jacobians, law_of_each


BOX = {"half_extents": (1.0, 2.0, 3.0), "stiffness": 100.0, "damping": 5.0,
       "friction_stiffness": 4.0, "friction": 0.5}  # fmt: skip


class TestBoxContact(ObstacleContract):
    EXTENT = 0.55

    def make(self, rng):
        return BoxContact(
            center=(0.1, -0.05, 0.08), rotation=(0.5, -0.3, 0.7),
            half_extents=(0.25, 0.3, 0.35), velocity=(0.1, 0.2, -0.1),
            angular_velocity=(0.3, -0.2, 0.4), **{**law_of_each(rng), "radius": 0.12},
        )  # fmt: skip

    def test_faces_edges_and_corners_and_the_inside_are_touched(self, case):
        contact, x, _ = case
        _, s = distances(contact, x)
        touching = s.max(axis=1) < 0.12
        beyond = (s[touching] > 0.0).sum(axis=1)
        assert {0, 1, 2} <= set(beyond)


def distances(contact, x):
    """Coordinates in the box's axes, and how far each is beyond its half extent."""
    R = contact.pack_series(1)[0, 0, 3:12].reshape(3, 3)  # rows are the box's axes
    y = (x - contact.center) @ R.T
    return y, np.abs(y) - contact.half_extents


@pytest.mark.parametrize(
    ("y", "normal", "s"),
    [
        ((1.5, 0.5, 0.0), (1, 0, 0), 0.5),  # face
        ((0.1, 0.5, -3.5), (0, 0, -1), 0.5),
        ((1.3, -2.4, 0.0), (0.6, -0.8, 0), 0.5),  # edge
        ((2.0, 4.0, 5.0), (1 / 3, 2 / 3, 2 / 3), 3.0),  # corner
        ((0.9, 0.0, 0.0), (1, 0, 0), -0.1),  # inside, x is nearest
        ((0.5, -1.7, 0.0), (0, -1, 0), -0.3),  # y
        ((-0.2, 0.5, 2.6), (0, 0, 1), -0.4),  # z
    ],
)
def test_depth_and_normal_worked_out_by_hand(y, normal, s):
    # Turned by a quarter about z, x goes to y and y to -x.
    turned = BoxContact(**BOX, rotation=(0, 0, np.pi / 2), center=(3.0, 1.0, 0.0), radius=4.0)
    R = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    n, c, _ = gap_of(turned, turned.center + R @ y)
    np.testing.assert_allclose(n, R @ normal, rtol=0, atol=20 * EPS)
    assert c == pytest.approx(4.0 - s, abs=20 * EPS)


REGIONS = {
    "face": (1.2, 0.5, 0.1),
    "opposite face": (-1.2, 0.5, 0.1),
    "edge": (1.2, -2.1, 0.4),
    "corner": (-1.1, 2.2, 3.1),
    "inside, x": (0.9, 0.2, 0.3),
    "inside, y": (0.1, -1.8, 0.3),
    "inside, z": (0.1, 0.2, 2.8),
}


@pytest.mark.parametrize("y", REGIONS.values(), ids=REGIONS)
@pytest.mark.parametrize("v", [(0.2, -0.3, 0.1), (2.0, -3.0, 1.0), (0.9, 2.0, -2.0)])
def test_jacobians_in_every_region(y, v):
    theta, spin = (0.4, -0.7, 0.2), (0.3, 0.5, -0.2)
    tilted = BoxContact(**BOX, rotation=theta, radius=0.4, angular_velocity=spin)
    R = tilted.bind(ActedRows.of_nodes(1), "it").pack_series(1)[0, 0, 3:12].reshape(3, 3).T
    tangent, adjoint, differences = jacobians(tilted, R @ y, v)
    size = np.abs(tangent).max()
    assert size > 10.0
    np.testing.assert_allclose(adjoint, tangent, rtol=0, atol=50 * EPS * size)
    np.testing.assert_allclose(differences, tangent, rtol=0, atol=1e-7 * size)


def test_kink_between_face_and_edge_takes_the_slope_of_the_face():
    # Beyond y = 2 the normal turns about the edge x = 1; before it, it is that of the face.
    thick, h = BoxContact(**BOX, radius=0.3), 1e-6
    at, up = np.array([1.2, 2.0, 0.0]), np.array([0.0, h, 0.0])
    before = (force_on(thick, at) - force_on(thick, at - up)) / h
    beyond = (force_on(thick, at + up) - force_on(thick, at)) / h
    assert before[1] == 0.0
    assert beyond[1] == pytest.approx(100.0 * 0.1 / 0.2, rel=1e-5)
    for jacobian in jacobians(thick, at)[:2]:
        assert jacobian[1, 1] == 0.0


def test_inside_where_two_faces_are_equally_near_the_first_axis_is_taken():
    # (0.5, 1.5, 0) is 0.5 below both faces; the normal jumps from x to y beside it.
    solid = BoxContact(**BOX)
    np.testing.assert_array_equal(gap_of(solid, (0.5, 1.5, 0.0))[0], [1, 0, 0])
    np.testing.assert_array_equal(gap_of(solid, (0.5, 1.5 + 1e-12, 0.0))[0], [0, 1, 0])
    for jacobian in jacobians(solid, (0.5, 1.5, 0.0))[:2]:
        assert jacobian[0, 0] == -100.0
        assert jacobian[1, 1] == 0.0
    # On the middle plane the positive face is taken.
    thin = BoxContact(**{**BOX, "half_extents": (0.1, 2.0, 3.0)})
    np.testing.assert_array_equal(gap_of(thin, (0.0, 0.5, 0.0))[0], [1, 0, 0])
    np.testing.assert_array_equal(gap_of(thin, (-1e-12, 0.5, 0.0))[0], [-1, 0, 0])


def test_kink_at_touch_counts_as_apart_on_the_surface_too():
    solid, v = BoxContact(**BOX), (-2.0, 0.3, 0.1)
    assert not force_on(solid, (1.0, 0.5, 0.0), v).any()
    for jacobian in jacobians(solid, (1.0, 0.5, 0.0), v)[:2]:
        assert not jacobian.any()
    assert force_on(solid, (1.0 - 1e-9, 0.5, 0.0), v)[0] == pytest.approx(10.0, rel=1e-6)
    # With a radius, nothing happens at the surface itself: from outside to inside is smooth.
    thick, h = BoxContact(**BOX, radius=0.1), 1e-6
    below, at, above = (force_on(thick, (1.0 + s * h, 0.5, 0.0)) for s in (-1, 0, 1))
    np.testing.assert_allclose(above - at, at - below, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"half_extents": (1.0, 0.0, 1.0)}, "`half_extents` must be positive, got 0"),
        ({"half_extents": 1.0}, r"`half_extents` must have shape \(3,\), got \(\)"),
        ({"rotation": np.nan * np.ones(3)}, "`rotation` must be finite, got nan"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        BoxContact(**given)
