r"""Newton's method, with conjugate gradients in a trust region: `newton_cg`.

    min_s  g s + s H s / 2,   |s| <= radius,   by conjugate gradients that end at the region's edge,
                                               or where the curvature is negative
    H s = (g(theta + h s) - g(theta - h s)) / (2 h)

A product takes two gradients: conjugate gradients need a few digits only, so nothing is
extrapolated. Components at a bound that the gradient presses them against are held. Steps
are clipped to the bounds. SciPy's methods that take products know no bounds, or keep to them by
barriers that take many more gradients.

Source: Steihaug, SIAM J. Numer. Anal. 20 (1983); Nocedal & Wright, Numerical Optimization, 2006,
algorithms 4.1 and 7.2.
"""

import numpy as np

from studies.optimizers.evaluations import Evaluator
from studies.optimizers.problem import Settings, Status


RADIUS = 1.0  # at first; theta has about unit scale
SHRINK, GROW = 0.25, 2.0
LEAST_GAIN, GOOD_GAIN, GREAT_GAIN = 1e-4, 0.25, 0.75  # of the fall that the parabola promises
ROUNDING = 1e-13  # promised part of the loss that is not known


def newton_cg(evaluator: Evaluator, theta: np.ndarray, settings: Settings) -> Status:
    """Take steps until the gradient has fallen to the tolerance times the first one.

    The gradient is that of components that are free to move.
    """
    low, high = settings.bounds
    here = evaluator.gradient(theta)
    first, radius = None, RADIUS
    while here.gradient is not None:
        g = here.gradient
        is_free = ((theta > low) | (g < 0.0)) & ((theta < high) | (g > 0.0))
        g = np.where(is_free, g, 0.0)
        norm = float(np.linalg.norm(g))
        first = norm if first is None else first
        if norm <= settings.tolerance * first:
            return Status.CONVERGED
        forcing = min(0.5, np.sqrt(norm / first)) * norm
        step, product = _steihaug(
            evaluator, theta, g, settings, is_free=is_free, radius=radius, forcing=forcing
        )
        moved = np.clip(theta + step, low, high)
        if np.any(moved != theta + step):
            step = moved - theta
            if not step.any():
                return Status.STALLED
            product = _product(evaluator, theta, step, settings)
        promised = -float(g @ step + 0.5 * step @ product)
        length = float(np.linalg.norm(step))
        if abs(promised) <= ROUNDING * here.loss:
            return Status.CONVERGED
        there = evaluator.gradient(moved)
        gain = (here.loss - there.loss) / abs(promised)  # clipped, a step may promise a rise
        if not gain >= GOOD_GAIN:
            radius = SHRINK * length
        elif gain > GREAT_GAIN and length > 0.9 * radius:
            radius *= GROW
        if gain > LEAST_GAIN:
            theta, here = moved, there
        elif radius <= settings.eps * max(float(np.linalg.norm(theta)), 1.0):
            return Status.STALLED
    return Status.NOT_FINITE


def _steihaug(
    evaluator: Evaluator,
    theta: np.ndarray,
    g: np.ndarray,
    settings: Settings,
    *,
    is_free: np.ndarray,
    radius: float,
    forcing: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a step and its product with the Hessian, as long as the radius at most.

    It ends at a residual of `forcing`.
    """
    step, product = np.zeros_like(g), np.zeros_like(g)
    r, d = g.copy(), -g
    for _ in range(len(g)):
        Hd = np.where(is_free, _product(evaluator, theta, d, settings), 0.0)
        curvature = float(d @ Hd)
        alpha = float(r @ r) / curvature if curvature > 0.0 else 0.0
        if curvature <= 0.0 or np.linalg.norm(step + alpha * d) >= radius:
            # the positive t with |step + t d| = radius
            a, b, c = float(d @ d), float(step @ d), float(step @ step) - radius**2
            t = (np.sqrt(max(b * b - a * c, 0.0)) - b) / a
            return step + t * d, product + t * Hd
        step, product = step + alpha * d, product + alpha * Hd
        before, r = r, r + alpha * Hd
        if np.linalg.norm(r) <= forcing:
            break
        d = -r + float(r @ r) / float(before @ before) * d
    return step, product


def _product(
    evaluator: Evaluator, theta: np.ndarray, d: np.ndarray, settings: Settings
) -> np.ndarray:
    """Return H d, or d where it cannot be had beside theta: then steps are of descent.

    At a bound the difference is taken a little inside.
    """
    h = settings.eps ** (1.0 / 3.0) / float(np.linalg.norm(d))
    low, high = settings.bounds
    middle = np.clip(theta, low + h * np.abs(d), high - h * np.abs(d))
    points = (np.clip(middle + sign * h * d, low, high) for sign in (1.0, -1.0))
    ahead, behind = (evaluator.beside(point).gradient for point in points)
    return d if ahead is None or behind is None else (ahead - behind) / (2.0 * h)
