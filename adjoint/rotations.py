r"""Twin of `adjsim/rotations.py`: dR = [J(theta) dtheta]x R."""

import numpy as np

from adjsim.rotations import rotation_matrix, rotation_rate


def rotation_matrix_vjp(theta: np.ndarray, adj_R: np.ndarray) -> np.ndarray:
    """Pull cotangents (..., 3, 3) back through `rotation_matrix`: (..., 3)."""
    # dR = [w]x R: adj_w . w = <adj_R R^T, [w]x>, the antisymmetric part of M = adj_R R^T
    M = adj_R @ np.swapaxes(rotation_matrix(theta), -1, -2)
    adj_turn = np.stack(
        [M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1]],
        axis=-1,
    )
    # w = J dtheta
    return (np.swapaxes(rotation_rate(theta), -1, -2) @ adj_turn[..., None])[..., 0]
