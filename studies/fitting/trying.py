"""Try the answer of a search; where its gradient is no slope of the loss, go on without gradients.

Intervals from the Jacobian are tried by the loss itself (`studies/answer/trial.py`). Where it does
not rise as promised, the search goes on with secants (`studies/optimizers/secants.py`), from the
best point that was seen, and its end is tried alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from studies.answer.intervals import FOOTAGE_FLOOR, Uncertainty, no_spread, widened
from studies.answer.scales import theta_scale
from studies.answer.trial import LEAST_SIZE, SIZES, Trial, try_answer
from studies.fitting.spread import pixel_noise, spread_of
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.minimize import MOST_TANGENTS, method_for
from studies.optimizers.problem import NOT_FINITE, Method, Result, Status
from studies.optimizers.secants import secant_jacobian, secant_search
from studies.problem.many_points import residuals_at
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.runs.progress import EvaluationProgress
from studies.scene import declared


MOST_FREE = 12  # numbers that are searched without gradients at most
EXACT = 1e-18  # part of the loss at the start: a fit to rounding, which nothing can be better than


@dataclass(frozen=True, eq=False)
class Tried:
    """An answer with its intervals, as wide as the loss about it says."""

    result: Result
    spread: Uncertainty
    trial: Trial | None  # None where nothing could be tried
    is_without_gradients: bool = False
    evaluations: int = 0  # of trials, and of the search without gradients

    def with_errors(self, parameters: Parameters, errors: Mapping[str, np.ndarray]) -> "Tried":
        """Return the answer, its intervals widened by errors of theta, (p,) each, by source."""
        own = self.spread.intervals
        for source, error in errors.items():
            more = np.outer(error, error) / own.quantile**2
            own = widened(own, parameters, self.result.theta, more, source=source)
        return replace(self, spread=replace(self.spread, intervals=own))

    def secant_distance(self, parameters: Parameters) -> np.ndarray | None:
        """Return the distances of secants, (p,); None where gradients are slopes."""
        if not self.is_without_gradients:
            return None
        scale = theta_scale(parameters, self.result.theta)
        return np.clip(self.spread.intervals.half_width, LEAST_SIZE * scale, SIZES[-1] * scale)


@dataclass(frozen=True, eq=False)
class Judge:
    """What intervals of an answer rest on beside the residuals."""

    stage: np.ndarray  # theta before held-back frames and observations were fitted too
    loss_at_start: float  # 0 if unknown
    is_twin: bool  # whether all observations are simulated
    how: declared.Search
    progress: EvaluationProgress


def try_result(problem: SceneProblem, result: Result, judge: Judge) -> Tried:
    """Return the answer and its intervals after it was tried, and searched on if it failed."""
    if result.status is Status.NOT_FINITE:
        return Tried(result, no_spread(problem.parameters.size, "the loss is not finite"), None)
    spread = _spread(problem, result.theta, judge)
    if result.loss <= EXACT * judge.loss_at_start:
        return Tried(result, spread, None)
    tried = _tried(problem, result, spread)
    size = problem.parameters.size
    if tried.trial is None or not tried.trial.is_rough or size > MOST_FREE:
        return tried
    judge.progress.say(
        "the loss about the answer does not rise as its gradient promises: going on without "
        "gradients"
    )
    start = result.theta if tried.trial.lower is None else tried.trial.lower
    end = secant_search(
        partial(residuals_at, problem),
        start,
        scale=theta_scale(problem.parameters, start),
        bounds=problem.bounds,
        most=judge.how.max_evaluations,
        say=lambda loss, h: judge.progress.say(
            f"without gradients, differences over {100 * h:.2g} %: loss {loss:.3e}"
        ),
    )
    spent = tried.evaluations + end.evaluations
    if not end.loss < tried.result.loss:
        return replace(tried, evaluations=spent)
    own = Result(end.theta, end.loss, Status.SETTLED, end.evaluations)
    again = _tried(problem, own, _secant_spread(problem, end.theta, judge))
    return replace(again, is_without_gradients=True, evaluations=spent + again.evaluations)


def _tried(problem: SceneProblem, result: Result, spread: Uncertainty) -> Tried:
    """Return the answer with intervals as wide as the losses about it say."""
    if not (problem.answers and spread.singular_values.size):
        return Tried(result, spread, None)
    parameters, own = problem.parameters, spread.intervals
    scale, half_width = theta_scale(parameters, result.theta), own.half_width
    H = (spread.directions.T * spread.singular_values**2) @ spread.directions
    if spread.reason:  # J may be so large in a number that the others leave no trace beside it
        H, half_width = np.diag(np.diag(H)), LEAST_SIZE * scale
    trial = try_answer(
        partial(residuals_at, problem),
        result.theta,
        H,
        half_width,
        scale=scale,
        components=problem.answers,
        bounds=problem.bounds,
    )
    if trial is None:
        return Tried(result, spread, None)
    if spread.reason and not trial.is_rough:
        return Tried(result, spread, None, evaluations=trial.evaluations)
    more = trial.covariance(own.quantile)
    if more.any():
        own = widened(own, parameters, result.theta, more, source="trial")
    return Tried(result, replace(spread, intervals=own), trial, evaluations=trial.evaluations)


def _spread(problem: SceneProblem, theta: np.ndarray, judge: Judge) -> Uncertainty:
    """Return intervals and spectrum; of many parameters none, unless the search had Jacobians."""
    n = problem.parameters.size
    try:
        if n > MOST_TANGENTS and method_for(judge.how, n) is not Method.GAUSS_NEWTON:
            noise = pixel_noise(problem, theta)
            return no_spread(n, f"more than {MOST_TANGENTS} parameters", noise)
        r, J = problem.residuals_and_jacobian(theta)
    except NOT_FINITE as error:
        return no_spread(n, str(error))
    return _with_floor(problem, theta, (r, J), judge)


def _secant_spread(problem: SceneProblem, theta: np.ndarray, judge: Judge) -> Uncertainty:
    """Return intervals from secants over the size of the interval."""
    scale = theta_scale(problem.parameters, theta)
    distance, spread = SIZES[0] * scale, None
    for _ in range(2):
        found = secant_jacobian(partial(residuals_at, problem), theta, distance, problem.bounds)
        if found is None:
            return no_spread(len(theta), "the simulation blows up beside the answer")
        spread = _with_floor(problem, theta, found, judge)
        if spread.reason:
            break
        part = spread.intervals.half_width / scale
        distance = np.clip(part, LEAST_SIZE, SIZES[-1]) * scale
    assert spread is not None
    return spread


def _with_floor(
    problem: SceneProblem,
    theta: np.ndarray,
    linear: tuple[np.ndarray, Jacobian],
    judge: Judge,
) -> Uncertainty:
    floor = 0.0 if judge.is_twin else FOOTAGE_FLOOR
    return spread_of(problem, theta, *linear, stages=[judge.stage], floor=floor)
