"""A search that a bad start does not mislead: a coarse set, basins, growing parts of the film.

    coarse set -> losses by frame -> local minima of every stage -> the best few basins
    basin -> local search on the first frames -> on more of them -> on all -> answer

The loss of a whole film has many wrong minima, its first frames have few. A minimum of the coarse
set begins at the first stage where it is one. Branches that arrive at one point are merged, and
hopeless ones are given up. Where one explains all to rounding, the others are not searched. Every
evaluation is in a log and the coarse set is in `coarse.npz`, so a
killed search goes on and ends with the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.optimizers.evaluations import Evaluator, are_alike
from studies.optimizers.minimize import method_for, minimize
from studies.optimizers.problem import Method, SearchEnd, Stall, Status
from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.runs.evaluations import Evaluation
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from studies.search.coarse import (
    Basin,
    CoarseLosses,
    CoarseSet,
    SearchResult,
    coarse_set,
    found_basins,
    is_log,
    local_minima,
    stage_logs,
)


EXACT = 1e-12  # of the median of the coarse set: only a film without noise is fitted so well
HOPELESS = 4.0  # times the best loss of the same stage
SAME = 0.01  # of a positive value, or of the range of another one: two answers are the same
REPEATS = 3  # with new time steps
FIRST_ORDER = (Method.ADAM, Method.GRADIENT_DESCENT, Method.POLYAK)
FIRST_ORDER_STALL = Stall(1e-4, 30, tries=30)  # without a line search a curve has plateaus
# Of Gauss-Newton, where the next stage goes on from the end: only the basin matters there
ROUGH = Stall(1e-2, 3, tries=8)
COARSE = "coarse.npz"
AT_ONCE = 16  # points of it, between two lines and two savings
MOST_AXES = 20  # a sample of more dimensions shows nothing
FEW, HALVINGS, LEAST_FRAMES, HALVED_AXES = 2, 2, 3, 2  # see `_stages_for`
CLEAR = 0.9  # of the median: a minimum above it tells nothing


def robust_search(
    problem: SceneProblem,
    how: Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: Sequence[int] = (),
    axes: tuple[int, ...] | None = None,
    is_rough: bool = False,
) -> SearchResult:
    """Return the best answer and the other basins, or go on where the folder's files end.

    The problem has the frames that are not held back. `seed` is that of the sample, `axes` are the
    components of theta that the coarse set varies, by default `_coarse_axes`. Where the answer
    `is_rough`, another search goes on from it, so the last stage ends as early as the others.
    """
    schedule = how.softness if problem.is_still else how.stages
    steps, ends_well = np.diff(schedule), bool(schedule) and schedule[-1] == 1.0
    if not ends_well or not ((steps > 0.0).all() or (steps < 0.0).all()):
        raise StudyError(
            "`search.stages` must be growing parts of the film that end with 1.0, such as "
            f"[0.3, 0.6, 1.0]; got {list(schedule)}."
        )
    knows_start = axes is not None
    axes = _coarse_axes(problem) if axes is None else axes
    by_frame, points = _coarse_losses(problem, how, folder, progress, seed=seed, axes=axes)
    if knows_start and len(points.points) == 1:  # from tracks: the first frames say no more
        schedule = schedule[-1:]
    stages, frames = _stages_for(schedule, by_frame, points)
    coarse = CoarseLosses(points, by_frame, frames)
    basins = candidates(coarse, how.basins, knows_start=knows_start)
    n_points, n_basins = len(points.points), len(basins)
    progress.say(f"coarse set: {_count(n_points, 'point')}, {_count(n_basins, 'basin')}")
    run = LocalSearches(problem, how, folder, progress, len(stages), n_basins, is_rough)
    spent = n_points
    given_up: list[Basin] = []
    finite = coarse.by_stage[-1][np.isfinite(coarse.by_stage[-1])]
    exact = EXACT * float(np.median(finite)) if finite.size else 0.0
    for number, stage in enumerate(stages):
        staged = problem if stage == 1.0 else problem.at_stage(stage)
        label = f"{number + 1}/{len(stages)}: {problem.name_of_stage(stage)}"
        active = [basin for basin in basins if basin.first_stage <= number]
        waiting = [basin for basin in basins if basin.first_stage > number]
        is_last = number == len(stages) - 1
        if is_last:
            active = sorted(active, key=lambda basin: (basin.loss, basin.number))
        ended: list[Basin] = []
        for basin in active:
            best = min((finished.loss for finished in ended), default=np.inf)
            ended.append(run.search(staged, basin, number, label, hopeless=HOPELESS * best))
            if is_last and ended[-1].loss <= exact:
                if left := len(active) - len(ended):
                    others = _count(left, "other basin")
                    progress.say(f"all is explained to rounding: {others} not searched")
                break
        active = active[: len(ended)]
        spent += sum(b.evaluations - a.evaluations for a, b in zip(active, ended, strict=True))
        ended = run.merged(run.with_finite_loss(ended))
        if not is_last:
            ended, hopeless = run.split_hopeless(ended)
            given_up += hopeless
        basins = [*ended, *waiting]
    given_up = [run.evaluated(problem, basin) for basin in given_up]
    spent += len(given_up)
    return found_basins(run.with_finite_loss([*basins, *given_up]), spent, coarse)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


@dataclass(frozen=True, eq=False)
class LocalSearches:
    """The local searches of a robust search."""

    problem: SceneProblem
    how: Search
    folder: RunFolder
    progress: EvaluationProgress
    n_stages: int
    n_basins: int
    is_rough: bool = False

    def log_name(self, basin: Basin, number: int, ending: str = "") -> str:
        """Return the name of a log of a stage."""
        name = stage_logs(basin.number, self.n_stages)[number]
        return name.replace(".jsonl", f"{ending}.jsonl")

    def search(
        self,
        problem: SceneProblem,
        basin: Basin,
        number: int,
        label: str,
        *,
        hopeless: float = np.inf,
    ) -> Basin:
        """Return a basin after a stage, repeated while its end needs other time steps.

        It is given up where its loss stays above `hopeless`.
        """
        is_whole = number == self.n_stages - 1
        tolerance = self.how.tolerance if is_whole else float(np.sqrt(self.how.tolerance))
        basin = self._with_better_start(problem, basin, number)
        stall = self._stall(problem, basin, is_whole=is_whole)
        for attempt in range(REPEATS + 1):
            name = self.log_name(basin, number, f"-steps-{attempt + 1}" if attempt else "")
            stage = f"{label}, new time step" if attempt else label
            self.progress.begin(f"basin {basin.number + 1}/{self.n_basins}, stage {stage}")
            stepped = problem.with_stable_steps(basin.theta)
            watch = StepWatch(stepped, self.progress, ends=attempt < REPEATS)
            result = minimize(
                stepped,
                basin.theta,
                replace(self.how, tolerance=tolerance),
                log=self.folder.file(name),
                callback=watch,
                stage=stage,
                stall=replace(stall, hopeless=hopeless),
            )
            basin = replace(
                basin,
                theta=result.theta,
                loss=result.loss,
                status=result.status,
                evaluations=basin.evaluations + result.evaluations,
                logs=(*basin.logs, name),
                step_theta=basin.theta,
                is_searched=is_whole and result.loss <= hopeless,
            )
            is_walled = result.status is Status.STALLED and watch.blew_up
            has_moved = not np.array_equal(basin.theta, basin.step_theta)
            if not has_moved or attempt == REPEATS:
                break
            if not (is_walled or watch.are_short or stepped.steps_are_long(result.theta)):
                break
        return basin

    def _stall(self, problem: SceneProblem, basin: Basin, *, is_whole: bool) -> Stall:
        if self.how.method in FIRST_ORDER or problem.is_still:
            return FIRST_ORDER_STALL
        is_squares = method_for(self.how, len(basin.theta)) is Method.GAUSS_NEWTON
        return ROUGH if is_squares and (self.is_rough or not is_whole) else Stall()

    def _with_better_start(self, problem: SceneProblem, basin: Basin, number: int) -> Basin:
        """Return the basin at its coarse point if the stage before led away from the answer."""
        if not basin.logs:
            return basin
        log = self.log_name(basin, number, "-start")
        thetas = (basin.theta, basin.starts[0])
        losses = self._losses(problem, thetas, log)
        theta = problem.parameters.with_short_turns(thetas[int(np.argmin(losses))])
        return replace(basin, theta=theta, evaluations=basin.evaluations + len(losses))

    def evaluated(self, problem: SceneProblem, basin: Basin) -> Basin:
        """Return a basin with the loss of a problem where it is; one evaluation."""
        name = self.log_name(basin, self.n_stages - 1, "-end")
        (loss,) = self._losses(problem, (basin.theta,), name)
        return replace(basin, loss=loss, evaluations=basin.evaluations + 1, step_theta=basin.theta)

    def _losses(self, problem: SceneProblem, thetas: Sequence[np.ndarray], log: str) -> list[float]:
        """Return the losses at points, each with time steps that are stable there."""
        losses = []
        for number, theta in enumerate(thetas):
            file = log.replace(".jsonl", f"-{number + 1}.jsonl") if number else log
            stepped = problem.with_steps_for(theta)
            evaluator = Evaluator(stepped, 1, log=self.folder.file(file))
            is_squares = method_for(self.how, len(theta)) is Method.GAUSS_NEWTON
            evaluation = evaluator.residual(theta) if is_squares else evaluator.gradient(theta)
            losses.append(evaluation.loss)
        return losses

    def with_finite_loss(self, basins: list[Basin]) -> list[Basin]:
        """Return the basins whose loss is finite; all of them where none is."""
        finite = [basin for basin in basins if np.isfinite(basin.loss)]
        if not finite:
            return basins
        for basin in basins:
            if not np.isfinite(basin.loss):
                self.progress.say(
                    f"basin {basin.number + 1} is dropped: its loss is not finite, since the "
                    "simulation blows up there"
                )
        return finite

    def merged(self, basins: Sequence[Basin]) -> list[Basin]:
        """Return the basins without those that arrived at the point of a better one."""
        kept: list[Basin] = []
        for basin in sorted(basins, key=lambda basin: (basin.loss, basin.number)):
            same = [i for i, better in enumerate(kept) if self._is_same(better.theta, basin.theta)]
            if not same:
                kept.append(basin)
                continue
            better = kept[same[0]]
            self.progress.say(
                f"basin {basin.number + 1} led to the same point as {better.number + 1}"
            )
            kept[same[0]] = replace(better, starts=np.concatenate([better.starts, basin.starts]))
        return sorted(kept, key=lambda basin: basin.number)

    def _is_same(self, a: np.ndarray, b: np.ndarray) -> bool:
        parameters, answers = self.problem.parameters, list(self.problem.answers)
        width = parameters.upper - parameters.lower
        scale = np.where(np.isfinite(width), width, np.maximum(np.abs(a), np.abs(b)))
        scale = np.where(is_log(parameters), 1.0, scale)
        return bool((np.abs(a - b) <= SAME * scale)[answers].all())

    def split_hopeless(self, basins: Sequence[Basin]) -> tuple[list[Basin], list[Basin]]:
        """Return the basins to go on with, and those to give up."""
        best = min((basin.loss for basin in basins), default=np.inf)
        limit = HOPELESS * best if np.isfinite(best) else np.inf
        hopeless = [basin for basin in basins if basin.loss > limit]
        for basin in hopeless:
            self.progress.say(
                f"basin {basin.number + 1} is given up: its loss {basin.loss:.3e} is more than "
                f"{HOPELESS:g} times the best of this stage, {best:.3e}"
            )
        return [basin for basin in basins if basin.loss <= limit], hopeless


class StepWatch:
    """Shows evaluations; ends a local search where its time steps could be much longer.

    Far from the answer they are a small part of those that would do there.
    """

    def __init__(self, problem: SceneProblem, progress: EvaluationProgress, *, ends: bool) -> None:
        self.problem, self.progress, self.ends = problem, progress, ends
        self.blew_up = self.are_short = False  # a rollout; the time steps, at the end
        self._best = np.inf

    def __call__(self, evaluation: Evaluation) -> None:
        """Show one evaluation, and look at the steps of the best theta so far."""
        self.progress(evaluation)
        self.blew_up |= not np.isfinite(evaluation.loss)
        if not (self.ends and evaluation.loss < self._best):
            return
        self._best = evaluation.loss
        self.are_short = self.problem.steps_are_short(evaluation.theta)
        if self.are_short:
            raise SearchEnd(Status.SETTLED)


def _coarse_axes(problem: SceneProblem) -> tuple[int, ...]:
    """Return the components of theta that the coarse set varies.

    Cameras, lights and looks have no coarse set: they are fitted to the first frame already. In
    pictures of things at rest they have one within their bounds, if they have any.
    """
    parameters = problem.parameters
    if problem.is_still:
        return tuple(np.flatnonzero(np.isfinite(parameters.upper - parameters.lower)).tolist())
    return () if all(free.is_view for free in parameters.free) else parameters.first_answers


def _coarse_losses(
    problem: SceneProblem,
    how: Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: Sequence[int],
    axes: tuple[int, ...],
) -> tuple[np.ndarray, CoarseSet]:
    """Return the losses by frame of the coarse set from the folder, or evaluate them first."""
    parameters = problem.parameters
    if len(axes) > MOST_AXES and how.coarse is None:
        progress.say(f"no coarse set: {len(axes)} components are free, more than {MOST_AXES}")
        axes = ()
    points = coarse_set(parameters, axes, how.coarse, seed)
    count = len(points.points)
    losses = np.full((count, problem.n_frames), np.nan)  # until it is evaluated
    if folder.has(COARSE):
        stored = folder.read_npz(COARSE)
        if not are_alike(stored["points"], points.points):
            raise StudyError(
                f"`{COARSE}` in {folder.path} has other points than this search. It belongs to "
                "another run: start a new one in another folder."
            )
        losses = stored["losses_by_frame"]
    begin = count - int(np.isnan(losses[:, 0]).sum())
    for first in range(begin, count, AT_ONCE):
        here = slice(first, first + AT_ONCE)
        progress.say(
            f"coarse set: evaluating points {first + 1} to {min(here.stop, count)} of {count}"
        )
        of_points = np.asarray(problem.losses_by_frame(list(points.points[here])), np.float64)
        losses[here] = np.where(np.isfinite(of_points), of_points, np.inf)
        folder.write_npz(
            COARSE,
            points=points.points,
            axes=np.array(points.axes, int),
            labels=np.array(parameters.labels),
            losses_by_frame=losses,
        )
    return losses, points


def first_part(count: int, share: float) -> int:
    """Return how many of the frames are the first part of a video, at least one."""
    return max(1, round(share * count))


def _stages_for(
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


def candidates(coarse: CoarseLosses, count: int, *, knows_start: bool = False) -> list[Basin]:
    """Return the best local minima of the curves of all stages, as basins not yet searched.

    They are ranked by loss over median loss of the stage; the minimum of the whole film is always
    the first. Of neighbours the better one stays, and begins at the earlier of both first stages.
    With several axes the given start is one more: a sample has gaps, and a user knows something.
    With `knows_start` it is one with any number of axes: it comes from tracks.
    """
    if len(coarse.points.points) == 1:
        return [_unsearched(0, coarse.points.points[0], 0)]
    score: dict[int, float] = {}
    first: dict[int, int] = {}
    curves = coarse.by_stage
    for number, curve in enumerate(curves):
        for i, relative in _clear_minima(coarse.points, curve).items():
            score[i] = min(score.get(i, np.inf), relative)
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
    if (knows_start or len(coarse.points.axes) > 1) and 0 not in chosen:
        chosen.append(0)
        first[0] = 0
    return [
        _unsearched(number, coarse.points.points[i], first.get(i, 0))
        for number, i in enumerate(chosen)
    ]


def _clear_minima(points: CoarseSet, curve: np.ndarray) -> dict[int, float]:
    """Return the minima below `CLEAR` times the median, by part of it; others are noise."""
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
