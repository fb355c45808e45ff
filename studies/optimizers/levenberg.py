r"""Levenberg's method, with the best of many dampings in every step: `levenberg`.

    s = -V (S^2 + lambda S_0^2)^-1 S U^T r,   J = U S V^T,   lambda = 0.1, 0.01, ..., 1e-15

The damping is even in theta: a combination of numbers that hardly shows stays where it is until it
does, while a scale by the columns of J (as of `gauss_newton`) lets it go farthest. So numbers that
later frames show are not lost in earlier ones. Where contacts make a loss rough, one of the
dampings often goes on where a trust region would shrink.

Source: Levenberg, Quarterly of Applied Mathematics 2 (1944).
"""

import numpy as np

from studies.optimizers.evaluations import Evaluator
from studies.optimizers.problem import Settings, Status


DAMPINGS = 10.0 ** -np.arange(1.0, 16.0)
EXACT = 1e-14  # part of the first loss that is as good as none


def levenberg(evaluator: Evaluator, theta: np.ndarray, settings: Settings) -> Status:
    """Take steps until one lowers the loss by no more than the tolerance of it, or none is left.

    Components at a bound that the gradient presses them against are held, steps clipped to bounds.
    """
    low, high = settings.bounds
    first = None
    while True:
        here = evaluator.jacobian(theta)
        if here.jacobian is None or here.gradient is None:
            return Status.NOT_FINITE
        first = here.loss if first is None else first
        if here.loss <= EXACT * first:
            return Status.CONVERGED
        held = ((theta <= low) & (here.gradient > 0.0)) | ((theta >= high) & (here.gradient < 0.0))
        U, S, Vt = np.linalg.svd(np.where(held, 0.0, here.jacobian), full_matrices=False)
        if not S[0] > 0.0:
            return Status.CONVERGED
        along = S * np.sqrt(here.loss) * U[0]  # the reduced r is (|r|, 0, ..., 0)
        steps = [-Vt.T @ (along / (S**2 + damping * S[0] ** 2)) for damping in DAMPINGS]
        ends = [evaluator.several(np.clip(theta + step, low, high)) for step in steps]
        best = min(ends, key=lambda end: end.loss)
        if not best.loss < (1.0 - settings.tolerance) * here.loss:
            return Status.CONVERGED if np.isfinite(best.loss) else Status.STALLED
        theta = best.theta
