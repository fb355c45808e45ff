"""Intervals of an answer, from the Jacobian or from secants of its residuals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from studies.answer.intervals import Intervals, intervals, spectrum, triangle
from studies.optimizers.jacobian import Jacobian
from studies.problem.clusters import clusters_of_rows
from studies.problem.frame_squares import residual_squares
from studies.problem.losses import EVIDENCE
from studies.problem.observers import SEEN
from studies.problem.problem import SceneProblem


def spread_of(
    problem: SceneProblem,
    theta: np.ndarray,
    r: np.ndarray,
    J: Jacobian,
    *,
    stages: Sequence[np.ndarray],
    floor: float,
) -> Intervals:
    """Return intervals and spectrum of theta, (p,), with the residuals r, (n,), and J, (n, p).

    `stages` and `floor` are those of `studies.answer.intervals.intervals`.
    """
    without_spectrum = intervals(
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
    values, directions = spectrum(J)
    noise = pixel_noise(problem, theta)
    return replace(without_spectrum, noise=noise, singular_values=values, directions=directions)


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
    rows, parts = problem.by_observer(problem.predicted_rows(theta)), problem.by_residuals(r[:-p])
    variances = [
        observer.noise(seen, residuals, p)
        for (observer, seen), (_, residuals) in zip(rows, parts, strict=True)
    ]
    return _covariance(problem, J, variances, np.zeros((p, p)))


def expected_covariance(problem: SceneProblem, theta: np.ndarray, J: Jacobian) -> np.ndarray | None:
    """Return the covariance of theta by noise of the size that is expected, (p, p).

    That is `NOISE` in every pixel, and of points their declared `error`. A prior is off by its
    error. J (n, p) is the Jacobian of the residuals at theta, the priors last; None where it is
    singular.
    """
    p = J.shape[1]
    rows = problem.by_observer(problem.predicted_rows(theta))
    variances = [observer.expected_noise(predicted) for observer, predicted in rows]
    return _covariance(problem, J, variances, J[-p:].T @ J[-p:] / EVIDENCE)


def _covariance(
    problem: SceneProblem, J: Jacobian, variances: Sequence[float | np.ndarray], inner: np.ndarray
) -> np.ndarray | None:
    """Return the covariance of theta, (p, p), for variances of each observation's noise.

    They are of pixels, or of the residuals of points. `inner` is what J^T r of all else varies by.
    """
    first = 0
    for observer, count, variance in zip(
        problem.observers, problem.residual_counts(), variances, strict=True
    ):
        inner = inner + observer.information(J[first : first + count], variance)
        first += count
    R = triangle(J)
    if not np.abs(np.diag(R)).min() > 0.0:
        return None
    half = np.linalg.solve(R.T, inner)
    return np.linalg.solve(R, np.linalg.solve(R, np.linalg.solve(R.T, half.T)).T)
