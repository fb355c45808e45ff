"""SciPy's L-BFGS-B and trust-region least squares, fed by an `Evaluator`."""

from typing import Any

import numpy as np
from scipy import optimize

from studies.optimizers.evaluations import Evaluation, Evaluator
from studies.optimizers.problem import Status


# What a line search is told where the rollout blows up: far above any loss met so far,
# and finite, since its interpolation knows no infinity.
WALL = 1e3
EPS = float(np.finfo(np.float64).eps)
SMALL_FALL = 1e-10


def lbfgsb(
    evaluator: Evaluator,
    theta: np.ndarray,
    tolerance: float,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Status:
    """Run L-BFGS-B until the largest entry of the projected gradient has fallen enough.

    Converged once it is at most `tolerance` times the norm of the first gradient.
    """
    first = evaluator.gradient(theta)
    if first.gradient is None:
        return Status.NOT_FINITE
    # The loss is scaled to 1 at the start: L-BFGS-B's first step and tests are absolute.
    scale = 1.0 / max(first.loss, np.finfo(np.float64).tiny)
    pending: list[Evaluation] = [first]

    def loss_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        evaluation = pending.pop() if pending else evaluator.gradient(theta)
        if evaluation.gradient is None:
            return WALL, np.zeros_like(theta)
        return scale * evaluation.loss, scale * evaluation.gradient

    options: Any = {
        "gtol": tolerance * scale * float(np.linalg.norm(first.gradient)),
        "ftol": EPS,
        "maxiter": 10**9,
        "maxfun": 10**9,
    }
    found = optimize.minimize(
        loss_and_gradient,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(*bounds, strict=True)),
        options=options,
    )
    return Status.CONVERGED if found.success else Status.STALLED


def gauss_newton(
    evaluator: Evaluator,
    theta: np.ndarray,
    tolerance: float,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Status:
    """Run trust-region Gauss-Newton until a step is below `tolerance` times |theta|.

    The trust region makes it a Levenberg-Marquardt method that keeps bounds (Branch,
    Coleman & Li, SIAM J. Sci. Comput. 1999: SciPy's `trf`). It sees the reduced
    residuals of `studies/optimizers/evaluations.py`.
    """
    if not np.isfinite(evaluator.residual(theta).loss):
        return Status.NOT_FINITE
    started = [evaluator.history[-1]]

    def residual(theta: np.ndarray) -> np.ndarray:
        evaluation = started.pop() if started else evaluator.residual(theta)
        reduced = np.zeros(len(theta) + 1)
        reduced[0] = np.sqrt(evaluation.loss)
        return reduced

    def jacobian(theta: np.ndarray) -> np.ndarray:
        evaluation = evaluator.jacobian(theta)
        if evaluation.jacobian is None:
            raise FloatingPointError
        return evaluation.jacobian

    # A fit without noise falls until rounding, by a large factor a step: there the step
    # tells that the search is over. With noise of N values, a fall of the loss by
    # SMALL_FALL of itself moves theta by sqrt(N SMALL_FALL) of its standard error.
    options: Any = {"jac": jacobian, "x_scale": "jac", "gtol": None, "max_nfev": 10**9}
    try:
        found = optimize.least_squares(
            residual, theta, bounds=bounds, xtol=max(tolerance, EPS), ftol=SMALL_FALL, **options
        )
    except FloatingPointError:
        return Status.NOT_FINITE
    # Steps that shrink because the rollout blows up are no sign of an optimum.
    blew_up = not all(np.isfinite(e.loss) for e in evaluator.history[-4:])
    return Status.CONVERGED if found.status > 0 and not blew_up else Status.STALLED
