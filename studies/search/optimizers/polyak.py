r"""Quasi-Newton steps without a line search, as long as Polyak's.

    d = H g,   H of L-BFGS over its last pairs (s, y), begun with H_0 = L / |g|^2
    theta <- theta - t d,   t = k min(1, L / <g, d>), but rms(t d) at most `rate`

The least loss is taken to be 0: a step does not promise to go below it. Without pairs it is
Polyak's step, L / |g|^2 along the gradient. No step is longer than `rate` in the root mean square
of its entries. Every evaluation is a step, also one that raises the loss: where contact makes a
loss rugged, a line search measures the roughness. Pairs are of evaluations below `NEAR` of the
first loss, and of positive curvature: far from its goal a loss is no parabola.

Such a loss has spikes, where g is ten times what it is around, and Polyak's step far too short.
So k is 1 at first and after each step that changed the loss; after one that changed it by less than
`LITTLE` of what it promised, <g, t d>, k is `LONGER` times what it was. And above `NEAR` of the
first loss no step is shorter than `LEAST` of `rate`.

Source: Polyak, USSR Comput. Math. Math. Phys. 9 (1969), the step; Nocedal, Math. Comp. 35 (1980),
the two loops.
"""

from collections.abc import Sequence

import numpy as np

from studies.search.optimizers.evaluations import Evaluator
from studies.search.optimizers.problem import Options, Status


NEAR = 0.1  # of the first loss
CURVED = 1e-2  # least cosine of the angle between s and y
LITTLE, LONGER = 0.1, 4.0
LEAST = 0.2
Pair = tuple[np.ndarray, np.ndarray]


def polyak(
    evaluator: Evaluator,
    theta: np.ndarray,
    options: Options,
    *,
    tolerance: float,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Status:
    """Add steps to theta, clipped to the bounds, until the gradient has fallen enough.

    Converged once the norm of the gradient is at most `tolerance` times the first one.
    """
    first = here = evaluator.gradient(theta)
    pairs: list[Pair] = []
    more = 1.0  # k
    while here.gradient is not None and first.gradient is not None:
        if np.linalg.norm(here.gradient) <= tolerance * np.linalg.norm(first.gradient):
            return Status.CONVERGED
        d = two_loops(here.gradient, pairs, here.loss / float(here.gradient @ here.gradient))
        is_far = here.loss >= NEAR * first.loss
        t = more * min(1.0, here.loss / float(here.gradient @ d))
        moved = np.clip(theta - _limited(t * d, options.learning_rate, is_far), *bounds)
        there = evaluator.gradient(moved)
        promised = min(float(here.gradient @ (theta - moved)), here.loss)
        more = LONGER * more if abs(there.loss - here.loss) < LITTLE * promised else 1.0
        is_near = max(here.loss, there.loss) < NEAR * first.loss
        if is_near and there.gradient is not None:
            s, y = moved - theta, there.gradient - here.gradient
            if s @ y > CURVED * np.linalg.norm(s) * np.linalg.norm(y):
                pairs = [*pairs, (s, y)][-options.memory :]
        theta, here = moved, there
    return Status.NOT_FINITE


def _limited(step: np.ndarray, rate: float, is_far: bool) -> np.ndarray:
    """Return a step as long as it may be, and far from the goal as it must be."""
    length = float(np.sqrt(np.mean(step**2)))
    return step * (np.clip(length, LEAST * rate if is_far else 0.0, rate) / length)


def two_loops(g: np.ndarray, pairs: Sequence[Pair], first: float) -> np.ndarray:
    """Return H g of L-BFGS, its first H being `first` times the identity."""
    d, parts = g.copy(), []
    for s, y in reversed(pairs):
        parts.append((s @ d) / (s @ y))
        d -= parts[-1] * y
    d *= first
    for (s, y), part in zip(pairs, reversed(parts), strict=True):
        d += (part - (y @ d) / (s @ y)) * s
    return d
