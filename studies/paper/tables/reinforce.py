r"""The simulator as a black box: REINFORCE, from values of the image loss alone.

A policy draws theta_i = theta + sigma e_i, with e_i standard normal. Each draw is one rollout, and
its return is the discounted sum over frames of minus the loss of each,

    G_i = -sum_t decay^t L_t(theta_i),     A_i = (G_i - mean G)/std G over the draws of a step
    g = mean_i A_i e_i / sigma,            theta <- theta + rate g

The score of the policy is e_i/sigma, so that g estimates the gradient of the expected return, in
units of its spread. What is given back is the last theta, not the best one drawn.

Source: Williams, Machine Learning 8 (1992), eq. 4; the budget is that of the gradSim paper's
appendix: 5 draws a step, 125 steps, sigma 0.05, decay 0.925.
"""

from dataclasses import dataclass

import numpy as np

from adjsim import checks
from studies.errors import StudyError
from studies.optimizers.problem import NotFiniteError, Status
from studies.paper.tables.table import Case, Estimate, Settings
from studies.video_problem import VideoProblem


KEY = "reinforce"
STREAM = 102  # of its draws
TINY = 1e-300


@dataclass(frozen=True)
class Reinforce:
    """An estimator that sees losses, no gradients."""

    name: str = KEY
    label: str = "REINFORCE"

    def about(self, settings: Settings) -> str:
        """Return what it does, and its budget."""
        own = settings[KEY]
        return (
            f"A score-function estimate of the gradient from the image loss alone: "
            f"{own['samples']} rollouts a step, {own['steps']} steps, so "
            f"{own['samples'] * own['steps']} rollouts; deviation {own['deviation']:g} and rate "
            f"{own['rate']:g} in the coordinates of the search, decay {own['decay']:g} from frame "
            "to frame. It starts where the search from video starts; told is where it ends."
        )

    def check(self, settings: Settings) -> None:
        """Complain of the table `reinforce`."""
        own = settings[KEY]
        checks.whole(f"{KEY}.samples", own["samples"], 2)
        for key in ("steps", "deviation", "rate"):
            checks.positive(f"{KEY}.{key}", own[key])
        if not 0.0 < own["decay"] <= 1.0:
            raise StudyError(f"`{KEY}.decay` must be in (0, 1], got {own['decay']:g}.")

    def estimate(self, case: Case) -> Estimate:
        """Walk for all steps; return the last theta."""
        own, problem = case.settings[KEY], case.problem
        rng = case.rng(STREAM)
        low, high = problem.bounds
        theta = problem.parameters.start
        for _ in range(own["steps"]):
            drawn = rng.standard_normal((own["samples"], len(theta)))
            returns = [
                value_of(problem, np.clip(theta + own["deviation"] * e, low, high), own["decay"])
                for e in drawn
            ]
            slope = score_gradient(np.array(returns), drawn, own["deviation"])
            theta = np.clip(theta + own["rate"] * slope, low, high)
        spent = own["samples"] * own["steps"]
        loss = problem.loss_at(theta)
        return Estimate(theta, Status.MAX_EVALUATIONS.name, float(loss), spent, 1)


def value_of(problem: VideoProblem, theta: np.ndarray, decay: float) -> float:
    """Return the return of a draw: minus the discounted losses of its frames; NaN if it blew up."""
    try:
        images = problem.images(theta)
    except NotFiniteError:
        return np.nan
    losses = [
        problem.loss(image[None], target[None])
        for image, target in zip(images, problem.targets, strict=True)
    ]
    return -float(np.dot(decay ** np.arange(len(losses)), losses))


def score_gradient(returns: np.ndarray, drawn: np.ndarray, deviation: float) -> np.ndarray:
    """Return the estimate of the gradient, (n,), from returns (m,) and standard draws (m, n).

    Raises
    ------
    NotFiniteError
        If no rollout of the step stayed finite; one that did not counts as the worst of them.
    """
    if np.isnan(returns).all():
        raise NotFiniteError("No rollout of a step of REINFORCE stayed finite.")
    returns = np.where(np.isnan(returns), np.nanmin(returns), returns)
    advantage = (returns - returns.mean()) / (returns.std() + TINY)
    return (advantage @ drawn) / (len(returns) * deviation)


REINFORCE = Reinforce()
