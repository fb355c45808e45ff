"""Local searches from points that another search found, with time steps that suit their ends.

Along a valley a search may spend all its evaluations on a loss that still falls, though theta
hardly moves. It ends where half of the evaluations moved theta by little of its intervals.
"""

from dataclasses import dataclass, replace

import numpy as np

from studies.fitting.spread import spread_of
from studies.optimizers.minimize import method_for, minimize
from studies.optimizers.problem import NOT_FINITE, Method, Result, Stall, Status
from studies.problem.problem import SceneProblem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.search.robust import FIRST_ORDER, FIRST_ORDER_STALL, StepWatch


ATTEMPTS = 3  # with new time steps
CHECKPOINTS = (0.25, 0.5, 1.0)  # parts of the evaluations after which theta is looked at
LITTLE = 0.1  # of the half-width of an interval
STALL = Stall(1e-3, 3)  # steps of Gauss-Newton are long: three without a gain are enough


@dataclass(eq=False)
class LocalSearch:
    """Runs local searches and counts their evaluations."""

    how: declared.Search
    folder: RunFolder
    progress: EvaluationProgress
    floor: float = 0.0  # relative standard deviation of what is asked for, at least
    spent: int = 0  # rollouts of all searches so far

    def run(
        self,
        problem: SceneProblem,
        theta: np.ndarray,
        *,
        log: str,
        stage: str,
        how: declared.Search | None = None,
        hopeless: float = np.inf,
        needed: float = np.inf,
    ) -> Result:
        """Return the end of a local search, repeated while its end needs other time steps.

        `how` are other settings than those of the other searches. It is given up where its loss
        stays above `hopeless`, or will not come as low as `needed`.
        """
        is_watched = how is None and method_for(self.how, len(theta)) is Method.GAUSS_NEWTON
        how, theta = how or self.how, problem.parameters.with_short_turns(theta)
        spent, result = 0, Result(theta, np.inf, Status.NOT_FINITE, 0)
        stall = FIRST_ORDER_STALL if how.method in FIRST_ORDER else STALL
        names = logs_with_repeats(log)
        for name in names:
            stepped = problem.with_stable_steps(theta)
            self.progress.begin(stage)
            watch = StepWatch(stepped, self.progress, ends=name != names[-1])
            before = None
            for share in CHECKPOINTS if is_watched else (1.0,):
                result = minimize(
                    stepped,
                    theta,
                    replace(how, max_evaluations=max(int(share * how.max_evaluations), 1)),
                    log=self.folder.file(name),  # it answers what was evaluated before
                    callback=watch,
                    stage=stage,
                    stall=replace(stall, hopeless=hopeless, needed=needed),
                )
                if result.status is not Status.MAX_EVALUATIONS:
                    break
                if before is not None and self._slides(stepped, before, result.theta):
                    result = replace(result, status=Status.SETTLED)
                    break
                before = result.theta
            spent += result.evaluations
            theta = result.theta
            if name == names[-1] or not (watch.are_short or stepped.steps_are_long(theta)):
                break
        self.spent += spent
        return replace(result, evaluations=spent)

    def _slides(self, problem: SceneProblem, before: np.ndarray, theta: np.ndarray) -> bool:
        self.spent += len(theta)
        try:
            r, J = problem.residuals_and_jacobian(theta)
            intervals = spread_of(problem, theta, r, J, stages=(), floor=self.floor)
        except NOT_FINITE:
            return False
        apart = np.maximum(np.abs(theta - before), np.abs(intervals.remaining))
        return not intervals.reason and bool((apart <= LITTLE * intervals.half_width).all())


def logs_with_repeats(log: str) -> list[str]:
    """Return the logs of a local search and of its repetitions with new time steps."""
    again = [log.replace(".", f"-steps-{k + 1}.") for k in range(1, ATTEMPTS)]
    return [log, *again]
