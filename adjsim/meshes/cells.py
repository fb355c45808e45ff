"""Points and the cells that use them, whatever the cells are."""

import numpy as np


def used_points(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that occur in `cells`, in their order, and the cells renumbered."""
    used, inverse = np.unique(cells, return_inverse=True)
    return points[used], inverse.reshape(cells.shape)


def merged_points(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points without exact repetitions, and the cells renumbered."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    return points[first[order]], rank[inverse.ravel()][cells]
