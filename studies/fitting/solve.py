"""Search the answer of a scene, predict what was held back, and judge it.

answers alone, frames that are not held back      coarse set, basins, stages
answers and cameras, the same frames              from the best basin
held-back frames, observations with `validate`    predicted by that, then used
answers and cameras, everything                   the answer, its intervals, the verdict
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from studies.answer import evidence
from studies.answer.evidence import Evidence
from studies.answer.held_back import Explained, explained
from studies.answer.intervals import (
    FOOTAGE_FLOOR,
    Uncertainty,
    intervals,
    no_spread,
    spectrum,
    triangle,
)
from studies.answer.solution import Solution
from studies.answer.verdict import judge
from studies.optimizers.minimize import MOST_TANGENTS, method_for, minimize
from studies.optimizers.problem import NOT_FINITE, Method, Result, Stall, Status
from studies.problem.clusters import clusters_of_rows
from studies.problem.films import FilmObserver, PictureObserver
from studies.problem.first_frames import first_frames_differ
from studies.problem.frame_squares import (
    look_squares,
    residual_squares,
    still_squares,
    variation_squares,
)
from studies.problem.making import Made
from studies.problem.observers import SEEN
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.search.coarse import Basin, Found, found_basins
from studies.search.robust import FIRST_ORDER, FIRST_ORDER_STALL, robust_search


MIRRORED = "iterations-mirrored.jsonl"
JOINT, FINAL = "iterations-joint.jsonl", "iterations-all.jsonl"
ATTEMPTS = 3  # with new time steps
STALL = Stall(1e-3, 3)  # steps of Gauss-Newton are long: three without a gain are enough
RIVAL_STEPS = 6  # of Gauss-Newton: how far another basin is fitted with cameras of its own
LEAST_FITTED = 3  # frames that must be left when some are held back
Local = Callable[..., Result]  # `_local` with settings, folder and progress
VECTORS, AXIAL = ("velocity",), ("spin", "rotation")  # the last parts of their paths
SMALL = 1e-3  # of a vector: a smaller change is none


def solve(
    made: Made,
    how: declared.Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: int = 0,
) -> Solution:
    """Search, or go on where the folder's logs end, and judge the answer."""
    everything, problem = made.everything, made.problem
    n_fitted = fitted_frames(problem.n_frames, how.held_back)
    part = problem.frames_between(0, n_fitted)
    first = part.parameters.first_answers
    searched = part.at(part.parameters.start, keep=first)
    found = robust_search(searched, how, folder, progress, seed=(seed,))
    local = partial(_local, how=how, folder=folder, progress=progress)
    found = _with_mirrored(searched, found, local)
    spent = found.evaluations
    start = part.parameters.start.copy()
    start[list(first)] = found.best.theta
    if not made.is_twin and first_frames_differ(problem, problem.parameters.start, start):
        progress.say("the bodies begin elsewhere than at the start: fitting looks once more")
        fitted = made.refitted(everything.at(start).with_steps_for(start))
        paths = problem.parameters.paths
        fixed = {path: value for path, value in fitted.fixed.items() if path not in paths}
        everything = replace(fitted, fixed=fixed)
        problem = made.searched(everything)
        part = problem.frames_between(0, n_fitted)
        start = part.parameters.start
    first_look = problem.parameters.start
    joint = found.best
    if part.parameters.size > len(first) or everything is not made.everything:
        joint = local(part, start, log=JOINT, stage=_beside(part))
        spent += joint.evaluations
    is_seen = [_sees(part, one.path) for one in part.parameters.free]
    fitted_to = np.where(part.parameters.each(is_seen), joint.theta, first_look)
    is_held_back = n_fitted < problem.n_frames
    looks = [first_look, fitted_to]
    predicted = None
    if is_held_back:
        _, predicted = _explained(problem, fitted_to, looks=looks, n_fitted=n_fitted)
    validation = _validated(everything, made.kept, fitted_to)
    result, whole = joint, everything.with_steps_for(fitted_to)
    if is_held_back or made.kept:
        stage = "all observations" if made.kept else "all frames"
        result = local(everything, fitted_to, log=FINAL, stage=stage)
        whole = everything.with_steps_for(result.theta)
        spent += result.evaluations
    left, part_left = _explained(whole, result.theta, looks=looks)
    if part_left is not None and predicted is not None:
        part_left = replace(
            part_left,
            predicted_unexplained=predicted.predicted_unexplained,
            held_back=predicted.held_back,
        )
    rivals, more = _rivals(whole, found, result.theta, how=how, local=local)
    spent += more
    progress.say("judging the answer")
    floor = 0.0 if made.is_twin else FOOTAGE_FLOOR
    has_jacobian = method_for(how, whole.parameters.size) is Method.GAUSS_NEWTON
    spread = _spread(whole, result.theta, [joint.theta], floor, has_jacobian=has_jacobian)
    verdict = judge(
        Evidence(
            parameters=whole.parameters,
            theta=result.theta,
            status=result.status,
            loss=result.loss,
            gradient=_if_finite(lambda: whole.loss_and_gradient(result.theta)[1]),
            intervals=spread.intervals,
            answers=whole.answers,
            explained=part_left,
            unexplained_pictures=_unexplained_pictures(whole, left) if part_left is None else None,
            residual_squares=left,
            still_squares=still_squares(whole),
            basins=rivals,
            worst_direction=spread.to_dict(whole.parameters.theta_labels)["worst_direction"],
            needs_intervals=any(
                one.is_answer and not (one.is_view or one.is_shape) for one in whole.parameters.free
            ),
            is_watched=True,
            bent=_bent(whole, first_look, result.theta),
            predictions={k: left for k, left in validation.items() if left is not None},
            truth=None if made.truth is None else made.truth.flat(whole.parameters.paths),
        )
    )
    return Solution(
        whole,
        result,
        found,
        searched,
        spread,
        verdict,
        part_left,
        spent,
        validation,
        tuple(name for name in _log_names(JOINT) + _log_names(FINAL) if folder.has(name)),
    )


def _unexplained_pictures(problem: SceneProblem, left: np.ndarray | None) -> float | None:
    """Return the part of the variance of pictures that is left; None without pictures."""
    variation = float(variation_squares(problem).sum())
    return None if left is None or variation == 0.0 else float(left.sum()) / variation


def fitted_frames(n_frames: int, held_back: float) -> int:
    """Return how many of the frames are fitted before the rest is predicted."""
    count = n_frames - int(np.floor(held_back * n_frames))
    return n_frames if count < LEAST_FITTED else count


def _with_mirrored(problem: SceneProblem, found: Found, local: Local) -> Found:
    """Return what was found, and the basin of the same motion reflected across the view."""
    theta = mirrored(problem, found.best.theta)
    if theta is None or found.coarse is None:
        return found
    result = local(problem, theta, log=MIRRORED, stage="reflected in depth")
    number, last = 1 + max(one.number for one in found.basins), len(found.coarse.frames) - 1
    basin = Basin.of(theta, result, MIRRORED, number=number, first_stage=last)
    return found_basins(
        [*found.basins, basin], found.evaluations + result.evaluations, found.coarse
    )


def _log_names(log: str) -> list[str]:
    """Return the logs of a local search and of its repetitions with new time steps."""
    again = [log.replace(".", f"-steps-{k + 1}.") for k in range(1, ATTEMPTS)]
    return [log, *again]


def _local(
    problem: SceneProblem,
    theta: np.ndarray,
    *,
    how: declared.Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    log: str,
    stage: str,
) -> Result:
    """Return the end of a local search, repeated while its end needs shorter time steps."""
    spent, result = 0, Result(theta, np.inf, Status.NOT_FINITE, 0)
    for attempt in range(ATTEMPTS):
        stepped = problem.with_steps_for(theta)
        name = _log_names(log)[attempt]
        progress.begin(stage)
        result = minimize(
            stepped,
            theta,
            how,
            log=folder.file(name),
            callback=progress,
            stage=stage,
            stall=FIRST_ORDER_STALL if how.method in FIRST_ORDER else STALL,
        )
        spent += result.evaluations
        theta = result.theta
        if not stepped.steps_are_long(theta):
            break
    return replace(result, evaluations=spent)


def _beside(problem: SceneProblem) -> str:
    """Return what is fitted beside the answers of the motion, in words."""
    parameters = problem.parameters
    first = parameters.held_at(parameters.start, keep=parameters.first_answers)
    paths = set(parameters.paths) - set(first.paths)
    if any(path.startswith("cameras.") for path in paths):
        return "with cameras"
    return "with looks" if paths else "to the end"


def _explained(
    problem: SceneProblem,
    theta: np.ndarray,
    *,
    looks: list[np.ndarray],
    n_fitted: int | None = None,
) -> tuple[np.ndarray | None, Explained | None]:
    """Return what theta leaves of every frame, and of the motion.

    The first is None where the rollout blows up, the second also where nothing moves. What the
    looks leave is that of the best of the thetas in `looks`.
    """
    left = _squares(problem, theta)
    if left is None:
        return None, None
    every = [_if_finite(lambda at=at: look_squares(problem.with_steps_for(at), at)) for at in looks]
    found = [one for one in every if one is not None]
    appearance = np.min(found, axis=0) if found else None
    still = still_squares(problem)
    return left, explained(left, still, n_fitted=n_fitted, appearance=appearance)


def _squares(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return what is left of every frame; None where the rollout blows up."""
    return _if_finite(lambda: residual_squares(problem.with_steps_for(theta), theta))


def _if_finite(compute: Callable[[], np.ndarray]) -> np.ndarray | None:
    """Return what is computed; None where the rollout blows up."""
    with suppress(*NOT_FINITE):
        return compute()
    return None


def _bent(problem: SceneProblem, first: np.ndarray, theta: np.ndarray) -> tuple[str, float] | None:
    """Return the nuisance that moved furthest since the first frame, in deviations of its prior."""
    parameters = problem.parameters
    is_seen = [not one.is_answer and _sees(problem, one.path) for one in parameters.free]
    far = np.abs(theta - first) / parameters.prior_error
    far = np.where(parameters.each(is_seen), far, 0.0)
    worst = int(np.argmax(far))
    return (parameters.labels[worst], float(far[worst])) if far[worst] > 0.0 else None


def _sees(problem: SceneProblem, path: str) -> bool:
    """Whether a path is of no camera, or of one that an observation looks through."""
    cameras = {one.camera_path for one in problem.observers}
    return not path.startswith("cameras.") or path.rpartition(".")[0] in cameras


def _spread(
    problem: SceneProblem,
    theta: np.ndarray,
    stages: list[np.ndarray],
    floor: float,
    *,
    has_jacobian: bool,
) -> Uncertainty:
    """Return intervals and spectrum; of many parameters none, unless the search had Jacobians."""
    n = problem.parameters.size
    if n > MOST_TANGENTS and not has_jacobian:
        left = _squares(problem, theta)
        noise = 0.0 if left is None else SEEN * float(np.sqrt(left.mean()))
        return no_spread(n, f"more than {MOST_TANGENTS} parameters", noise)
    try:
        r, J = problem.residuals_and_jacobian(theta)
    except NOT_FINITE as error:
        return no_spread(n, str(error))
    own = intervals(
        problem.parameters,
        theta,
        r,
        J,
        frames=clusters_of_rows(problem),
        aligned=not problem.is_at_rest,
        pixel_covariance=pixel_covariance(problem, theta, r, J),
        stages=stages,
        floor=floor,
    )
    noise = SEEN * float(np.sqrt(residual_squares(problem, theta).mean()))
    return Uncertainty(own, noise, *spectrum(J))


def _rivals(
    whole: SceneProblem, found: Found, theta: np.ndarray, *, how: declared.Search, local: Local
) -> tuple[list[evidence.Basin], int]:
    """Return the other basins, those that saw all frames with cameras of their own, and cost."""
    out, spent = [], 0
    steps = min(whole.parameters.size, MOST_TANGENTS) + 1  # rollouts of a step
    short = replace(how, max_evaluations=min(how.max_evaluations, RIVAL_STEPS * steps))
    for basin in found.basins:
        if np.array_equal(basin.theta, found.best.theta):
            continue
        there, loss = theta.copy(), basin.loss
        there[list(whole.parameters.first_answers)] = basin.theta
        if basin.is_searched:
            log = f"iterations-rival-{basin.number + 1}.jsonl"
            stage = f"another basin, {_beside(whole)}"
            result = local(whole, there, how=short, log=log, stage=stage)
            there, loss = result.theta, result.loss
            spent += result.evaluations
        left = _squares(whole, there)
        if left is not None:
            out.append(evidence.Basin(there, loss, left))
    return out, spent


def _validated(
    everything: SceneProblem, kept: frozenset[str], theta: np.ndarray
) -> dict[str, float | None]:
    """Return how well theta predicts the observations that are kept from the search."""
    out: dict[str, float | None] = {}
    for one in [one for one in everything.observers if one.name in kept]:
        alone = on_one_timeline(everything, [one]).with_steps_for(theta)
        left, part = _explained(alone, theta, looks=[theta])
        out[one.name] = _unexplained_pictures(alone, left) if part is None else part.unexplained
    return out


def pixel_covariance(
    problem: SceneProblem, theta: np.ndarray, r: np.ndarray, J: np.ndarray
) -> np.ndarray | None:
    r"""Return the covariance of theta by noise of the pixels, (p, p); None where J is singular.

    r (n,) and J (n, p) are the residuals and their Jacobian at theta, the priors last. Residuals
    are linear in the observations, r = A d with d = prediction - observation. Noise that is
    independent in every pixel is not so in the blurred levels of a pyramid: with H = J^T J,

        cov theta = H^-1 sum_k s_k^2 (A_k^T J_k)^T (A_k^T J_k) H^-1,   s_k^2 = d_k @ d_k / (N_k - p)

    over the observations k; of points A is a factor for each row, and s_k^2 is that of r_k.
    Source: Seber & Wild, Nonlinear Regression, Wiley 1989, sec. 2.1.
    """
    p = len(theta)
    inner = np.zeros((p, p))
    first = 0
    rows, parts = problem.by_observer(problem.images(theta)), problem.by_residuals(r[:-p])
    for (one, own_rows), (_, own_r) in zip(rows, parts, strict=True):
        own = slice(first, first + len(own_r))
        first = own.stop
        if isinstance(one, PictureObserver):
            off = (own_rows[:, :3] - one.targets()).ravel()
            pulled = [one.residuals_vjp(column)[:, :3].ravel() for column in J[own].T]
            through = np.stack(pulled).astype(np.float32)  # as large as J, of a width only
            inner += float(off @ off) / max(off.size - p, 1) * (through @ through.T)
        else:
            inner += float(own_r @ own_r) / max(len(own_r) - p, 1) * (J[own].T @ J[own])
    R = triangle(J)
    if not np.abs(np.diag(R)).min() > 0.0:
        return None
    half = np.linalg.solve(R.T, inner)
    return np.linalg.solve(R, np.linalg.solve(R, np.linalg.solve(R.T, half.T)).T)


def mirrored(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return theta of the motion reflected across the view of the first film; None if it is one.

    A film from far away shows no depth: the reflected motion looks nearly the same. With the unit
    vector n along the view it has

        v -> v - 2 (v n) n        a vector
        w -> -w + 2 (w n) n       an axial vector
    """
    views = [one for one in problem.observers if isinstance(one, FilmObserver)]
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
