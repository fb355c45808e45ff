"""Curves and surfaces through values and slopes: exact for cubics, nothing where none is known."""

import numpy as np
import pytest

from studies.reports.curves import hermite_curve, hermite_minimum, hermite_surface


X = np.array([-2.0, -1.0, 0.5, 2.0])


def cubic(x):
    return x**3 - 3.0 * x, 3.0 * x**2 - 3.0


def test_a_cubic_is_drawn_and_its_minimum_found_between_the_points():
    x, drawn = hermite_curve(X, *cubic(X))
    np.testing.assert_allclose(drawn, cubic(x)[0], atol=1e-12)
    assert (x[0], x[-1]) == (X[0], X[-1])
    lowest = hermite_minimum(X[1:], *cubic(X[1:]))
    assert lowest is not None
    np.testing.assert_allclose(lowest, (1.0, -2.0), rtol=1e-12)


@pytest.mark.parametrize("slopes", [(-1.0, 1.0), (-1.0, 0.5), (-0.2, 3.0)])
def test_the_minimum_is_that_of_the_drawn_curve(slopes):
    x, y = np.array([1.0, 3.0]), np.array([0.0, 0.3])
    lowest = hermite_minimum(x, y, np.array(slopes))
    along, drawn = hermite_curve(x, y, np.array(slopes), 20_000)
    k = int(np.argmin(drawn))
    assert lowest is not None
    assert abs(lowest.at - along[k]) < 2e-4
    assert drawn[k] - 1e-7 < lowest.value <= drawn[k]


def test_a_curve_that_falls_to_its_end_is_lowest_there():
    x = np.array([0.0, 1.0, 2.0])
    assert hermite_minimum(x, -x, -np.ones(3)) == (2.0, -2.0)


def test_a_point_without_a_value_leaves_a_gap():
    values, slopes = cubic(X)
    values[1] = np.nan
    x, drawn = hermite_curve(X, values, slopes)
    assert np.isnan(drawn[(x > X[0]) & (x < X[2])]).all()
    assert np.isfinite(drawn[x >= X[2]]).all()
    lowest = hermite_minimum(X, values, slopes)
    assert lowest is not None
    np.testing.assert_allclose(lowest, (1.0, -2.0), rtol=1e-12)
    assert hermite_minimum(X, np.full(4, np.nan), slopes) is None


def bowl(points):
    u, v = points.T
    return (u - 0.4) ** 2 + u * v + 2.0 * v**2, np.stack([2.0 * (u - 0.4) + v, u + 4.0 * v], axis=1)


def test_a_surface_goes_through_values_and_slopes():
    points = np.random.default_rng(3).random((20, 2))
    values, slopes = bowl(points)
    at = points.mean(axis=0) + 0.1 * np.random.default_rng(4).standard_normal((50, 2))
    np.testing.assert_allclose(hermite_surface(points, values, slopes, at), bowl(at)[0], atol=1e-3)
    rough = hermite_surface(points, values, np.full((20, 2), np.nan), at)
    with_slopes = hermite_surface(points, values, slopes, at)
    exact = bowl(at)[0]
    assert np.abs(with_slopes - exact).max() < 0.5 * np.abs(rough - exact).max()
    step = 1e-6 * np.array([1.0, 0.0])
    inner = np.argsort(np.linalg.norm(points - points.mean(axis=0), axis=1))[:1]
    ends = [hermite_surface(points, values, slopes, points[inner] + s * step) for s in (-1.0, 1.0)]
    np.testing.assert_allclose((ends[1] - ends[0]) / 2e-6, slopes[inner, 0], rtol=1e-4)


def test_a_surface_says_nothing_beyond_its_points_and_beside_what_has_no_value():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]])
    values, slopes = bowl(points)
    at = np.array([[0.5, 0.2], [0.5, 0.8], [1.5, 0.5]])
    assert np.isnan(hermite_surface(points, values, slopes, at)).tolist() == [False, False, True]
    values[3] = np.nan
    assert np.isnan(hermite_surface(points, values, slopes, at)).tolist() == [False, True, True]
    for some in (points[:2], np.linspace(0.0, 1.0, 5)[:, None] * [1.0, 2.0]):
        drawn = hermite_surface(some, values[: len(some)], slopes[: len(some)], at)
        assert np.isnan(drawn).all()
