"""Sums that undo reads: of a value by every element, of positions by the corners of elements.

Forward: `adjsim/values.py`.
"""

import numpy as np


def unbroadcast(adj: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum a per-element cotangent to the shape of the parameter it belongs to.

    The twin of `adjsim.values.broadcast`. NumPy's sum of a fixed array has a fixed order.
    """
    return adj.reshape(shape) if adj.shape == shape else np.asarray(adj.sum(axis=0))


def add_at_nodes(adj_corners: np.ndarray, nodes: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return the sums over nodes, (n_nodes, 3), of (n_elements, n_corners, 3).

    The twin of reading positions[nodes]; a weighted bincount adds in a fixed order.
    """
    flat = adj_corners.reshape(-1, 3)
    columns = [np.bincount(nodes.ravel(), flat[:, c], minlength=n_nodes) for c in range(3)]
    return np.stack(columns, axis=-1)
