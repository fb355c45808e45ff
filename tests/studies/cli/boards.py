"""Pictures of a chessboard of 8 x 6 squares, 7 x 5 inner corners, as a pinhole sees it."""

import numpy as np
from scipy.spatial.transform import Rotation


SQUARE = 0.03
K = np.array([[500.0, 0.0, 159.5], [0.0, 500.0, 119.5], [0.0, 0.0, 1.0]])
FINER = 4  # samples of a pixel along each side


def R_OF(tilt):
    """Return R of a camera before a board with x right, y up and z towards it, turned by angles."""
    return Rotation.from_euler("xyz", tilt).as_matrix() @ np.diag([1.0, -1.0, -1.0])


def picture(R, t):
    """Return what the camera sees, (240, 320, 3): where its rays meet the plane z = 0."""
    u = (np.arange(320 * FINER) + 0.5) / FINER - 0.5
    v = (np.arange(240 * FINER) + 0.5) / FINER - 0.5
    pixels = np.stack(np.broadcast_arrays(u[None], v[:, None], 1.0), axis=-1)
    rays = pixels @ np.linalg.inv(K).T @ R  # in the world
    eye = -R.T @ t
    x, y = (eye + (-eye[2] / rays[..., 2:]) * rays)[..., :2].transpose(2, 0, 1) / SQUARE
    column, row = np.floor(x + 1.0), np.floor(1.0 - y)
    is_dark = ((column + row) % 2 == 0) & (column >= 0) & (column < 8) & (row >= 0) & (row < 6)
    small = np.where(is_dark, 0.1, 0.9).reshape(240, FINER, 320, FINER).mean(axis=(1, 3))
    return np.repeat(small[..., None], 3, axis=2)
