r"""What can be said of a gradient where kinks lie within the reach of every Taylor sweep.

Contact and friction make a loss smooth in pieces. A sweep along d stays in its piece while no
margin of contact (`adjsim.contact_margins`: touch, leaving, slip, shape) changes its sign between
theta and theta + eps d. The largest such eps, the reach of d, is found by halving, and a sweep
within it judges like any other. But a piece can be so small that rounding hides the remainders in
it, as where feet stand nearly still and slip and stick by turns; no slope can be read there. What
is left are differences to either side,

    q+-(h, d) = +-(phi(theta +- h d) - phi(theta)) / h.

A kink bends them by its change of slope, and only over the part of h that is beyond it: many weak
kinks leave them right, while a wrong gradient is wrong at every h. Of an error e of the gradient,
in n dimensions, a random d of length 1 shows <e, d>, whose mean square is |e|^2 / n. So

    error(h) = max( sqrt(n mean_d (q - <g, d>)^2), |q(h, g/|g|) - |g|| ) / |g|

of the worse side estimates |e| / |g|. Differences that disagree prove nothing: the gradient then
counts as wrong.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adjoint.verify.vectors import unit
from studies.answer.touches import margins_by_window
from studies.problem.problem import SceneProblem


STEPS = (1e-5, 1e-6, 1e-7, 1e-8)  # of the differences, in theta; the first that agrees is told
DIRECTIONS = 8
AGREES = 1e-4  # error(h) of differences that agree
LONGEST, MOST_HALVINGS = 1e-3, 40  # where the search for a reach begins, and how far it goes


@dataclass(frozen=True)
class BetweenKinks:
    """Differences to either side of a point among kinks."""

    step: float  # h, of the differences that are told [in theta]
    error: float  # error(h), relative to the size of the gradient
    reach: float  # how far the longest sweep goes that crosses no event of contact, 0 if none

    @property
    def agrees(self) -> bool:
        """Whether kinks are near, and differences agree with the gradient all the same."""
        return self.reach < LONGEST and self.error <= AGREES

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {**asdict(self), "error": self.error if np.isfinite(self.error) else None}


def events_between(problem: SceneProblem, theta: np.ndarray) -> Callable[[np.ndarray], int] | None:
    """Return what counts the margins that have another sign elsewhere; None without contact."""
    if not has_one_clock(problem):
        return None
    here = _sides(problem, theta)
    if not here.size:
        return None
    return lambda there: int(np.count_nonzero(_sides(problem, there) != here))


def has_one_clock(problem: Any) -> bool:
    """Whether something moves, and its frames are at the same steps whatever theta is."""
    if not hasattr(problem, "motion_at") or getattr(problem, "is_at_rest", False):
        return False
    return not any(path.startswith("observations.") for path in problem.parameters.paths)


def _sides(problem: Any, theta: np.ndarray) -> np.ndarray:
    """Return the sign of every margin of contact at theta, 0 for those that are none, flat."""
    windows = margins_by_window(problem.motion_at(theta))
    found = [np.sign(part.all()) for window in windows for part in window.values()]
    small = (np.nan_to_num(part).astype(np.int8) for part in found)
    return np.concatenate([np.zeros(0, np.int8), *small])


def reach(events: Callable[[np.ndarray], int], theta: np.ndarray, direction: np.ndarray) -> float:
    """Return how far a sweep may go without an event; 0 if it may go nowhere.

    The greatest `LONGEST` 2^-k without one, by bisection of k: margins are linear in a step that
    is this small, so that an event that is crossed stays crossed.
    """
    low, high = 0, MOST_HALVINGS + 1  # the answer is between, `high` stands for none
    while low < high:
        middle = (low + high) // 2
        if events(theta + LONGEST * 0.5**middle * direction) == 0:
            high = middle
        else:
            low = middle + 1
    return LONGEST * 0.5**low if low <= MOST_HALVINGS else 0.0


def compare_sides(
    loss_at: Callable[[np.ndarray], float],
    gradient: np.ndarray,
    theta: np.ndarray,
    *,
    reach: float,
    seed: int,
) -> BetweenKinks:
    """Return differences to either side, of the largest step that agrees, or of the best one.

    The gradient is not 0, and `reach` that of the longest sweep that crosses no event.
    """
    rng = np.random.default_rng([seed, 3])
    size = float(np.linalg.norm(gradient))
    directions = np.array([gradient / size, *(unit(rng, theta.size) for _ in range(DIRECTIONS))])
    here, best = loss_at(theta), BetweenKinks(STEPS[0], np.inf, reach)
    for step in STEPS:
        sides = []
        for sign in (1.0, -1.0):
            ahead = [loss_at(theta + sign * step * d) for d in directions]
            off = sign * (np.array(ahead) - here) / step - directions @ gradient
            sides += [abs(off[0]), np.sqrt(theta.size * np.mean(off[1:] ** 2))]
        error = float(np.max(sides)) / size
        if error < best.error:
            best = BetweenKinks(step, error, reach)
        if error <= AGREES:
            break
    return best
