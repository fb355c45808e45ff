"""The search for a control: a local search whose log tells how near every motion ends.

There is no coarse set, no other basins, no held-back frames and no intervals: many controls reach a
goal, and any of them will do.

Tests: `tests/studies/control/test_searching.py`.
"""

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from studies.answer.reached import judge_control
from studies.control.goal import Target, make_target
from studies.optimizers.evaluations import Evaluation
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Options, Result
from studies.problem.making import Made
from studies.problem.problem import SceneProblem
from studies.problem.solve import Solved, no_spread
from studies.progress import EvaluationProgress
from studies.run_folder import ITERATIONS, RunFolder
from studies.scene import declared
from studies.search.found import Found
from studies.search.robust_settings import MOST_TANGENTS


NO_INTERVALS = "a control is no measurement"


class Watched:
    """A `studies.optimizers.problem.Problem` whose log tells measures in place of values."""

    def __init__(self, problem: SceneProblem, target: Target) -> None:
        self._problem = problem
        self._target = target
        self._found: dict[str, float] = {}

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self._problem.bounds

    @property
    def dtype(self) -> str:
        """Kind of number that the loss is worked out in."""
        return self._problem.dtype

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient, and measure the motion that they are of."""
        problem = self._problem
        self._found = {}

        def judge(rows: np.ndarray) -> tuple[float, np.ndarray]:
            self._found = self._target.measure(problem, rows)
            return problem.judge(rows)

        value, gradient = problem.pull_back(theta, judge)
        more, slope = problem.penalty(theta)
        return value + more, gradient + slope

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return the residuals, and measure the motion that they are of."""
        self._found = {}
        rows = self._problem.images(theta)
        self._found = self._target.measure(self._problem, rows)
        return self._problem.with_priors(theta, self._problem.residuals_of(rows))

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and their Jacobian, and measure the motion at theta."""
        self.residuals(theta)
        return self._problem.residuals_and_jacobian(theta)

    def values(self, theta: np.ndarray) -> dict[str, float]:
        """Return the measures of what was evaluated last; none where it blew up."""
        del theta
        return self._found


def search(
    watched: Watched,
    start: np.ndarray,
    how: declared.Search,
    folder: RunFolder,
    *,
    log: str,
    seen: Callable[[Evaluation], None],
) -> Result:
    """Search, or go on where the log ends."""
    method, options = method_of(how, len(start))
    return minimize(
        watched,
        start,
        method,
        max_evaluations=how.max_evaluations,
        tolerance=how.tolerance,
        options=options,
        log=folder.file(log),
        callback=seen,
    )


def method_of(how: declared.Search, n: int) -> tuple[Method, Options]:
    """Return the method of a search for n numbers, and its settings."""
    default = Method.GAUSS_NEWTON if n <= MOST_TANGENTS else Method.LBFGSB
    names = {field.name for field in fields(Options)} & {field.name for field in fields(how)}
    return Method(how.method or default), Options(**{name: getattr(how, name) for name in names})


def solve_control(
    made: Made, file: declared.SceneFile, folder: RunFolder, progress: EvaluationProgress
) -> Solved:
    """Search for what brings the bodies to the goal, and judge whether they are there."""
    problem, target = make_target(made, file.goal.supervision)
    start = problem.parameters.start
    problem = problem.with_steps_for(start)
    progress.begin("")
    result = search(
        Watched(problem, target), start, file.search, folder, log=ITERATIONS, seen=progress
    )
    measured = {}
    if np.isfinite(result.loss):
        measured = target.measure(problem, problem.images(result.theta))
    return Solved(
        problem,
        result,
        Found(result, 0, (result,), ((ITERATIONS,),), result.evaluations),
        problem,
        no_spread(problem.parameters.size, NO_INTERVALS),
        judge_control(file.goal, target.size, measured, result),
        None,
        result.evaluations,
        control=measured,
    )
