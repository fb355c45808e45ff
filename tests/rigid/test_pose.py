"""Where bodies start and where their vertices are: the reference, twins, bad input."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.rigid.pose import pack_state_vjp, vertices_vjp
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState, BodyTrajectory, pack_state_jvp, vertices, vertices_jvp
from tests.reference import rigid
from tests.rigid.scenes import box, lump


N_FRAMES = 3


@pytest.fixture
def bodies(rng):
    points = {"tip": BodyPoint([1.0, 2.0, 3.0], body=0)}
    return RigidBodies([box(), lump(rng)], mass=1.0, points=points)


def poses(rng, n_bodies=2, dtype=np.float64):
    r = rng.standard_normal((N_FRAMES, n_bodies, 4))
    r /= np.linalg.norm(r, axis=-1, keepdims=True)
    x, v, omega = rng.standard_normal((3, N_FRAMES, n_bodies, 3))
    return BodyTrajectory(*(array.astype(dtype) for array in (x, r, v, omega)))


def test_vertices_are_turned_and_shifted_and_named_points_are_none(rng, bodies):
    at = poses(rng)
    x = vertices(bodies, at)
    assert x.shape == (N_FRAMES, 16, 3)
    for f in range(N_FRAMES):
        for b, mesh in enumerate(bodies.meshes):
            R = Rotation.from_quat(at.orientation[f, b]).as_matrix()
            expected = at.position[f, b] + (mesh.points - bodies.centers[b]) @ R.T
            np.testing.assert_allclose(x[f, 8 * b : 8 * b + 8], expected, rtol=0, atol=1e-14)
    assert bodies.faces.max() == 15
    single = vertices(bodies, BodyTrajectory(*(p.astype(np.float32) for p in vars(at).values())))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, x, rtol=0, atol=1e-5)


def test_the_twins_of_the_vertices(rng, bodies):
    at, tan, step = poses(rng), poses(rng), 1e-6
    ahead, behind = (
        vertices(
            bodies,
            BodyTrajectory(
                at.position + sign * step * tan.position,
                at.orientation + sign * step * tan.orientation,
                at.velocity,
                at.angular_velocity,
            ),
        )
        for sign in (1, -1)
    )
    pushed = vertices_jvp(bodies, at, tan)
    np.testing.assert_allclose(pushed, (ahead - behind) / (2 * step), atol=1e-9)
    adj = rng.standard_normal(pushed.shape)
    pulled = vertices_vjp(bodies, at, adj)
    left = np.sum(pushed * adj)
    right = np.sum(pulled.position * tan.position) + np.sum(pulled.orientation * tan.orientation)
    assert left == pytest.approx(right, rel=1e-13)
    assert not pulled.velocity.any()
    assert not pulled.angular_velocity.any()


def test_poses_of_another_set_are_refused(rng, bodies):
    with pytest.raises(ValueError, match=r"`poses` must have positions \(n_frames, 2, 3\)"):
        vertices(bodies, poses(rng, 3))
    with pytest.raises(ValueError, match=r"`adj_vertices` must have shape \(3, 16, 3\)"):
        vertices_vjp(bodies, poses(rng), np.ones((3, 17, 3)))


def test_a_body_starts_at_its_nominal_rotation_turned_about_world_axes(rng):
    theta, nominal = rng.standard_normal((2, 3)), rng.standard_normal((2, 4))
    state = BodyState(np.zeros((2, 3)), nominal, rotation=theta)
    theirs = Rotation.from_rotvec(theta) * Rotation.from_quat(nominal)
    ours = Rotation.from_quat(state.pack()[:, 3:7])
    np.testing.assert_allclose(ours.as_matrix(), theirs.as_matrix(), rtol=0, atol=1e-15)
    for b in range(2):
        unit = nominal[b] / np.linalg.norm(nominal[b])
        exact = rigid.product(rigid.exponential(theta[b] / 2), unit)
        np.testing.assert_allclose(state.pack()[b, 3:7], exact, rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1.0], ids=["at the nominal rotation", "away from it"])
def test_the_twins_of_the_start(rng, angle):
    theta = angle * rng.standard_normal((2, 3))
    nominal = rng.standard_normal((2, 4))
    x, v, omega = rng.standard_normal((3, 2, 3))
    state = BodyState(x, nominal, v, omega, theta)
    tangents = {name: rng.standard_normal((2, 3)) for name in state.parameters()}
    step = 1e-6
    ahead, behind = (
        state.with_values(
            {k: p + sign * step * tangents[k] for k, p in state.parameters().items()}
        ).pack()
        for sign in (1, -1)
    )
    pushed = pack_state_jvp(state, tangents)
    np.testing.assert_allclose(pushed, (ahead - behind) / (2 * step), atol=1e-9)
    adj = rng.standard_normal(pushed.shape)
    pulled = pack_state_vjp(state, adj)
    right = sum(np.sum(pulled[name] * tangent) for name, tangent in tangents.items())
    assert np.sum(pushed * adj) == pytest.approx(right, rel=1e-13)


def test_one_body_may_leave_out_its_axis_and_the_rest_is_at_rest():
    state = BodyState([1.0, 2.0, 3.0], [0.0, 0.0, 2.0, 0.0])
    np.testing.assert_array_equal(state.pack(), [[1, 2, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(BodyState([[0, 0, 0]]).orientation, [[0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 0, 0], [0, 0, 0, 0]), r"`orientation` must not be a quaternion of length 0.*row 0"),
        (([0, 0],), r"`position` must have shape \(n_bodies, 3\)"),
        ((np.zeros((0, 3)),), "`position` must not be empty"),
        (([0, 0, 0], [0, 0, 1]), r"`orientation` must have shape \(1, 4\)"),
        (([0, 0, 0], None, [[0, 0, 0]] * 2), r"`velocity` must have shape \(1, 3\)"),
        (([0, 0, np.nan],), "`position` must be finite"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        BodyState(*arguments)
