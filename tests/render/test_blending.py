import numpy as np
import pytest

from adjoint.render.blending import (
    FragmentAdjoints,
    FragmentTangents,
    over_jvp_body,
    over_vjp_body,
    softmax_jvp_body,
    softmax_vjp_body,
)
from render.blending import SOFTMAX, over_body, softmax_body
from render.faces.coverage import coverage
from render.faces.face_setup import Settings
from tests.render.elements import empty_list


BACKGROUND = np.array([0.2, 0.5, 0.9])


def settings(gamma=0.05, epsilon=0.9):
    """Numbers of a render; sigma and the bounds do not matter to a pixel."""
    numbers = (1e-3, gamma, epsilon, 0.1, 100.0, -23.0, 2.2e-16)
    return Settings(*map(np.float64, numbers), blend=SOFTMAX, cull=False, is_deep=True)


def pixel(rng, n, spread=3.0):
    """n fragments in a list that is not the identity."""
    order = rng.permutation(n).astype(np.int32)
    z = np.empty(n)
    z[order] = np.sort(rng.uniform(1.0, 20.0, n))
    y = rng.normal(scale=spread, size=n)
    return covered(empty_list(n)._replace(y=y, z=z, rgb=rng.random((n, 3)), order=order))


def covered(fragments):
    """The fragments with the coverage that their logits give."""
    D, rest = np.array([coverage(y) for y in fragments.y]).reshape(-1, 2).T.copy()
    return fragments._replace(D=D, rest=rest)


def poisoned(n):
    """Room for the adjoints of n fragments, filled with what must not survive."""
    return FragmentAdjoints(*(np.full(n, np.inf) for _ in range(4)), np.full((1, 4), np.inf))


def test_over_lays_the_nearest_over_the_rest(rng):
    fragments = pixel(rng, 5)
    D = 1 / (1 + np.exp(-fragments.y))
    color, alpha = BACKGROUND, 0.0
    for q in fragments.order[::-1]:  # from the back
        color = D[q] * fragments.rgb[q] + (1 - D[q]) * color
        alpha = D[q] + (1 - D[q]) * alpha
    expected = [*color, alpha]
    np.testing.assert_allclose(over_body(0, 5, fragments, BACKGROUND), expected, rtol=1e-14)


def test_softmax_weighs_by_coverage_and_nearness(rng):
    fragments, numbers = pixel(rng, 5), settings()
    D = 1 / (1 + np.exp(-fragments.y))
    nearness = (100.0 - fragments.z) / 99.9
    w = np.append(D * np.exp(nearness / 0.05), np.exp(0.9 / 0.05))
    color = w / w.sum() @ np.vstack([fragments.rgb, BACKGROUND])
    expected = [*color, 1 - np.prod(1 - D)]
    got = softmax_body(0, 5, fragments, numbers, BACKGROUND)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_softmax_at_the_published_temperature_does_not_overflow(rng):
    fragments, numbers = pixel(rng, 4, spread=200.0), settings(gamma=1e-4, epsilon=1e-3)
    assert np.isfinite(softmax_body(0, 4, fragments, numbers, BACKGROUND)).all()
    adj = poisoned(4)
    sums = softmax_vjp_body(0, 4, fragments, numbers, BACKGROUND, (1.0, -2.0, 0.5, 3.0), adj)
    assert np.isfinite(sums[0]).all()
    assert all(np.isfinite(adjoint).all() for adjoint in (adj.y, adj.z, adj.w))


def test_a_pixel_that_sees_nothing_is_the_background():
    nothing = pixel(np.random.default_rng(0), 0)
    expected = (*BACKGROUND, 0.0)
    assert over_body(0, 0, nothing, BACKGROUND) == expected
    assert softmax_body(0, 0, nothing, settings(), BACKGROUND) == expected


def test_coverage_that_rounds_to_one_has_a_finite_adjoint(rng):
    fragments = pixel(rng, 3)
    fragments.y[:] = [50.0, 900.0, 40.0]
    fragments = covered(fragments)
    adj = poisoned(3)
    over_vjp_body(0, 3, fragments, BACKGROUND, (1.0, 1.0, 1.0, 1.0), adj)
    assert np.isfinite(adj.y).all()
    assert np.abs(adj.w[fragments.order[1:]]).max() < 1e-16


@pytest.mark.parametrize("spread", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_twins_of_over_are_its_derivatives(rng, n, spread):
    fragments = pixel(rng, n, spread)
    tangents = FragmentTangents(rng.normal(size=n), np.zeros(n), rng.normal(size=(n, 3)))
    tan_background, adj_rgba = rng.normal(size=3), rng.normal(size=4)

    def at(t):
        there = fragments._replace(
            y=fragments.y + t * tangents.y, rgb=fragments.rgb + t * tangents.rgb
        )
        return np.array(over_body(0, n, covered(there), BACKGROUND + t * tan_background))

    pushed = over_jvp_body(0, n, fragments, tangents, BACKGROUND, tan_background)
    # Third derivatives are of order 1: h^2 = 1e-10, eps/h = 1e-11.
    np.testing.assert_allclose(pushed, (at(1e-5) - at(-1e-5)) / 2e-5, atol=1e-9)
    adj = poisoned(n)
    adj_background = over_vjp_body(0, n, fragments, BACKGROUND, tuple(adj_rgba), adj)
    pulled = (
        adj.y @ tangents.y
        + adj.w @ (tangents.rgb @ adj_rgba[:3])
        + np.dot(adj_background, tan_background)
    )
    assert abs(np.dot(pushed, adj_rgba) - pulled) <= 1e-13 * np.abs(pushed).sum() + 1e-15


@pytest.mark.parametrize("spread", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_twins_of_softmax_are_its_derivatives(rng, n, spread):
    fragments, numbers = pixel(rng, n, spread), settings()
    tangents = FragmentTangents(rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, 3)))
    tan_background, adj_rgba = rng.normal(size=3), rng.normal(size=4)
    tan_gamma, tan_epsilon, tan_near, tan_far = 0.02, 0.3, 0.4, -30.0

    def at(t):
        there = fragments._replace(
            y=fragments.y + t * tangents.y,
            z=fragments.z + t * tangents.z,
            rgb=fragments.rgb + t * tangents.rgb,
        )
        moved = settings(0.05 + t * tan_gamma, 0.9 + t * tan_epsilon)
        moved = moved._replace(near=0.1 + t * tan_near, far=100.0 + t * tan_far)
        return np.array(softmax_body(0, n, covered(there), moved, BACKGROUND + t * tan_background))

    pushed = softmax_jvp_body(
        0, n, fragments, tangents, numbers, (tan_gamma, tan_epsilon, tan_near, tan_far),
        BACKGROUND, tan_background,
    )  # fmt: skip
    # u = z~/gamma moves by 20 per unit: third derivatives of order 20^3, h^2 gives 1e-6.
    h = 1e-5
    near, wide = (at(h) - at(-h)) / (2 * h), (at(2 * h) - at(-2 * h)) / (4 * h)
    np.testing.assert_allclose(pushed, (4 * near - wide) / 3, atol=1e-8)
    adj = poisoned(n)
    adj_background, (adj_gamma, adj_epsilon, adj_near, adj_far) = softmax_vjp_body(
        0, n, fragments, numbers, BACKGROUND, tuple(adj_rgba), adj
    )
    pulled = (
        adj.y @ tangents.y
        + adj.z @ tangents.z
        + adj.w @ (tangents.rgb @ adj_rgba[:3])
        + np.dot(adj_background, tan_background)
        + adj_gamma * tan_gamma
        + adj_epsilon * tan_epsilon
        + adj_near * tan_near
        + adj_far * tan_far
    )
    assert abs(np.dot(pushed, adj_rgba) - pulled) <= 1e-12 * np.abs(pushed).sum() + 1e-14
