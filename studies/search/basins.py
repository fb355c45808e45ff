"""What a robust search finds, and the logs of its local searches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.runs.folder import ITERATIONS, RunFolder
from studies.search.coarse import CoarseSet
from studies.search.optimizers.evaluations import Evaluation, read_log
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
class Found:
    """The basins of a search, that of the answer first."""

    basins: tuple[Basin, ...]
    evaluations: int  # rollouts of all basins and stages together
    coarse: CoarseLosses | None = None  # of a robust search

    @property
    def best(self) -> Result:
        """The answer, of all frames."""
        return self.basins[0].result


def found_basins(basins: list[Basin], evaluations: int, coarse: CoarseLosses) -> Found:
    """Return what a robust search found."""
    ranked = sorted(basins, key=lambda basin: (not basin.is_searched, basin.loss))
    return Found(tuple(ranked), evaluations, coarse)


def log_names(start: int, stages: int) -> list[str]:
    """Return the names of a start's logs: iterations.jsonl, iterations-2.jsonl, ...

    Stages before the last have their number too: iterations-1-stage-1.jsonl.
    """
    names = [ITERATIONS.replace(".", f"-{start + 1}-stage-{k + 1}.") for k in range(stages - 1)]
    names.append(ITERATIONS if start == 0 else ITERATIONS.replace(".", f"-{start + 1}."))
    return names


def read_search(folder: RunFolder, names: Sequence[str]) -> list[Evaluation]:
    """Return the evaluations of a start, its stages one after the other."""
    whole: list[Evaluation] = []
    for name in names:
        spent, seconds = (whole[-1].spent, whole[-1].seconds) if whole else (0, 0.0)
        whole += [
            replace(one, spent=one.spent + spent, seconds=one.seconds + seconds)
            for one in read_log(folder.file(name))
        ]
    return whole
