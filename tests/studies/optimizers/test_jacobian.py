"""A Jacobian without its rows of zeros does what the whole array does."""

import numpy as np
import pytest

from studies.answer.intervals import spectrum, triangle
from studies.optimizers.evaluations import reduce_residuals
from studies.optimizers.jacobian import Jacobian


N, P = 300, 4
STORED = {
    "a few rows": np.r_[0:3, 40:61, 200, 297:300],
    "few beside many": np.delete(np.arange(N), [7, 8, 150]),
    "all rows": np.arange(N),
}


@pytest.fixture(params=STORED.values(), ids=STORED)
def dense(request, rng):
    """Return J (n, p), only some rows of which are not 0."""
    J = np.zeros((N, P))
    J[request.param] = rng.normal(size=(len(request.param), P)) * [1.0, 1e3, 1e-3, 1.0]
    return J


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13 * np.abs(b).max(initial=0.0))


def test_only_rows_that_are_not_zero_are_stored(dense):
    J = Jacobian.of(dense)
    assert (J.rows == np.flatnonzero(dense.any(axis=1))).all()
    assert J.values.shape == (len(J.rows), P)
    assert J.shape == dense.shape
    assert len(J) == N
    assert Jacobian.of(J) is J
    np.testing.assert_array_equal(np.asarray(J), dense)


def test_products_are_those_of_the_whole(dense, rng):
    J, x, y, Y = Jacobian.of(dense), rng.normal(size=P), rng.normal(size=N), rng.normal(size=(N, 2))
    close(J @ x, dense @ x)
    close(J.T @ y, dense.T @ y)
    close(J.T @ Y, dense.T @ Y)
    close(J.T @ J, dense.T @ dense)
    other = np.zeros((N, 2))
    other[30:210] = rng.normal(size=(180, 2))
    close(J.T @ Jacobian.of(other), dense.T @ other)


def test_rows_and_columns_are_those_of_the_whole(dense, rng):
    J, order = Jacobian.of(dense), rng.permutation(N)[:200]
    for key in (slice(35, 205), slice(-7, None), slice(None), order):
        np.testing.assert_array_equal(np.asarray(J[key]), dense[key])
        assert (np.diff(J[key].rows) > 0).all()
    other = np.zeros((N, 2))
    other[30:60] = rng.normal(size=(30, 2))
    both = Jacobian.beside([J, Jacobian.of(other)])
    np.testing.assert_array_equal(np.asarray(both), np.concatenate([dense, other], axis=1))


def test_least_squares_and_factors_are_those_of_the_whole(dense, rng):
    J, y = Jacobian.of(dense), rng.normal(size=N)
    close(J.solve(y), np.linalg.lstsq(dense, y, rcond=None)[0])
    R = triangle(J)
    close(R.T @ R, dense.T @ dense)
    close(spectrum(J)[0], np.linalg.svd(dense, compute_uv=False))
    loss, gradient, reduced = reduce_residuals(y, J)
    assert loss == pytest.approx(y @ y, rel=1e-14)
    close(gradient, 2.0 * dense.T @ y)
    close(reduced.T @ reduced, dense.T @ dense)
    close(reduced[0] * np.sqrt(loss), dense.T @ y)


def test_what_is_small_beside_the_residuals_keeps_its_digits(rng):
    # r is nearly along a column of J, and what is left of this is far below the root of rounding
    dense, r = np.zeros((N, 2)), np.zeros(N)
    dense[:50] = rng.normal(size=(50, 2))
    r[:50] = dense[:, 0][:50]
    r[100:] = 1e-9 * rng.normal(size=200)
    _, _, reduced = reduce_residuals(r, Jacobian.of(dense))
    unit = r / np.linalg.norm(r)
    rest = np.linalg.qr(dense - np.outer(unit, unit @ dense), mode="r")
    np.testing.assert_allclose(np.abs(reduced[1, 0]), np.abs(rest[0, 0]), rtol=1e-5)


def test_broydens_rule_stores_rows_that_are_reached_now(dense, rng):
    J, step, change = Jacobian.of(dense), rng.normal(size=P), dense @ rng.normal(size=P)
    change[20:50] += rng.normal(size=30)
    before = rng.normal(size=N)
    after = before + change
    updated, change = J.updated(before, after, step), after - before
    expected = dense + np.outer(change - dense @ step, step) / (step @ step)
    close(np.asarray(updated), expected)
    close(updated @ step, change)  # the secant condition
    assert (updated.rows == np.union1d(J.rows, np.flatnonzero(change))).all()
    np.testing.assert_array_equal(np.asarray(J), dense)


def test_squares_where_nothing_is_stored(dense, rng):
    J, r = Jacobian.of(dense), rng.normal(size=N)
    beside = np.delete(r, J.rows)
    assert J.squares_beside(r) == pytest.approx(beside @ beside, rel=1e-13, abs=0.0)


def test_no_row_needs_to_be_stored(rng):
    J = Jacobian.of(np.zeros((N, P)))
    y = rng.normal(size=N)
    assert (J.solve(y) == 0.0).all()
    assert (triangle(J) == 0.0).all()
    loss, gradient, reduced = reduce_residuals(y, J)
    assert loss == pytest.approx(y @ y)
    assert not gradient.any()
    assert not reduced.any()
