"""One call for all methods; gradient descent with momentum and Adam are here."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from adjsim import checks
from studies.optimizers.evaluations import Evaluator
from studies.optimizers.levenberg import levenberg
from studies.optimizers.newton import newton_cg
from studies.optimizers.problem import (
    Method,
    Problem,
    Result,
    SearchEnd,
    Settings,
    Stall,
    Status,
)
from studies.optimizers.scipy_methods import gauss_newton, lbfgsb
from studies.runs.evaluations import Evaluation
from studies.scene.declared import Search


ROUNDINGS = 10.0  # a step or a gradient below so many is noise
NEAR = 0.1  # of the first loss
CURVED = 1e-2  # least cosine of the angle between s and y
LITTLE, LONGER = 0.1, 4.0
LEAST = 0.2
MOST_TANGENTS = 40  # with more components of theta a gradient is cheaper than a Jacobian
EPSILON = 1e-12  # of Adam
Pair = tuple[np.ndarray, np.ndarray]


def method_for(how: Search, size: int) -> Method:
    """Return how local searches with so many components of theta go."""
    return Method(how.method or (Method.LBFGSB if size > MOST_TANGENTS else Method.GAUSS_NEWTON))


def minimize(
    problem: Problem,
    theta0: np.ndarray,
    how: Search,
    *,
    log: Path | None = None,
    callback: Callable[[Evaluation], None] | None = None,
    stage: str = "",
    stall: Stall | None = None,
) -> Result:
    """Lower a problem's loss from `theta0`, `(n,)`, and return the best theta evaluated.

    The budget is in rollouts; a tangent rollout counts as one, so a Jacobian costs n. Gauss-Newton
    ends at a step below `tolerance` times |theta|, Levenberg's method at one that lowers the loss
    by less than `tolerance` of it, others once the gradient has fallen to `tolerance` times the
    first one; of all, at least `ROUNDINGS`: 1.2e-6 in float32. Lines that
    `log` holds already answer the first requests: a killed run goes on, with the same numbers to
    the bit. `callback` gets every evaluation, replayed ones included.
    """
    eps = float(np.finfo(problem.dtype).eps)
    settings = Settings(how, max(how.tolerance, ROUNDINGS * eps), problem.bounds, eps)
    start = checks.array("theta0", theta0, ("n",))
    evaluator = Evaluator(
        problem, how.max_evaluations, log=log, callback=callback, stage=stage, stall=stall
    )
    try:
        status = METHODS[method_for(how, len(start))](evaluator, start, settings)
    except SearchEnd as end:
        status = end.status
    if (best := evaluator.best) is None:
        return Result(start, np.inf, Status.NOT_FINITE, evaluator.spent)
    return Result(best.theta, best.loss, status, evaluator.spent)


def _descend(
    evaluator: Evaluator, theta: np.ndarray, settings: Settings, *, is_adam: bool
) -> Status:
    """Add steps to theta, clipped to the bounds, until the gradient has fallen enough.

    Heavy-ball momentum: velocity <- momentum velocity - learning_rate gradient. Adam: Kingma & Ba,
    ICLR 2015, algorithm 1, with its bias corrections. `decay` multiplies the rate of either.
    """
    how = settings.how
    target, rate, t = None, how.learning_rate, 0
    velocity = mean = square = 0.0
    while True:
        gradient = evaluator.gradient(theta).gradient
        if gradient is None:
            return Status.NOT_FINITE
        norm = float(np.linalg.norm(gradient))
        target = settings.tolerance * norm if target is None else target
        if norm <= target:
            return Status.CONVERGED
        if is_adam:
            t += 1
            mean = how.beta1 * mean + (1.0 - how.beta1) * gradient
            square = how.beta2 * square + (1.0 - how.beta2) * gradient**2
            mean_hat = mean / (1.0 - how.beta1**t)
            square_hat = square / (1.0 - how.beta2**t)
            velocity = -rate * mean_hat / (np.sqrt(square_hat) + EPSILON)
        else:
            velocity = how.momentum * velocity - rate * gradient
        rate *= how.decay
        theta = np.clip(theta + velocity, *settings.bounds)


def polyak(evaluator: Evaluator, theta: np.ndarray, settings: Settings) -> Status:
    r"""Take quasi-Newton steps without a line search, as long as Polyak's, clipped to the bounds.

        d = H g,   H of L-BFGS over its last pairs (s, y), begun with H_0 = L / |g|^2
        theta <- theta - t d,   t = k min(1, L / <g, d>), but rms(t d) at most `rate`

    The least loss is taken to be 0: a step does not promise to go below it. Without pairs it is
    Polyak's step, L / |g|^2 along the gradient. Every evaluation is a step, also one that raises
    the loss: where contact makes a loss rugged, a line search measures the roughness. Pairs are of
    evaluations below `NEAR` of the first loss, and of positive curvature: far from its goal a loss
    is no parabola.

    Such a loss has spikes, where g is ten times what it is around, and Polyak's step far too short.
    So k is 1 at first and after each step that changed the loss; after one that changed it by less
    than `LITTLE` of what it promised, <g, t d>, k is `LONGER` times what it was. And above `NEAR`
    of the first loss no step is shorter than `LEAST` of `rate`.

    Source: Polyak, USSR Comput. Math. Math. Phys. 9 (1969), the step; Nocedal, Math. Comp. 35
    (1980), the two loops.
    """
    first = here = evaluator.gradient(theta)
    pairs: list[Pair] = []
    more, how = 1.0, settings.how  # k
    while here.gradient is not None and first.gradient is not None:
        if np.linalg.norm(here.gradient) <= settings.tolerance * np.linalg.norm(first.gradient):
            return Status.CONVERGED
        d = two_loops(here.gradient, pairs, here.loss / float(here.gradient @ here.gradient))
        is_far = here.loss >= NEAR * first.loss
        step = more * min(1.0, here.loss / float(here.gradient @ d)) * d
        length, rate = float(np.sqrt(np.mean(step**2))), how.learning_rate
        step = step * (np.clip(length, LEAST * rate if is_far else 0.0, rate) / length)
        moved = np.clip(theta - step, *settings.bounds)
        there = evaluator.gradient(moved)
        promised = min(float(here.gradient @ (theta - moved)), here.loss)
        more = LONGER * more if abs(there.loss - here.loss) < LITTLE * promised else 1.0
        is_near = max(here.loss, there.loss) < NEAR * first.loss
        if is_near and there.gradient is not None:
            s, y = moved - theta, there.gradient - here.gradient
            if s @ y > CURVED * np.linalg.norm(s) * np.linalg.norm(y):
                pairs = [*pairs, (s, y)][-how.memory :]
        theta, here = moved, there
    return Status.NOT_FINITE


def two_loops(g: np.ndarray, pairs: Sequence[Pair], first: float) -> np.ndarray:
    """Return H g of L-BFGS, its first H being `first` times the identity."""
    d, parts = g.copy(), []
    for s, y in reversed(pairs):
        parts.append((s @ d) / (s @ y))
        d -= parts[-1] * y
    d *= first
    for (s, y), alpha in zip(pairs, reversed(parts), strict=True):
        d += (alpha - (y @ d) / (s @ y)) * s
    return d


METHODS = {
    Method.GRADIENT_DESCENT: partial(_descend, is_adam=False),
    Method.ADAM: partial(_descend, is_adam=True),
    Method.LBFGSB: lbfgsb,
    Method.GAUSS_NEWTON: gauss_newton,
    Method.NEWTON_CG: newton_cg,
    Method.LEVENBERG: levenberg,
    Method.POLYAK: polyak,
}
