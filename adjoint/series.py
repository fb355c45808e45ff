"""The twin of `adjsim/series.py`: from a parameter to the rows of every step.

rows = value, or what the twin of its course makes of it (2)
full[k] = rows[k], repeated over what its base shape lacks (1)
"""

import numpy as np

from adjoint.courses import course_vjp
from adjsim.courses import TimeCourse
from adjsim.series import series_steps, series_values


def series_rows_vjp(
    value: np.ndarray | TimeCourse, full_shape: tuple[int, ...], adj_rows: np.ndarray
) -> np.ndarray:
    """Pull cotangents of rows, (1 or n_steps, *full_shape), back to the parameter's shape.

    NumPy's sums of fixed arrays have a fixed order, so the bits do not depend on threads.
    """
    is_course = isinstance(value, TimeCourse)
    shape = series_values(value).shape
    is_series = series_steps(value, full_shape) is not None
    base = value.base_shape if is_course else shape[1:] if is_series else shape
    # (1) a row of the base shape was repeated over the axes it lacks
    missing = len(full_shape) - len(base)
    adj = adj_rows.sum(axis=tuple(range(1, 1 + missing))) if missing else adj_rows
    return course_vjp(value, adj) if is_course else adj.reshape(shape)  # (2)
