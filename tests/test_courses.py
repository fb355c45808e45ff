"""Signals and policies: their rows, twins, and what is refused."""

import numpy as np
import pytest

from adjoint.courses import course_vjp
from adjoint.series import series_rows_vjp
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.taylor_test import taylor_test
from adjsim.courses import Policy, Signal, TimeCourse, course_jvp
from adjsim.forces.springs import Springs


def test_a_signal_is_linear_between_knots_and_constant_beyond():
    signal = Signal([1.0, 3.0, 4.0], [2.0, 6.0, -1.0])
    np.testing.assert_allclose(signal.sample(7), [2.0, 2.0, 4.0, 6.0, -1.0, -1.0, -1.0], rtol=1e-15)


def test_the_gradient_of_values_no_step_sees_is_zero():
    adj = series_rows_vjp(Signal([0.0, 10.0, 20.0], np.zeros(3)), (), np.ones(5))
    np.testing.assert_allclose(adj, [4.0, 1.0, 0.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("knots", "values", "message"),
    [
        ([0, 0], [1.0, 2.0], "`knots` must be step numbers that increase"),
        ([], [], "`knots` must be step numbers that increase, at least one"),
        ([0, 1], [1.0], "`values` must have one row per knot, 2, got shape"),
        ([0, 1], [1.0, np.inf], "`values` must be finite"),
    ],
)
def test_a_bad_signal_is_refused_by_name(knots, values, message):
    with pytest.raises(ValueError, match=message):
        Signal(knots, values)


N_STEPS = 9
SHAPES = {"one": (4,), "each": (5, 4), "vectors": (2, 3, 1)}


@pytest.fixture(params=SHAPES.values(), ids=SHAPES)
def policy(request, rng):
    return Policy(rng.standard_normal(request.param), rate=0.7, scale=0.3)


def test_a_policy_is_a_bounded_sum_of_phase_shifted_sinusoids(policy):
    *shape, n_sines = policy.weights.shape
    expected = np.empty((N_STEPS, *shape))
    for k in range(N_STEPS):
        for e in np.ndindex(*shape):
            angles = [0.7 * k + 2.0 * np.pi * j / n_sines for j in range(n_sines)]
            z = sum(w * np.sin(angle) for w, angle in zip(policy.weights[e], angles, strict=True))
            expected[(k, *e)] = 0.3 * np.tanh(z)
    np.testing.assert_allclose(policy.sample(N_STEPS), expected, rtol=0.0, atol=1e-15)
    assert policy.base_shape == tuple(shape)


def test_weights_of_zero_are_rest_and_huge_ones_stay_in_bounds():
    assert not Policy(np.zeros((3, 2)), 0.1).sample(5).any()
    rows = Policy(np.full((3, 2), 1e6), 0.1, 0.25, [0.0, 0.3]).sample(5)
    assert np.abs(rows).max() == 0.25


def test_the_twin_of_a_policy_is_its_derivative(policy, rng):
    r = rng.standard_normal((N_STEPS, *policy.base_shape))

    def sample(values):
        return policy.with_values(values["weights"]).sample(N_STEPS)

    def loss(values):
        return float(np.vdot(r, sample(values)))

    point, gradient = {"weights": policy.weights}, {"weights": course_vjp(policy, r)}
    dot = dot_test(
        lambda tan: course_jvp(policy, tan["weights"], N_STEPS),
        lambda adj: {"weights": course_vjp(policy, adj)},
        point,
        tolerance=1e-13,
    )
    assert dot.passed, dot.reason
    check = gradcheck(loss, gradient, point, tolerance=1e-8)
    assert check.passed, check.reason
    taylor = taylor_test(loss, gradient, point)
    assert taylor.passed, taylor.reason


def test_other_weights_keep_the_rest_of_a_policy(policy, rng):
    other = policy.with_values(rng.standard_normal(policy.weights.shape))
    assert (other.rate, other.scale) == (policy.rate, policy.scale)
    np.testing.assert_array_equal(other.phases, policy.phases)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": 1.0}, r"`weights` must have shape \(..., n_sines\), one or more, got \(\)"),
        ({"weights": np.zeros((3, 0))}, r"one or more, got \(3, 0\)"),
        ({"weights": [np.nan]}, "`weights` must be finite"),
        ({"phases": [0.0, 1.0]}, r"`phases` must have shape \(3,\)"),
        ({"scale": 0.0}, "`scale` must be positive"),
        ({"rate": np.inf}, "`rate` must be"),
    ],
)
def test_a_bad_policy_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        Policy(**{"weights": np.zeros((2, 3)), "rate": 0.1, **arguments})


def test_a_policy_of_what_is_constant_is_refused_by_name():
    with pytest.raises(ValueError, match=r"`stiffness` must .* a `Policy` stands only for what"):
        Springs([[0, 1]], Policy([1.0], 0.1), rest_length=1.0)


def test_a_course_without_a_twin_says_so():
    class Other(TimeCourse):
        base_shape, layout = (), "()"
        sample = with_values = None

    with pytest.raises(TypeError, match="Other has no tangent: register `course_jvp`"):
        course_jvp(Other(), np.zeros(3), 3)
    with pytest.raises(TypeError, match="Other has no twin: register `course_vjp`"):
        course_vjp(Other(), np.zeros(3))
