"""SciPy's L-BFGS-B and trust-region least squares, fed by an `Evaluator`."""

from typing import Any

import numpy as np
from scipy import optimize

from studies.optimizers.evaluations import Evaluator, promised_fall
from studies.optimizers.problem import SearchEnd, Settings, Status
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
# J^T J is kept after a step that kept so much of its promise, with so many parameters: a gradient
# takes as long as three tangents.
KEPT, LEAST_KEPT = 0.5, 7
CURVED = 0.1  # least curvature along a step, over the one that it had before


def is_rough(history: list[Evaluation]) -> bool:
    """Whether the last trials all ended higher than the last Jacobian's promising little."""
    if len(history) <= TRIALS:
        return False
    base, trials = history[-TRIALS - 1], history[-TRIALS:]
    return (
        base.jacobian is not None
        and promised_fall(base.loss, base.jacobian) <= LITTLE_FALL * base.loss
        and all(base.loss < trial.loss < np.inf for trial in trials)
    )


def lbfgsb(evaluator: Evaluator, theta: np.ndarray, settings: Settings) -> Status:
    """Run L-BFGS-B until the largest entry of the projected gradient has fallen enough.

    Converged once it is at most the tolerance times the norm of the first gradient, or an
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
        "gtol": settings.tolerance * scale * float(np.linalg.norm(first.gradient)),
        "ftol": 0.0,
        "maxcor": settings.how.memory,
        "maxiter": 10**9,
        "maxfun": 10**9,
    }
    outcome = optimize.minimize(
        loss_and_gradient,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(*settings.bounds, strict=True)),
        callback=after,
        options=options,
    )
    is_rounding = len(losses) > 1 and losses[-2] - losses[-1] <= ROUNDING * losses[-1]
    return Status.CONVERGED if outcome.success or is_rounding else Status.STALLED


class _Restart(Exception):  # noqa: N818 -- no error
    """Raised where SciPy's method must begin again, from the best theta so far."""


class _Slopes:
    """Reduced Jacobians for Gauss-Newton, with as few rollouts as steps that keep promises need.

    A Jacobian takes a rollout for each of n parameters, a gradient one. So where a step lowered the
    loss about as it promised, the next one has the exact gradient, and in place of J^T J the matrix
    H of the step before, after an update by BFGS: with the step s and the change y of J^T r,

        H <- H - H s s^T H / s^T H s + y y^T / s^T y

    which also learns what r itself adds to the curvature of the loss. Pictures that are off by more
    than an edge is wide need many such steps: their loss falls linearly on the way, and a step is
    about as long as the edge is wide.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.H: np.ndarray | None = None  # None asks for a Jacobian next
        self._theta = self._slope = np.zeros(0)  # of the last step, and J^T r there
        self._loss = self._promised = np.inf  # there, and the fall from there
        self.are_old = False  # whether H is no J^T J

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """Return the reduced Jacobian at theta, (n + 1, n)."""
        before = self._evaluator.best
        keeps = before is not None and self._loss - before.loss >= KEPT * self._promised
        reduced = self._from_gradient(theta) if keeps else None
        self.are_old = reduced is not None
        if reduced is None:
            evaluation = self._evaluator.jacobian(theta)
            reduced, self._loss = evaluation.jacobian, evaluation.loss
            if reduced is None:
                raise SearchEnd(Status.NOT_FINITE)
            self.H = reduced.T @ reduced
        self._theta, self._slope = theta.copy(), np.sqrt(self._loss) * reduced[0]
        self._promised = promised_fall(self._loss, reduced)
        if not reduced.any() or self._promised <= SMALL_FALL * self._loss:
            raise SearchEnd(Status.CONVERGED)
        return reduced

    def _from_gradient(self, theta: np.ndarray) -> np.ndarray | None:
        """Return it from the gradient and the H before; None where they do not go together."""
        if self.H is None or len(theta) < LEAST_KEPT:
            return None
        evaluation = self._evaluator.gradient(theta)
        if evaluation.gradient is None or evaluation.loss == 0.0:
            return None
        slope = 0.5 * evaluation.gradient
        along = slope / np.sqrt(evaluation.loss)
        for H in (self._updated(theta - self._theta, slope - self._slope), self.H):
            try:
                rest = np.linalg.cholesky(H - np.outer(along, along)).T
            except np.linalg.LinAlgError:  # it promises more than there is
                continue
            self.H, self._loss = H, evaluation.loss
            return np.concatenate([along[None], rest])
        return None

    def _updated(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return H after a step; as it was where the curvature along it is small or negative."""
        assert self.H is not None
        Hs, curvature = self.H @ s, float(s @ y)
        if not curvature >= CURVED * float(s @ Hs) > 0.0:
            return self.H
        return self.H + np.outer(y, y) / curvature - np.outer(Hs, Hs) / float(s @ Hs)


def gauss_newton(evaluator: Evaluator, theta: np.ndarray, settings: Settings) -> Status:
    """Run trust-region Gauss-Newton until a step is below the tolerance times |theta|.

    The trust region makes it a Levenberg-Marquardt method that keeps bounds (Branch,
    Coleman & Li, SIAM J. Sci. Comput. 1999: SciPy's `trf`). It sees the reduced
    residuals of `studies/optimizers/evaluations.py`.
    """
    if not np.isfinite(evaluator.residual(theta).loss):
        return Status.NOT_FINITE
    slopes = _Slopes(evaluator)
    started = [evaluator.history[-1]]

    def residual(theta: np.ndarray) -> np.ndarray:
        if not np.isfinite(theta).all():  # no step, where a Jacobian is singular to rounding
            raise SearchEnd(Status.STALLED)
        reduced, best = np.zeros(len(theta) + 1), evaluator.best
        evaluation = started[0] if started else evaluator.residual(theta)
        if started:
            started.clear()
        elif best is not None and slopes.are_old and not evaluation.loss < best.loss:
            slopes.H, slopes.are_old = None, False
            raise _Restart
        if is_rough(evaluator.history):
            raise SearchEnd(Status.CONVERGED)
        reduced[0] = np.sqrt(evaluation.loss)
        return reduced

    options: Any = {"jac": slopes, "x_scale": "jac", "gtol": None, "max_nfev": 10**9}
    options |= {"bounds": settings.bounds, "xtol": max(settings.tolerance, EPS), "ftol": EPS}
    while True:
        try:
            outcome = optimize.least_squares(residual, theta, **options)
        except _Restart:
            best = evaluator.best
            assert best is not None
            theta, started = best.theta, [best]
            continue
        # Steps that shrink because the rollout blows up are no sign of an optimum.
        blew_up = not all(np.isfinite(e.loss) for e in evaluator.history[-4:])
        return Status.CONVERGED if outcome.status > 0 and not blew_up else Status.STALLED
