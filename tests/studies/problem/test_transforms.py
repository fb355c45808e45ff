"""Transforms between theta and natural parameters, and the blocks built on them."""

import numpy as np
import pytest

from studies.problem.parameters import Identity, Log, Parameters, Scaled
from tests.studies.problem.free import block, positive_block


TRANSFORMS = [Identity(), Scaled(np.array([[0.3], [4.0]])), Log()]
EPS = np.finfo(np.float64).eps


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(params=TRANSFORMS, ids=lambda t: type(t).__name__)
def transform(request):
    return request.param


def test_theta_and_natural_values_are_inverse(transform, rng):
    theta = rng.uniform(-2.0, 2.0, (2, 7))
    # exp and log lose one eps each; lam - mu/8 cancels by at most e^4/8 ~ 7
    np.testing.assert_allclose(transform.theta(transform.natural(theta)), theta, atol=1e-12)


def test_the_rate_is_the_derivative(transform, rng):
    theta, tan = rng.normal(size=(2, 2, 5))
    h = 1e-20  # complex step: no cancellation, so 1e-12 is eps times a few operations
    derivative = (
        transform.natural(theta + 1j * h * tan).imag / h
        if not isinstance(transform, Identity)
        else tan
    )
    np.testing.assert_allclose(transform.rate(theta) * tan, derivative, rtol=1e-12, atol=1e-14)


def test_box_in_theta_holds_the_natural_box(transform, rng):
    lower, upper = np.array([[1.0], [2.0]]), np.array([[3.0], [9.0]])
    low, high = transform.box(lower, upper)
    for _ in range(50):
        theta = transform.theta(rng.uniform(lower, upper))
        assert (theta >= low - EPS).all()
        assert (theta <= high + EPS).all()


def test_scaled_values_may_be_of_either_sign_and_have_no_bounds_of_their_own():
    free = Parameters([block("t", Scaled(np.array([[0.5], [2.0]])), [[-1.0], [3.0]])])
    np.testing.assert_array_equal(free.start, [-2.0, 1.5])
    assert np.isinf(free.lower).all()
    assert np.isinf(free.upper).all()


def test_log_refuses_a_negative_value():
    with pytest.raises(ValueError, match="must be positive"):
        Log().theta(np.array([-1.0]))


def make_parameters():
    return Parameters(
        [
            positive_block("beam.mu", 3.0, {"beam.mu": (1.0, 9.0)}),
            positive_block("beam.lam", 4.0),
            block("gravity", Identity(), [0.0, -9.8, 0.0]),
            positive_block("floor.friction", 0.5),
        ]
    )


def test_parameters_start_where_they_are_told():
    parameters = make_parameters()
    values = parameters.values(parameters.start)
    assert values["beam.mu"] == pytest.approx(3.0, rel=1e-14)
    assert values["beam.lam"] == pytest.approx(4.0, rel=1e-14)
    assert values["gravity"].tolist() == [0.0, -9.8, 0.0]
    assert parameters.labels[2:] == ("gravity[0]", "gravity[1]", "gravity[2]", "floor.friction")
    assert parameters.theta_labels[:2] == ("log beam.mu", "log beam.lam")
    assert np.isinf(parameters.upper[2:]).all()
    assert parameters.upper[0] == pytest.approx(np.log(9.0), rel=1e-14)


def test_gradient_is_the_transpose_of_the_tangents(rng):
    parameters = make_parameters()
    theta = parameters.start + 0.1 * rng.normal(size=parameters.size)
    tan = rng.normal(size=parameters.size)
    adjoints = {path: rng.normal(size=np.shape(v)) for path, v in parameters.values(theta).items()}
    tangents = parameters.natural_tangents(theta, tan)
    left = sum(np.vdot(adjoints[path], tangents[path]) for path in parameters.paths)
    assert left == pytest.approx(parameters.gradient(theta, adjoints) @ tan, rel=1e-12)
    flat = np.concatenate([np.ravel(tangents[path]) for path in parameters.paths])
    np.testing.assert_allclose(parameters.natural_rates(theta) * tan, flat, rtol=1e-12)
