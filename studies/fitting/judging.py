"""Judge the answer of a scene: what it leaves unexplained, its intervals, its verdict."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from studies.answer.evidence import Basin, Evidence
from studies.answer.held_back import Explained, explained
from studies.answer.intervals import (
    FOOTAGE_FLOOR,
    Uncertainty,
    intervals,
    no_spread,
    spectrum,
    triangle,
)
from studies.answer.verdict import Verdict, judge
from studies.optimizers.minimize import MOST_TANGENTS, method_for
from studies.optimizers.problem import NOT_FINITE, Method, Result
from studies.problem.clusters import clusters_of_rows
from studies.problem.films import PictureObserver
from studies.problem.frame_squares import (
    look_squares,
    residual_squares,
    still_squares,
    variation_squares,
)
from studies.problem.making import Made
from studies.problem.observers import SEEN
from studies.problem.problem import SceneProblem
from studies.scene import declared


@dataclass(frozen=True, eq=False)
class Candidate:
    """An answer that is still to be judged."""

    problem: SceneProblem  # of all that was observed, with the time step of the answer
    result: Result
    joint: np.ndarray  # theta before held-back frames and observations were fitted too
    first_look: np.ndarray  # theta as the first frames show cameras and looks
    looks: list[np.ndarray]  # thetas whose looks fit the first frames
    predicted: Explained | None  # how well held-back frames were predicted
    validation: Mapping[str, float | None]  # as in `Solution`
    rivals: Sequence[Basin]  # what other basins leave


def judge_answer(
    one: Candidate, made: Made, how: declared.Search
) -> tuple[Verdict, Uncertainty, Explained | None]:
    """Return the verdict on an answer, its intervals, and how well it explains the motion."""
    problem, theta, parameters = one.problem, one.result.theta, one.problem.parameters
    left, motion = explained_motion(problem, theta, looks=one.looks)
    if motion is not None and one.predicted is not None:
        motion = replace(
            motion,
            predicted_unexplained=one.predicted.predicted_unexplained,
            held_back=one.predicted.held_back,
        )
    floor = 0.0 if made.is_twin else FOOTAGE_FLOOR
    has_jacobian = method_for(how, parameters.size) is Method.GAUSS_NEWTON
    spread = _spread(problem, theta, [one.joint], floor, has_jacobian=has_jacobian)
    verdict = judge(
        Evidence(
            parameters=parameters,
            theta=theta,
            status=one.result.status,
            loss=one.result.loss,
            gradient=_if_finite(lambda: problem.loss_and_gradient(theta)[1]),
            intervals=spread.intervals,
            answers=problem.answers,
            explained=motion,
            unexplained_pictures=unexplained_pictures(problem, left) if motion is None else None,
            residual_squares=left,
            still_squares=still_squares(problem),
            basins=one.rivals,
            worst_direction=spread.to_dict(parameters.theta_labels)["worst_direction"],
            needs_intervals=any(
                free.is_answer and not (free.is_view or free.is_shape) for free in parameters.free
            ),
            is_watched=True,
            bent=_bent(problem, one.first_look, theta),
            predictions={k: part for k, part in one.validation.items() if part is not None},
            truth=None if made.truth is None else made.truth.flat(parameters.paths),
        )
    )
    return verdict, spread, motion


def explained_motion(
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
    left = squares_left(problem, theta)
    if left is None:
        return None, None
    every = [_if_finite(lambda at=at: look_squares(problem.with_steps_for(at), at)) for at in looks]
    found = [one for one in every if one is not None]
    appearance = np.min(found, axis=0) if found else None
    still = still_squares(problem)
    return left, explained(left, still, n_fitted=n_fitted, appearance=appearance)


def unexplained_pictures(problem: SceneProblem, left: np.ndarray | None) -> float | None:
    """Return the part of the variance of pictures that is left; None without pictures."""
    variation = float(variation_squares(problem).sum())
    return None if left is None or variation == 0.0 else float(left.sum()) / variation


def squares_left(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
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
    is_seen = [not one.is_answer and sees(problem, one.path) for one in parameters.free]
    far = np.abs(theta - first) / parameters.prior_error
    far = np.where(parameters.each(is_seen), far, 0.0)
    worst = int(np.argmax(far))
    return (parameters.labels[worst], float(far[worst])) if far[worst] > 0.0 else None


def sees(problem: SceneProblem, path: str) -> bool:
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
        left = squares_left(problem, theta)
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
