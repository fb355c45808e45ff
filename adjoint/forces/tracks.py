"""The twins of the rows of `adjsim/forces/tracks.py`: adjoints and tangents of each."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from adjoint.rotations import rotation_matrix_jvp, rotation_matrix_vjp
from adjsim.forces.tracks import as_rows, axis_rows, matrix_rows, unit_rows


class RowTwin(NamedTuple):
    """jvp(values, tan_values, axes) -> tan_rows, vjp(values, adj_rows, axes) -> adj_values."""

    jvp: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    vjp: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def as_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents, shaped like the values, to rows."""
    return tan_values.reshape(len(values), -1)


def as_rows_vjp(values: np.ndarray, adj_rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Pull cotangents of rows back to the shape of the values."""
    return adj_rows.reshape(values.shape)


def unit_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents through n = m/|m|: tangential, and divided by |m|.

    The map is symmetric, so it is its own adjoint.
    """
    length = np.linalg.norm(values, axis=1, keepdims=True)
    n = values / length
    return (tan_values - np.sum(n * tan_values, axis=1, keepdims=True) * n) / length


def matrix_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents through `matrix_rows`."""
    return (rotation_matrix_jvp(values, tan_values) @ axes).swapaxes(1, 2).reshape(-1, 9)


def matrix_rows_vjp(values: np.ndarray, adj_rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Pull cotangents back through `matrix_rows`."""
    adj_turned = adj_rows.reshape(-1, 3, 3).swapaxes(1, 2)
    return rotation_matrix_vjp(values, adj_turned @ axes.T)


def axis_rows_jvp(values: np.ndarray, tan_values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Push tangents through `axis_rows`."""
    return (rotation_matrix_jvp(values, tan_values) @ axes)[:, :, 1]


def axis_rows_vjp(values: np.ndarray, adj_rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Pull cotangents back through `axis_rows`: those of the other columns are zero."""
    adj_columns = np.zeros((len(values), 3, 3))
    adj_columns[:, 1] = adj_rows
    return matrix_rows_vjp(values, adj_columns, axes)


ROW_TWINS: Mapping[Callable, RowTwin] = {
    as_rows: RowTwin(as_rows_jvp, as_rows_vjp),
    unit_rows: RowTwin(unit_rows_jvp, unit_rows_jvp),
    matrix_rows: RowTwin(matrix_rows_jvp, matrix_rows_vjp),
    axis_rows: RowTwin(axis_rows_jvp, axis_rows_vjp),
}
