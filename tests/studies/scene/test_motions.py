import numpy as np
import pytest

from adjsim.rotations import rotation_matrix
from studies.scene.motions import BodyMotion, NodeMotion
from tests.studies.scene.test_maps import check_dot, tangents_of


RNG = np.random.default_rng(2)
POINTS = RNG.standard_normal((5, 3)) + 3.0
IS_FREE = np.array([True, False, True, True, True])
P0 = np.array([1.0, 2.0, 3.0])
NODES = NodeMotion("a", POINTS, POINTS.mean(axis=0), P0, is_free=IS_FREE, rows=slice(2, 7), n=8)
BODY = BodyMotion("a", POINTS.mean(axis=0), P0)


def sources(rotation=(0.3, -0.2, 0.5)):
    return {
        "a.position": P0 + np.array([0.1, 0.2, 0.3]),
        "a.rotation": np.array(rotation),
        "a.velocity": np.array([1.0, -2.0, 0.5]),
        "a.spin": np.array([0.4, 3.0, -1.0]),
    }


def with_nodes(at):
    return at | {"a.node_velocity": np.linspace(-1.0, 2.0, 12).reshape(4, 3)}


@pytest.mark.parametrize("motion", [NODES, BODY])
@pytest.mark.parametrize("rotation", [(0.3, -0.2, 0.5), (0.0, 0.0, 0.0), (2.0, -1.0, 1.5)])
def test_tangents_are_derivatives_and_cotangents_their_transpose(motion, rotation):
    at = with_nodes(sources(rotation)) if motion is NODES else sources(rotation)
    tangents, h = tangents_of(at), 1e-4
    values = [
        motion.values({key: value + step * h * tangents[key] for key, value in at.items()})
        for step in (-2, -1, 1, 2)
    ]
    for target, tangent in motion.jvp(at, tangents).items():
        low, below, above, high = (each[target] for each in values)
        difference = (8.0 * (above - below) - (high - low)) / (12.0 * h)
        np.testing.assert_allclose(tangent, difference, atol=1e-10)
    check_dot(motion, at)


def test_a_body_at_its_own_values_is_where_it_was_declared():
    at = with_nodes(sources() | {"a.position": P0, "a.rotation": np.zeros(3)})
    np.testing.assert_array_equal(NODES.values(at)["state.x"][2:7], POINTS)
    np.testing.assert_array_equal(BODY.values(at)["a.position"], [POINTS.mean(axis=0)])


def test_nodes_move_as_one_rigid_body():
    at = sources()
    values = NODES.values(at)
    x, v = values["state.x"][2:7], values["state.v"][2:7]
    center = POINTS.mean(axis=0)
    R = rotation_matrix(at["a.rotation"])
    np.testing.assert_allclose(x - x.mean(axis=0), (POINTS - center) @ R.T, atol=1e-14)
    np.testing.assert_allclose(x.mean(axis=0) - center, at["a.position"] - P0, atol=1e-14)
    spun = at["a.velocity"] + np.cross(at["a.spin"], x - x.mean(axis=0))
    np.testing.assert_allclose(v, np.where(IS_FREE[:, None], spun, 0.0), atol=1e-13)
    for path in ("state.x", "state.v"):
        assert not values[path][[0, 1, 7]].any()


def test_velocities_of_nodes_turn_with_the_body():
    at = sources()
    R, without = rotation_matrix(at["a.rotation"]), NODES.values(at)["state.v"][2:7]
    u = with_nodes(at)["a.node_velocity"]
    turned = NODES.values(with_nodes(at))["state.v"][2:7] - without
    np.testing.assert_allclose(turned[IS_FREE], u @ R.T, atol=1e-14)
    assert not turned[~IS_FREE].any()


def test_the_spin_of_a_rigid_body_is_in_its_own_axes():
    at = sources()
    values = BODY.values(at)
    R = rotation_matrix(at["a.rotation"])
    np.testing.assert_allclose(R @ values["a.angular_velocity"][0], at["a.spin"], atol=1e-15)
    np.testing.assert_array_equal(values["a.rotation"], [at["a.rotation"]])
