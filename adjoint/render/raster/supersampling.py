"""Adjoint of `render/raster/supersampling.py`: both maps are linear, so their tangents are they."""

import numpy as np

from render.raster.supersampling import average, repeat


def average_vjp(adj: np.ndarray, k: int) -> np.ndarray:
    """Pull adjoints of pixels (height, width, n) back to their samples."""
    return adj if k == 1 else repeat(adj, k) / (k * k)  # (1)


def repeat_vjp(adj: np.ndarray, k: int) -> np.ndarray:
    """Pull adjoints of samples (k height, k width, n) back to the pixels they show."""
    return adj if k == 1 else average(adj, k) * (k * k)  # (1)
