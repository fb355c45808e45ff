"""Cubic curves and surfaces through values and slopes, and the lowest point that they show."""

from typing import NamedTuple

import numpy as np


PER_INTERVAL = 24  # points of a drawn curve


class Lowest(NamedTuple):
    """Where a curve is lowest, and its value there."""

    at: float
    value: float


def hermite_curve(
    x: np.ndarray, values: np.ndarray, slopes: np.ndarray, count: int = PER_INTERVAL
) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values, (n,) each, of the cubic Hermite curve, `count` in an interval.

    `x` (n_points,) increases; on a logarithmic axis it has the logarithms of a value. `values` and
    `slopes` (n_points,) are over `x`. An interval with NaN at an end has no curve.
    """
    t = np.linspace(0.0, 1.0, count + 1)[:-1]
    places = x[:-1, None] + np.diff(x)[:, None] * t
    inside = np.polynomial.polynomial.polyval(t, _coefficients(x, values, slopes))
    return np.append(places, x[-1]), np.append(inside, values[-1])


def hermite_minimum(x: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> Lowest | None:
    """Return the lowest point of the cubic Hermite curve, see `hermite_curve`.

    None where no interval has a curve. The lowest point may be an end of the curve.
    """
    coefficients = _coefficients(x, values, slopes)
    c, b, a = coefficients[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        # Of the two roots of 3 a t^2 + 2 b t + c the one where the curve bends upwards, without
        # the difference of two close numbers.
        root = np.sqrt(b**2 - 3.0 * a * c)
        inner = np.where(b >= 0.0, -c / (b + root), (root - b) / (3.0 * a))
    inner = np.where((inner > 0.0) & (inner < 1.0), inner, 0.0)
    t = np.stack([np.zeros_like(inner), inner, np.ones_like(inner)])
    heights = np.polynomial.polynomial.polyval(t, coefficients[:, None], tensor=False)
    if not np.isfinite(heights).any():
        return None
    k, interval = np.unravel_index(np.nanargmin(heights), heights.shape)
    at = x[interval] + t[k, interval] * (x[interval + 1] - x[interval])
    return Lowest(float(at), float(heights[k, interval]))


def _coefficients(x: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return the coefficients of t^0 to t^3 in each interval, (4, n_points - 1); t from 0 to 1."""
    rise, (first, last) = np.diff(values), np.stack([slopes[:-1], slopes[1:]]) * np.diff(x)
    return np.stack(
        [values[:-1], first, 3.0 * rise - 2.0 * first - last, first + last - 2.0 * rise]
    )


def hermite_surface(
    points: np.ndarray, values: np.ndarray, slopes: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Return the smooth surface through values and slopes at places `at` (..., 2), (...).

    It is cubic on the triangles between neighbours (Clough and Tocher's element). `points` (n, 2)
    are on axes of equal length, `values` (n,) NaN where there is none; where `slopes` (n, 2) are
    NaN, they are estimated from the neighbours. The surface is NaN outside the points and in
    triangles with a corner without a value, and everywhere for fewer than three points that have
    one, and for points on a line.
    """
    from scipy.interpolate import CloughTocher2DInterpolator
    from scipy.spatial import Delaunay, QhullError

    is_finite, empty = np.isfinite(values), np.full(at.shape[:-1], np.nan)
    try:
        triangles = Delaunay(points)
        surface = CloughTocher2DInterpolator(points[is_finite], values[is_finite])
    except (QhullError, ValueError):  # on a line; too few
        return empty
    are_given = np.isfinite(slopes[is_finite]).all(axis=1)
    surface.grad[are_given, 0] = slopes[is_finite][are_given]
    beside = triangles.find_simplex(at)
    corners = values[triangles.simplices[beside]]
    is_hidden = (beside < 0) | np.isnan(corners).any(axis=-1)
    return np.where(is_hidden, np.nan, surface(at))
