"""The twins of the rows of `adjsim/forces/tracks.py`: the adjoint of each beside its tangent."""

from collections.abc import Callable, Mapping

import numpy as np

from adjoint.rotations import rotation_matrix_vjp
from adjsim.forces.tracks import as_rows, axis_rows, matrix_rows, unit_rows, unit_rows_jvp


def as_rows_vjp(values: np.ndarray, adj_rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Pull cotangents of rows back to the shape of the values."""
    return adj_rows.reshape(values.shape)


def matrix_rows_vjp(values: np.ndarray, adj_rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Pull cotangents back through `matrix_rows`."""
    adj_turned = adj_rows.reshape(-1, 3, 3).swapaxes(1, 2)
    return rotation_matrix_vjp(values, adj_turned @ axes.T)


def axis_rows_vjp(values: np.ndarray, adj_rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Pull cotangents back through `axis_rows`: those of the other columns are zero."""
    adj_columns = np.zeros((len(values), 3, 3))
    adj_columns[:, 1] = adj_rows
    return matrix_rows_vjp(values, adj_columns, axes)


ROW_ADJOINTS: Mapping[Callable, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    as_rows: as_rows_vjp,
    unit_rows: unit_rows_jvp,  # a symmetric map
    matrix_rows: matrix_rows_vjp,
    axis_rows: axis_rows_vjp,
}
