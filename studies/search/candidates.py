"""Where local searches begin: the best local minima of the losses over the coarse set."""

from collections.abc import Sequence

import numpy as np

from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.search.basins import Basin, CoarseLosses, RobustSearch
from studies.search.coarse import CoarseSet, coarse_set, local_minima
from studies.search.optimizers.problem import Status


COARSE = "coarse.npz"
MOST_AXES = 20  # a sample of more dimensions shows nothing
FEW, HALVINGS, LEAST_FRAMES, HALVED_AXES = 2, 2, 3, 2  # see `stages_for`
CLEAR = 0.9  # of the median: a minimum above it tells nothing


def coarse_losses(
    problem: SceneProblem,
    how: RobustSearch,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: Sequence[int],
    name: str,
) -> tuple[np.ndarray, CoarseSet]:
    """Return the losses by frame of the coarse set from the folder, or evaluate them first."""
    parameters = problem.parameters
    axes = problem.answers if how.axes is None else how.axes
    if len(axes) > MOST_AXES and how.coarse is None:
        progress.say(f"no coarse set: {len(axes)} components are free, more than {MOST_AXES}")
        axes = ()
    points = coarse_set(parameters, axes, how.coarse, seed)
    if folder.has(name):
        stored = folder.read_npz(name)
        if not np.array_equal(stored["points"], points.points):
            raise StudyError(
                f"`{name}` in {folder.path} has other points than this search. It belongs to "
                "another run: start a new one in another folder."
            )
        return stored["losses_by_frame"], points
    progress.say(f"coarse set: evaluating {len(points.points)} points")
    losses = np.asarray(problem.losses_by_frame(list(points.points)), np.float64)
    losses = np.where(np.isfinite(losses), losses, np.inf)
    folder.write_npz(
        name,
        points=points.points,
        axes=np.array(points.axes, int),
        labels=np.array(parameters.labels),
        losses_by_frame=losses,
    )
    return losses, points


def first_part(count: int, part: float) -> int:
    """Return how many of the frames are the first part of a video, at least one."""
    return max(1, round(part * count))


def stages_for(
    stages: Sequence[float], by_frame: np.ndarray, points: CoarseSet
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the stages of a search, and how many frames each of them compares.

    Stages with the same number of frames are one, but for those of soft edges. As long as the
    curve of the first one has more than `FEW` minima, half of its frames are a stage before it: at
    most `HALVINGS` times, with few axes, and only if the loss of so few frames depends on the
    parameters at all.
    """
    n_frames = by_frame.shape[1]
    if stages[0] >= 1.0:  # all frames, with softer edges first
        return tuple(stages), (n_frames,) * len(stages)
    by_count = {first_part(n_frames, stage): stage for stage in stages}  # the last of equals
    counts = list(by_count)
    for _ in range(HALVINGS if len(counts) > 1 and len(points.axes) <= HALVED_AXES else 0):
        half = counts[0] // 2
        minima = local_minima(points, by_frame[:, : counts[0]].mean(axis=1))
        if len(minima) <= FEW or half < LEAST_FRAMES:
            break
        if not _clear_minima(points, by_frame[:, :half].mean(axis=1)):
            break
        counts.insert(0, half)
        by_count[half] = half / n_frames
    return tuple(by_count[count] for count in counts), tuple(counts)


def candidates(coarse: CoarseLosses, count: int) -> list[Basin]:
    """Return the best local minima of the curves of all stages, as basins not yet searched.

    They are ranked by loss over median loss of the stage; the minimum of the whole film is always
    the first. Of neighbours the better one stays, and begins at the earlier of both first stages.
    With several axes the given start is one more: a sample has gaps, and a user knows something.
    """
    if len(coarse.points.points) == 1:
        return [_unsearched(0, coarse.points.points[0], 0)]
    score: dict[int, float] = {}
    first: dict[int, int] = {}
    curves = coarse.by_stage
    for number, curve in enumerate(curves):
        for i, part in _clear_minima(coarse.points, curve).items():
            score[i] = min(score.get(i, np.inf), part)
            first.setdefault(i, number)
    for i in map(int, local_minima(coarse.points, curves[-1])[:1]):
        score[i] = -1.0
        first.setdefault(i, len(curves) - 1)
    chosen: list[int] = []
    for i in sorted(score, key=lambda i: score[i]):
        beside = [j for j in chosen if coarse.points.neighbours[i, j]]
        for j in beside[:1]:
            first[j] = min(first[j], first[i])
        if not beside:
            chosen.append(i)
    chosen = chosen[:count] or [0]
    if len(coarse.points.axes) > 1 and 0 not in chosen:
        chosen.append(0)
        first[0] = 0
    return [
        _unsearched(number, coarse.points.points[i], first.get(i, 0))
        for number, i in enumerate(chosen)
    ]


def _clear_minima(points: CoarseSet, curve: np.ndarray) -> dict[int, float]:
    """Return the local minima below `CLEAR` times the median, and what part of it they are.

    Where nothing has moved yet, or all rollouts fit alike, there are none: its minima are noise.
    """
    minima = local_minima(points, curve)
    if not minima.size:
        return {}
    middle = float(np.median(curve[np.isfinite(curve)]))
    return {int(i): float(curve[i]) / middle for i in minima if curve[i] < CLEAR * middle}


def _unsearched(number: int, theta: np.ndarray, first_stage: int) -> Basin:
    """Return a basin that is no more than its start."""
    return Basin(
        number, first_stage, theta[None], theta, np.inf, Status.NOT_FINITE, evaluations=0, logs=(),
        step_theta=theta, is_searched=False,
    )  # fmt: skip
