"""One call for all methods."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from adjsim import checks
from studies.search.optimizers import first_order, scipy_methods
from studies.search.optimizers.evaluations import Evaluation, Evaluator
from studies.search.optimizers.polyak import polyak
from studies.search.optimizers.problem import (
    Method,
    Options,
    Problem,
    Result,
    SearchEnd,
    Stall,
    Status,
)


ROUNDINGS = 10.0  # a step or a gradient below so many is noise


def minimize(  # noqa: PLR0913 -- what may be said of a search
    problem: Problem,
    theta0: np.ndarray,
    method: Method,
    *,
    max_evaluations: int,
    tolerance: float = 1e-9,
    options: Options | None = None,
    log: Path | None = None,
    callback: Callable[[Evaluation], None] | None = None,
    stage: str = "",
    stall: Stall | None = None,
) -> Result:
    """Lower a problem's loss from `theta0`, `(n,)`, and return the best theta evaluated.

    Parameters
    ----------
    max_evaluations : int
        Budget in rollouts; a tangent rollout counts as one, so a Jacobian costs n.
    tolerance : float
        Gauss-Newton: a step below `tolerance` times |theta| ends the search. Other methods: the
        gradient's fall relative to the start. Of either, at least `ROUNDINGS`: 1.2e-6 in float32.
    log : pathlib.Path, optional
        File that gets one line of JSON per evaluation. Lines that it holds already answer the
        first requests: a killed run goes on, with the same numbers to the bit.
    callback : callable, optional
        Called with every `Evaluation`, replayed ones included.
    stage : str
        Name of the stage of a search that has several, for the log.
    stall : Stall, optional
        When the loss counts as settled, which ends the search; never by default.
    """
    checks.positive("max_evaluations", max_evaluations)
    checks.positive("tolerance", tolerance)
    tolerance = max(tolerance, ROUNDINGS * float(np.finfo(problem.dtype).eps))
    start = checks.array("theta0", theta0, ("n",))
    evaluator = Evaluator(
        problem, max_evaluations, log=log, callback=callback, stage=stage, stall=stall
    )
    status = _search(problem, evaluator, start, method=method, tolerance=tolerance, options=options)
    if (best := evaluator.best) is None:
        return Result(start, np.inf, Status.NOT_FINITE, evaluator.spent)
    return Result(best.theta, best.loss, status, evaluator.spent)


def _search(
    problem: Problem,
    evaluator: Evaluator,
    start: np.ndarray,
    *,
    method: Method,
    tolerance: float,
    options: Options | None,
) -> Status:
    """Run one method until it stops or the budget is spent."""
    bounds, options = problem.bounds, options or Options()
    try:
        if method is Method.GAUSS_NEWTON:
            return scipy_methods.gauss_newton(evaluator, start, tolerance, bounds)
        if method is Method.LBFGSB:
            return scipy_methods.lbfgsb(evaluator, start, tolerance, bounds, memory=options.memory)
        if method is Method.POLYAK:
            return polyak(evaluator, start, options, tolerance=tolerance, bounds=bounds)
        is_momentum = method is Method.GRADIENT_DESCENT
        step = (first_order.momentum_step if is_momentum else first_order.adam_step)(options)
        return first_order.descend(evaluator, start, step, tolerance=tolerance, bounds=bounds)
    except SearchEnd as end:
        return end.status
