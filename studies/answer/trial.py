r"""Try an answer: does the loss about it rise as its Jacobian promises?

Intervals, and the steps of a search, rest on the Jacobian J of the residuals. Where a motion jumps,
as by the damping of a contact at touch, J is exact and yet not the slope of the loss: a search
stands still far from the optimum, and its interval is nearly 0. So the loss itself is looked at.

With H = J^T J and G = H^-1, the loss should rise least, by t^2/G_ii, where theta_i moves by t and
all else makes up for it: by t G_i/G_ii. These directions are tried for the answers, and those of
the largest variance, to both sides, at the size of the interval and at larger ones up to a few per
cent. From the losses at distances t to both sides,

    rise(t) = (L(t) + L(-t))/2 - L(0),    widening = max_t sqrt(promised rise(t)/rise(t))

says how many times the interval must be wider for the loss to rise at its ends as promised. A lower
loss beside the answer is no rise at all: the search is not finished.

Points that leave the bounds are not tried; where a rollout blows up, the loss is infinite.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
        own = np.where(self.widening > AGREES, np.minimum(self.widening, LARGEST) ** 2 - 1.0, 0.0)
        return (self.ends.T * own) @ self.ends / quantile**2

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return {
            "widening": min(self.worst, LARGEST),
            "is_lower": self.lower is not None,
            "gain": self.gain,
            "evaluations": self.evaluations,
        }


def try_answer(
    losses: Callable[[Sequence[np.ndarray]], np.ndarray],
    theta: np.ndarray,
    information: np.ndarray,
    half_width: np.ndarray,
    *,
    scale: np.ndarray,
    asked: Sequence[int],
    bounds: tuple[np.ndarray, np.ndarray],
) -> Trial | None:
    """Return what the losses about theta, (p,), say; None if no direction can be tried.

    `information` is H, (p, p), `half_width` that of the interval of theta, `scale` what a part of
    theta is a part of, (p,) each, and `asked` are the components whose intervals count. `losses` of
    many points are infinite where there is none.
    """
    ends = _interval_ends(information, half_width, scale, asked)
    if not len(ends):
        return None
    promised = np.einsum("ni,ij,nj->n", ends, information, ends)
    points: list[np.ndarray] = [theta]
    places: list[tuple[int, float]] = []  # of all but the first: direction and distance
    for d, end in enumerate(ends):
        length = float(np.abs(end / scale)[list(asked)].max())
        for size in _sizes(length):
            for sign in (1.0, -1.0):
                at = theta + sign * size / length * end
                if ((bounds[0] <= at) & (at <= bounds[1])).all():
                    places.append((d, size / length))
                    points.append(at)
    found = np.asarray(losses(points), float)
    here, rises = found[0], found[1:] - found[0]
    widening = np.ones(len(ends))
    both: dict[tuple[int, float], list[float]] = {}
    for place, rise in zip(places, rises, strict=True):
        both.setdefault(place, []).append(float(rise))
    for (d, t), own in both.items():
        should, does = promised[d] * t**2, float(np.mean(own))
        if should > ROUNDING * here:
            widening[d] = max(widening[d], np.sqrt(should / does) if does > 0.0 else np.inf)
    least = np.minimum(LOWER * promised, LOWER_PART * here)
    gains = [-rise - least[d] for (d, _), rise in zip(places, rises, strict=True)]
    best = int(np.argmax(gains)) if gains else 0
    is_lower = bool(gains and gains[best] > ROUNDING * here)
    return Trial(
        ends,
        widening,
        points[1 + best] if is_lower else None,
        float(-rises[best] / here) if is_lower else 0.0,
        len(points),
    )


def _sizes(length: float) -> list[float]:
    """Return the distances to try, as parts of a value, for an interval of this half-width."""
    first = max(length, LEAST_SIZE)
    return [first, *(size for size in SIZES if size > APART * first)]


def _interval_ends(
    information: np.ndarray, half_width: np.ndarray, scale: np.ndarray, asked: Sequence[int]
) -> np.ndarray:
    """Return the directions to try, each as long as the interval is, (n, p)."""
    root = np.sqrt(np.maximum(np.diag(information), 1e-300))
    try:
        G = np.linalg.inv(information / np.outer(root, root)) / np.outer(root, root)
    except np.linalg.LinAlgError:
        return np.zeros((0, len(scale)))
    half = np.maximum(half_width, LEAST_SIZE * 1e-6 * scale)  # of a fit to rounding it is 0
    relative = half / scale
    if not (np.isfinite(G).all() and np.isfinite(relative).all()):
        return np.zeros((0, len(scale)))
    widest = sorted(asked, key=lambda i: -relative[i])[:MOST_ANSWERS]
    ends = [half[i] * G[:, i] / G[i, i] for i in widest if G[i, i] > 0.0]
    if len(asked) > 1:
        own = list(asked)
        among = G[np.ix_(own, own)] / np.outer(scale[own], scale[own])
        _, axes = np.linalg.eigh(among)
        for axis in axes.T[::-1][:MOST_COMBINED]:
            # the change of all components that goes with the one of the answers along the axis
            along = G[:, own] @ np.linalg.solve(G[np.ix_(own, own)], axis * scale[own])
            within = np.abs(along[own]) / half[own]
            ends.append(along / max(within.max(), 1e-300))
    return np.array(ends)
