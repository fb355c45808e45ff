"""Intervals of an answer, from the Jacobian or from secants of its residuals."""

from collections.abc import Sequence

import numpy as np

from studies.answer.intervals import Uncertainty, intervals, spectrum, triangle
from studies.problem.clusters import clusters_of_rows
from studies.problem.films import PictureObserver
from studies.problem.frame_squares import residual_squares
from studies.problem.observers import SEEN
from studies.problem.problem import SceneProblem


def spread_of(
    problem: SceneProblem,
    theta: np.ndarray,
    r: np.ndarray,
    J: np.ndarray,
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
        aligned=not problem.is_at_rest,
        pixel_covariance=pixel_covariance(problem, theta, r, J),
        stages=stages,
        floor=floor,
    )
    return Uncertainty(own, pixel_noise(problem, theta), *spectrum(J))


def pixel_noise(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return the standard deviation of a pixel that theta leaves."""
    return SEEN * float(np.sqrt(residual_squares(problem, theta).mean()))


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
