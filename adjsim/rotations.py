r"""Rotation vectors as matrices, many at a time, in NumPy.

A rotation vector theta [rad] turns by |theta| about its own direction; world-side:
R(theta) = exp([theta]x) takes body axes to world axes.

    R = I + A [theta]x + B [theta]x^2,  A = sin t/t,  B = (1 - cos t)/t^2,  t = |theta|

Along a path, R' = [J(theta) theta']x R, so that J theta' is the angular velocity:

    J = I + B [theta]x + C [theta]x^2,  C = (t - sin t)/t^3

Twin: `adjoint/rotations.py`. Tests: `tests/test_rotations.py`.
"""

import numpy as np


IDENTITY = (0.0, 0.0, 0.0, 1.0)  # the quaternion (x, y, z, w) that turns nothing
SERIES_BELOW = 0.5  # [rad]; there C is summed as a series, since t - sin t cancels


def unit_quaternions(name: str, given: np.ndarray) -> np.ndarray:
    """Return quaternions (n, 4) divided by their lengths.

    Raise a ValueError by `name` if one has length 0.
    """
    length = np.linalg.norm(given, axis=1, keepdims=True)
    if not (length > 0.0).all():
        raise ValueError(
            f"`{name}` must not be a quaternion of length 0, got one in row "
            f"{int(np.argmin(length))}. No rotation is {IDENTITY}, (x, y, z, w)."
        )
    return given / length


def cross_matrix(a: np.ndarray) -> np.ndarray:
    """Return [a]x, (..., 3, 3), of vectors (..., 3): [a]x b = a x b."""
    out = np.zeros((*a.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -a[..., 2], a[..., 1], -a[..., 0]
    return out - np.swapaxes(out, -1, -2)


def matrix_coefficients(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B of rotation vectors (..., 3), each (..., 1, 1) [-]."""
    t = np.linalg.norm(theta, axis=-1)[..., None, None]
    return np.sinc(t / np.pi), 0.5 * np.square(np.sinc(t / (2.0 * np.pi)))  # nothing cancels


def coefficients(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A, B and C of rotation vectors (..., 3), each (..., 1, 1) [-]."""
    a, b = matrix_coefficients(theta)
    t = np.linalg.norm(theta, axis=-1)[..., None, None]
    t2 = np.minimum(t, SERIES_BELOW) ** 2
    series = np.full_like(t, 1.0 / 6.0)
    term = series
    for k in range(2, 8):
        term = -term * t2 / ((2 * k) * (2 * k + 1))
        series = series + term
    large = np.maximum(t, SERIES_BELOW)
    return a, b, np.where(t < SERIES_BELOW, series, (large - np.sin(large)) / large**3)


def rotation_matrix(theta: np.ndarray) -> np.ndarray:
    """Return R = exp([theta]x), (..., 3, 3), of rotation vectors (..., 3) [rad]."""
    a, b = matrix_coefficients(theta)
    K = cross_matrix(theta)
    return np.eye(3) + a * K + b * (K @ K)


def rotation_matrix_jvp(theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
    """Push tangents (..., 3) through `rotation_matrix`: (..., 3, 3)."""
    turn = (rotation_rate(theta) @ tan_theta[..., None])[..., 0]
    return cross_matrix(turn) @ rotation_matrix(theta)


def rotation_rate(theta: np.ndarray) -> np.ndarray:
    """Return J, (..., 3, 3): the world-side angular velocity is J theta' [rad/s]."""
    _, b, c = coefficients(theta)
    K = cross_matrix(theta)
    return np.eye(3) + b * K + c * (K @ K)
