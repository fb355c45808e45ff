"""Search the answer of a scene, predict what was held back, and judge it.

places of the bodies in films                     a start, where there are several answers
answers alone, frames that are not held back      coarse set, basins, stages
answers and cameras, the same frames              from the best basin
held-back frames, observations with `validate`    predicted by that, then used
answers and cameras, everything                   the answer, its intervals, the verdict
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.answer import discretisation
from studies.answer.budget import budget_at
from studies.answer.evidence import Evidence, Rival, how_much_worse
from studies.answer.intervals import FOOTAGE_FLOOR
from studies.answer.law import errors_by_law
from studies.answer.solution import Solution
from studies.answer.verdict import WORSE
from studies.fitting import judging
from studies.fitting.judging import explained_motion, loss_where_finite, squares_left
from studies.fitting.local_search import LocalSearch, logs_with_repeats
from studies.fitting.metrics import metrics_of
from studies.fitting.missing_term import find_missing_term
from studies.fitting.start_from_tracks import start_from_tracks
from studies.fitting.trying import Tried, try_result
from studies.optimizers.minimize import MOST_TANGENTS
from studies.optimizers.problem import NOT_FINITE, Result, Status
from studies.problem.films import films_of
from studies.problem.first_frames import first_frames_differ
from studies.problem.frame_squares import still_squares
from studies.problem.making import PreparedProblem
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.problem.refining import with_other_shading, with_row_held
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.search.coarse import Basin, SearchResult, found_basins
from studies.search.robust import HOPELESS, robust_search


MIRRORED = "iterations-mirrored.jsonl"
JOINT, FINAL = "iterations-joint.jsonl", "iterations-all.jsonl"
RIVAL_STEPS = 6  # of Gauss-Newton: how far another basin is fitted with cameras of its own
PARTS = 50  # of a loss, of which one is the largest that makes another answer
LEAST_FITTED = 3  # frames that must be left when some are held back
VECTORS, AXIAL = ("velocity",), ("spin", "rotation")  # the last parts of their paths
ONCE = (
    discretisation.SHADING,
    *discretisation.OF_HELD,
)  # changes that have no more of their kind behind them
DEVIATIONS = 2.0  # uncertainties of a size, by which other nodes may be held
ASIDE = np.cos(np.radians(10.0))  # of the directions of two films, of which one shows depth
SMALL = 1e-3  # of a vector: a smaller change is none


def solve(
    prepared: PreparedProblem,
    how: declared.Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: int = 0,
) -> Solution:
    """Search, or go on where the folder's logs end, and judge the answer."""
    declared_start, at_start = prepared, judging.loss_at_start(prepared)
    n_fitted = _fitted_frames(prepared.problem.n_frames, how.held_back)
    tracked = start_from_tracks(prepared, how, folder, progress, seed=seed, n_fitted=n_fitted)
    prepared = tracked.prepared
    # answers first, all else stays where it begins
    start, staged = prepared.problem.parameters.start, prepared.problem.staged
    searched = prepared.problem.first_frames(n_fitted).at(start, keep=staged)
    shares = how.stages[:-1] if searched.rolls_out and not prepared.kept else ()
    search = robust_search(searched, how, folder, progress, seed=(seed,), axes=tracked.axes)
    search = _with_others(searched, search, tracked.others)
    spent = tracked.evaluations + search.evaluations
    local = LocalSearch(how, folder, progress, floor=0.0 if prepared.is_twin else FOOTAGE_FLOOR)
    search = _with_mirrored(searched, search, local)
    fits = _Fits(prepared, local, at_start)
    common = fits.jointly(search.best, n_fitted)
    validation = _validated(common.everything, prepared.kept, common.theta)
    common, problem, tried, note = fits.with_slope(common, shares)
    looks, predicted = [common.first_look, common.theta], None
    if common.is_held_back:
        predicted = explained_motion(
            common.problem, common.theta, looks=looks, n_fitted=common.n_fitted
        )[1]
    metrics = metrics_of(prepared, common.problem, common.theta, n_fitted=common.n_fitted)
    rivals = _rivals(problem, search, tried.result, local, staged=staged)
    progress.say("judging the answer")
    before = spent + local.spent + tried.evaluations
    linear = _linear(prepared, problem, tried)
    steps, notes = _refinements(prepared, problem, tried, linear, most=before)
    errors = {
        source: step if source in ONCE else discretisation.WHOLE * step
        for source, step in steps.items()
    }
    if not (prepared.is_twin or tried.intervals.reason or problem.is_still):
        by_law, more = errors_by_law(problem, tried.result.theta)
        notes = notes + more
        errors |= {"cloth": by_law} if by_law.any() else {}
    tried = tried.with_errors(problem.parameters, errors)
    theta, budget, missing = tried.result.theta, None, None
    if linear is not None:
        if prepared.terms and not tried.is_without_gradients:
            missing = find_missing_term(
                problem, theta, linear, terms=prepared.terms, looks=looks, local=local
            )
        if missing is not None:
            tried = tried.with_errors(problem.parameters, {"term": missing.change})
        budget, intervals, more = budget_at(
            problem,
            theta,
            tried.intervals,
            linear[1],
            numbers=prepared.declared,
            residuals=linear[0],
            is_rough=tried.is_without_gradients,
            other_law=prepared.other_law(problem),
        )
        tried, notes = replace(tried, intervals=intervals), notes + more
    evidence = Evidence(
        problem.parameters,
        theta,
        tried.result.status,
        tried.result.loss,
        intervals=tried.intervals,
        basins=rivals,
        predictions={name: left for name, left in validation.items() if left is not None},
        trial=tried.trial,
        is_without_gradients=tried.is_without_gradients,
        loss_at_start=at_start,
        refinements=steps,
        budget=budget,
        missing=missing,
    )
    verdict, each = judging.judge_answer(
        evidence, problem, declared_start, looks=looks, predicted=predicted
    )
    return Solution(
        problem,
        tried.result,
        search,
        searched,
        tried.intervals,
        replace(verdict, reason=f"{verdict.reason} {note}".strip()),
        spent + local.spent + tried.evaluations,
        validation,
        tuple(name for log in common.logs for name in logs_with_repeats(log) if folder.has(name)),
        verdicts=each,
        notes=notes,
        budget=budget,
        metrics=metrics,
    )


def _fitted_frames(n_frames: int, held_back: float) -> int:
    """Return how many of the frames are fitted before the rest is predicted."""
    count = n_frames - int(np.floor(held_back * n_frames))
    return n_frames if count < LEAST_FITTED else count


def _with_others(
    problem: SceneProblem, search: SearchResult, thetas: Sequence[np.ndarray]
) -> SearchResult:
    """Return the search with other basins that a fit to the tracks ended in, not searched."""
    if search.coarse is None:
        return search
    basins, number = list(search.basins), 1 + max(basin.number for basin in search.basins)
    for k, theta in enumerate(thetas):
        loss = loss_where_finite(problem, theta)
        none = Result(theta, loss, Status.NOT_FINITE, 1)
        basin = Basin.of(theta, none, "", number=number + k)
        basins.append(replace(basin, logs=(), is_searched=False))
    return found_basins(basins, search.evaluations + len(thetas), search.coarse)


def _with_mirrored(problem: SceneProblem, search: SearchResult, local: LocalSearch) -> SearchResult:
    """Return the search with the basin of the same motion reflected across the view."""
    theta = mirrored(problem, search.best.theta)
    if theta is None or search.coarse is None:
        return search
    worst = HOPELESS * search.best.loss
    result = local.run(problem, theta, log=MIRRORED, stage="reflected in depth", hopeless=worst)
    number, last = 1 + max(basin.number for basin in search.basins), len(search.coarse.frames) - 1
    basin = Basin.of(theta, result, MIRRORED, number=number, first_stage=last)
    evaluations = search.evaluations + result.evaluations
    return found_basins([*search.basins, basin], evaluations, search.coarse)


@dataclass(frozen=True, eq=False)
class _CommonFit:
    """Answers, cameras and looks fitted to the frames that are not held back."""

    everything: SceneProblem  # of all observations, with looks for where the bodies begin
    problem: SceneProblem  # of those that are not kept for a prediction
    n_fitted: int  # frames
    first_look: np.ndarray  # theta as the first frames show cameras and looks
    result: Result
    theta: np.ndarray  # of the result, but for cameras that nothing is seen through
    logs: tuple[str, str] = (JOINT, FINAL)  # of this fit, and of that to all its frames

    @property
    def is_held_back(self) -> bool:
        """Whether frames are held back."""
        return self.n_fitted < self.problem.n_frames


@dataclass(frozen=True, eq=False)
class _Fits:
    """The fits that follow the search for the answers alone."""

    prepared: PreparedProblem
    local: LocalSearch
    loss_at_start: float  # 0 if unknown

    def jointly(self, best: Result, n_fitted: int) -> _CommonFit:
        """Fit cameras and looks together with the answers, from the best basin.

        Where the bodies begin elsewhere than at the start, looks are fitted for that once more.
        """
        prepared, problem = self.prepared, self.prepared.problem
        everything, first = prepared.everything, list(problem.staged)
        start = problem.parameters.start.copy()
        start[first] = best.theta
        is_refitted = not prepared.is_twin and first_frames_differ(
            problem, problem.parameters.start, start
        )
        if is_refitted:
            self.local.progress.say(
                "the bodies begin elsewhere than at the start: fitting looks once more"
            )
            fitted = prepared.refitted(everything.at(start).with_steps_for(start))
            paths = problem.parameters.paths
            fixed = {path: value for path, value in fitted.fixed.items() if path not in paths}
            everything = replace(fitted, fixed=fixed)
        problem = prepared.searched(everything)
        shown = problem.first_frames(n_fitted)
        first_look, result = shown.parameters.start, best
        if is_refitted or shown.parameters.size > len(first):
            start = first_look if is_refitted else start
            result = self.local.run(shown, start, log=JOINT, stage=_beside(shown))
        paths = shown.parameters.paths
        is_seen = shown.parameters.each([judging.sees(shown, path) for path in paths])
        theta = np.where(is_seen, result.theta, first_look)
        return _CommonFit(everything, problem, n_fitted, first_look, result, theta)

    def tried(self, common: _CommonFit) -> tuple[SceneProblem, Tried]:
        """Fit what was held back too, and try the answer; its problem has the time step for it."""
        everything, result, theta = common.everything, common.result, common.theta
        if common.is_held_back or self.prepared.kept:
            stage = "all observations" if self.prepared.kept else "all frames"
            result = self.local.run(everything, theta, log=common.logs[1], stage=stage)
            theta = result.theta
        problem = everything.with_stable_steps(theta)
        self.local.progress.say("trying the answer")
        stage, at_start = common.result.theta, self.loss_at_start
        return problem, try_result(problem, result, self.local, stage=stage, loss_at_start=at_start)

    def with_slope(
        self, common: _CommonFit, shares: Sequence[float]
    ) -> tuple[_CommonFit, SceneProblem, Tried, str]:
        """Return the answer to all frames after its trial, its problem, and what is to be said.

        Where the loss about it has no slope, as where a thrown box tumbles on, it is that to one of
        the `shares` of the film: the longest whose answer is within the intervals of the shorter
        ones. A law of contact that differs a little leads a longer one elsewhere.
        """
        problem, tried = self.tried(common)
        spent, n_frames, note = tried.evaluations, problem.n_frames, ""
        if tried.trial is None or not tried.trial.is_rough:
            return common, problem, tried, note
        whole, theta = common, tried.result.theta
        for share in shares:
            shorter = self._shortened(whole, theta, share)
            problem_there, again = self.tried(shorter)
            spent, theta = spent + again.evaluations, again.result.theta
            if again.trial is None:  # so few frames may show nothing
                continue
            apart = np.abs(theta - tried.result.theta)
            agrees = not note or bool((apart <= tried.intervals.half_width).all())
            if again.trial.is_rough or not agrees:
                break
            common, problem, tried = shorter, problem_there, again
            note = (
                f"The answer rests on the first {problem.n_frames} of {n_frames} frames: with all "
                "of them the gradient is not the slope of the loss."
            )
        return common, problem, replace(tried, evaluations=spent), note

    def _shortened(self, common: _CommonFit, theta: np.ndarray, share: float) -> _CommonFit:
        """Return answers, cameras and looks fitted to this share of the film alone.

        The fit begins at theta, to which another one led, or at the start of the search: late
        frames of a chaotic motion may have led away from what the first ones show.
        """
        local, whole = self.local, common.everything.at_stage(share)
        n_fitted = _fitted_frames(whole.n_frames, local.how.held_back)
        fitted = whole.first_frames(n_fitted)
        local.progress.say(f"fitting the first {whole.n_frames} frames alone")
        starts = (theta, self.prepared.everything.parameters.start)
        start = min(starts, key=lambda theta: loss_where_finite(fitted, theta))
        first, final = (log.replace(".jsonl", f"-{whole.n_frames}.jsonl") for log in (JOINT, FINAL))
        result = local.run(fitted, start, log=first, stage=_beside(fitted))
        return _CommonFit(
            whole, whole, n_fitted, common.first_look, result, result.theta, (first, final)
        )


def _linear(
    prepared: PreparedProblem, problem: SceneProblem, tried: Tried
) -> discretisation.Linear | None:
    """Return residuals and Jacobian at an answer, if its budget needs them and can have them."""
    needs = prepared.declared or prepared.has_mesh_error or prepared.has_law_error
    if tried.intervals.reason or not needs:
        return None
    if not tried.is_without_gradients:
        return tried.linear
    try:
        distance = tried.secant_distance(problem.parameters)
        return discretisation.linear_at(problem, tried.result.theta, distance)
    except NOT_FINITE:
        return None


def _refinements(
    prepared: PreparedProblem,
    problem: SceneProblem,
    tried: Tried,
    linear: discretisation.Linear | None,
    *,
    most: int,
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return what finer mesh and step, other contacts and laws change of the answer, and notes."""
    if linear is None:
        return {}, []
    theta, distance = tried.result.theta, tried.secant_distance(problem.parameters)
    changes: list[discretisation.Change] = []
    notes: list[str] = []
    if prepared.has_mesh_error:
        changes, notes = discretisation.changes_by(
            problem, theta, linear, refined=prepared.refined, most=most, distance=distance
        )
    for source, other in (
        (discretisation.CONTACT, prepared.harder),
        (discretisation.LOSS, prepared.lossier),
        (discretisation.SHADING, with_other_shading),
        (discretisation.HELD, lambda problem: with_row_held(problem, released=False)),
        (discretisation.RELEASED, lambda problem: with_row_held(problem, released=True)),
        (discretisation.LARGER, lambda problem: prepared.held_if_larger(problem, DEVIATIONS)),
        (discretisation.SMALLER, lambda problem: prepared.held_if_larger(problem, -DEVIATIONS)),
        (discretisation.LAW, prepared.other_law),
    ):
        changed = other(problem) if source == discretisation.LAW or not prepared.is_twin else None
        if changed is not None:
            more, more_notes = discretisation.change_by(
                problem, changed, theta, linear, source=source
            )
            changes, notes = changes + more, notes + more_notes
    return {change.source: change.step for change in changes if change.is_error}, notes


def _beside(problem: SceneProblem) -> str:
    """Return what is fitted beside the answers of the motion, in words."""
    parameters = problem.parameters
    first = parameters.held_at(parameters.start, keep=problem.staged)
    paths = set(parameters.paths) - set(first.paths)
    if any(path.startswith("cameras.") for path in paths):
        return "with cameras"
    return "with looks" if paths else "to the end"


def _rivals(
    problem: SceneProblem,
    search: SearchResult,
    answer: Result,
    local: LocalSearch,
    *,
    staged: Sequence[int],
) -> list[Rival]:
    """Return the other basins; those that saw all frames get cameras of their own.

    One that will stay clearly worse than the answer is given up, as it is no other answer. `staged`
    are the components that basins have.
    """
    out = []
    steps = min(problem.parameters.size, MOST_TANGENTS) + 1  # rollouts of a step
    most = min(local.how.max_evaluations, RIVAL_STEPS * steps)
    short = replace(local.how, max_evaluations=most)
    for basin in search.basins:
        if np.array_equal(basin.theta, search.best.theta):
            continue
        there, loss = answer.theta.copy(), basin.loss
        there[list(staged)] = basin.theta
        if basin.is_searched and basin.loss <= HOPELESS * search.best.loss:
            log = f"iterations-rival-{basin.number + 1}.jsonl"
            stage = f"another basin, {_beside(problem)}"
            needed = _needed(problem, answer, there)
            result = local.run(problem, there, how=short, log=log, stage=stage, needed=needed)
            there, loss = result.theta, result.loss
        left = squares_left(problem, there)
        if left is not None and np.isfinite(loss):
            out.append(Rival(there, loss, left))
        else:
            local.progress.say(
                f"basin {basin.number + 1} is dropped: its loss over all frames is not finite"
            )
    return out


def _needed(problem: SceneProblem, answer: Result, theta: np.ndarray) -> float:
    """Return the loss below which a basin may be as good an answer; inf where it is already."""
    loss, squares = loss_where_finite(problem, theta), squares_left(problem, theta)
    if squares is None or not np.isfinite(loss):
        return np.inf
    judged = Evidence(
        problem.parameters,
        answer.theta,
        answer.status,
        answer.loss,
        residual_squares=squares_left(problem, answer.theta),
        still_squares=still_squares(problem),
    )
    for share in np.linspace(1.0, 0.0, PARTS, endpoint=False):
        basin = Rival(theta, share * loss, share * squares)
        if how_much_worse(judged, basin) <= WORSE:
            return np.inf if share == 1.0 else share * loss
    return loss / PARTS


def _validated(
    everything: SceneProblem, kept: frozenset[str], theta: np.ndarray
) -> dict[str, float | None]:
    out: dict[str, float | None] = {}
    for observer in everything.observers:
        if observer.name in kept:
            alone = on_one_timeline(everything, [observer]).with_steps_for(theta)
            if motion := explained_motion(alone, theta, looks=[theta])[1]:
                out[observer.name] = motion.unexplained
            else:
                out[observer.name] = judging.unexplained_pictures(alone, theta)
    return out


def mirrored(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return theta of the motion reflected across the view of a film; None if it is the same.

    A film from far away shows no depth: the reflected motion looks nearly the same, unless a film
    from another side shows it. With the unit vector n along the view it has

        v -> v - 2 (v n) n        a vector
        w -> -w + 2 (w n) n       an axial vector

    What only one take has is reflected across the view of its first film. Films of other takes
    show another motion.
    """
    views = films_of(problem.observers)
    parameters = problem.parameters
    values = parameters.values(theta)
    changed = False
    for path, value in values.items():
        name = path.rpartition(".")[2]
        if value.shape != (3,) or name not in (*VECTORS, *AXIAL) or path.startswith("cameras."):
            continue
        paths = [path, *(tied for tied, (source, _) in parameters.ties.items() if source == path)]
        bodies = {each.rpartition(".")[0] for each in paths}
        axes = [film.camera.pose()[1][2] for film in views if bodies & film.scene.objects.keys()]
        if not axes or any(abs(axes[0] @ axis) < ASIDE for axis in axes):
            continue
        other = value - 2.0 * (value @ axes[0]) * axes[0]
        other = -other if name in AXIAL else other
        changed |= bool(np.abs(other - value).max() > SMALL * np.linalg.norm(value))
        values[path] = other
    if not changed:
        return None
    natural = np.concatenate([np.ravel(value) for value in values.values()])
    low, high = problem.bounds
    width = np.where(np.isfinite(high - low), high - low, 1.0)
    return np.clip(problem.parameters.theta(natural), low + 1e-6 * width, high - 1e-6 * width)
