"""The window of two edges: values by hand, another program's mollifier, both derivatives."""

import numpy as np
import pytest

from adjoint.pairs.window import window_gradient_vjp
from adjoint.verify.contract import EPS, relative, vectors
from adjsim.pairs.closest import EDGES, closest, closest_jvp
from adjsim.pairs.window import (
    bump,
    mollifier,
    window,
    window_gradient,
    window_gradient_jvp,
)
from tests.pairs.features import CASES, central, crossed, pair


OF_EDGES = [name for name, (code, *_) in CASES.items() if code == EDGES]


def at(y):
    return closest(float(EDGES), vectors(y))


def gradient_jvp(found, tangent):
    """The tangents of omega and of its gradient."""
    tan_r, tan_1, tan_2, tan_s, tan_t, _ = closest_jvp(found, vectors(tangent))
    return window_gradient_jvp(found, tan_r, tan_1, tan_2, tan_s, tan_t)


def test_the_bump_is_one_in_the_middle_and_flat_at_the_ends():
    assert bump(0.5) == (1.0, 0.0, -16.0)
    assert bump(0.25) == (0.5625, 3.0, -4.0)
    for s in (0.0, 1.0, -0.5, 2.0):
        assert bump(s) == (0.0, 0.0, 0.0)
    for s in (1e-9, 1.0 - 1e-9):
        value, slope, _ = bump(s)
        assert value < 1e-16
        assert abs(slope) < 1e-7


def test_the_mollifier_grows_to_one_without_a_step_in_its_slope():
    assert mollifier(0.0) == (0.0, 2.0, -2.0)
    assert mollifier(1.0) == (1.0, 0.0, -2.0)
    value, slope, _ = mollifier(1.0 - 1e-8)
    assert value == pytest.approx(1.0, abs=1e-15)
    assert abs(slope) < 1e-7


RIGHT = 0.5 * np.pi


@pytest.mark.parametrize(
    ("corners", "omega"),
    [
        (crossed(0.5, 0.5, RIGHT), 1.0),
        (crossed(0.25, 0.5, RIGHT), 0.5625),
        (crossed(0.25, 0.75, RIGHT), 0.5625**2),
        (crossed(-0.1, 0.5, 1.0), 0.0),
        (crossed(0.5, 1.1, 1.0), 0.0),
        (crossed(0.5, 0.5, np.arcsin(np.sqrt(0.5))), 0.75),  # g = 1/2
    ],
)
def test_values_worked_by_hand(corners, omega):
    found = at(relative(corners))
    assert window(found)[0] == pytest.approx(omega, abs=1e-11)
    assert window_gradient(found)[0] == window(found)[0]


def test_parallel_edges_do_not_count():
    for angle in (0.0, np.pi):
        omega, gradient = window_gradient(at(relative(crossed(0.5, 0.5, angle))))
        assert omega == 0.0
        assert not np.any(gradient)


def test_the_mollifier_is_that_of_ipctk(rng):
    ipctk = pytest.importorskip("ipctk")
    for _ in range(40):
        d_1 = rng.standard_normal(3)
        d_2 = d_1 * rng.uniform(0.5, 2) + 0.03 * rng.standard_normal(3)
        corners = np.array([[0, 0, 0], d_1, d_2 * 0, d_2])
        lengths = np.dot(d_1, d_1) * np.dot(d_2, d_2)
        g = np.square(np.cross(d_1, d_2)).sum() / lengths
        # Theirs takes the square of the cross product itself, and a threshold of its size.
        theirs = ipctk.edge_edge_mollifier(*corners, lengths)
        assert mollifier(g)[0] == pytest.approx(theirs, abs=1e-10)
        slope = ipctk.edge_edge_mollifier_gradient(*corners, lengths)
        cross_slope = np.cross(d_2, np.cross(d_1, d_2)) * 2 / lengths
        np.testing.assert_allclose(
            mollifier(g)[1] * cross_slope, slope[3:6], rtol=0, atol=1e-9 * np.abs(slope).max()
        )


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
    found = at(relative(corners))
    gradient = window_gradient(found)[1]
    for _ in range(8):
        t, adj = rng.standard_normal((2, 3, 3))
        adj_omega = rng.standard_normal()
        tan_omega, tan_gradient = gradient_jvp(found, t)
        back = window_gradient_vjp(found, gradient, adj_omega, vectors(adj))
        forward = adj_omega * tan_omega + np.vdot(adj, tan_gradient)
        size = abs(adj_omega * tan_omega) + np.linalg.norm(adj) * np.linalg.norm(tan_gradient)
        assert abs(forward - np.vdot(back, t)) <= max(1e-12, 1e-16 / near**2) * size
