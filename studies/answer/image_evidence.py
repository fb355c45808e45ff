"""Collect the evidence for the verdict on a fit of images."""

import numpy as np

from studies.answer.evidence import Basin, Evidence
from studies.answer.held_back import explained
from studies.image_problem import ImageProblem
from studies.optimizers.problem import NOT_FINITE
from studies.search.found import Found
from studies.uncertainty import Uncertainty


def image_evidence(
    problem: ImageProblem,
    found: Found,
    spread: Uncertainty,
    images: np.ndarray,
    *,
    loss_at_start: float | None = None,
    truth: np.ndarray | None = None,
) -> Evidence:
    """Return what there is to judge the best of a search by.

    Parameters
    ----------
    problem : ImageProblem
    found : Found
    spread : Uncertainty
        At the best theta.
    images : numpy.ndarray
        At the best theta.
    loss_at_start : float, optional
    truth : numpy.ndarray, optional
        Natural values of a synthetic study, `(p,)`.
    """
    best, targets = found.best, problem.targets
    left = np.square(images[..., : targets.shape[-1]] - targets, dtype=np.float64)
    by_frame, still = left.sum(axis=(1, 2, 3)), problem.still_squares()
    motion = explained(by_frame, still)
    return Evidence(
        problem.parameters,
        best.theta,
        best.status,
        best.loss,
        gradient=_gradient(problem, best.theta) if spread.intervals.reason else None,
        intervals=spread.intervals,
        answers=problem.answers,
        explained=motion,
        unexplained_pictures=unexplained_part(by_frame, targets) if motion is None else None,
        residual_squares=by_frame if motion is not None else None,
        still_squares=still if motion is not None else None,
        basins=[Basin(one.theta, one.loss) for one in found.all if one is not best],
        worst_direction=spread.to_dict(problem.parameters.theta_labels)["worst_direction"],
        loss_at_start=loss_at_start or 0.0,
        truth=truth,
    )


def unexplained_part(by_frame: np.ndarray, targets: np.ndarray) -> float:
    """Return the sum of squares that is left, as a part of the targets' variance."""
    around = np.square(targets - targets.mean(axis=(0, 1, 2)), dtype=np.float64).sum()
    return float(by_frame.sum() / max(around, 1e-300))


def _gradient(problem: ImageProblem, theta: np.ndarray) -> np.ndarray | None:
    try:
        return problem.loss_and_gradient(theta)[1]
    except NOT_FINITE:
        return None
