"""State losses and their adjoints: values by hand, differences, transposes, errors."""

import numpy as np
import pytest

from adjoint.losses import (
    center_of_mass_jvp,
    center_of_mass_mse_jvp,
    center_of_mass_mse_vjp,
    center_of_mass_vjp,
    state_mse_jvp,
    state_mse_vjp,
)
from adjsim.losses import center_of_mass, center_of_mass_mse, state_mse


EPS = np.finfo(np.float64).eps
SHAPE = (4, 5, 3)  # frames, nodes, coordinates


@pytest.fixture
def x(rng):
    return rng.normal(size=SHAPE)


@pytest.fixture
def mass(rng):
    return rng.uniform(0.5, 2.0, SHAPE[1])


@pytest.fixture
def target(rng):
    return rng.normal(size=SHAPE)


@pytest.fixture
def target_com(rng):
    return rng.normal(size=(SHAPE[0], 3))


def test_state_mse_is_the_mean_over_frames_nodes_and_coordinates():
    x, target = np.zeros((2, 1, 3)), np.zeros((2, 1, 3))
    x[1, 0] = (1.0, 2.0, 0.0)
    assert state_mse(x, target) == 5.0 / 6.0
    assert state_mse(x[1], target[1]) == 5.0 / 3.0


def test_the_centre_of_mass_of_two_nodes_divides_their_line_by_their_masses():
    x = np.array([(0.0, 0.0, 0.0), (4.0, 0.0, 8.0)])
    np.testing.assert_array_equal(center_of_mass(x, np.array([3.0, 1.0])), [1.0, 0.0, 2.0])


def test_center_of_mass_mse_is_the_mean_over_frames_and_coordinates():
    x = np.array([[(0.0, 0.0, 0.0), (4.0, 0.0, 8.0)]] * 2)
    target = np.array([(1.0, 0.0, 2.0), (0.0, 0.0, 0.0)])
    assert center_of_mass_mse(x, np.array([3.0, 1.0]), target) == (1.0 + 4.0) / 6


def test_the_centre_of_mass_does_not_feel_motion_about_itself(rng, x, mass, target_com):
    inner = rng.normal(size=SHAPE)
    inner -= center_of_mass(inner, mass)[:, None, :]
    np.testing.assert_allclose(
        center_of_mass_mse(x + inner, mass, target_com),
        center_of_mass_mse(x, mass, target_com),
        rtol=100 * EPS,
    )


def test_scaling_all_masses_changes_nothing(x, mass, target_com):
    _, adj_mass = center_of_mass_mse_vjp(x, mass, target_com)
    assert np.abs(adj_mass).max() > 1e-3
    assert abs(adj_mass @ mass) <= 100 * EPS * np.abs(adj_mass * mass).sum()


def test_state_mse_tangent_agrees_with_central_differences(rng, x, target):
    for _ in range(10):
        tan, h = rng.normal(size=SHAPE), 1e-3
        difference = (state_mse(x + h * tan, target) - state_mse(x - h * tan, target)) / (2 * h)
        # Quadratic: no truncation; rounding of a loss of order 1 over h.
        np.testing.assert_allclose(state_mse_jvp(x, target, tan), difference, atol=20 * EPS / h)


def test_center_of_mass_mse_tangent_agrees_with_central_differences(rng, x, mass, target_com):
    h = 1e-5
    for _ in range(10):
        tan_x, tan_m = rng.normal(size=SHAPE), rng.normal(size=mass.shape)
        plus, minus = (
            center_of_mass_mse(x + s * tan_x, mass + s * tan_m, target_com) for s in (h, -h)
        )
        exact = center_of_mass_mse_jvp(x, mass, target_com, tan_x, tan_m)
        # Rounding 20 eps / h = 4e-10, truncation a few h^2.
        np.testing.assert_allclose(exact, (plus - minus) / (2 * h), atol=2e-9)


@pytest.mark.parametrize("frame", [slice(None), 2])
def test_state_mse_tangent_and_adjoint_are_transposes(frame, rng, x, target):
    x, target = x[frame], target[frame]
    tan = rng.normal(size=x.shape)
    adj_x = state_mse_vjp(x, target, adj=1.3)
    assert np.abs(adj_x).max() > 0
    bar = 1e-14 * np.abs(adj_x * tan).sum()
    assert abs(1.3 * state_mse_jvp(x, target, tan) - np.vdot(adj_x, tan)) <= bar


@pytest.mark.parametrize("frame", [slice(None), 2])
def test_center_of_mass_tangents_and_adjoints_are_transposes(frame, rng, x, mass, target_com):
    x, target_com = x[frame], target_com[frame]
    tan_x, tan_m = rng.normal(size=x.shape), rng.normal(size=mass.shape)
    adj_c = rng.normal(size=target_com.shape)
    adj_x, adj_mass = center_of_mass_vjp(x, mass, adj_c)
    bar = 1e-13 * (np.abs(adj_x * tan_x).sum() + np.abs(adj_mass * tan_m).sum())
    pushed = np.vdot(adj_c, center_of_mass_jvp(x, mass, tan_x, tan_m))
    assert abs(pushed - np.vdot(adj_x, tan_x) - adj_mass @ tan_m) <= bar

    adj_x, adj_mass = center_of_mass_mse_vjp(x, mass, target_com, adj=-0.7)
    assert adj_x.shape == x.shape
    assert np.abs(adj_mass).max() > 0
    bar = 1e-13 * (np.abs(adj_x * tan_x).sum() + np.abs(adj_mass * tan_m).sum())
    pushed = -0.7 * center_of_mass_mse_jvp(x, mass, target_com, tan_x, tan_m)
    assert abs(pushed - np.vdot(adj_x, tan_x) - adj_mass @ tan_m) <= bar


def test_errors_name_the_argument_and_what_was_expected(x, mass, target, target_com):
    with pytest.raises(ValueError, match=r"`target` must have shape \(4, 5, 3\), got \(3, 5, 3\)"):
        state_mse(x, target[:3])
    with pytest.raises(ValueError, match=r"`x` must have shape .*none of them 0"):
        state_mse(x[:, :, :2], target)
    with pytest.raises(ValueError, match=r"`x` must have shape .*none of them 0"):
        state_mse(x[:0], target[:0])
    with pytest.raises(ValueError, match="`mass` must be positive"):
        center_of_mass_mse(x, -mass, target_com)
    with pytest.raises(ValueError, match=r"`mass` must have shape \(5,\)"):
        center_of_mass_mse(x, mass[:2], target_com)
    with pytest.raises(ValueError, match=r"`target_com` must have shape .* each frame of `x`"):
        center_of_mass_mse(x, mass, target_com[:1])
    x[0, 1, 2] = np.nan
    with pytest.raises(ValueError, match="`x` must be finite"):
        state_mse(x, target)
