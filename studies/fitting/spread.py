"""Intervals of an answer, from the Jacobian or from secants of its residuals."""

from collections.abc import Sequence

import numpy as np

from render.losses import difference
from studies.answer.intervals import Uncertainty, intervals, spectrum, triangle
from studies.optimizers.jacobian import Jacobian
from studies.problem.clusters import clusters_of_rows
from studies.problem.films import PictureObserver
from studies.problem.frame_squares import residual_squares
from studies.problem.losses import EVIDENCE
from studies.problem.observers import SEEN
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem


NOISE = 2.0 / 255.0  # standard deviation of a pixel that is expected of a film


def spread_of(
    problem: SceneProblem,
    theta: np.ndarray,
    r: np.ndarray,
    J: Jacobian,
    *,
    stages: Sequence[np.ndarray],
    floor: float,
) -> Uncertainty:
    """Return intervals and spectrum of theta, (p,), with the residuals r, (n,), and J, (n, p).

    `stages` and `floor` are those of `studies.answer.intervals.intervals`.
    """
    own = intervals(
        problem.parameters,
        theta,
        r,
        J,
        frames=clusters_of_rows(problem),
        aligned=not problem.is_still,
        pixel_covariance=pixel_covariance(problem, theta, r, J),
        stages=stages,
        floor=floor,
    )
    return Uncertainty(own, pixel_noise(problem, theta), *spectrum(J))


def pixel_noise(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return the standard deviation of a pixel that theta leaves."""
    return SEEN * float(np.sqrt(residual_squares(problem, theta).mean()))


def pixel_covariance(
    problem: SceneProblem, theta: np.ndarray, r: np.ndarray, J: Jacobian
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
    variances: list[float] = []
    rows, parts = problem.by_observer(problem.images(theta)), problem.by_residuals(r[:-p])
    for (one, own_rows), (_, own_r) in zip(rows, parts, strict=True):
        off, part = own_r, 1.0
        if isinstance(one, PictureObserver):
            apart = difference(one.as_images(own_rows)[..., :3], one.frames)
            off, part = one.where_compared(apart).ravel(), one.part_compared
        variances.append(float(off @ off) / max(part * off.size - p, 1.0))
    return _covariance(problem, J, variances, np.zeros((p, p)))


def expected_covariance(problem: SceneProblem, J: Jacobian) -> np.ndarray | None:
    """Return the covariance of theta by noise of the size that is expected, (p, p).

    That is `NOISE` in every pixel, and of points their declared `error`. A prior is off by its
    error. J (n, p) is the Jacobian of the residuals, the priors last; None where it is singular.
    """
    p = J.shape[1]
    variances: list[float | np.ndarray] = []
    for one in problem.observers:
        if isinstance(one, PointObserver):
            off = np.full((one.rows_per_frame() * len(one.times), 4), one.error)
            variances.append(one.residuals_jvp(off) ** 2)
        else:
            variances.append(NOISE**2)
    return _covariance(problem, J, variances, J[-p:].T @ J[-p:] / EVIDENCE)


def _covariance(
    problem: SceneProblem,
    J: Jacobian,
    variances: Sequence[float | np.ndarray],
    inner: np.ndarray,
) -> np.ndarray | None:
    """Return the covariance of theta, (p, p), for variances of each observation's noise.

    They are of pixels, or of the residuals of points. `inner` is what J^T r of all else varies by.
    """
    first = 0
    for one, count, variance in zip(
        problem.observers, problem.residual_counts(), variances, strict=True
    ):
        own = J[first : first + count]
        first += count
        if isinstance(one, PictureObserver):
            inner = inner + variance * _pixel_information(one, own)
        else:
            weights = np.broadcast_to(variance, len(own))[own.rows, None]
            inner = inner + own.values.T @ (weights * own.values)
    R = triangle(J)
    if not np.abs(np.diag(R)).min() > 0.0:
        return None
    half = np.linalg.solve(R.T, inner)
    return np.linalg.solve(R, np.linalg.solve(R, np.linalg.solve(R.T, half.T)).T)


def _pixel_information(observer: PictureObserver, J: Jacobian) -> np.ndarray:
    """Return (A^T J)^T (A^T J), (p, p), of the residuals A d of pictures, J (n, p)."""
    n_frames, total = len(observer.times), np.zeros((J.shape[1], J.shape[1]))
    count = len(J) // n_frames
    # The A of a single frame, since its mean is over that frame alone
    first = observer.between(np.arange(n_frames) == 0)
    for k in range(n_frames):
        of_frame = J[k * count : (k + 1) * count]
        stored = np.zeros(count)
        stored[of_frame.rows] = 1.0
        is_seen = first.residuals_vjp(stored)[:, 0] > 0.0  # by residuals that are stored
        near = first.residuals_near(is_seen.reshape(1, *observer.size), stored.dtype)
        columns = (near.vjp((of_frame @ axis)[near.rows]) for axis in np.eye(J.shape[1]))
        pulled = np.stack([adj[is_seen, :3].ravel() for adj in columns])
        total += pulled @ pulled.T
    return total / n_frames
