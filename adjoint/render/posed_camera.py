"""Tangent and adjoint of `render/posed_camera.py`: read the two files side by side."""

from collections.abc import Mapping

import numpy as np

from adjoint.rotations import rotation_matrix_vjp
from adjsim.rotations import rotation_matrix, rotation_matrix_jvp
from render.posed_camera import PosedCamera


def posed_jvp(
    camera: PosedCamera, tangents: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Tangents of the eye and of the axes, one a row (3, 3)."""
    R = rotation_matrix(camera.rotation) @ camera.nominal
    tan_R = rotation_matrix_jvp(camera.rotation, tangents["rotation"]) @ camera.nominal  # (1)
    tan_eye = -tan_R.T @ camera.translation - R.T @ tangents["translation"]  # (2)
    return tan_eye, tan_R * [[1.0], [1.0], [-1.0]]  # (3)


def posed_vjp(
    camera: PosedCamera, adj_eye: np.ndarray, adj_axes: np.ndarray
) -> dict[str, np.ndarray]:
    """Pull the adjoints of the eye and the axes back to rotation and translation."""
    R = rotation_matrix(camera.rotation) @ camera.nominal  # (1) replayed

    # (3) axes = rows of R, the last turned
    adj_R = adj_axes * [[1.0], [1.0], [-1.0]]

    # (2) eye = -R^T t
    adj_R = adj_R - np.outer(camera.translation, adj_eye)
    adj_translation = -R @ adj_eye

    # (1) R = exp([theta]x) N
    adj_rotation = rotation_matrix_vjp(camera.rotation, adj_R @ camera.nominal.T)
    return {"rotation": adj_rotation, "translation": adj_translation}
