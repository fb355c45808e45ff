"""The reference time loop against closed forms of free fall and of an oscillator."""

import numpy as np

from tests.reference import half_space, neo_hookean
from tests.reference.rollout import rollout


EPS = np.finfo(np.float64).eps
X = np.array([(0.0, 1.0, 0.0), (2.0, 0.0, -1.0)])
V = np.array([(1.0, 0.0, 0.0), (0.0, 3.0, 0.5)])
DT = 0.01


def test_free_fall_is_the_sum_of_the_arithmetic_series():
    g = np.array([0.5, -9.8, 0.0])
    x, v = rollout(X, V, np.array([1.0, 7.0]), [], DT, 100, gravity=g)
    # v_K = v_0 + K dt g,  x_K = x_0 + K dt v_0 + dt^2 g K (K + 1)/2
    K = np.arange(101)[:, None, None]
    np.testing.assert_allclose(v, V + K * DT * g, atol=100 * 10 * EPS)
    np.testing.assert_allclose(x, X + K * DT * V + DT**2 * g * K * (K + 1) / 2, atol=1000 * EPS)


def test_a_pinned_node_moves_uniformly_whatever_pushes_it():
    pinned = np.array([True, False])
    push = [lambda k, x, v: np.full(x.shape, 5.0)]
    x, v = rollout(X, V, np.array([1.0, 2.0]), push, DT, 10, pinned=pinned)
    np.testing.assert_array_equal(v[:, 0], np.broadcast_to(V[0], (11, 3)))
    np.testing.assert_allclose(x[-1, 0], X[0] + 10 * DT * V[0], rtol=16 * EPS)
    assert (v[-1, 1] != V[1]).any()


def test_row_k_of_a_series_acts_in_step_k():
    series = np.array([0.0, 1.0, 0.0])
    kick = [lambda k, x, v: np.broadcast_to((series[k], 0.0, 0.0), x.shape)]
    _, v = rollout(X, 0 * V, np.array([2.0, 4.0]), kick, DT, 3, gravity=(0, 0, 0))
    np.testing.assert_array_equal(v[:, 0, 0], [0, 0, DT / 2, DT / 2])
    np.testing.assert_array_equal(v[:, 1, 0], [0, 0, DT / 4, DT / 4])


def test_frames_are_the_states_asked_for():
    everything, _ = rollout(X, V, np.ones(2), [], DT, 6)
    some, _ = rollout(X, V, np.ones(2), [], DT, 6, frames=[0, 2, 6])
    np.testing.assert_array_equal(some, everything[[0, 2, 6]])


def test_an_oscillator_keeps_the_modified_energy_of_the_symplectic_scheme():
    # x+ = x + dt v+, v+ = v - dt x conserves x^2 + v^2 - dt x v exactly.
    spring = [lambda k, x, v: -x]
    x, v = rollout(X, V, np.ones(2), spring, 0.1, 200, gravity=(0, 0, 0))
    invariant = x * x + v * v - 0.1 * x * v
    np.testing.assert_allclose(invariant, np.broadcast_to(invariant[0], x.shape), atol=1e3 * EPS)


def test_a_complex_step_through_a_soft_bounce_agrees_with_differences():
    rest = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    tets = np.array([[0, 1, 2, 3]])
    start = rest + np.array([0.0, 0.01, 0.0])
    floor = {"stiffness": 500.0, "damping": 2.0, "friction_stiffness": 3.0, "friction": 0.4}

    def height(mu):
        forces = [
            lambda k, x, v: neo_hookean.forces(x, v, rest, tets, mu, 300.0, 0.5, 0.01 * k / 50),
            lambda k, x, v: half_space.forces(x, v, (0, 1, 0), 0.0, **floor),
        ]
        v = np.broadcast_to((0.3, -0.5, 0.0), rest.shape)
        x, _ = rollout(start, v, np.full(4, 0.5), forces, 2e-3, 50, frames=[50])
        return x[0, 2, 1]

    exact = height(100.0 + 1e-30j).imag / 1e-30
    h = 1e-2
    difference = (height(100.0 + h) - height(100.0 - h)) / (2 * h)
    # Truncation ~ (h / mu)^2 = 1e-8 relative, rounding ~ eps / (h |d height/d mu|).
    assert abs(exact) > 1e-6
    np.testing.assert_allclose(difference, exact, rtol=1e-7)
