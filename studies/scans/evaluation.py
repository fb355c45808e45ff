"""Loss and gradient at many points of one terrain: side by side in worlds where that can be.

A point is a world of one batch where the motion is that of a `Model`; others, such as pendula,
run one by one. Either way a point has the bits that it has alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from adjoint.rollout import record
from adjsim.model import Model
from adjsim.rollout import rollout
from adjsim.system import OnDivergence
from adjsim.worlds import stack
from studies.memory import states_within
from studies.motion import DT, Motion, pull_worlds
from studies.optimizers.problem import NotFiniteError
from studies.scans.terrain import Terrain
from studies.video_problem import VideoProblem


T = TypeVar("T")
BUDGET = 256 << 20  # bytes of states that worlds are put together up to, if these may take it
MOST_WORLDS = 16  # so that a stopped scan loses little


@dataclass(frozen=True, eq=False)
class Sample:
    """Loss and gradient at a point.

    Attributes
    ----------
    loss : float
    gradient : numpy.ndarray
        Per unit of every natural value, (n,).
    frame_loss : numpy.ndarray
        Of every frame alone, (n_frames,); the loss of images is their mean.
    """

    loss: float
    gradient: np.ndarray
    frame_loss: np.ndarray


@dataclass(frozen=True)
class Failure:
    """Why a point has no loss."""

    reason: str


@dataclass(eq=False)
class _Judge:
    """The judge of a problem; it keeps the loss of every frame."""

    problem: Any
    frame_loss: np.ndarray

    def __call__(self, images: np.ndarray) -> tuple[float, np.ndarray]:
        loss, targets = self.problem.loss, self.problem.targets
        frames = range(len(targets))
        self.frame_loss = np.array(
            [float(loss(images[k : k + 1], targets[k : k + 1])) for k in frames]
        )
        return self.problem.judge(images)


def runs_in_worlds(terrain: Terrain) -> bool:
    """Whether points of a terrain can be worlds of one batch."""
    problem = terrain.problem
    return isinstance(problem, VideoProblem) and isinstance(problem.motion.system, Model)


def worlds_at_once(terrain: Terrain) -> int:
    """Return how many points are evaluated side by side."""
    if not runs_in_worlds(terrain):
        return 1
    motion = terrain.problem.motion
    own = motion.state_bytes * (motion.n_steps + 1)
    within = states_within(motion.checkpoint, own, MOST_WORLDS)
    return int(np.clip(BUDGET // own, 1, within))


def in_groups(items: Sequence[T], count: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into groups of `count`; the last one may be smaller."""
    for first in range(0, len(items), count):
        yield items[first : first + count]


def sample_points(terrain: Terrain, points: Sequence[np.ndarray]) -> list[Sample | Failure]:
    """Return loss and gradient at natural values, or why there is none.

    Parameters
    ----------
    terrain : Terrain
    points : sequence of numpy.ndarray
        (n,) each.
    """
    if runs_in_worlds(terrain):
        return _by_world(terrain, points, _sample_worlds)
    return [_alone(terrain, point, _sample_alone) for point in points]


def losses_at(terrain: Terrain, points: Sequence[np.ndarray]) -> list[float | Failure]:
    """Return the loss alone at natural values, or why there is none."""
    if runs_in_worlds(terrain):
        return _by_world(terrain, points, _losses_of_worlds)
    return [_alone(terrain, point, lambda problem, at: problem.loss_at(at)) for point in points]


def _alone(terrain: Terrain, point: np.ndarray, evaluate: Callable) -> Any:
    try:
        terrain.check(point)
        return evaluate(terrain.problem, point)
    except NotFiniteError as error:
        return Failure(str(error))
    except (ValueError, ArithmeticError) as error:
        return Failure(str(error) or type(error).__name__)


def _sample_alone(problem: Any, point: np.ndarray) -> Sample | Failure:
    judge = _Judge(problem, np.empty(0))
    return _sample(judge, point, *problem.pull_back(point, judge))


def _sample(
    judge: _Judge, point: np.ndarray, value: float, gradient: np.ndarray
) -> Sample | Failure:
    more, slope = judge.problem.penalty(point)
    loss, gradient = float(value + more), gradient + slope
    if not np.isfinite(loss):
        return Failure("The loss is not finite.")
    if not np.isfinite(gradient).all():
        return Failure("The gradient leaves the finite numbers; the loss does not.")
    return Sample(loss, gradient, judge.frame_loss)


def _by_world(terrain: Terrain, points: Sequence[np.ndarray], evaluate: Callable) -> list[Any]:
    """Return what is evaluated of every point, those with a model of their own at once."""
    found: list[Any] = [None] * len(points)
    motions: dict[int, Motion] = {}
    for k, point in enumerate(points):
        try:
            terrain.check(point)
            motions[k] = terrain.problem.motion_at(point)
        except (ValueError, ArithmeticError) as error:
            found[k] = Failure(str(error))
    if motions:
        at = [points[k] for k in motions]
        several = evaluate(terrain.problem, at, list(motions.values()))
        for k, one in zip(motions, several, strict=True):
            found[k] = one
    return found


def run_worlds(motions: Sequence[Motion], sweep: Callable, **kept: Any) -> Any:
    """Return what `rollout` or `record` makes of motions side by side; divergence is marked."""
    one = motions[0]
    batch = stack([cast("Model", motion.system) for motion in motions])
    return sweep(
        batch, [motion.state for motion in motions], one.dt, one.n_steps,
        frames=one.frames, dtype=one.dtype, device=one.device, threads=one.threads,
        on_divergence=OnDivergence.MARK, **kept,
    )  # fmt: skip


def _diverged(motion: Motion, run: Any) -> Failure:
    stable = cast("Model", motion.system).stable_dt()
    return Failure(
        f"The rollout leaves the finite numbers in step {run.diverged} (t = "
        f"{run.diverged * motion.dt:.4g} s); it is stable below about `{DT}` = {stable:.2g} s."
    )


def _sample_worlds(
    problem: VideoProblem, points: Sequence[np.ndarray], motions: Sequence[Motion]
) -> Iterator[Sample | Failure]:
    recorded = run_worlds(motions, record, checkpoint=motions[0].checkpoint)
    judges = [_Judge(problem, np.empty(0)) for _ in motions]
    films = zip(motions, recorded.trajectory, judges, strict=True)
    judged: list[Any] = [
        None if run.diverged is not None else problem.judged(motion, run, judge)
        for motion, run, judge in films
    ]
    frames = [{} if one is None else one[1].frames for one in judged]
    gradients: list[Any] = []
    if any(frames):
        gradients = pull_worlds(recorded, frames, problem.parameters.targets)
    for k, one in enumerate(judged):
        if one is None:
            yield _diverged(motions[k], recorded.trajectory[k])
            continue
        gradient = problem.gathered(points[k], gradients[k], one[1])
        yield _sample(judges[k], points[k], one[0], gradient)


def _losses_of_worlds(
    problem: VideoProblem, points: Sequence[np.ndarray], motions: Sequence[Motion]
) -> Iterator[float | Failure]:
    for point, motion, run in zip(points, motions, run_worlds(motions, rollout), strict=True):
        if run.diverged is not None:
            yield _diverged(motion, run)
            continue
        images = problem.filming.shoot(motion, run)
        yield float(problem.loss(images, problem.targets) + problem.penalty(point)[0])
