"""The lowest point of the loss over its whole range: where no search can do better.

Of one free number the loss is a curve. It is evaluated on a grid that is even in theta, from bound
to bound, and searched from the lowest of its points.
"""

import math
from dataclasses import dataclass

import numpy as np

from adjsim import checks
from studies.errors import StudyError
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import NotFiniteError
from studies.paper.tables.table import Case, Estimate, Settings
from studies.video_problem import VideoProblem


def landscape(problem: VideoProblem, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return theta on a grid between the bounds, ends left out, and the loss; inf if it diverges.

    Raises
    ------
    StudyError
        If more than one number is free, or it has no bounds.
    """
    (low, *more), (high, *_) = problem.bounds
    if more or not math.isfinite(high - low):
        raise StudyError("`methods` scan needs one free number between bounds.")
    grid = low + (high - low) * (np.arange(points) + 0.5) / points
    return grid, np.array([_loss(problem, theta) for theta in grid])


def _loss(problem: VideoProblem, theta: float) -> float:
    try:
        loss = problem.loss_at(np.array([theta]))
    except NotFiniteError:
        return math.inf
    return loss if math.isfinite(loss) else math.inf


@dataclass(frozen=True)
class Scan:
    """An estimator: the lowest point of a grid, and the search of the study from there."""

    name: str = "scan"
    label: str = "scan"

    def about(self, settings: Settings) -> str:
        """Return what it does."""
        table = settings["scan"]
        return (
            f"The loss at {table['points']} values from bound to bound, then the study's method "
            f"from the lowest of them, at most {table['max_evaluations']} evaluations. Where the "
            "model is wrong its error is that of the model, not of a search."
        )

    def check(self, settings: Settings) -> None:
        """Complain of the table `scan`, by key."""
        checks.whole("scan.points", settings["scan"]["points"], 3)
        checks.positive("scan.max_evaluations", settings["scan"]["max_evaluations"])

    def estimate(self, case: Case) -> Estimate:
        """Look everywhere, then search from the lowest point."""
        table, how = case.settings["scan"], case.fit.search
        grid, losses = landscape(case.problem, table["points"])
        if not np.isfinite(losses).any():
            raise NotFiniteError("The loss is finite nowhere between the bounds.")
        found = minimize(
            case.problem,
            grid[[np.argmin(losses)]],
            how.method,
            max_evaluations=table["max_evaluations"],
            tolerance=how.tolerance,
            options=how.options,
        )
        spent = len(grid) + found.evaluations
        return Estimate(found.theta, found.status.name, found.loss, spent, len(grid))


SCAN = Scan()
