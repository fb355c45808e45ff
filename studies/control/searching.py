"""The search for a control: a local search whose log tells how near every motion ends.

There is no coarse set, no other basins, no held-back frames and no intervals: many controls reach a
goal, and any of them will do.
"""

from collections.abc import Callable, Sequence

import numpy as np

from studies.answer.intervals import no_intervals
from studies.answer.reached import judge_control
from studies.answer.solution import Solution
from studies.control.goal import Target, make_target
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.minimize import minimize
from studies.problem.making import PreparedProblem
from studies.problem.problem import SceneProblem
from studies.runs.evaluations import Evaluation
from studies.runs.folder import ITERATIONS, RunFolder
from studies.scene.declared import SceneFile
from studies.search.coarse import Basin, SearchResult


Progress = Callable[[Evaluation], None]  # what is called with every evaluation
FALLS = 0.01  # part of the loss
NO_INTERVALS = "a control is no measurement"


class Watched:
    """A `studies.optimizers.problem.Problem` whose log tells measures in place of values."""

    def __init__(self, problem: SceneProblem, target: Target) -> None:
        self.problem, self.bounds, self.dtype = problem, problem.bounds, problem.dtype
        self.target = target
        self._found: dict[str, float] = {}

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient, and measure the motion that they are of."""
        problem = self.problem
        self._found = {}

        def judge(rows: np.ndarray) -> tuple[float, np.ndarray]:
            self._found = self.target.measure(problem, rows)
            return problem.judge(rows)

        value, gradient = problem.pull_back(theta, judge)
        more, slope = problem.penalty(theta)
        return value + more, gradient + slope

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return the residuals, and measure the motion that they are of."""
        self._found = {}  # none where it blows up
        rows = self.problem.predicted_rows(theta)
        self._found = self.target.measure(self.problem, rows)
        return self.problem.with_priors(theta, self.problem.residuals_of(rows))

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, Jacobian]:
        """Return the residuals and their Jacobian, and measure the motion at theta."""
        self.residuals(theta)
        return self.problem.residuals_and_jacobian(theta)

    def values(self, theta: np.ndarray) -> dict[str, float]:
        """Return the measures of what was evaluated last; none where it blew up."""
        del theta
        return self._found


def watched_problem(made: PreparedProblem, supervision: str) -> Watched:
    """Return the problem that a search is told, with the time step for its start."""
    problem, target = make_target(made, supervision)
    return Watched(problem.with_steps_for(problem.parameters.start), target)


def falls(history: Sequence[Evaluation]) -> bool:
    """Whether the best loss fell over the last quarter of a search by a part that counts."""
    losses = [evaluation.loss for evaluation in history]
    before = min(losses[: -(-3 * len(losses) // 4)], default=np.inf)
    return min(losses, default=np.inf) < (1.0 - FALLS) * before


def solve_control(
    made: PreparedProblem, file: SceneFile, folder: RunFolder, progress: Progress
) -> Solution:
    """Search for what brings the bodies to the goal, and judge whether they are there."""
    watched = watched_problem(made, file.goal.supervision)
    problem, target = watched.problem, watched.target
    history: list[Evaluation] = []

    def seen(evaluation: Evaluation) -> None:
        history.append(evaluation)
        progress(evaluation)

    log = folder.file(ITERATIONS)
    start = problem.parameters.start
    result = minimize(watched, start, file.search, log=log, callback=seen)
    measured = {}
    if np.isfinite(result.loss):
        measured = target.measure(problem, problem.predicted_rows(result.theta))
    return Solution(
        problem,
        result,
        SearchResult((Basin.of(start, result, ITERATIONS),), result.evaluations),
        problem,
        no_intervals(problem.parameters.size, NO_INTERVALS),
        judge_control(file.goal, target.size, measured, result, falls=falls(history)),
        result.evaluations,
        control=measured,
    )
