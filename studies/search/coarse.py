"""The coarse set, points inside the bounds that are evaluated before any local search, and basins.

One axis has a grid of cell centres. More have a scrambled Sobol sample: a grid of two or three axes
would have few values of each, and miss a narrow basin. All of this happens in theta, so a grid over
a positive parameter is even in its logarithm. Components of theta that are no axes keep their start
values. Point 0 is the start itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.optimizers.problem import Result, Status
from studies.problem.parameters import Log, Parameters
from studies.runs.errors import StudyError
from studies.runs.evaluations import Evaluation, read_log
from studies.runs.folder import ITERATIONS, RunFolder


FACTOR = 100.0  # range of a positive parameter without bounds: its start divided and multiplied
SPAN = 2.0  # range of another one without bounds: so many times |start| to both sides
GRID, SAMPLE, LARGE = 13, 64, 128  # points of one axis, of up to `FEW_AXES`, and of more
FEW_AXES = 3
ROUNDING = 1e-9  # of a cell
STAGE = "-stage-"  # in the names of logs of stages before the last


@dataclass(frozen=True, eq=False)
class CoarseSet:
    """Points and which of them are neighbours."""

    points: np.ndarray  # (n_points, n_theta); the first one is the start
    axes: tuple[int, ...]  # components of theta that differ between the points
    # Range of each axis in theta, (n_axes,)
    lower: np.ndarray
    upper: np.ndarray
    neighbours: np.ndarray  # (n_points, n_points) bool, symmetric, False on the diagonal


def coarse_set(
    parameters: Parameters, axes: Sequence[int], count: int | None = None, seed: Sequence[int] = ()
) -> CoarseSet:
    """Return the start and `count` points inside the bounds, `GRID` to `LARGE` by default.

    0 gives the start alone. An axis without finite bounds has the range of `axis_range`; one that
    has no range is left out.
    """
    ranges = {axis: axis_range(parameters, axis) for axis in axes}
    axes = tuple(axis for axis, ends in ranges.items() if ends is not None)
    is_grid = len(axes) == 1
    if count is None:
        count = GRID if is_grid else SAMPLE if len(axes) <= FEW_AXES else LARGE
    if count < 0:
        raise StudyError(
            f"`search.coarse` must not be negative, got {count}. Give 0 for no coarse set."
        )
    lower, upper = np.array([ranges[axis] for axis in axes]).reshape(-1, 2).T
    if not axes or not count:
        unit = np.empty((0, len(axes)))
    elif is_grid:
        unit = (np.arange(count)[:, None] + 0.5) / count
    else:
        from scipy.stats import qmc  # it takes a third of the start of a run to load

        sampler = qmc.Sobol(len(axes), scramble=True, rng=np.random.default_rng([*seed, 2]))
        unit = sampler.random_base2(math.ceil(math.log2(count)))[:count]
    points = np.tile(parameters.start, (1 + len(unit), 1))
    points[1:, axes] = lower + (upper - lower) * unit
    places = (points[:, axes] - lower) / (upper - lower)
    if is_grid:
        neighbours = np.abs(places - places.T) * len(unit) <= 1.0 + ROUNDING
        np.fill_diagonal(neighbours, val=False)
    else:
        neighbours = _nearest(places)
    return CoarseSet(points, axes, lower, upper, neighbours)


def axis_range(parameters: Parameters, axis: int) -> tuple[float, float] | None:
    """Return the range of a component of theta: its bounds where they are finite.

    An infinite bound of a positive parameter is replaced by its start divided or multiplied by
    `FACTOR`, that of another one by its start minus or plus `SPAN` times its size. The latter has
    no range (None) where the start is zero.
    """
    start = float(parameters.start[axis])
    low, high = float(parameters.lower[axis]), float(parameters.upper[axis])
    half = math.log(FACTOR) if is_log(parameters)[axis] else SPAN * abs(start)
    low = low if math.isfinite(low) else start - half
    high = high if math.isfinite(high) else start + half
    return (low, high) if low < high else None


def is_log(parameters: Parameters) -> np.ndarray:
    """Return which components of theta are logarithms, (n_theta,) bool."""
    return parameters.each([isinstance(free.transform, Log) for free in parameters.free])


def local_minima(coarse: CoarseSet, values: np.ndarray) -> np.ndarray:
    """Return the indices of the points that are no higher than all their neighbours, best first.

    `values` is (n_points,), infinite where there is no loss; such a point is no minimum. Of equal
    neighbours the first one counts.
    """
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), int)
    rank[order] = np.arange(len(values))
    least_beside = np.where(coarse.neighbours, rank, len(values)).min(axis=1)
    return np.array([i for i in order if np.isfinite(values[i]) and rank[i] < least_beside[i]], int)


def _nearest(places: np.ndarray) -> np.ndarray:
    """Return which points are among the 2 n_axes nearest ones of each other, in either order."""
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, : 2 * places.shape[1]]
    neighbours = np.zeros(apart.shape, bool)
    np.put_along_axis(neighbours, nearest, values=True, axis=1)
    np.fill_diagonal(neighbours, val=False)  # where there are fewer points than that
    return neighbours | neighbours.T


@dataclass(frozen=True, eq=False)
class CoarseLosses:
    """The losses over the coarse set."""

    points: CoarseSet
    # Loss of each frame alone, (n_points, n_frames); infinite where a rollout blew up
    by_frame: np.ndarray
    frames: tuple[int, ...]  # how many of the first frames each stage compares

    @property
    def by_stage(self) -> np.ndarray:
        """Mean loss over the frames of each stage, (n_stages, n_points)."""
        return np.stack([self.by_frame[:, :count].mean(axis=1) for count in self.frames])


@dataclass(frozen=True, eq=False)
class Basin:
    """A local minimum of the loss, or where the search for it was given up."""

    number: int  # rank of its start among the candidates from the coarse set, from 0
    first_stage: int  # stage at which its local searches begin
    # (n_starts, n_theta): the point of the coarse set that it was reached from, and those of the
    # branches that arrived at the same point
    starts: np.ndarray
    theta: np.ndarray  # where its last local search ended, (n_theta,)
    # At theta, of all frames of the problem; before the search ends, of those of its stage
    loss: float
    status: Status  # how its last local search ended
    evaluations: int  # rollouts of its local searches
    logs: tuple[str, ...]  # logs of these, one after the other
    # The time step of the last local search was chosen for this theta: then
    # `problem.with_stable_steps(step_theta)` is the problem whose loss this is
    step_theta: np.ndarray
    # Whether its last local search saw all frames. It did not if the loss of an earlier stage was
    # hopeless; theta is then no minimum of the loss of all frames.
    is_searched: bool

    @classmethod
    def of(
        cls, start: np.ndarray, result: Result, log: str, *, number: int = 0, first_stage: int = 0
    ) -> "Basin":
        """Return the basin of one local search of all frames."""
        theta = result.theta
        return cls(
            number, first_stage, start[None], theta, result.loss, result.status,
            result.evaluations, (log,), step_theta=theta, is_searched=True,
        )  # fmt: skip

    @property
    def result(self) -> Result:
        """The same as the result of a local search."""
        return Result(self.theta, self.loss, self.status, self.evaluations)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The basins of a search, that of the answer first."""

    basins: tuple[Basin, ...]
    evaluations: int  # rollouts of all basins and stages together
    coarse: CoarseLosses | None = None  # of a robust search

    @property
    def best(self) -> Result:
        """The answer, of all frames."""
        return self.basins[0].result


def found_basins(basins: list[Basin], evaluations: int, coarse: CoarseLosses) -> SearchResult:
    """Return what a robust search found."""
    ranked = sorted(basins, key=lambda basin: (not basin.is_searched, basin.loss))
    return SearchResult(tuple(ranked), evaluations, coarse)


def stage_logs(start: int, stages: int) -> list[str]:
    """Return the names of a start's logs: iterations.jsonl, iterations-2.jsonl, ...

    Stages before the last have their number too: iterations-1-stage-1.jsonl.
    """
    names = [ITERATIONS.replace(".", f"-{start + 1}{STAGE}{k + 1}.") for k in range(stages - 1)]
    names.append(ITERATIONS if start == 0 else ITERATIONS.replace(".", f"-{start + 1}."))
    return names


def of_last_stage(names: Sequence[str]) -> list[str]:
    """Return the logs of a start whose evaluations have all frames."""
    return [name for name in names if STAGE not in name]


def read_search(folder: RunFolder, names: Sequence[str]) -> list[Evaluation]:
    """Return the evaluations of a start, its stages one after the other."""
    whole: list[Evaluation] = []
    for name in names:
        spent, seconds = (whole[-1].spent, whole[-1].seconds) if whole else (0, 0.0)
        whole += [
            replace(
                evaluation, spent=evaluation.spent + spent, seconds=evaluation.seconds + seconds
            )
            for evaluation in read_log(folder.file(name))
        ]
    return whole
