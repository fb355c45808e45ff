"""The chain from theta to pixels: both derivatives, against differences and each other."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from studies.certificate import certificate, check_point
from studies.optimizers.problem import NotFiniteError
from studies.parameters import Parameters, positive_block
from studies.problem.making import make_problem
from studies.registry import RunOptions
from studies.uncertainty import spectrum, uncertainty
from studies.wires import Outer, Wire, Wires
from tests.studies.bundled.test_fields import file_of
from tests.studies.toy_beam import toy_fit


@pytest.fixture(scope="module")
def problem():
    return toy_fit().problem


@pytest.fixture(scope="module")
def noisy():
    return toy_fit("noise.level=0.02", "noise.eight_bit=true")


def hidden_theta(fit):
    block = fit.problem.parameters.blocks[0]
    return block.transform.theta(np.array([[v] for v in fit.truth.values.values()])).ravel()


def test_loss_is_the_square_of_the_residuals(problem):
    theta = problem.parameters.start
    r = problem.residuals(theta)
    assert r @ r == pytest.approx(problem.loss_at(theta), rel=1e-12)
    assert problem.loss_at(theta) > 1e-6


def test_gradient_and_jacobian_agree(problem):
    theta = problem.parameters.start
    loss, gradient = problem.loss_and_gradient(theta)
    r, jacobian = problem.residuals_and_jacobian(theta)
    assert loss == pytest.approx(r @ r, rel=1e-12)
    # tangent and adjoint of the same chain: rounding of about 1e4 summed terms
    np.testing.assert_allclose(gradient, 2.0 * jacobian.T @ r, rtol=1e-9)


def test_the_start_and_the_optimum_pass_their_certificate(problem):
    hidden = hidden_theta(toy_fit())
    certified = certificate(problem, hidden + 1e-4, RunOptions())
    assert certified["passed"]
    for point in certified["points"].values():
        assert point["taylor"]["slope1"] >= 1.9
        assert point["dot"]["residual"] <= 1e-10


def test_a_wrong_gradient_fails_its_certificate(problem):
    class Wrong(type(problem)):
        def pull_back(self, theta, judge):
            loss, gradient = super().pull_back(theta, judge)
            return loss, gradient * np.array([1.0, 1.001])

    wrong = Wrong(
        problem.motion, problem.filming, problem.parameters, problem.loss, problem.targets
    )
    point = check_point(wrong, problem.parameters.start, 0)
    assert not point["passed"]
    assert not point["taylor"]["passed"]
    assert not point["dot"]["passed"]


def test_a_rollout_that_blows_up_is_told_as_not_finite(problem):
    stiff = problem.parameters.blocks[0].transform.theta(np.array([[1e9], [1e9]])).ravel()
    for evaluate in (problem.residuals, problem.loss_and_gradient, problem.residuals_and_jacobian):
        with pytest.raises(NotFiniteError, match=r"left the finite numbers.*Try `time\.dt` below"):
            evaluate(stiff)


def test_intervals_of_plain_least_squares_have_the_textbook_width(noisy):
    fit = toy_fit("loss.kind=mse", "noise.level=0.02")
    theta = hidden_theta(fit)
    spread = uncertainty(fit.problem, theta, noise=0.02)
    _, jacobian = fit.problem.residuals_and_jacobian(theta)
    covariance = 0.02**2 / fit.problem.n_pixels * np.linalg.inv(jacobian.T @ jacobian)
    half = (spread.theta_interval[1] - spread.theta_interval[0]) / 2.0
    # Student's t at 95 % and about 9 000 degrees of freedom is 1.9602
    np.testing.assert_allclose(half, 1.9602 * np.sqrt(np.diag(covariance)), rtol=1e-4)


def test_the_noise_of_a_pixel_is_found(noisy):
    spread = uncertainty(noisy.problem, hidden_theta(noisy))
    # rounding to 8 bits adds 1/12 of a level squared; 9 000 pixels give 1/sqrt(2 N) = 0.8 %
    expected = np.hypot(0.02, 1.0 / 255.0 / np.sqrt(12.0))
    assert spread.noise == pytest.approx(expected, rel=0.04)
    low, high = spread.interval
    assert (low > 0.0).all()
    assert (low < high).all()


def test_intervals_hold_the_truth_in_most_noise_seeds():
    fit = toy_fit("noise.level=0.02", "noise.eight_bit=true", "noise.repeats=40")
    covered = fit._coverage(hidden_theta(fit))
    # 95 % of 40 is 38; fewer than 33 has probability 0.3 % if the intervals are right
    assert min(covered["covered"].values()) >= 33


def test_too_many_parameters_have_leading_singular_values_and_no_intervals(monkeypatch):
    problem = make_problem(file_of("cloth-velocity")).problem
    theta = problem.parameters.start
    whole, directions = spectrum(problem.residuals_and_jacobian(theta)[1])
    for name, value in (("LARGEST", 1), ("LEADING", 3), ("SPARE", 4)):
        monkeypatch.setattr(f"studies.uncertainty.{name}", value)
    spread = uncertainty(problem, theta)
    assert "more than 1 parameters" in spread.reason
    assert np.isnan(spread.interval[0]).all()
    # the error falls with a power of the ratio of the eighth value to the third, below 1/2 here
    np.testing.assert_allclose(spread.singular_values, whole[:3], rtol=0.03)
    along = np.abs((spread.directions * directions[:3]).sum(axis=1))
    assert along.min() > 0.9
    told = spread.to_dict(problem.parameters.theta_labels)
    assert told["condition"] is None
    assert told["worst_direction"] == {}
    assert told["best_direction"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_masses_and_moduli_scaled_together_leave_no_trace(problem, dtype):
    # Without viscosity the motion depends on the moduli over the masses only.
    system = problem.motion.system
    solid = system.forces["beam"]
    wires = [Wire("mass", "mass", Outer(system.mass))]
    wires += [Wire("moduli", f"beam.{key}", Outer(getattr(solid, key))) for key in ("mu", "lam")]
    blocks = [positive_block(name, 1.0) for name in ("mass", "moduli")]
    values = {"beam.viscosity": 0.0} if solid.viscosity is not None else {}
    scaled = replace(problem.with_dtype(dtype), parameters=Parameters(blocks, Wires(tuple(wires))))
    scaled = replace(scaled, motion=scaled.motion.with_values(values))
    spread = uncertainty(scaled, scaled.parameters.start)
    assert "leaves no trace" in spread.reason
    np.testing.assert_allclose(np.abs(spread.directions[-1]), np.sqrt(0.5), rtol=1e-4)
    assert np.isnan(spread.interval).all()


def test_an_invisible_direction_has_no_intervals(problem):
    blind = problem.with_targets(problem.targets)
    object.__setattr__(blind, "residuals_and_jacobian", lambda theta: (np.ones(3), np.ones((3, 2))))
    assert "leaves no trace" in uncertainty(blind, problem.parameters.start).reason


def test_a_video_of_few_values_gives_a_spectrum_but_no_intervals(rng):
    jacobian = rng.standard_normal((3, 4))
    problem = SimpleNamespace(
        images=lambda theta: np.full((1, 1, 1, 4), 0.5),
        targets=np.zeros((1, 1, 1, 3)),
        residuals_and_jacobian=lambda theta: (np.zeros(3), jacobian),
        dtype="float64",
    )
    spread = uncertainty(problem, np.zeros(4))
    assert "no more values than there are parameters" in spread.reason
    assert np.isnan(spread.interval).all()
    assert np.isfinite(spread.noise)
    np.testing.assert_allclose(
        spread.singular_values, np.linalg.svd(jacobian, compute_uv=False), rtol=1e-12
    )
    assert spread.to_dict(tuple("abcd"))["condition"] is None
