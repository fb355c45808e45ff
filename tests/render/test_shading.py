import numpy as np

from adjoint.render.shading import (
    flat_normal_jvp,
    flat_normal_vjp,
    lambert_jvp,
    lambert_vjp,
)
from render.shading import flat_normal, lambert
from tests.render.elements import check_element


NORMAL, TOWARDS = (0.6, 0.0, 0.8), (0.5, 1.0, 2.0)
LIGHT, DIFFUSE = (1.0, 0.5, 0.25), (0.9, 0.8, 0.7)


def test_the_normal_of_a_face_in_the_plane_points_at_those_who_see_it_turn_left():
    n = flat_normal((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 3.0, 0.0))
    np.testing.assert_allclose(n, (0.0, 0.0, 1.0))


def test_light_falls_off_with_the_cosine_whatever_the_length_of_the_direction():
    cosine = np.dot(NORMAL, TOWARDS) / np.linalg.norm(TOWARDS)
    expected = np.array(LIGHT) * DIFFUSE * cosine
    np.testing.assert_allclose(lambert(NORMAL, TOWARDS, LIGHT, DIFFUSE), expected, rtol=1e-14)
    far = tuple(7.0 * m for m in TOWARDS)
    np.testing.assert_allclose(lambert(NORMAL, far, LIGHT, DIFFUSE), expected, rtol=1e-14)


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
