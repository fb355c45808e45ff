"""Laplace's intervals: those of Gauss-Newton, but for how residuals bend."""

from dataclasses import replace

import numpy as np
import pytest

from studies.answer.intervals import no_intervals
from studies.answer.scales import theta_scale
from studies.fitting.laplace import laplace_intervals
from studies.fitting.solve import solve
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from tests.studies.fitting.twins import GRAVITY, LENGTH, tables, twin


def solved_with(folder, noise, **search):
    film = tables()["observations"]["film"]
    film["simulate"] |= {"noise": noise, "seed": 4}
    file = twin(observations={"film": film}, search={**tables()["search"], **search})
    folder.mkdir()
    with EvaluationProgress(400) as progress:
        return solve(make_problem(file), file.search, RunFolder(folder), progress)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return solved_with(tmp_path_factory.mktemp("runs") / "run", 0.05)


def test_the_hessian_of_a_problem_is_the_derivative_of_its_gradient(solved):
    problem, theta = solved.problem.with_dtype("float64"), solved.result.theta
    scale = theta_scale(problem.parameters, theta)
    hessian = problem.hessian(theta, scale)
    step = 1e-4 * scale[0] * np.array([1.0, 0.0])
    ahead, behind = (problem.loss_and_gradient(theta + sign * step)[1] for sign in (1, -1))
    # the error of a plain difference is of the order of 1e-8
    np.testing.assert_allclose(hessian[0], scale * (ahead - behind) / 2e-4, rtol=1e-5)


def test_laplace_and_gauss_newton_agree_where_noise_is_small(tmp_path):
    solved = solved_with(tmp_path / "run", 1e-3)
    found = laplace_intervals(solved)
    assert list(found) == ["rod.length", "world.gravity"]
    low, high = solved.intervals.pixel
    own = np.array([np.squeeze(ends) for ends in found.values()])
    # residuals of 1e-3 bend the loss by a part of about 1e-3
    np.testing.assert_allclose(np.ptp(own, axis=1), high - low, rtol=0.02)


def test_laplace_counts_how_residuals_bend(solved):
    found = laplace_intervals(solved)
    own = np.array([np.squeeze(ends) for ends in found.values()])
    low, high = solved.intervals.pixel
    ratio = np.ptp(own, axis=1) / (high - low)
    assert (np.abs(ratio - 1.0) > 1e-4).all()
    assert (np.abs(ratio - 1.0) < 0.5).all()
    assert own[0, 0] < LENGTH < own[0, 1]
    assert own[1, 0] < GRAVITY < own[1, 1]


def test_there_are_no_laplace_intervals_without_others(solved):
    none = replace(solved, intervals=no_intervals(2, "the film is short"))
    with pytest.raises(StudyError, match="There are no intervals: the film is short"):
        laplace_intervals(none)


def test_there_are_no_laplace_intervals_at_a_saddle(solved, monkeypatch):
    monkeypatch.setattr(type(solved.problem), "hessian", lambda *_: np.diag([1.0, -1.0]))
    with pytest.raises(StudyError, match="the answer is no minimum"):
        laplace_intervals(solved)


def test_newton_cg_finds_the_answer_of_a_scene(tmp_path):
    solved = solved_with(tmp_path / "run", 0.0, method="newton-cg")
    values = solved.problem.parameters.natural(solved.result.theta)
    np.testing.assert_allclose(values, [LENGTH, GRAVITY], rtol=1e-4)
