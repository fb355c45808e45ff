"""Local searches from points that another search found, with time steps that suit their ends."""

from dataclasses import dataclass, replace

import numpy as np

from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Result, Stall, Status
from studies.problem.problem import SceneProblem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.search.robust import FIRST_ORDER, FIRST_ORDER_STALL, StepWatch


ATTEMPTS = 3  # with new time steps
STALL = Stall(1e-3, 3)  # steps of Gauss-Newton are long: three without a gain are enough


@dataclass(eq=False)
class LocalSearch:
    """Runs local searches and counts their evaluations."""

    how: declared.Search
    folder: RunFolder
    progress: EvaluationProgress
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
        how = self.how if how is None else how
        spent, result = 0, Result(theta, np.inf, Status.NOT_FINITE, 0)
        stall = FIRST_ORDER_STALL if how.method in FIRST_ORDER else STALL
        names = log_names(log)
        for name in names:
            stepped = problem.with_steps_for(theta)
            self.progress.begin(stage)
            watch = StepWatch(stepped, self.progress, ends=name != names[-1])
            result = minimize(
                stepped,
                theta,
                how,
                log=self.folder.file(name),
                callback=watch,
                stage=stage,
                stall=replace(stall, hopeless=hopeless, needed=needed),
            )
            spent += result.evaluations
            theta = result.theta
            if not (watch.are_short or stepped.steps_are_long(theta)):
                break
        self.spent += spent
        return replace(result, evaluations=spent)


def log_names(log: str) -> list[str]:
    """Return the logs of a local search and of its repetitions with new time steps."""
    again = [log.replace(".", f"-steps-{k + 1}.") for k in range(1, ATTEMPTS)]
    return [log, *again]
