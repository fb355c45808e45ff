"""Every method finds a known optimum, within its budget, and survives being killed."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adjsim.system import RolloutError
from studies.optimizers import scipy_methods
from studies.optimizers.evaluations import has_settled, reduce_residuals
from studies.optimizers.minimize import METHODS, minimize
from studies.optimizers.problem import Method, Stall, Status
from studies.optimizers.scipy_methods import is_rough
from studies.runs.errors import StudyError
from studies.runs.evaluations import Evaluation, read_log
from studies.scene.declared import Search
from tests.studies.toy import TIMES, TRUTH, Decay


START = np.zeros(3)
RATES = {Method.ADAM: {"learning_rate": 0.1}}


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def search(method, **settings):
    choices = {"max_evaluations": 3000, "tolerance": 1e-9, **RATES.get(method, {}), **settings}
    return Search(method=method.value, **choices)


def solve(method, problem=None, start=START, **choices):
    watched = {key: choices.pop(key) for key in ("log", "callback", "stall") if key in choices}
    return minimize(problem or Decay(), np.array(start), search(method, **choices), **watched)


@pytest.mark.parametrize("method", list(Method))
def test_every_method_finds_the_truth(method):
    result = solve(method, tolerance=1e-7)
    assert result.status is Status.CONVERGED
    # the Hessian's condition number is about 1e3 here, and the gradient fell by 1e7
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-4)


def test_l_bfgs_b_goes_on_to_where_the_loss_rounds():
    # Against the loss at the start, its last falls are below rounding long before.
    result = solve(Method.LBFGSB, tolerance=1e-14)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-12)


def test_l_bfgs_b_ends_with_noise_once_its_falls_are_rounding():
    result = solve(Method.LBFGSB, Decay(noise=0.02), tolerance=1e-300)
    assert result.status is Status.CONVERGED
    assert result.evaluations <= 60


def test_gauss_newton_reaches_rounding_in_a_few_evaluations():
    result = solve(Method.GAUSS_NEWTON)
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-10)
    assert result.evaluations <= 40


def test_gauss_newton_ends_with_noise_once_steps_promise_nothing():
    evaluations = []
    result = solve(
        Method.GAUSS_NEWTON, Decay(noise=0.02), tolerance=1e-15, callback=evaluations.append
    )
    assert result.status is Status.CONVERGED
    assert result.loss > 1e-5
    assert result.evaluations <= 40
    # promised fall = g^T H^-1 g / 4 <= 1e-8 loss, so |g| <= 2 |J| sqrt(1e-8 loss)
    bound = 2.0 * np.linalg.norm(evaluations[-1].jacobian) * np.sqrt(1e-8 * result.loss)
    assert 0.0 < evaluations[-1].gradient_norm <= bound


@pytest.mark.parametrize(
    ("gradient", "rises", "expected"), [(1e-6, 3, True), (1e-6, 2, False), (1.0, 3, False)]
)
def test_trials_that_only_meet_roughness_end_the_search(gradient, rises, expected):
    def evaluation(kind, loss, jacobian=None):
        return Evaluation(kind, np.zeros(1), loss, None, jacobian, {}, 1, 1, 0.0)

    # promised fall of a free step: loss * gradient^2 for this reduced Jacobian
    slope = np.array([[gradient], [1.0]])
    losses = [1.0 + 1e-9] * rises + [1.0 - 1e-9] * (3 - rises)
    trials = [evaluation("residual", loss) for loss in losses]
    history = [evaluation("residual", 2.0), evaluation("jacobian", 1.0, slope), *trials]
    assert is_rough(history) is expected


@pytest.mark.parametrize("method", list(Method))
def test_the_budget_is_kept(method):
    evaluations = []
    result = solve(method, max_evaluations=9, tolerance=1e-12, callback=evaluations.append)
    assert result.status is Status.MAX_EVALUATIONS
    assert "max_evaluations" in result.message
    assert result.evaluations == sum(e.cost for e in evaluations) <= 9
    assert result.loss == min(e.loss for e in evaluations)


def test_a_jacobian_costs_one_evaluation_per_parameter():
    evaluations = []
    solve(Method.GAUSS_NEWTON, callback=evaluations.append)
    costs = {e.kind: e.cost for e in evaluations}
    assert costs == {"residual": 1, "jacobian": 3}


@pytest.mark.parametrize("method", list(Method))
def test_bounds_are_kept(method):
    evaluations = []
    solve(method, Decay(box=(-0.2, 0.5)), max_evaluations=60, callback=evaluations.append)
    thetas = np.array([e.theta for e in evaluations])
    assert (thetas >= -0.2).all()
    assert (thetas <= 0.5).all()
    assert np.ptp(thetas[:, 0]) > 0.3


def test_newton_cg_goes_on_along_bounds_that_stop_many_components():
    class Colors(Decay):
        target = np.linspace(-0.3, 1.3, 40)  # half a dozen below 0, as many above 1
        bounds = np.zeros(40), np.ones(40)

        def __init__(self):
            """Keep the bounds and the target of the class."""

        def loss_and_gradient(self, theta):
            off = theta - self.target
            return float(np.sum(off**2 + off**4)), 2.0 * off + 4.0 * off**3

        def values(self, theta):
            return {"colors": theta}

    # the first components begin at the bound that they are pressed against, others next to it
    result = solve(Method.NEWTON_CG, Colors(), np.linspace(0.0, 1.0, 40))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.theta, np.clip(Colors.target, 0.0, 1.0), atol=1e-8)


def test_levenberg_leaves_what_does_not_show_where_it_is():
    class Sum(Decay):
        bounds = np.full(3, -5.0), np.full(3, 5.0)

        def __init__(self):
            """Keep the bounds of the class."""

        def residuals(self, theta):
            return np.array([np.exp(theta[0] + theta[1]) - 2.0, 1e-9 * theta[2]])

        def residuals_and_jacobian(self, theta):
            slope = np.exp(theta[0] + theta[1])
            return self.residuals(theta), np.array([[slope, slope, 0.0], [0.0, 0.0, 1e-9]])

        def values(self, theta):
            return {"theta": theta}

    result = solve(Method.LEVENBERG, Sum(), [0.0, 0.0, 3.0])
    assert result.status is Status.CONVERGED
    half = np.log(2.0) / 2.0  # the nearest of all points with this sum
    np.testing.assert_allclose(result.theta[:2], half, atol=1e-8)
    assert abs(result.theta[2] - 3.0) < 1e-2


@pytest.mark.parametrize("method", list(Method))
def test_a_start_that_blows_up_is_a_status(method):
    result = solve(method, Decay(wall=-1.0))
    assert result.status is Status.NOT_FINITE
    assert result.loss == np.inf


@pytest.mark.parametrize(
    ("method", "start"),
    [(Method.GAUSS_NEWTON, [-1.9, 1.3, 1.7]), (Method.LBFGSB, [-1.5, 0.7, 0.6])],
)
def test_trial_steps_that_blow_up_are_shortened(method, start):
    evaluations = []
    problem = Decay(wall=2.5)
    how = {"max_evaluations": 200, "tolerance": 1e-8, "callback": evaluations.append}
    result = solve(method, problem, start, **how)
    assert any(e.loss == np.inf for e in evaluations)
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-5)


def test_a_gradient_that_overflows_on_its_way_back_is_a_step_too_far():
    class Explosive(Decay):
        def loss_and_gradient(self, theta):
            if np.abs(theta).max() > 2.5:
                raise RolloutError("The gradient of `a` left the finite numbers.")
            return super().loss_and_gradient(theta)

    evaluations = []
    how = {"max_evaluations": 200, "tolerance": 1e-8, "callback": evaluations.append}
    result = solve(Method.LBFGSB, Explosive(), [-1.5, 0.7, 0.6], **how)
    assert any(e.loss == np.inf for e in evaluations)
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-5)


def test_a_finite_gradient_whose_square_is_none_ends_no_search(tmp_path):
    class Steep(Decay):
        def loss_and_gradient(self, theta):
            loss, gradient = super().loss_and_gradient(theta)
            return loss, 1e200 * gradient if np.abs(theta).max() > 2.5 else gradient

    seen = []
    how = {"max_evaluations": 200, "tolerance": 1e-8, "callback": seen.append}
    result = solve(Method.LBFGSB, Steep(), [-1.5, 0.7, 0.6], log=tmp_path / "log.jsonl", **how)
    assert any(e.loss == np.inf for e in seen)
    np.testing.assert_allclose(result.theta, TRUTH, atol=1e-5)


def test_a_search_pressed_against_a_blow_up_has_not_converged():
    start = [-0.5, 0.7, -0.7]  # the way to the truth leads out of the wall
    result = solve(Method.GAUSS_NEWTON, Decay(wall=0.75), start, max_evaluations=400)
    assert result.status is not Status.CONVERGED


def test_reduced_residuals_keep_the_normal_equations(rng):
    r, jacobian = rng.normal(size=50), rng.normal(size=(50, 4))
    loss, gradient, reduced = reduce_residuals(r, jacobian)
    assert loss == pytest.approx(r @ r, rel=1e-14)
    np.testing.assert_allclose(gradient, 2.0 * jacobian.T @ r, rtol=1e-12)
    # sums of 50 products: 50 eps
    np.testing.assert_allclose(reduced.T @ reduced, jacobian.T @ jacobian, rtol=1e-12)
    np.testing.assert_allclose(2.0 * np.sqrt(loss) * reduced[0], gradient, rtol=1e-12)


def test_reduced_residuals_of_a_perfect_fit_are_finite(rng):
    loss, gradient, reduced = reduce_residuals(np.zeros(9), rng.normal(size=(9, 2)))
    assert loss == 0.0
    assert np.isfinite(reduced).all()
    assert (gradient == 0.0).all()


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("kept", [1, 5])
def test_a_log_cut_anywhere_resumes_to_the_same_bits(method, kept, tmp_path):
    full, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    first = solve(method, max_evaluations=40, log=full)
    lines = full.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:kept]) + lines[kept][:30])
    second = solve(method, max_evaluations=40, log=cut)
    assert first.loss == second.loss
    assert np.array_equal(first.theta, second.theta)
    assert without_times(full) == without_times(cut)


def test_a_log_of_another_start_is_refused(tmp_path):
    log = tmp_path / "log.jsonl"
    solve(Method.GAUSS_NEWTON, log=log)
    with pytest.raises(StudyError, match=r"log\.jsonl is of another search"):
        solve(Method.GAUSS_NEWTON, start=START + 1e-9, max_evaluations=40, log=log)


def test_a_file_that_is_no_log_is_refused(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    with pytest.raises(StudyError, match=r"log\.jsonl is damaged"):
        read_log(log)


KILLED = """
import sys, pathlib
from studies.scene.declared import Search
from studies.optimizers.minimize import minimize
from tests.studies.stopping import die_after
from tests.studies.toy import Decay
die_after(3)
how = Search(method=sys.argv[1], max_evaluations=60, tolerance=1e-9)
minimize(Decay(), [0.0, 0.0, 0.0], how, log=pathlib.Path(sys.argv[2]))
"""


class Decays(Decay):
    """Two decays and a nuisance that turns with them, with noise: six numbers."""

    def __init__(self, bend=0.1, noise=0.02):
        self.bend, self.bounds = bend, (np.full(6, -3.0), np.full(6, 3.0))
        rng = np.random.default_rng(7)
        self.target = self.model(np.tile(TRUTH, 2)) + noise * rng.standard_normal(80)

    def model(self, theta):
        more = self.bend * np.sin(3.0 * theta[::-1]).sum()
        first, second = super().model(theta[:3]), super().model(theta[3:])
        return np.concatenate([first + more * TIMES, second - more * TIMES**2])

    def residuals(self, theta):
        return self.model(theta) - self.target

    def residuals_and_jacobian(self, theta):
        h = 1e-6 * np.eye(6)
        columns = [(self.model(theta + step) - self.model(theta - step)) / 2e-6 for step in h]
        return self.residuals(theta), np.stack(columns, axis=1)

    def values(self, theta):
        return {"toy.all": theta}


@pytest.fixture
def few_kept(monkeypatch):
    """Let six numbers be enough for gradients in place of Jacobians."""
    monkeypatch.setattr(scipy_methods, "LEAST_KEPT", 6)


def kinds(log):
    return [evaluation.kind for evaluation in read_log(log)]


def test_gauss_newton_keeps_the_normal_equations_where_steps_keep_their_promise(
    tmp_path, few_kept, monkeypatch
):
    log, cut, full = (tmp_path / f"{name}.jsonl" for name in ("log", "cut", "full"))
    few = solve(Method.GAUSS_NEWTON, Decays(), np.zeros(6), log=log)
    assert few.status is Status.CONVERGED
    assert "gradient" in kinds(log)
    lines = log.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[: kinds(log).index("gradient") + 1]))
    again = solve(Method.GAUSS_NEWTON, Decays(), np.zeros(6), log=cut)
    assert np.array_equal(again.theta, few.theta)
    assert without_times(cut) == without_times(log)
    monkeypatch.setattr(scipy_methods, "LEAST_KEPT", 7)
    many = solve(Method.GAUSS_NEWTON, Decays(), np.zeros(6), log=full)
    assert "gradient" not in kinds(full)
    np.testing.assert_allclose(few.theta, many.theta, atol=1e-4)
    assert few.evaluations < 0.7 * many.evaluations


def test_a_step_that_breaks_its_promise_is_followed_by_a_jacobian(tmp_path, few_kept):
    log = tmp_path / "log.jsonl"
    bent = solve(Method.GAUSS_NEWTON, Decays(bend=1.0), np.zeros(6), log=log)
    assert bent.status is Status.CONVERGED
    assert np.linalg.norm(Decays(bend=1.0).loss_and_gradient(bent.theta)[1]) < 1e-2
    logged = read_log(log)
    triples = zip(logged, logged[1:], logged[2:], strict=False)
    after = {
        third.kind
        for first, second, third in triples
        if (first.kind, second.kind) == ("gradient", "residual") and second.loss >= first.loss
    }
    assert after == {"jacobian"}


@pytest.mark.parametrize("method", [Method.GAUSS_NEWTON, Method.LBFGSB])
def test_a_run_killed_in_the_middle_resumes_to_the_same_bits(method, tmp_path):
    full, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    first = solve(method, max_evaluations=60, log=full)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(method), str(cut)]
    assert subprocess.run(command, env=env, check=False).returncode == -signal.SIGKILL
    assert len(read_log(cut)) == 3 < len(read_log(full))
    assert np.array_equal(first.theta, solve(method, max_evaluations=60, log=cut).theta)
    assert without_times(full) == without_times(cut)


def without_times(log):
    records = [json.loads(line) for line in log.read_text().splitlines()]
    for record in records:
        del record["seconds"], record["crc32"]
    return records


@pytest.mark.parametrize("method", list(Method))
def test_no_search_asks_for_more_than_its_numbers_can_tell(method, monkeypatch):
    tolerances, real = [], METHODS[method]

    def seen(evaluator, theta, settings):
        tolerances.append(settings.tolerance)
        return real(evaluator, theta, settings)

    monkeypatch.setitem(METHODS, method, seen)
    for dtype in ("float64", "float32"):
        problem = Decay()
        problem.dtype = dtype
        solve(method, problem, max_evaluations=5)
    assert tolerances == [1e-9, pytest.approx(10 * 2.0**-23)]


class Rugged(Decay):
    """A gradient that is a little off, as that of a loss with jumps is."""

    def loss_and_gradient(self, theta):
        loss, gradient = super().loss_and_gradient(theta)
        return loss, gradient + np.array([1e-4, -1e-4, 2e-4])


def test_a_loss_that_no_longer_falls_ends_the_search():
    how = {"problem": Rugged(noise=0.02), "tolerance": 1e-12}
    plain, watched = (solve(Method.LBFGSB, **how, stall=stall) for stall in (None, Stall()))
    assert watched.status is Status.SETTLED
    assert watched.status.is_finished
    assert watched.evaluations < 0.7 * plain.evaluations
    assert watched.loss <= (1.0 + 1e-4) * plain.loss


def test_a_blown_up_trial_is_no_sign_of_a_settled_loss():
    losses = [1.0, 0.5, np.inf, np.inf, np.inf, 0.4]
    history: list[Any] = [
        SimpleNamespace(kind="gradient", theta=np.array([float(i)]), loss=loss)
        for i, loss in enumerate(losses)
    ]
    assert not has_settled(history, Stall(1e-4, 2))
    assert not has_settled([*history, *history[-1:] * 2], Stall(1e-4, 2))  # no new theta
    others = [SimpleNamespace(kind="residual", theta=np.full(1, -k), loss=0.4) for k in (1.0, 2.0)]
    flat = [*history, *others]
    assert has_settled(flat, Stall(1e-4, 2))
    assert not has_settled(flat, Stall(1e-4, 3))
    best = min(trial.loss for trial in history)
    few = len([trial for trial in history if np.isfinite(trial.loss)]) - 1
    assert has_settled(history, Stall(1e-4, 2, hopeless=0.9 * best, tries=few))
    assert not has_settled(history, Stall(1e-4, 2, hopeless=1.1 * best, tries=few))
    assert not has_settled(history, Stall(1e-4, 2, hopeless=0.9 * best, tries=few + 1))


def test_a_search_that_its_steps_do_not_bring_low_enough_is_given_up():
    how = {"problem": Decay(noise=0.02), "tolerance": 1e-12}
    end = solve(Method.GAUSS_NEWTON, **how)
    within = solve(Method.GAUSS_NEWTON, **how, stall=Stall(0.0, needed=1.1 * end.loss))
    assert (within.theta == end.theta).all()
    given_up = solve(Method.GAUSS_NEWTON, **how, stall=Stall(0.0, needed=0.01 * end.loss))
    assert given_up.status is Status.SETTLED
    assert given_up.evaluations < end.evaluations


@pytest.mark.parametrize("method", list(Method))
def test_a_loss_that_falls_geometrically_has_not_settled(method):
    trials = 8 if method in (Method.LBFGSB, Method.GAUSS_NEWTON) else 30
    plain, watched = (solve(method, tolerance=1e-7, stall=s) for s in (None, Stall(1e-4, trials)))
    assert plain.status is watched.status is Status.CONVERGED
    assert np.array_equal(plain.theta, watched.theta)


def test_a_search_that_settles_is_resumed_to_the_same_bits(tmp_path):
    problem = Decay(noise=0.02)
    how = {"tolerance": 1e-300, "stall": Stall(1e-2, 3), "log": tmp_path / "log"}
    first = solve(Method.LBFGSB, problem, **how)
    lines = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    (tmp_path / "log").write_bytes(b"".join(lines[:3]))
    again = solve(Method.LBFGSB, problem, **how)
    assert first.status is again.status is Status.SETTLED
    assert np.array_equal(first.theta, again.theta)
    assert len((tmp_path / "log").read_bytes().splitlines()) == len(lines)
