"""SciPy's L-BFGS-B and trust-region least squares, fed by an `Evaluator`."""

from typing import Any

import numpy as np
from scipy import optimize

from studies.optimizers.evaluations import Evaluator
from studies.optimizers.problem import SearchEnd, Status
from studies.runs.evaluations import Evaluation


# What a line search is told where the rollout blows up: far above any loss met so far,
# and finite, since its interpolation knows no infinity.
WALL = 1e3
EPS = float(np.finfo(np.float64).eps)
# A step that promises to lower the loss by less than this part of it ends the search. With
# noise in N values theta is then within sqrt(N SMALL_FALL) of its standard error, 0.07 for
# half a million pixels; a fit without noise falls by large factors until the step is small.
SMALL_FALL = 1e-8
# A loss is a sum over all pixels: it is not known better than to this part of itself.
ROUNDING = 10.0 * EPS
# A loss with jumps is rough: where a step promises little and this many trials in a row
# end higher, shorter trials would only measure the roughness.
LITTLE_FALL, TRIALS = 1e-5, 3


def promised_fall(evaluation: Evaluation) -> float:
    """Return by how much a free Gauss-Newton step lowers the linearised loss."""
    if evaluation.jacobian is None:
        return np.inf
    residual = np.zeros(len(evaluation.jacobian))
    residual[0] = np.sqrt(evaluation.loss)
    orthonormal, _, _ = np.linalg.svd(evaluation.jacobian, full_matrices=False)
    along = orthonormal.T @ residual
    return float(along @ along)


def is_rough(history: list[Evaluation]) -> bool:
    """Whether the last trials all ended higher than the last Jacobian's promising little."""
    if len(history) <= TRIALS:
        return False
    base, trials = history[-TRIALS - 1], history[-TRIALS:]
    return (
        base.kind == "jacobian"
        and promised_fall(base) <= LITTLE_FALL * base.loss
        and all(base.loss < trial.loss < np.inf for trial in trials)
    )


def lbfgsb(
    evaluator: Evaluator,
    theta: np.ndarray,
    tolerance: float,
    bounds: tuple[np.ndarray, np.ndarray],
    *,
    memory: int,
) -> Status:
    """Run L-BFGS-B until the largest entry of the projected gradient has fallen enough.

    Converged once it is at most `tolerance` times the norm of the first gradient, or an
    iteration lowers the loss by no more than its rounding. SciPy's own test of that is against
    the loss at the start: it would end a fit without noise at the root of the rounding.
    """
    first = evaluator.gradient(theta)
    if first.gradient is None:
        return Status.NOT_FINITE
    # The loss is scaled to 1 at the start: L-BFGS-B's first step and tests are absolute.
    scale = 1.0 / max(first.loss, np.finfo(np.float64).tiny)
    pending: list[Evaluation] = [first]
    losses = [first.loss]

    def loss_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        evaluation = pending.pop() if pending else evaluator.gradient(theta)
        if evaluation.gradient is None:
            return WALL, np.zeros_like(theta)
        return scale * evaluation.loss, scale * evaluation.gradient

    def after(intermediate_result: Any) -> None:
        losses.append(float(intermediate_result.fun) / scale)
        if losses[-2] - losses[-1] <= ROUNDING * losses[-1]:
            raise StopIteration

    options: Any = {
        "gtol": tolerance * scale * float(np.linalg.norm(first.gradient)),
        "ftol": 0.0,
        "maxcor": memory,
        "maxiter": 10**9,
        "maxfun": 10**9,
    }
    found = optimize.minimize(
        loss_and_gradient,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(*bounds, strict=True)),
        callback=after,
        options=options,
    )
    is_rounding = len(losses) > 1 and losses[-2] - losses[-1] <= ROUNDING * losses[-1]
    return Status.CONVERGED if found.success or is_rounding else Status.STALLED


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
        if not np.isfinite(theta).all():  # no step, where a Jacobian is singular to rounding
            raise SearchEnd(Status.STALLED)
        evaluation = started.pop() if started else evaluator.residual(theta)
        if is_rough(evaluator.history):
            raise SearchEnd(Status.CONVERGED)
        reduced = np.zeros(len(theta) + 1)
        reduced[0] = np.sqrt(evaluation.loss)
        return reduced

    def jacobian(theta: np.ndarray) -> np.ndarray:
        evaluation = evaluator.jacobian(theta)
        if evaluation.jacobian is None:
            raise SearchEnd(Status.NOT_FINITE)
        is_flat = not evaluation.jacobian.any()
        if is_flat or promised_fall(evaluation) <= SMALL_FALL * evaluation.loss:
            raise SearchEnd(Status.CONVERGED)
        return evaluation.jacobian

    options: Any = {"jac": jacobian, "x_scale": "jac", "gtol": None, "max_nfev": 10**9}
    found = optimize.least_squares(
        residual, theta, bounds=bounds, xtol=max(tolerance, EPS), ftol=EPS, **options
    )
    # Steps that shrink because the rollout blows up are no sign of an optimum.
    blew_up = not all(np.isfinite(e.loss) for e in evaluator.history[-4:])
    return Status.CONVERGED if found.status > 0 and not blew_up else Status.STALLED
