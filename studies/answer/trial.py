r"""Try an answer: do the residuals r about it change as their Jacobian J promises?

Intervals, and the steps of a search, rest on J. Where a motion jumps, as by the damping of a
contact at touch, J is exact and yet no slope of the loss L = r @ r: a search stands still far from
the optimum, and its interval is nearly 0. So the residuals themselves are looked at.

Each number that is asked for is moved alone, and so are the combinations of the largest variance,
which with H = J^T J are those of H^-1. They go to both sides, at the size of the interval and at
larger ones up to a few per cent. At a distance t along d, J promises

    |r(t d) - r(-t d)|/2 = t |J d|,    (L(t d) + L(-t d))/2 - L(0) = t^2 |J d|^2

The largest factor by which either is missed, of the second its root, says how many times wider the
interval must be for the residuals to change at its ends as promised. Where the loss beside the
answer is lower, the search is not finished.

Points that leave the bounds are not tried, nor those where a rollout blows up.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np


# Distances that are tried beyond the interval, as parts of a value. A search that stands still
# between jumps does so within less than the first of them.
SIZES = (1e-3, 1e-2, 5e-2)
LEAST_SIZE = 1e-4  # what is nearer may be rounding
APART = 2.0  # least factor between two sizes
MOST_ANSWERS, MOST_COMBINED = 6, 2  # directions that are tried: of answers, and of combinations
# A loss that is lower by so much is a better answer: as a part of the rise at the end of the
# interval, that of an optimum half an interval away; or as a part of the loss at the answer.
LOWER, LOWER_PART = 0.25, 0.05
ROUNDING = 1e-6  # part of the loss that a promised rise must exceed to be seen
AGREES = 2.0  # a smaller widening is the curvature of a smooth loss
ORDERS = 10.0  # a larger one says that J is no slope
LARGEST = 1e6  # widening that is told


@dataclass(frozen=True, eq=False)
class Trial:
    """What the losses about an answer say."""

    # Ends of the intervals along the directions that were tried, (n, p), and how many times wider
    # these must be
    ends: np.ndarray
    widening: np.ndarray
    lower: np.ndarray | None  # the best theta that was seen, if its loss is clearly lower
    gain: float  # by how much, as a part of the loss at the answer
    evaluations: int

    @property
    def worst(self) -> float:
        """The largest widening; 1 if nothing could be tried."""
        return float(np.max(self.widening, initial=1.0))

    @property
    def is_rough(self) -> bool:
        """Whether the Jacobian is no slope of the loss at the size of the interval or beyond."""
        return self.lower is not None or self.worst > ORDERS

    def covariance(self, quantile: float) -> np.ndarray:
        """Return what widens a covariance of theta as the losses say, (p, p)."""
        excess = np.where(
            self.widening > AGREES, np.minimum(self.widening, LARGEST) ** 2 - 1.0, 0.0
        )
        return (self.ends.T * excess) @ self.ends / quantile**2

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return {
            "widening": min(self.worst, LARGEST),
            "is_lower": self.lower is not None,
            "gain": self.gain,
            "evaluations": self.evaluations,
        }


Residuals = Callable[[Sequence[np.ndarray]], Iterable[np.ndarray | None]]


def try_answer(
    residuals: Residuals,
    theta: np.ndarray,
    information: np.ndarray,
    half_width: np.ndarray,
    *,
    scale: np.ndarray,
    components: Sequence[int],
    bounds: tuple[np.ndarray, np.ndarray],
) -> Trial | None:
    """Return what the residuals about theta, (p,), say; None if no direction can be tried.

    `information` is H, (p, p), `half_width` that of the interval of theta, `scale` what a part of
    theta is a part of, (p,) each, and `components` are those whose intervals count. `residuals`
    of many points are None where there are none.
    """
    ends = _interval_ends(information, half_width, scale, components)
    asked = list(components)
    lengths = np.abs(ends[:, asked] / scale[asked]).max(axis=1, initial=0.0) if len(ends) else []
    places = [
        place
        for place in _places(theta, ends, np.asarray(lengths))
        if ((bounds[0] <= place.at) & (place.at <= bounds[1])).all()
    ]
    seen = iter(residuals([theta, *(place.at for place in places)]))
    here = next(seen)
    if here is None or not places:
        return None
    loss = float(here @ here)
    promised = np.einsum("ni,ij,nj->n", ends, information, ends)
    widening, gains = np.ones(len(ends)), {}
    finite = ((place, r) for place, r in zip(places, seen, strict=True) if r is not None)
    for (k, t), pair in groupby(finite, key=lambda item: (item[0].end, item[0].distance)):
        both, losses = [], []
        for place, r in pair:
            both.append(r)
            losses.append(float(r @ r))
            gains[loss - losses[-1]] = place
        if (should := promised[k] * t**2) > ROUNDING * loss:
            rise = float(np.mean(losses)) - loss
            least = max(min(_change(here, both), rise), 1e-300)
            widening[k] = max(widening[k], np.sqrt(should) / np.sqrt(least))
        both.clear()  # before the next motions
    least = np.maximum(np.minimum(LOWER * promised, LOWER_PART * loss), ROUNDING * loss)
    lower = [gain for gain, place in gains.items() if gain > least[place.end]]
    gain = max(lower, default=0.0)
    best = gains[gain].at if lower else None
    return Trial(ends, widening, best, gain / max(loss, 1e-300), 1 + len(places))


class _Place(NamedTuple):
    """A point beside the answer: along which direction, and how many intervals away."""

    end: int
    distance: float
    at: np.ndarray


def _places(theta: np.ndarray, ends: np.ndarray, lengths: np.ndarray) -> list[_Place]:
    """Return the points to try, along intervals of these relative lengths, to both sides."""
    return [
        _Place(k, size / length, theta + sign * size / length * end)
        for k, (end, length) in enumerate(zip(ends, lengths, strict=True))
        for first in [max(length, LEAST_SIZE)]
        for size in (first, *(size for size in SIZES if size > APART * first))
        for sign in (1.0, -1.0)
    ]


def _change(here: np.ndarray, both: Sequence[np.ndarray]) -> float:
    """Return the squared change of residuals to both sides, or to one; it overwrites the first."""
    apart = both[0]
    apart -= both[1] if len(both) == 2 else here
    return float(apart @ apart) / len(both) ** 2


def _interval_ends(
    information: np.ndarray, half_width: np.ndarray, scale: np.ndarray, components: Sequence[int]
) -> np.ndarray:
    """Return the directions to try, each as long as the interval is, (n, p); none without H^-1."""
    root = np.sqrt(np.maximum(np.diag(information), 1e-300))
    try:
        G = np.linalg.inv(information / np.outer(root, root)) / np.outer(root, root)
    except np.linalg.LinAlgError:
        return np.zeros((0, len(scale)))
    half = np.maximum(half_width, LEAST_SIZE * 1e-6 * scale)  # of a fit to rounding it is 0
    chosen = list(components)
    if not (np.isfinite(G).all() and scale[chosen].all() and np.isfinite(half[chosen]).all()):
        return np.zeros((0, len(scale)))
    widest = sorted(chosen, key=lambda i: -half[i] / scale[i])[:MOST_ANSWERS]
    ends = [half[i] * np.eye(len(scale))[i] for i in widest]
    if len(chosen) > 1:
        among = G[np.ix_(chosen, chosen)] / np.outer(scale[chosen], scale[chosen])
        _, axes = np.linalg.eigh(among)
        for axis in axes.T[::-1][:MOST_COMBINED]:
            # the change of all components that goes with the one of the answers along the axis
            along = G[:, chosen] @ np.linalg.solve(G[np.ix_(chosen, chosen)], axis * scale[chosen])
            within = np.abs(along[chosen]) / half[chosen]
            ends.append(along / max(within.max(), 1e-300))
    return np.array(ends)
