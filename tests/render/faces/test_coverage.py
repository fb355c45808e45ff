import math

import numpy as np
import pytest

from adjoint.render.faces.coverage import (
    nearest_on_boundary,
    signed_square_distance_jvp,
    signed_square_distance_vjp,
)
from adjoint.render.raster.fragments import fragment_logit_jvp, fragment_logit_vjp
from render.faces.coverage import (
    coverage,
    exp_minus,
    inside,
    log_coverage,
    sigmoid_parts,
    signed_square_distance,
)
from render.raster.fragments import fragment_logit
from tests.render.elements import check_element


TRIANGLE = ((0.0, 0.0), (4.0, 0.0), (0.0, 3.0))
DEPTHS = (2.0, 3.0, 4.0)
PIXELS = {
    "inside": (1.0, 0.4),
    "beyond an edge": (1.5, -0.3),
    "beyond the long edge": (3.0, 2.5),
    "beyond a corner": (-0.3, -0.4),
    "beyond the sharp corner": (4.6, -0.2),
}


@pytest.mark.parametrize(
    ("p", "expected"),
    [((1.0, 0.5), 0.25), ((1.0, -2.0), -4.0), ((-3.0, -4.0), -25.0), ((7.0, 4.0), -25.0)],
)
def test_the_squared_distance_is_that_to_the_nearest_boundary_point(p, expected):
    assert signed_square_distance(p, *TRIANGLE) == pytest.approx(expected, rel=1e-14)
    assert signed_square_distance(p, *TRIANGLE[::-1]) == pytest.approx(expected, rel=1e-14)


def test_the_boundary_counts_as_inside_at_distance_zero():
    assert inside((2.0, 0.0), *TRIANGLE)
    assert signed_square_distance((2.0, 0.0), *TRIANGLE) == 0.0
    assert coverage(0.0) == (0.5, 0.5)


@pytest.mark.parametrize("y", [-800.0, -40.0, -3.0, 0.0, 0.7, 40.0, 800.0])
def test_coverage_and_its_complement_keep_their_digits(y):
    D, rest = coverage(y)
    log_D = log_coverage(y, D, rest)
    assert D + rest == pytest.approx(1.0, rel=3e-16)
    if abs(y) < 700:
        assert pytest.approx(1 / (1 + math.exp(-y)), rel=1e-15) == D
        assert pytest.approx(1 / (1 + math.exp(y)), rel=1e-15) == rest
        assert log_D == pytest.approx(-math.log1p(math.exp(-y)), rel=1e-14)
    assert log_D <= 0.0
    assert math.isfinite(log_D)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_exponential_that_vectorises_is_that_of_the_library_to_two_roundings(rng, dtype):
    eps, tiny = np.finfo(dtype).eps, np.finfo(dtype).tiny
    a = np.concatenate([[0.0], 10.0 ** rng.uniform(-20, 3, 4000), rng.uniform(0.0, 750.0, 4000)])
    got = np.array([exp_minus(x) for x in a.astype(dtype)], dtype)
    exact = np.exp(-a.astype(dtype).astype(np.longdouble))
    assert np.abs(got - exact).max() <= 2 * eps
    normal = (exact > tiny) & (a < 708.0)  # beyond, it is 0
    assert (np.abs(got - exact)[normal] <= 2 * eps * exact[normal]).all()
    assert got[0] == 1.0
    assert exp_minus(dtype(np.inf)) == 0.0
    assert (got[exact < tiny / 2] <= tiny).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_ways_to_the_coverage_agree(rng, dtype):
    for y in rng.normal(scale=30.0, size=500).astype(dtype):
        D, rest = sigmoid_parts(y, exp_minus(abs(y)))
        np.testing.assert_allclose((D, rest), coverage(y), rtol=6 * np.finfo(dtype).eps)


@pytest.mark.parametrize("pixel", PIXELS)
def test_the_nearest_boundary_point_is_at_the_distance(pixel):
    p = PIXELS[pixel]
    o, w = nearest_on_boundary(p, *TRIANGLE)
    assert min(w) == 0.0
    assert sum(w) == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(np.subtract(p, o), np.array(w) @ TRIANGLE, atol=1e-14)
    distance = abs(signed_square_distance(p, *TRIANGLE))
    assert o[0] ** 2 + o[1] ** 2 == pytest.approx(distance, rel=1e-14)


@pytest.mark.parametrize("pixel", PIXELS)
@pytest.mark.parametrize("turn", [1, -1])
def test_the_twins_of_the_signed_distance_are_its_derivatives(rng, pixel, turn):
    p = PIXELS[pixel]
    check_element(
        rng,
        lambda a0, a1, a2: signed_square_distance(p, a0, a1, a2),
        lambda a, t: signed_square_distance_jvp(p, *a, *t),
        lambda a, c: signed_square_distance_vjp(p, *a, c),
        TRIANGLE[::turn],
    )


@pytest.mark.parametrize("pixel", PIXELS)
def test_the_twins_of_the_logit_are_its_derivatives(rng, pixel):
    p = PIXELS[pixel]
    zero = (0.0, 0.0, 0.0)

    def vjp(a, c):
        return fragment_logit_vjp(p, (*a[:3], DEPTHS), a[3], fragment_logit(p, *a), c)

    check_element(
        rng,
        lambda a0, a1, a2, sigma: fragment_logit(p, a0, a1, a2, sigma),
        lambda a, t: fragment_logit_jvp(p, (*a[:3], DEPTHS), (*t[:3], zero), a[3], t[3]),
        vjp,
        (*TRIANGLE, 0.3),
    )


def test_on_the_medial_axis_the_first_nearest_edge_counts():
    square = ((0.0, 0.0), (2.0, 0.0), (0.0, 2.0))
    p = (0.25, 0.25)  # as far from edge 1 (corners 2, 0) as from edge 2 (corners 0, 1)
    np.testing.assert_allclose(signed_square_distance_vjp(p, *square, 1.0)[1], (0.0, 0.0))
    tangent = signed_square_distance_jvp(p, *square, (1.0, 0.0), (0.0, 0.0), (1.0, 0.0))
    assert tangent == pytest.approx(-0.5)
