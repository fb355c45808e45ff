import numpy as np
import pytest

from adjoint.render.raster.barycentrics import (
    barycentrics_jvp,
    barycentrics_vjp,
    clip_barycentrics_jvp,
    clip_barycentrics_vjp,
    perspective_jvp,
    perspective_vjp,
    place_jvp,
    place_vjp,
)
from render.raster.barycentrics import barycentrics, clip_barycentrics, fragment_place, perspective
from tests.render.elements import check_element


TRIANGLE = ((0.1, 0.2), (4.0, 0.0), (0.3, 3.0))
DEPTHS = (2.0, 3.0, 5.0)
KINDS = {"perspective": 1.0, "orthographic": 0.0}


def test_coordinates_are_one_at_their_own_corner_and_sum_to_one():
    for k in range(3):
        np.testing.assert_allclose(barycentrics(TRIANGLE[k], *TRIANGLE), np.eye(3)[k], atol=1e-15)
    assert sum(barycentrics((7.0, -3.0), *TRIANGLE)) == pytest.approx(1.0, rel=1e-14)


def test_beyond_a_corner_the_depth_is_that_of_the_corner_to_the_bit():
    for p in KINDS.values():
        depth, w = fragment_place((6.0, -0.4), *TRIANGLE, (*DEPTHS, p))
        assert depth == DEPTHS[1]
        assert w == (0.0, 1.0, 0.0)


def test_a_sliver_without_a_positive_coordinate_gets_thirds():
    assert clip_barycentrics(-1e3, -2.0, 0.0) == (1 / 3, 1 / 3, 1 / 3)
    assert clip_barycentrics_vjp(-1e3, -2.0, 0.0, (1.0, 2.0, 3.0)) == (0.0, 0.0, 0.0)
    assert clip_barycentrics_jvp(-1e3, -2.0, 0.0, (1.0, 2.0, 3.0)) == (0.0, 0.0, 0.0)


def test_perspective_finds_the_point_of_the_line_of_sight():
    near, far = np.array([0.5, 0.25, 1.0]), np.array([-3.0, 1.0, 4.0])
    middle = near / near[2] + far / far[2]  # halfway on the screen
    depth, w = perspective((0.5, 0.5, 0.0), (near[2], far[2], 9.0, 1.0))
    point = w[0] * near + w[1] * far
    np.testing.assert_allclose(point / depth, middle / 2, rtol=1e-14)
    assert point[2] == pytest.approx(depth, rel=1e-14)


@pytest.mark.parametrize("p", [(1.0, 0.7), (2.0, -0.5), (5.0, 5.0), (-1.0, -1.0)])
def test_the_twins_of_the_coordinates_are_their_derivatives(rng, p):
    check_element(
        rng,
        lambda a0, a1, a2: barycentrics(p, a0, a1, a2),
        lambda a, t: barycentrics_jvp(p, *a, *t),
        lambda a, c: barycentrics_vjp(p, *a, c),
        TRIANGLE,
    )


@pytest.mark.parametrize("b", [(0.2, 0.3, 0.5), (-0.2, 0.9, 0.3), (1.4, -0.6, 0.2)])
def test_the_twins_of_the_clip_are_its_derivatives(rng, b):
    check_element(
        rng,
        clip_barycentrics,
        lambda a, t: clip_barycentrics_jvp(*a, t),
        lambda a, c: clip_barycentrics_vjp(*a, c),
        b,
    )


def test_an_orthographic_view_interpolates_along_straight_lines():
    depth, w = perspective((0.5, 0.25, 0.25), (*DEPTHS, 0.0))
    assert depth == 3.0
    assert w == (0.5, 0.25, 0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_the_twins_of_the_perspective_are_its_derivatives(rng, kind):
    p = KINDS[kind]
    check_element(
        rng,
        lambda b, z: perspective(b, (*z, p)),
        lambda a, t: perspective_jvp(a[0], (*a[1], p), *t),
        lambda a, c: perspective_vjp(a[0], (*a[1], p), *c),
        ((0.2, 0.3, 0.5), DEPTHS),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [(1.0, 0.7), (2.0, -0.5)])
def test_the_twins_of_the_place_are_its_derivatives(rng, kind, p):
    end = (KINDS[kind],)
    check_element(
        rng,
        lambda a0, a1, a2, z: fragment_place(p, a0, a1, a2, z + end),
        lambda a, t: place_jvp(p, (*a[:3], a[3] + end), t),
        lambda a, c: place_vjp(p, (*a[:3], a[3] + end), *c),
        (*TRIANGLE, DEPTHS),
    )
