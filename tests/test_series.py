"""Constants, series and courses: rows of every step, their adjoint, and what is refused."""

import re

import numpy as np
import pytest

from adjoint.series import series_rows_vjp
from adjsim.courses import Signal
from adjsim.forces.sphere import SphereContact
from adjsim.forces.springs import Springs
from adjsim.series import check_series, series_rows, series_rows_jvp, series_steps, with_array


N_STEPS, N = 7, 4
SHAPES = ((3,), (N, 3))
CASES = {
    "constant for all": lambda rng: rng.standard_normal(3),
    "constant for each": lambda rng: rng.standard_normal((N, 3)),
    "series": lambda rng: rng.standard_normal((N_STEPS, N, 3)),
    "signal for all": lambda rng: Signal([0.0, 2.5, 6.0], rng.standard_normal((3, 3))),
    "signal for each": lambda rng: Signal([1, 4], rng.standard_normal((2, N, 3))),
    "signal of one knot": lambda rng: Signal([3], rng.standard_normal((1, 3))),
}


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_adjoint_of_rows_is_their_transpose(make, rng):
    value = check_series("force", make(rng), SHAPES)
    rows = series_rows(value, SHAPES[-1], N_STEPS)
    assert rows.shape in {(count, *SHAPES[-1]) for count in (1, N_STEPS)}
    adj_rows = rng.standard_normal(rows.shape)
    adj = series_rows_vjp(value, SHAPES[-1], adj_rows)
    tan = rng.standard_normal(adj.shape)
    pushed = series_rows_jvp(value, SHAPES[-1], tan, N_STEPS)
    assert pushed.shape == rows.shape
    # A few dozen products on each side.
    assert np.vdot(pushed, adj_rows) == pytest.approx(np.vdot(tan, adj), rel=1e-13)
    moved = series_rows(with_array(value, tan), SHAPES[-1], N_STEPS)
    np.testing.assert_array_equal(moved, pushed)  # the map is linear


def test_only_a_series_says_for_how_many_steps_it_is(rng):
    counts = {
        name: series_steps(check_series("force", make(rng), SHAPES), SHAPES[-1])
        for name, make in CASES.items()
    }
    assert counts.pop("series") == N_STEPS
    assert set(counts.values()) == {None}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(2), r"`force` must have shape \(n_steps, 4, 3\), or one of \(3,\), \(4, 3\)"),
        (np.zeros((5, 2, 3)), r"got \(5, 2, 3\)"),
        (np.full(3, np.nan), r"`force` must be finite, got nan"),
        (Signal([0, 1], np.zeros((2, 2))), r"\(n_knots, ...\) with ... one of \(3,\), \(4, 3\)"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_by_name(value, message):
    with pytest.raises(ValueError, match=message):
        check_series("force", value, SHAPES)


@pytest.mark.parametrize(("shapes", "tail"), [(SHAPES, (3,)), (((), (N,)), ())])
def test_rows_of_steps_for_all_elements_are_told_two_ways_out(shapes, tail, rng):
    wind = rng.standard_normal((N_STEPS, *tail))
    with pytest.raises(ValueError, match="must have shape") as caught:
        check_series("wind", wind, shapes)
    ways = re.search(r"the rows of 7 steps, .* pass `(.*)` or `(.*)`", str(caught.value))
    for way in ways.groups():
        value = check_series("wind", eval(way, {"Signal": Signal, "np": np, "wind": wind}), shapes)
        rows = series_rows(value, shapes[-1], N_STEPS)
        np.testing.assert_array_equal(rows, np.broadcast_to(wind[:, None], (N_STEPS, N, *tail)))


def test_a_shape_has_one_reading_whatever_the_number_of_steps(rng):
    each = rng.standard_normal((N, 3))
    rows = series_rows(check_series("wind", each, SHAPES), SHAPES[-1], N)
    np.testing.assert_array_equal(rows, each[None])  # constant, although N steps have N rows too


def test_a_signal_of_what_is_constant_is_refused_by_name():
    signal = Signal([0.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"`stiffness` must .* a `Signal` stands only for what"):
        Springs([[0, 1]], signal, rest_length=1.0)
    with pytest.raises(ValueError, match=r"`sphere_radius` must .* a `Signal` stands only"):
        SphereContact(sphere_radius=signal)
