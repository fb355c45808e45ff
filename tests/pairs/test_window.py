"""The window of two edges: values by hand, another program's mollifier, both derivatives."""

import numpy as np
import pytest

from adjoint.pairs.window import window_gradient_vjp
from adjoint.verify.contract import EPS, relative, vectors
from adjsim.pairs.closest import EDGES, closest, closest_jvp
from adjsim.pairs.window import bump, mollifier, window, window_gradient, window_gradient_jvp
from tests.pairs.features import CASES, central, crossed, pair


OF_EDGES = [name for name, (code, *_) in CASES.items() if code == EDGES]


def at(y):
    return closest(float(EDGES), vectors(y))


def gradient_jvp(nearest, tangent):
    """The tangents of omega and of its gradient."""
    tan_r, tan_1, tan_2, tan_s, tan_t, _ = closest_jvp(nearest, vectors(tangent))
    return window_gradient_jvp(nearest, tan_r, tan_1, tan_2, tan_s, tan_t)


def test_the_window_is_one_in_the_middle_and_flat_at_the_ends():
    for s in (0.1, 0.3, 0.5, 0.875):
        np.testing.assert_array_equal(bump(s), (1.0, 0.0, 0.0))
    assert bump(0.05) == (0.5, 18.75, 0.0)
    assert bump(0.975) == pytest.approx((0.103515625, -10.546875, 562.5), rel=1e-12)
    for s in (0.0, 1.0, -0.5, 2.0):
        np.testing.assert_array_equal(bump(s), (0.0, 0.0, 0.0))


def test_the_mollifier_grows_from_parallel_edges_to_crossing_ones():
    np.testing.assert_array_equal(mollifier(0.0), (0.0, 0.0, 0.0))
    np.testing.assert_array_equal(mollifier(1.0), (1.0, 0.0, 0.0))
    assert mollifier(0.075) == pytest.approx((0.5, 12.5, 0.0), abs=1e-12)
    assert mollifier(np.sin(np.radians(20.0)) ** 2)[0] > 0.92


@pytest.mark.parametrize("flank", [bump, mollifier])
@pytest.mark.parametrize("at", [0.0, 0.1, 0.15, 0.9, 1.0])
def test_both_are_twice_differentiable(flank, at):
    for order in range(3):
        before, after = (flank(at + side)[order] for side in (-1e-9, 1e-9))
        assert after == pytest.approx(before, abs=1e-3)


RIGHT = 0.5 * np.pi


@pytest.mark.parametrize(
    ("corners", "omega"),
    [
        (crossed(0.5, 0.5, RIGHT), 1.0),
        (crossed(0.25, 0.5, RIGHT), 1.0),
        (crossed(0.05, 0.5, RIGHT), 0.5),
        (crossed(0.05, 0.95, RIGHT), 0.25),
        (crossed(-0.1, 0.5, 1.0), 0.0),
        (crossed(0.5, 1.1, 1.0), 0.0),
        (crossed(0.5, 0.5, np.arcsin(np.sqrt(0.075))), 0.5),  # g = 0.075
    ],
)
def test_values_worked_by_hand(corners, omega):
    nearest = at(relative(corners))
    assert window(nearest)[0] == pytest.approx(omega, abs=1e-11)
    assert window_gradient(nearest)[0] == window(nearest)[0]


def test_parallel_edges_do_not_count():
    for angle in (0.0, np.pi):
        omega, gradient = window_gradient(at(relative(crossed(0.5, 0.5, angle))))
        assert omega == 0.0
        assert not np.any(gradient)


@pytest.mark.parametrize("name", OF_EDGES)
def test_gradient_matches_central_differences(name):
    _, corners, near = pair(name)
    y = relative(corners)
    gradient = np.array(window_gradient(at(y))[1])
    by = [
        central(lambda z: window(at(z))[0], y, u.reshape(3, 3), 1e-3 * near**2) for u in np.eye(9)
    ]
    np.testing.assert_allclose(
        gradient.ravel(), by, rtol=0, atol=5e-9 * (1.0 + np.abs(gradient).max()) / near**2
    )


@pytest.mark.parametrize("name", OF_EDGES)
def test_second_derivatives_match_central_differences_and_are_symmetric(name):
    _, corners, near = pair(name)
    y = relative(corners)
    H = np.array([np.ravel(gradient_jvp(at(y), u.reshape(3, 3))[1]) for u in np.eye(9)])
    by = [
        central(lambda z: np.ravel(window_gradient(at(z))[1]), y, u.reshape(3, 3), 1e-3 * near**2)
        for u in np.eye(9)
    ]
    np.testing.assert_allclose(H, by, rtol=0, atol=1e-8 * np.abs(H).max() / near**2)
    np.testing.assert_allclose(H, H.T, rtol=0, atol=100 * EPS * np.abs(H).max() / near**2)


@pytest.mark.parametrize("name", OF_EDGES)
def test_second_derivatives_along_the_gradient(name):
    """Where a wrong term that random directions miss is as large as the whole."""
    _, corners, near = pair(name)
    y = relative(corners)
    along = np.array(window_gradient(at(y))[1])
    along += 1e-9  # some direction even where it is 0
    along /= np.linalg.norm(along)
    tan_omega, tan_gradient = gradient_jvp(at(y), along)
    h = 1e-3 * near**2
    assert tan_omega == pytest.approx(
        central(lambda z: window(at(z))[0], y, along, h), rel=5e-9 / near**2, abs=1e-9
    )
    by = central(lambda z: np.array(window_gradient(at(z))[1]), y, along, h)
    np.testing.assert_allclose(tan_gradient, by, rtol=0, atol=1e-8 / near**2 * np.abs(by).max())


@pytest.mark.parametrize("name", OF_EDGES)
def test_tangent_and_adjoint_are_transposes(rng, name):
    _, corners, near = pair(name)
    nearest = at(relative(corners))
    gradient = window_gradient(nearest)[1]
    for _ in range(8):
        t, adj = rng.standard_normal((2, 3, 3))
        adj_omega = rng.standard_normal()
        tan_omega, tan_gradient = gradient_jvp(nearest, t)
        back = window_gradient_vjp(nearest, gradient, adj_omega, vectors(adj))
        forward = adj_omega * tan_omega + np.vdot(adj, tan_gradient)
        size = abs(adj_omega * tan_omega) + np.linalg.norm(adj) * np.linalg.norm(tan_gradient)
        assert abs(forward - np.vdot(back, t)) <= max(1e-12, 1e-16 / near**2) * size
