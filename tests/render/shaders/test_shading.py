import numpy as np
import pytest

from adjoint.render.shaders.shading import (
    flat_normal_jvp,
    flat_normal_vjp,
    highlight_jvp,
    highlight_vjp,
    lambert_jvp,
    lambert_vjp,
    power_slopes,
)
from render.shaders.shading import flat_normal, highlight, lambert, power
from tests.render.elements import check_element, check_twins


NORMAL, TOWARDS, EYE = (0.6, 0.0, 0.8), (2 / 7, 3 / 7, 6 / 7), (0.48, -0.36, 0.8)
LIGHT, DIFFUSE, SPECULAR = (1.0, 0.5, 0.25), (0.9, 0.8, 0.7), (0.3, 0.6, 0.5)


def test_the_normal_of_a_face_in_the_plane_points_at_those_who_see_it_turn_left():
    n = flat_normal((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 3.0, 0.0))
    np.testing.assert_allclose(n, (0.0, 0.0, 1.0))


def test_light_falls_off_with_the_cosine():
    expected = np.array(LIGHT) * DIFFUSE * np.dot(NORMAL, TOWARDS)
    np.testing.assert_allclose(lambert(NORMAL, TOWARDS, LIGHT, DIFFUSE), expected, rtol=1e-14)


def test_a_highlight_is_brightest_where_light_is_mirrored_into_the_eye():
    straight = (0.0, 0.0, 1.0)
    shine = highlight(straight, (-2 / 7, -3 / 7, 6 / 7), TOWARDS, LIGHT, SPECULAR, 20.0)
    np.testing.assert_allclose(shine, np.array(LIGHT) * SPECULAR, rtol=1e-14)
    r = 2 * np.dot(NORMAL, TOWARDS) * np.array(NORMAL) - TOWARDS
    shine = highlight(NORMAL, EYE, TOWARDS, LIGHT, SPECULAR, 2.5)
    np.testing.assert_allclose(shine, np.array(LIGHT) * SPECULAR * (r @ EYE) ** 2.5, rtol=1e-14)


def test_a_light_behind_a_face_still_shines_from_it_as_from_a_mirror():
    # No gate: r turns with n.l, and n.l < 0 is no reason for darkness.
    behind = (0.0, 0.6, -0.8)
    shine = highlight((0.0, 0.0, 1.0), (0.0, -0.6, -0.8), behind, LIGHT, SPECULAR, 3.0)
    np.testing.assert_allclose(shine, np.array(LIGHT) * SPECULAR, rtol=1e-14)


def test_where_no_light_is_mirrored_the_highlight_and_its_slopes_are_zero():
    assert power(-0.3, 2.0) == power(0.0, 2.0) == power(0.0, 0.5) == 0.0
    for cosine in (-0.3, 0.0, -0.0):
        assert power_slopes(cosine, 1.0) == power_slopes(cosine, 0.5) == (0.0, 0.0, 0.0)
    # At the kink the slope on the side of light is p c^(p - 1), 1 for p = 1.
    assert power_slopes(1e-30, 1.0)[1] == 1.0
    away = tuple(-e for e in EYE)
    pulled = highlight_vjp(NORMAL, away, TOWARDS, LIGHT, SPECULAR, 2.0, (1.0, 1.0, 1.0))
    for adj in pulled:
        np.testing.assert_array_equal(adj, 0.0)


def test_light_from_behind_adds_nothing_and_has_no_slope():
    behind = tuple(-m for m in TOWARDS)
    assert lambert(NORMAL, behind, LIGHT, DIFFUSE) == (0.0, 0.0, 0.0)
    adj_n, adj_m, *_ = lambert_vjp(NORMAL, behind, LIGHT, DIFFUSE, (1.0, 1.0, 1.0))
    np.testing.assert_array_equal([adj_n, adj_m], 0.0)


def test_at_grazing_light_the_slope_is_zero():
    adj_n, *_ = lambert_vjp((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), LIGHT, DIFFUSE, (1.0, 1.0, 1.0))
    np.testing.assert_array_equal(adj_n, 0.0)


def test_the_twins_of_the_normal_are_its_derivatives(rng):
    args = ((0.1, 0.2, 0.3), (1.0, 0.3, -0.2), (0.2, 0.9, 0.4))
    check_element(
        rng,
        flat_normal,
        lambda a, t: flat_normal_jvp(*a, *t)[1],
        lambda a, c: flat_normal_vjp(*a, c),
        args,
    )


def test_the_twins_of_lambert_are_its_derivatives(rng):
    check_element(
        rng,
        lambert,
        lambda a, t: lambert_jvp(*a, *t)[1],
        lambda a, c: lambert_vjp(*a, c),
        (NORMAL, TOWARDS, LIGHT, DIFFUSE),
    )


@pytest.mark.parametrize("p", [0.7, 1.0, 2.5, 40.0])
def test_the_twins_of_a_highlight_are_its_derivatives(rng, p):
    check_twins(
        rng, highlight, highlight_jvp, highlight_vjp, (NORMAL, EYE, TOWARDS, LIGHT, SPECULAR, p)
    )
