"""The twin of `adjsim/series.py`: the map from a parameter to rows is linear.

rows[k] = (1 - t_k) values[i_k] + t_k values[i_k + 1]     (2) signal, else rows = value
full[k] = rows[k], repeated over what its base shape lacks (1)
"""

import numpy as np

from adjsim.series import Signal, series_steps, series_values, spread


def series_rows_jvp(
    value: np.ndarray | Signal,
    full_shape: tuple[int, ...],
    tangent: np.ndarray | None,
    n_steps: int,
) -> np.ndarray:
    """Push a tangent, shaped like `series_values(value)`, to rows; None is zero."""
    if tangent is None:
        tangent = np.zeros(series_values(value).shape)
    if isinstance(value, Signal):
        return spread(value.sample(n_steps, tangent), full_shape)
    rows = tangent if series_steps(value, full_shape) is not None else tangent[None]
    return spread(rows, full_shape)


def series_rows_vjp(
    value: np.ndarray | Signal, full_shape: tuple[int, ...], adj_rows: np.ndarray
) -> np.ndarray:
    """Pull cotangents of rows, (1 or n_steps, *full_shape), back to the parameter's shape.

    NumPy's sums of fixed arrays have a fixed order, so the bits do not depend on threads.
    """
    shape = series_values(value).shape
    base = shape[1:] if isinstance(value, Signal) or len(shape) > len(full_shape) else shape
    # (1) a row of the base shape was repeated over the axes it lacks
    missing = len(full_shape) - len(base)
    adj = adj_rows.sum(axis=tuple(range(1, 1 + missing))) if missing else adj_rows
    if not isinstance(value, Signal):
        return adj.reshape(shape)
    # (2) rows[k] = (1 - t) values[i] + t values[i + 1]
    left, t = value.weights(len(adj_rows))
    t = t.reshape(-1, *[1] * len(base))
    out = np.zeros(shape)
    np.add.at(out, left, (1.0 - t) * adj)
    np.add.at(out, np.minimum(left + 1, len(value.knots) - 1), t * adj)
    return out
