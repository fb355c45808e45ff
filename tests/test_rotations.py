"""Rotation vectors: against SciPy's exponential, and their derivatives."""

import numpy as np
import pytest
from scipy.linalg import expm

from adjoint.rotations import rotation_matrix_vjp
from adjsim.rotations import (
    SERIES_BELOW,
    cross_matrix,
    rotation_matrix,
    rotation_matrix_jvp,
    rotation_rate,
)


EPS = np.finfo(np.float64).eps
SIZES = (0.0, 1e-9, 1e-4, 0.999 * SERIES_BELOW, 1.001 * SERIES_BELOW, 1.5, np.pi, 6.0)


@pytest.fixture
def thetas(rng):
    """One rotation vector of every size."""
    axes = rng.standard_normal((len(SIZES), 3))
    return np.array(SIZES)[:, None] * axes / np.linalg.norm(axes, axis=1, keepdims=True)


def test_the_matrix_is_the_exponential(thetas):
    R = rotation_matrix(thetas)
    expected = [expm(cross_matrix(theta)) for theta in thetas]
    np.testing.assert_allclose(R, expected, rtol=0, atol=100 * EPS)
    np.testing.assert_allclose(R @ np.swapaxes(R, 1, 2), np.tile(np.eye(3), (8, 1, 1)), atol=1e-15)


def test_a_quarter_turn_about_z_takes_x_to_y():
    R = rotation_matrix(np.array([0.0, 0.0, np.pi / 2]))
    np.testing.assert_allclose(R @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=2 * EPS)


def test_derivatives_are_those_of_the_exponential(thetas, rng):
    # A complex step through SciPy's expm is exact to rounding, at every size.
    tan, adj = rng.standard_normal((len(thetas), 3)), rng.standard_normal((len(thetas), 3, 3))
    got = rotation_matrix_jvp(thetas, tan)

    def complex_cross(a):
        return cross_matrix(a.real) + 1j * cross_matrix(a.imag)

    expected = [
        expm(complex_cross(t + 1e-30j * d)).imag / 1e-30 for t, d in zip(thetas, tan, strict=True)
    ]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1000 * EPS)
    back = rotation_matrix_vjp(thetas, adj)
    np.testing.assert_allclose(
        np.einsum("kij,kij->k", adj, got), np.einsum("ki,ki->k", back, tan), rtol=0,
        atol=1000 * EPS,
    )  # fmt: skip


def test_the_rate_is_the_angular_velocity_of_a_spin(rng):
    # About a fixed axis theta = t w, so J(theta) w = w.
    w = rng.standard_normal(3)
    for t in SIZES:
        np.testing.assert_allclose(rotation_rate(t * w) @ w, w, rtol=0, atol=100 * EPS)
