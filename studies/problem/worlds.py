"""Many motions with one time step: worlds of one batch where they are those of a `Model`.

Others, such as pendula, run one by one. Either way each has the bits that it has alone. A motion
that leaves the finite numbers is marked, and the others go on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from adjoint.rollout import record
from adjsim.model import Model
from adjsim.rollout import rollout
from adjsim.system import OnDivergence
from adjsim.worlds import stack
from studies.optimizers.problem import NOT_FINITE
from studies.runs.memory import states_within
from studies.scene.motion import DT, Motion, pull_frames, pull_worlds


BUDGET = 256 << 20  # bytes of states that worlds are put together up to, if these may take it
MOST_WORLDS = 32
Pull = Callable[[Sequence[Mapping[str, np.ndarray]], tuple[str, ...]], list[dict[str, np.ndarray]]]


@dataclass(frozen=True, eq=False)
class Sample:
    """Loss and gradient of a problem at a point."""

    loss: float
    gradient: np.ndarray  # in theta, (n,); empty where it was not asked for
    frame_loss: np.ndarray  # of every instant alone, (n_frames,)


@dataclass(frozen=True)
class Failure:
    """Why a point has no loss."""

    reason: str


def worlds_at_once(motion: Motion, *, keeps: bool) -> int:
    """Return how many motions like this one are run side by side; `keeps` their states."""
    if not _share_steps(motion):
        return 1
    if not keeps:
        return MOST_WORLDS
    n_bytes = motion.state_bytes * (motion.n_steps + 1)
    within = states_within(motion.checkpoint, n_bytes, MOST_WORLDS)
    return int(np.clip(BUDGET // n_bytes, 1, within))


def _share_steps(motion: Motion) -> bool:
    """Whether worlds are run side by side; some steps are taken one by one."""
    return isinstance(motion.system, Model) and motion.step.IS_FOR_ALL


def run_worlds(motions: Sequence[Motion], *, keeps: bool) -> tuple[list[Any], Pull]:
    """Run motions with one time step and the same frames, side by side or one by one.

    Return the trajectory of each, or a `Failure`, and, with `keeps`, what pulls cotangents of every
    trajectory's fields back to parameters by path.
    """
    first = motions[0]
    if not _share_steps(first):
        return _run_one_by_one(motions, keeps=keeps)
    batch = stack([cast("Model", motion.system) for motion in motions])
    states = [motion.state for motion in motions]
    shared: dict[str, Any] = {
        "frames": first.frames,
        "dtype": first.dtype,
        "device": first.device,
        "threads": first.threads,
        "on_divergence": OnDivergence.MARK,
    }
    kept: Any = None
    if keeps:
        kept = record(batch, states, first.dt, first.n_steps, checkpoint=first.checkpoint, **shared)
        trajectories = kept.trajectory
    else:
        trajectories = rollout(batch, states, first.dt, first.n_steps, **shared)
    runs = [
        run
        if run.diverged is None
        else Failure(
            f"The rollout leaves the finite numbers in step {run.diverged} (t = "
            f"{run.diverged * motion.dt:.4g} s); it is stable below about `{DT}` = "
            f"{cast('Model', motion.system).stable_dt():.2g} s."
        )
        for motion, run in zip(motions, trajectories, strict=True)
    ]
    return runs, lambda adj, wrt: [dict(cotangents) for cotangents in pull_worlds(kept, adj, wrt)]


def _run_one_by_one(motions: Sequence[Motion], *, keeps: bool) -> tuple[list[Any], Pull]:
    runs: list[Any] = []
    recorded: list[Any] = []
    for motion in motions:
        kept = None
        try:
            kept = motion.record() if keeps else None
            runs.append(motion.run() if kept is None else kept.trajectory)
        except NOT_FINITE as error:
            runs.append(Failure(str(error)))
        recorded.append(kept)

    def pull(
        adj_frames: Sequence[Mapping[str, np.ndarray]], wrt: tuple[str, ...]
    ) -> list[dict[str, np.ndarray]]:
        pairs = zip(recorded, adj_frames, strict=True)
        return [{} if kept is None else dict(pull_frames(kept, adj, wrt)) for kept, adj in pairs]

    return runs, pull
