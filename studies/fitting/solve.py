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

from studies.answer import evidence
from studies.answer.budget import Budget, budget_at
from studies.answer.discretisation import (
    CONTACT,
    HELD,
    LARGER,
    LAW,
    LOSS,
    RELEASED,
    SHADING,
    SMALLER,
    WHOLE,
    Change,
    Linear,
    change_by_contact,
    change_by_fit,
    change_in_space,
    changes_by,
    linear_at,
)
from studies.answer.evidence import MissingTerm
from studies.answer.held_back import Explained
from studies.answer.intervals import FOOTAGE_FLOOR
from studies.answer.law import errors_by_law
from studies.answer.solution import Solution
from studies.answer.verdict import WORSE
from studies.fitting.judging import (
    Candidate,
    explained_motion,
    judge_answer,
    loss_at_start,
    loss_where_finite,
    sees,
    squares_left,
    unexplained_pictures,
)
from studies.fitting.local_search import LocalSearch, log_names
from studies.fitting.missing_term import find_missing_term
from studies.fitting.start_from_tracks import start_from_tracks
from studies.fitting.trying import Judge, Tried, try_result
from studies.optimizers.minimize import MOST_TANGENTS
from studies.optimizers.problem import NOT_FINITE, Result, Status
from studies.problem.films import films_of
from studies.problem.first_frames import first_frames_differ
from studies.problem.frame_squares import still_squares
from studies.problem.making import PreparedProblem
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.problem.refining import with_less_held, with_more_held, with_other_shading
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
# How changes are found that move a body by more than a pixel or two.
OF_HELD = (HELD, RELEASED, LARGER, SMALLER)
COMPARED = {**dict.fromkeys(OF_HELD, change_in_space), LAW: change_by_fit}
ONCE = (SHADING, *OF_HELD)  # changes that have no more of their kind behind them
DEVIATIONS = 2.0  # uncertainties of a size, by which other nodes may be held
SMALL = 1e-3  # of a vector: a smaller change is none


def solve(
    made: PreparedProblem,
    how: declared.Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: int = 0,
) -> Solution:
    """Search, or go on where the folder's logs end, and judge the answer."""
    at_start, n_fitted = loss_at_start(made), fitted_frames(made.problem.n_frames, how.held_back)
    declared_start = made
    tracked = start_from_tracks(made, how, folder, progress, seed=seed, n_fitted=n_fitted)
    made = tracked.made
    start = made.problem.parameters  # answers first, all else stays where it begins
    searched = made.problem.first_frames(n_fitted).at(start.start, keep=made.problem.staged)
    parts = how.stages[:-1] if searched.rolls_out and not made.kept else ()
    if tracked.axes == ():
        how = replace(how, stages=(1.0,))
    found = robust_search(searched, how, folder, progress, seed=(seed,), axes=tracked.axes)
    found = _with_others(searched, found, tracked.others)
    spent = tracked.evaluations + found.evaluations
    local = LocalSearch(how, folder, progress, floor=0.0 if made.is_twin else FOOTAGE_FLOOR)
    found = _with_mirrored(searched, found, local)
    common = _fit_jointly(made, found, n_fitted, local)
    validation = _validated(common.everything, made.kept, common.theta)
    common, problem, tried, note = _with_slope(made, common, local, at_start, parts=parts)
    predicted = _predicted(common)
    rivals = _rivals(problem, found, tried.result, local, staged=made.problem.staged)
    progress.say("judging the answer")
    before = spent + local.spent + tried.evaluations
    linear = _linear(made, problem, tried)
    steps, notes = _refinements(made, problem, tried, linear, most=before)
    errors = {source: step if source in ONCE else WHOLE * step for source, step in steps.items()}
    by_law, more = _errors_by_law(made, problem, tried)
    if by_law.any():
        errors["cloth"] = by_law
    tried = tried.with_errors(problem.parameters, errors)
    missing = None
    if linear is not None and made.terms and not tried.is_without_gradients:
        missing = find_missing_term(
            problem, tried.result.theta, linear, terms=made.terms, looks=common.looks, local=local
        )
    tried, budget, unknown = _with_budget(made, problem, tried, linear, missing=missing)
    candidate = Candidate(
        problem, tried, at_start, common.first_look, common.looks, predicted, validation, rivals,
        steps, budget, missing,
    )  # fmt: skip
    verdict, each, explained = judge_answer(candidate, declared_start)
    verdict = replace(verdict, reason=f"{verdict.reason} {note}".strip())
    return Solution(
        problem,
        tried.result,
        found,
        searched,
        tried.spread,
        verdict,
        explained,
        spent + local.spent + tried.evaluations,
        validation,
        tuple(name for log in common.logs for name in log_names(log) if folder.has(name)),
        verdicts=each,
        notes=notes + more + unknown,
        budget=budget,
    )


def fitted_frames(n_frames: int, held_back: float) -> int:
    """Return how many of the frames are fitted before the rest is predicted."""
    count = n_frames - int(np.floor(held_back * n_frames))
    return n_frames if count < LEAST_FITTED else count


def _with_others(
    problem: SceneProblem, found: SearchResult, thetas: Sequence[np.ndarray]
) -> SearchResult:
    """Return what was found, and other basins that a fit to the tracks ended in, not searched."""
    if found.coarse is None:
        return found
    basins, number = list(found.basins), 1 + max(one.number for one in found.basins)
    for theta in thetas:
        loss = loss_where_finite(problem, theta)
        none = Result(theta, loss, Status.NOT_FINITE, 1)
        basins.append(replace(Basin.of(theta, none, "", number=number), logs=(), is_searched=False))
        number += 1
    return found_basins(basins, found.evaluations + len(thetas), found.coarse)


def _with_mirrored(problem: SceneProblem, found: SearchResult, local: LocalSearch) -> SearchResult:
    """Return what was found, and the basin of the same motion reflected across the view."""
    theta = mirrored(problem, found.best.theta)
    if theta is None or found.coarse is None:
        return found
    worst = HOPELESS * found.best.loss
    result = local.run(problem, theta, log=MIRRORED, stage="reflected in depth", hopeless=worst)
    number, last = 1 + max(one.number for one in found.basins), len(found.coarse.frames) - 1
    basin = Basin.of(theta, result, MIRRORED, number=number, first_stage=last)
    return found_basins(
        [*found.basins, basin], found.evaluations + result.evaluations, found.coarse
    )


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
    def looks(self) -> list[np.ndarray]:
        """Thetas whose looks fit the first frames."""
        return [self.first_look, self.theta]

    @property
    def is_held_back(self) -> bool:
        """Whether frames are held back."""
        return self.n_fitted < self.problem.n_frames


def _fit_jointly(
    made: PreparedProblem, found: SearchResult, n_fitted: int, local: LocalSearch
) -> _CommonFit:
    """Fit cameras and looks together with the answers, from the best basin."""
    parameters = made.problem.parameters
    first = list(made.problem.staged)
    start = parameters.start.copy()
    start[first] = found.best.theta
    everything = _with_looks_for(made, start, local.progress)
    is_refitted = everything is not made.everything
    problem = made.searched(everything)
    part = problem.first_frames(n_fitted)
    first_look = part.parameters.start
    result: Result = found.best
    if is_refitted or part.parameters.size > len(first):
        start = first_look if is_refitted else start
        result = local.run(part, start, log=JOINT, stage=_beside(part))
    is_seen = part.parameters.each([sees(part, one.path) for one in part.parameters.free])
    theta = np.where(is_seen, result.theta, first_look)
    return _CommonFit(everything, problem, n_fitted, first_look, result, theta)


def _with_looks_for(
    made: PreparedProblem, start: np.ndarray, progress: EvaluationProgress
) -> SceneProblem:
    """Return the problem of all observations, whose looks are fitted again if bodies move there."""
    problem = made.problem
    if made.is_twin or not first_frames_differ(problem, problem.parameters.start, start):
        return made.everything
    progress.say("the bodies begin elsewhere than at the start: fitting looks once more")
    fitted = made.refitted(made.everything.at(start).with_steps_for(start))
    paths = problem.parameters.paths
    fixed = {path: value for path, value in fitted.fixed.items() if path not in paths}
    return replace(fitted, fixed=fixed)


def _predicted(common: _CommonFit) -> Explained | None:
    """Return how well the frames that were held back are predicted; None if none were."""
    if not common.is_held_back:
        return None
    return explained_motion(
        common.problem, common.theta, looks=common.looks, n_fitted=common.n_fitted
    )[1]


def _fit_everything(
    made: PreparedProblem, common: _CommonFit, local: LocalSearch
) -> tuple[SceneProblem, Result]:
    """Fit what was held back too; return the problem with the time step of its answer, and this."""
    if not (common.is_held_back or made.kept):
        return common.everything.with_steps_for(common.theta), common.result
    stage = "all observations" if made.kept else "all frames"
    result = local.run(common.everything, common.theta, log=common.logs[1], stage=stage)
    return common.everything.with_steps_for(result.theta), result


def _with_slope(
    made: PreparedProblem,
    common: _CommonFit,
    local: LocalSearch,
    at_start: float,
    *,
    parts: Sequence[float],
) -> tuple[_CommonFit, SceneProblem, Tried, str]:
    """Return the answer to all frames after its trial, its problem, and what is to be said.

    Where the loss about it has no slope, as where a thrown box tumbles on, it is that to one of the
    `parts` of the film: the longest whose answer is within the intervals of the shorter ones. A law
    of contact that differs a little leads a longer part elsewhere.
    """
    problem, tried = _fitted_and_tried(made, common, local, at_start)
    spent, n_frames, note = tried.evaluations, problem.n_frames, ""
    if tried.trial is None or not tried.trial.is_rough:
        return common, problem, tried, note
    best, theta = (common, problem, tried), tried.result.theta
    for part in parts:
        shorter = _shortened(made, common, theta, local, part=part)
        own, again = _fitted_and_tried(made, shorter, local, at_start)
        spent, theta = spent + again.evaluations, again.result.theta
        if again.trial is None:  # so few frames may show nothing
            continue
        if again.trial.is_rough or (note and not _agree(best[2], again)):
            break
        best = (shorter, own, again)
        note = (
            f"The answer rests on the first {own.n_frames} of {n_frames} frames: with all of them "
            "the gradient is not the slope of the loss."
        )
    common, problem, tried = best
    return common, problem, replace(tried, evaluations=spent), note


def _agree(tried: Tried, longer: Tried) -> bool:
    """Return whether the answer to a longer part of the film is within the intervals of another."""
    apart = np.abs(longer.result.theta - tried.result.theta)
    return bool((apart <= tried.spread.intervals.half_width).all())


def _fitted_and_tried(
    made: PreparedProblem, common: _CommonFit, local: LocalSearch, at_start: float
) -> tuple[SceneProblem, Tried]:
    """Return the problem with the time step of its answer, and the answer to all frames, tried."""
    problem, result = _fit_everything(made, common, local)
    local.progress.say("trying the answer")
    judge = Judge(common.result.theta, at_start, made.is_twin, local.how, local.progress)
    return problem, try_result(problem, result, judge)


def _shortened(
    made: PreparedProblem,
    common: _CommonFit,
    theta: np.ndarray,
    local: LocalSearch,
    *,
    part: float,
) -> _CommonFit:
    """Return answers, cameras and looks fitted to this part of the film alone.

    The fit begins at theta, to which another part led, or at the start of the search: late frames
    of a chaotic motion may have led away from what the first ones show.
    """
    whole = common.everything.at_stage(part)
    n_fitted = fitted_frames(whole.n_frames, local.how.held_back)
    fitted = whole.first_frames(n_fitted)
    local.progress.say(f"fitting the first {whole.n_frames} frames alone")
    starts = (theta, made.everything.parameters.start)
    start = min(starts, key=lambda one: loss_where_finite(fitted, one))
    first, final = (log.replace(".jsonl", f"-{whole.n_frames}.jsonl") for log in (JOINT, FINAL))
    result = local.run(fitted, start, log=first, stage=_beside(fitted))
    return _CommonFit(
        whole, whole, n_fitted, common.first_look, result, result.theta, (first, final)
    )


def _linear(made: PreparedProblem, problem: SceneProblem, tried: Tried) -> Linear | None:
    """Return residuals and Jacobian at an answer, if its budget needs them and can have them."""
    if tried.spread.reason or not (made.declared or made.has_mesh_error or made.has_law_error):
        return None
    try:
        distance = tried.secant_distance(problem.parameters)
        return linear_at(problem, tried.result.theta, distance)
    except NOT_FINITE:
        return None


def _with_budget(
    made: PreparedProblem,
    problem: SceneProblem,
    tried: Tried,
    linear: Linear | None,
    *,
    missing: MissingTerm | None,
) -> tuple[Tried, Budget | None, list[str]]:
    """Return the answer whose intervals count what was declared, their budget, and notes."""
    if linear is None:
        return tried, None, []
    if missing is not None:
        tried = tried.with_errors(problem.parameters, {"term": missing.change})
    budget, own, notes = budget_at(
        problem,
        tried.result.theta,
        tried.spread.intervals,
        linear[1],
        numbers=made.declared,
        residuals=linear[0],
        is_rough=tried.is_without_gradients,
    )
    return replace(tried, spread=replace(tried.spread, intervals=own)), budget, notes


def _refinements(
    made: PreparedProblem,
    problem: SceneProblem,
    tried: Tried,
    linear: Linear | None,
    *,
    most: int,
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return what finer mesh and step, other contacts and laws change of the answer, and notes."""
    if linear is None:
        return {}, []
    theta, distance = tried.result.theta, tried.secant_distance(problem.parameters)
    changes: list[Change] = []
    notes: list[str] = []
    if made.has_mesh_error:
        changes, notes = changes_by(
            problem, theta, refined=made.refined, most=most, distance=distance
        )
    for source, other in (
        (CONTACT, made.harder),
        (LOSS, made.lossier),
        (SHADING, with_other_shading),
        (HELD, with_more_held),
        (RELEASED, with_less_held),
        (LARGER, lambda problem: made.held_if_larger(problem, DEVIATIONS)),
        (SMALLER, lambda problem: made.held_if_larger(problem, -DEVIATIONS)),
        (LAW, made.other_law),
    ):
        changed = other(problem) if source == LAW or not made.is_twin else None
        if changed is not None:
            compare = COMPARED.get(source, change_by_contact)
            more, own = compare(problem, changed, theta, linear, source=source)
            changes, notes = changes + more, notes + own
    return {one.source: one.step for one in changes if one.is_error}, notes


def _errors_by_law(
    made: PreparedProblem, problem: SceneProblem, tried: Tried
) -> tuple[np.ndarray, list[str]]:
    """Return the errors of theta by the law of cloth, (p,), and notes."""
    if made.is_twin or tried.spread.reason or problem.is_still:
        return np.zeros_like(tried.result.theta), []
    return errors_by_law(problem, tried.result.theta)


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
    found: SearchResult,
    answer: Result,
    local: LocalSearch,
    *,
    staged: Sequence[int],
) -> list[evidence.Rival]:
    """Return the other basins; those that saw all frames get cameras of their own.

    One that will stay clearly worse than the answer is given up, as it is no other answer. `staged`
    are the components that basins have.
    """
    out = []
    steps = min(problem.parameters.size, MOST_TANGENTS) + 1  # rollouts of a step
    most = min(local.how.max_evaluations, RIVAL_STEPS * steps)
    short = replace(local.how, max_evaluations=most)
    for basin in found.basins:
        if np.array_equal(basin.theta, found.best.theta):
            continue
        there, loss = answer.theta.copy(), basin.loss
        there[list(staged)] = basin.theta
        if basin.is_searched and basin.loss <= HOPELESS * found.best.loss:
            log = f"iterations-rival-{basin.number + 1}.jsonl"
            stage = f"another basin, {_beside(problem)}"
            needed = _needed(problem, answer, there)
            result = local.run(problem, there, how=short, log=log, stage=stage, needed=needed)
            there, loss = result.theta, result.loss
        left = squares_left(problem, there)
        if left is not None and np.isfinite(loss):
            out.append(evidence.Rival(there, loss, left))
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
    judged = evidence.Evidence(
        problem.parameters,
        answer.theta,
        answer.status,
        answer.loss,
        residual_squares=squares_left(problem, answer.theta),
        still_squares=still_squares(problem),
    )
    for part in np.linspace(1.0, 0.0, PARTS, endpoint=False):
        basin = evidence.Rival(theta, part * loss, part * squares)
        if evidence.how_much_worse(judged, basin) <= WORSE:
            return np.inf if part == 1.0 else part * loss
    return loss / PARTS


def _validated(
    everything: SceneProblem, kept: frozenset[str], theta: np.ndarray
) -> dict[str, float | None]:
    """Return how well theta predicts the observations that are kept from the search."""
    out: dict[str, float | None] = {}
    for one in [one for one in everything.observers if one.name in kept]:
        alone = on_one_timeline(everything, [one]).with_steps_for(theta)
        part = explained_motion(alone, theta, looks=[theta])[1]
        out[one.name] = unexplained_pictures(alone, theta) if part is None else part.unexplained
    return out


def mirrored(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return theta of the motion reflected across the view of the first film; None if it is one.

    A film from far away shows no depth: the reflected motion looks nearly the same. With the unit
    vector n along the view it has

        v -> v - 2 (v n) n        a vector
        w -> -w + 2 (w n) n       an axial vector
    """
    views = films_of(problem.observers)
    if not views:
        return None
    along = views[0].camera.pose()[1][2]
    values = problem.parameters.values(theta)
    changed = False
    for path, value in values.items():
        name = path.rpartition(".")[2]
        if value.shape != (3,) or name not in (*VECTORS, *AXIAL) or path.startswith("cameras."):
            continue
        other = value - 2.0 * (value @ along) * along
        other = -other if name in AXIAL else other
        changed |= bool(np.abs(other - value).max() > SMALL * np.linalg.norm(value))
        values[path] = other
    if not changed:
        return None
    natural = np.concatenate([np.ravel(value) for value in values.values()])
    low, high = problem.bounds
    width = np.where(np.isfinite(high - low), high - low, 1.0)
    return np.clip(problem.parameters.theta(natural), low + 1e-6 * width, high - 1e-6 * width)
