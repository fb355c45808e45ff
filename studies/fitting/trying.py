"""Try the answer of a search; where its gradient is no slope of the loss, go on without gradients.

Intervals from the Jacobian are tried by the loss itself (`studies/answer/trial.py`). Where it does
not rise as promised, the search goes on with secants (`studies/optimizers/secants.py`), from the
best point that was seen, and its end is tried alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from studies.answer.discretisation import Linear
from studies.answer.intervals import Intervals, no_intervals, widened
from studies.answer.scales import theta_scale
from studies.answer.trial import LEAST_SIZE, SIZES, Trial, try_answer
from studies.fitting.local_search import LocalSearch
from studies.fitting.spread import pixel_noise, spread_of
from studies.optimizers.minimize import MOST_TANGENTS, method_for
from studies.optimizers.problem import NOT_FINITE, Method, Result, Status
from studies.optimizers.secants import secant_jacobian, secant_search
from studies.problem.many_thetas import residuals_at
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem


MOST_FREE = 12  # numbers that are searched without gradients at most
EXACT = 1e-18  # part of the loss at the start: a fit to rounding, which nothing can be better than


@dataclass(frozen=True, eq=False)
class Tried:
    """An answer with its intervals, as wide as the loss about it says."""

    result: Result
    intervals: Intervals
    trial: Trial | None  # None where nothing could be tried
    is_without_gradients: bool = False
    evaluations: int = 0  # of trials, and of the search without gradients
    linear: Linear | None = None  # where intervals rest on it, unless it is of secants

    def with_errors(self, parameters: Parameters, errors: Mapping[str, np.ndarray]) -> "Tried":
        """Return the answer, its intervals widened by errors of theta, (p,) each, by source."""
        wider = self.intervals
        for source, error in errors.items():
            more = np.outer(error, error) / wider.quantile**2
            wider = widened(wider, parameters, self.result.theta, more, source=source)
        return replace(self, intervals=wider)

    def secant_distance(self, parameters: Parameters) -> np.ndarray | None:
        """Return the distances of secants, (p,); None where gradients are slopes."""
        if not self.is_without_gradients:
            return None
        scale = theta_scale(parameters, self.result.theta)
        return np.clip(self.intervals.half_width, LEAST_SIZE * scale, SIZES[-1] * scale)


def try_result(
    problem: SceneProblem,
    result: Result,
    local: LocalSearch,
    *,
    stage: np.ndarray,
    loss_at_start: float,
) -> Tried:
    """Return the answer and its intervals after it was tried, and searched on if it failed.

    `stage` is theta before held-back frames and observations were fitted too; `loss_at_start` is 0
    if it is not known.
    """
    if result.status is Status.NOT_FINITE:
        return Tried(result, no_intervals(problem.parameters.size, "the loss is not finite"), None)
    intervals, linear = _intervals(problem, result.theta, local, stage)
    if result.loss <= EXACT * loss_at_start:
        return Tried(result, intervals, None, linear=linear)
    tried = replace(_tried(problem, result, intervals), linear=linear)
    size = problem.parameters.size
    if tried.trial is None or not tried.trial.is_rough or size > MOST_FREE:
        return tried
    local.progress.say(
        "the loss about the answer does not rise as its gradient promises: going on without "
        "gradients"
    )
    start = result.theta if tried.trial.lower is None else tried.trial.lower
    end = secant_search(
        partial(residuals_at, problem),
        start,
        scale=theta_scale(problem.parameters, start),
        bounds=problem.bounds,
        most=local.how.max_evaluations,
        say=lambda loss, h: local.progress.say(
            f"without gradients, differences over {100 * h:.2g} %: loss {loss:.3e}"
        ),
    )
    spent = tried.evaluations + end.evaluations
    if not end.loss < tried.result.loss:
        return replace(tried, evaluations=spent)
    again = _tried(problem, end, _secant_intervals(problem, end.theta, local, stage))
    return replace(again, is_without_gradients=True, evaluations=spent + again.evaluations)


def _tried(problem: SceneProblem, result: Result, intervals: Intervals) -> Tried:
    """Return the answer with intervals as wide as the losses about it say."""
    if not (problem.answers and intervals.singular_values.size):
        return Tried(result, intervals, None)
    parameters = problem.parameters
    scale, half_width = theta_scale(parameters, result.theta), intervals.half_width
    H = (intervals.directions.T * intervals.singular_values**2) @ intervals.directions
    if intervals.reason:  # J may be so large in a number that the others leave no trace beside it
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
        return Tried(result, intervals, None)
    if intervals.reason and not trial.is_rough:
        return Tried(result, intervals, None, evaluations=trial.evaluations)
    more = trial.covariance(intervals.quantile)
    if more.any():
        intervals = widened(intervals, parameters, result.theta, more, source="trial")
    return Tried(result, intervals, trial, evaluations=trial.evaluations)


def _intervals(
    problem: SceneProblem, theta: np.ndarray, local: LocalSearch, stage: np.ndarray
) -> tuple[Intervals, Linear | None]:
    """Return intervals and what they rest on; of many parameters none but of Gauss-Newton."""
    n = problem.parameters.size
    try:
        if n > MOST_TANGENTS and method_for(local.how, n) is not Method.GAUSS_NEWTON:
            noise = pixel_noise(problem, theta)
            return no_intervals(n, f"more than {MOST_TANGENTS} parameters", noise), None
        linear = problem.residuals_and_jacobian(theta)
    except NOT_FINITE as error:
        return no_intervals(n, str(error)), None
    return spread_of(problem, theta, *linear, stages=[stage], floor=local.floor), linear


def _secant_intervals(
    problem: SceneProblem, theta: np.ndarray, local: LocalSearch, stage: np.ndarray
) -> Intervals:
    scale = theta_scale(problem.parameters, theta)
    distance = SIZES[0] * scale
    for attempt in range(2):
        linear = secant_jacobian(partial(residuals_at, problem), theta, distance, problem.bounds)
        if linear is None:
            break
        intervals = spread_of(problem, theta, *linear, stages=[stage], floor=local.floor)
        if intervals.reason or attempt:
            return intervals
        distance = np.clip(intervals.half_width / scale, LEAST_SIZE, SIZES[-1]) * scale
    return no_intervals(len(theta), "the simulation blows up beside the answer")
