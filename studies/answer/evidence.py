"""What a verdict rests on: the answer, its intervals, what it explains, lacks, and other basins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studies.answer.budget import Budget
from studies.answer.held_back import Explained
from studies.answer.intervals import Intervals, largest_components
from studies.answer.scales import theta_scale, value_scale
from studies.answer.trial import Trial
from studies.optimizers.problem import Status
from studies.problem.parameters import Parameters
from studies.search.coarse import is_log


BLOCKS = 8  # of frames, for the standard error of a difference of losses
# Part of the motion that is left anyway: below it, a factor between two basins says nothing.
LEAST_UNEXPLAINED = 1e-3
NAMED = 3  # components named of a combination


@dataclass(frozen=True, eq=False)
class Rival:
    """A local optimum: theta, its loss, and the sum of squares left in every frame if known."""

    theta: np.ndarray
    loss: float
    residual_squares: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class MissingTerm:
    """A number of the scene that explains what an answer leaves."""

    path: str
    value: np.ndarray  # that explains most, () or (k,)
    unit: str
    left: float  # part of the motion that is unexplained without it
    left_with: float  # and with it
    change: np.ndarray  # of the answer, theta with it less theta without it, (p,)

    @property
    def line(self) -> str:
        """What makes it free, in the table `free` of a scene file."""
        start = ", ".join(f"{number:.3g}" for number in np.ravel(self.value))
        start = start if np.ndim(self.value) == 0 else f"[{start}]"
        return f'"{self.path}" = {{ start = {start} }}'

    def to_dict(self) -> dict[str, Any]:
        """Return what it explains, ready for JSON."""
        return {
            "path": self.path,
            "value": np.asarray(self.value).tolist(),
            "unit": self.unit,
            "unexplained": self.left,
            "unexplained_with": self.left_with,
            "line": self.line,
        }


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a verdict rests on."""

    parameters: Parameters
    theta: np.ndarray  # the answer, (p,)
    status: Status  # how its search ended
    loss: float
    # Of the loss at the answer, (p,); its sign says whether a bound stops the search. By default
    # that of the intervals.
    gradient: np.ndarray | None = None
    intervals: Intervals | None = None
    answers: Sequence[int] | None = None  # components of theta that are asked for; None: all
    explained: Explained | None = None  # of a film: what is left of its motion
    # Of pictures that do not move: the part of their variance that is left
    unexplained_pictures: float | None = None
    is_of_forces: bool = False  # whether load cells are observed, and no film
    # Of the answer by frame, to compare other basins with
    residual_squares: np.ndarray | None = None
    still_squares: np.ndarray | None = None
    basins: Sequence[Rival] = ()  # all basins; the answer may be among them
    # Whether an answer without intervals is not determined. A texture has too many components for
    # intervals, and is seen; parameters of a motion without intervals may be anything.
    needs_intervals: bool = False
    # The nuisance, such as a camera, that moved furthest from where the first frame shows it: its
    # label, and how many standard deviations of its prior it moved
    bent: tuple[str, float] | None = None
    # What ends furthest from where the scene declares it, of all that is declared with an
    # uncertainty: its label, and how many of these standard deviations
    strayed: tuple[str, float] | None = None
    # The warning that bodies are drawn in another size than they are filmed, if the answer does
    # not change it
    size_warning: str = ""
    # What the truth of a simulated film leaves of its motion: noise, or another mesh
    unexplained_by_truth: float | None = None
    # Part of the motion that is left of observations kept from the search, by name
    predictions: Mapping[str, float] = field(default_factory=dict)
    start: np.ndarray | None = None  # where the search began, (p,)
    trial: Trial | None = None  # what the losses about the answer say
    # A film drawn without `seams` of a motion in which nothing touches, if the trial failed
    film_without_seams: str = ""
    is_without_gradients: bool = False  # whether it was found by differences of the loss
    loss_at_start: float = 0.0  # a loss that fell to rounding of it ends a search; 0 if unknown
    truth: np.ndarray | None = None  # natural values that a synthetic film was made with, (p,)
    # What theta would change by with a finer mesh or step, (p,), by what is finer
    refinements: Mapping[str, np.ndarray] = field(default_factory=dict)
    budget: Budget | None = None  # what the intervals are made of
    missing: MissingTerm | None = None  # what explains most of what is left, if anything does

    @property
    def components(self) -> list[int]:
        """The components that are asked for."""
        return list(range(self.parameters.size) if self.answers is None else self.answers)

    @property
    def slope(self) -> np.ndarray:
        """The gradient of the loss, `(p,)`; 0 if it is unknown."""
        if self.gradient is not None:
            return self.gradient
        return np.zeros_like(self.theta) if self.intervals is None else self.intervals.gradient

    @property
    def has_intervals(self) -> bool:
        """Whether there are intervals with model error."""
        return self.intervals is not None and not self.intervals.reason


def relative_half_widths(evidence: Evidence) -> np.ndarray:
    """Return the half-width of the interval with model error of every value, relative, `(p,)`.

    Relative to the value where it is positive, otherwise to the length of the vector that it is a
    component of, or to a part of its bounds if that is more.
    """
    assert evidence.intervals is not None
    low, high = evidence.intervals.model
    value = evidence.parameters.natural(evidence.theta)
    half = np.where(is_log(evidence.parameters), np.maximum(high - value, 0.0), (high - low) / 2.0)
    return half / np.maximum(value_scale(evidence.parameters, evidence.theta), 1e-300)


def worst_combination(evidence: Evidence) -> dict[str, float]:
    """Return the weights of the direction in theta of the largest variance, by label."""
    assert evidence.intervals is not None
    chosen = evidence.components
    covariance = evidence.intervals.covariance[np.ix_(chosen, chosen)]
    scale = theta_scale(evidence.parameters, evidence.theta)[chosen]
    direction = np.linalg.eigh(covariance / np.outer(scale, scale))[1][:, -1]
    labels = [evidence.parameters.theta_labels[i] for i in chosen]
    return largest_components(direction, labels, NAMED)


def differences(evidence: Evidence, basin: Rival, least: float) -> list[int]:
    """Return the answers in which a basin differs: by this part of it, outside the interval."""
    value, other = (evidence.parameters.natural(theta) for theta in (evidence.theta, basin.theta))
    scale = value_scale(evidence.parameters, evidence.theta)
    smaller = np.minimum(scale, np.abs(other))  # twice the value and half of it differ alike
    scale = np.where(is_log(evidence.parameters), smaller, scale)
    apart = np.abs(other - value) / np.maximum(scale, 1e-300)
    is_other = apart > least
    if evidence.has_intervals and evidence.intervals is not None:
        low, high = evidence.intervals.model
        is_other &= (other < low) | (other > high)
    return sorted((i for i in evidence.components if is_other[i]), key=lambda i: -apart[i])


def how_much_worse(evidence: Evidence, basin: Rival) -> float:
    """Return how much more of the motion a basin leaves than the answer, as a factor.

    By frames: what the appearance gets wrong in the first frame is subtracted from both. The
    standard error of their difference over blocks of frames counts in favour of the basin, but only
    as far as what the answer leaves can make it: of residuals e and e + d the squares differ by
    |d|^2 + 2 e.d, and what is by chance is at most 2 |e| |d|, |d| <= |e + d| + |e|.
    """
    left, other_left, still = (
        evidence.residual_squares,
        basin.residual_squares,
        evidence.still_squares,
    )
    if left is None or other_left is None or still is None or len(left) < 2 or not still[1:].any():
        return basin.loss / max(evidence.loss, 1e-300)
    motion = float(still[1:].mean())
    least = LEAST_UNEXPLAINED * motion
    mine = max(float(left[1:].mean() - left.min()), least)
    apart = (other_left - left)[1:]
    means = [block.mean() for block in np.array_split(apart, min(BLOCKS, len(apart)))]
    error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
    mine_by_frame, other_by_frame = np.sqrt(left[1:]), np.sqrt(other_left[1:])
    chance = 2.0 * float((mine_by_frame * (mine_by_frame + other_by_frame)).mean())
    error = min(error, chance)
    return max(mine + float(apart.mean()) - error, 0.0) / mine
