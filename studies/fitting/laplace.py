r"""Laplace's intervals by pixel noise, beside those of Gauss-Newton.

Noise in the residuals moves the answer by the inverse of half the Hessian of the loss r @ r. Gauss
and Newton leave out how the residuals bend:

    H = J^T J + sum_i r_i d^2 r_i,   cov theta = H^-1 (J^T J) C (J^T J) H^-1

with C the covariance that Gauss-Newton's intervals by pixel noise have. Where the two kinds of
intervals agree, second derivatives do not matter; where they differ, the wider one is safer.

Source: Efron & Hinkley, Biometrika 65 (1978), observed against expected information.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import stdtrit

from studies.answer.intervals import LEVEL, natural_interval
from studies.answer.scales import theta_scale
from studies.answer.solution import Solution
from studies.fitting.spread import pixel_covariance
from studies.runs.errors import StudyError


Ends = dict[str, tuple[np.ndarray, np.ndarray]]


def laplace_intervals(solved: Solution) -> Ends:
    """Return 95 % intervals by pixel noise and the Hessian, lower and upper end by free path.

    Raises
    ------
    StudyError
        If the answer has no intervals, or the loss is no minimum there.
    """
    if solved.intervals.reason:
        raise StudyError(f"There are no intervals: {solved.intervals.reason}.")
    problem, theta = solved.problem, solved.result.theta
    parameters = problem.parameters
    scale = theta_scale(parameters, theta)
    r, J = problem.residuals_and_jacobian(theta)
    pixel = pixel_covariance(problem, theta, r, J)
    if pixel is None:
        raise StudyError("There are no intervals: a direction leaves no trace in what is seen.")
    try:
        factor = cho_factor(0.5 * problem.hessian(theta, scale))
    except np.linalg.LinAlgError:
        raise StudyError(
            "There are no Laplace intervals: the loss falls to both sides along some direction, so "
            "that the answer is no minimum. Let the search go on, or use those of Gauss-Newton."
        ) from None
    units = np.outer(scale, scale)
    bend = cho_solve(factor, (J.T @ J) * units)  # 1 where the residuals do not bend
    covariance = (bend @ (pixel / units) @ bend.T) * units
    quantile = float(stdtrit(len(r) - len(theta), 0.5 + LEVEL / 2.0))
    ends = natural_interval(parameters, theta, covariance, quantile)
    pairs = zip(*(parameters.parts(end) for end in ends), strict=True)
    return {free.path: (low, high) for (free, low), (_, high) in pairs}
