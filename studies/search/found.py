"""What a search found: the best answer, the other basins, and what the coarse set showed."""

from dataclasses import dataclass

import numpy as np

from studies.search.coarse import CoarseSet
from studies.search.optimizers.problem import Result, Status


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
    # The time step of the last local search was chosen for this theta:
    # `problem.with_steps_for(step_theta)` is the problem whose loss this is
    step_theta: np.ndarray
    # Whether its last local search saw all frames. It did not if the loss of an earlier stage was
    # hopeless; theta is then no minimum of the loss of all frames.
    is_searched: bool

    @property
    def result(self) -> Result:
        """The same as the result of a local search."""
        return Result(self.theta, self.loss, self.status, self.evaluations)


@dataclass(frozen=True, eq=False)
class Found:
    """The best of all starts, and how each of them ended."""

    best: Result  # of all frames
    start: int  # which start it is
    all: tuple[Result, ...]  # the last stage of every start
    logs: tuple[tuple[str, ...], ...]  # for every start the logs of its stages
    evaluations: int  # rollouts of all starts and stages together
    # Of a robust search, the lowest loss first; `all` and `logs` have the same order
    basins: tuple[Basin, ...] = ()
    coarse: CoarseLosses | None = None  # of a robust search


def found_basins(basins: list[Basin], evaluations: int, coarse: CoarseLosses) -> Found:
    """Return what a robust search found."""
    ranked = tuple(sorted(basins, key=lambda basin: (not basin.is_searched, basin.loss)))
    results = tuple(basin.result for basin in ranked)
    logs = tuple(basin.logs for basin in ranked)
    return Found(results[0], 0, results, logs, evaluations, ranked, coarse)
