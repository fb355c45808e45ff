r"""How well images determine their parameters: Gauss-Newton spectrum and intervals.

Residuals are linear in the images, r = A d with d = image - target, and the noise of d is
taken as independent and equal in every pixel and channel. Then to first order

    theta_hat - theta = -(J^T J)^-1 J^T A noise
    cov theta = s^2 H^-1 (A^T J)^T (A^T J) H^-1,   H = J^T J,   s^2 = d @ d / (N - n)

which is s^2 / N H^-1 for `Mse`. Intervals are Student's at 95 %, of theta first; of a
natural value p by the delta method, in log p where the transform keeps p positive. Intervals with
model error are those of `studies.answer.intervals`.

The spectrum is that of J itself, its singular values: those of H would hide all below the
root of the rounding error. A direction with a singular value at rounding leaves no trace. Of very
many parameters only the leading ones are computed, in the range of J under random directions: there
are no intervals then, and what the images determine worst stays unknown, unless a study knows it.

Sources: Seber & Wild, Nonlinear Regression, Wiley 1989, sec. 2.1 and 5.1; Halko, Martinsson &
Tropp, SIAM Review 2011, algorithms 4.3 and 5.1.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from adjoint.render.losses import residuals_vjp
from studies.answer.intervals import (
    LEVEL,
    Intervals,
    intervals,
    natural_interval,
    no_intervals,
    row_clusters,
    triangle,
)
from studies.image_problem import ImageProblem
from studies.optimizers.problem import NOT_FINITE


LARGEST = 256  # parameters; beyond, a Jacobian by tangents costs too much
LEADING, SPARE = 12, 6  # singular values of more parameters, and directions drawn beyond them
# Ratio of singular values at which a direction counts as invisible; in single precision, of
# whose rounding a rollout gathers more than this, ROUNDINGS of it.
SINGULAR, ROUNDINGS = 1e-11, 100.0
SHOWN, LEAST_SHOWN = 8, 0.05  # components told of the worst and the best direction


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Intervals and what they rest on; `reason` says why there are none.

    Attributes
    ----------
    interval : tuple of numpy.ndarray
        Lower and upper ends of the natural values by pixel noise, `(n,)` each; NaN if there are
        none.
    theta_interval : tuple of numpy.ndarray
        The same in theta.
    noise : float
        Estimated standard deviation of a pixel [-].
    singular_values, directions : numpy.ndarray
        Of J in theta: values descending, `(n,)`, and a unit direction in each row, `(n, n)`; of
        more than `LARGEST` parameters the leading ones only, unless a study knows all values.
    intervals : Intervals
        The same and those with model error.
    """

    interval: tuple[np.ndarray, np.ndarray]
    theta_interval: tuple[np.ndarray, np.ndarray]
    noise: float
    singular_values: np.ndarray
    directions: np.ndarray
    reason: str = ""
    intervals: Intervals = field(default_factory=lambda: no_intervals(0, "not computed"))

    def to_dict(self, labels: tuple[str, ...]) -> dict[str, Any]:
        """Return the spectrum and the noise as plain numbers, ready for JSON."""
        values = self.singular_values
        n = self.directions.shape[1]
        is_whole = 0 < n == len(self.directions)
        is_known = 0 < n == len(values) and values[-1] > 0.0
        return {
            "level": LEVEL,
            "reason": self.reason,
            "sources": self.intervals.to_dict()["sources"],
            "noise": self.noise,
            "singular_values": values.tolist(),
            "condition": float(values[0] / values[-1]) if is_known else None,
            "worst_direction": _told(self.directions[-1], labels) if is_whole else {},
            "best_direction": _told(self.directions[0], labels) if values.size else {},
        }


def _told(direction: np.ndarray, labels: tuple[str, ...]) -> dict[str, float]:
    """Return the largest components of a direction by name."""
    order = np.argsort(-np.abs(direction), kind="stable")[:SHOWN]
    sign = np.sign(direction[order[0]])
    told = {labels[i]: float(sign * direction[i]) for i in order}
    return {label: weight for label, weight in told.items() if abs(weight) >= LEAST_SHOWN}


def uncertainty(
    problem: ImageProblem, theta: np.ndarray, *, noise: float | None = None
) -> Uncertainty:
    """Return 95 % intervals at an optimum, from tangent rollouts.

    Parameters
    ----------
    problem : ImageProblem
    theta : numpy.ndarray
        The optimum, `(n,)`.
    noise : float, optional
        Standard deviation of a pixel [-]; by default estimated from the residuals.
    """
    n = len(theta)
    images, targets = problem.images(theta), problem.targets
    d = (images[..., : targets.shape[-1]] - targets).ravel().astype(np.float64)
    sigma = float(np.sqrt(d @ d / max(d.size - n, 1))) if noise is None else noise
    try:
        if n > LARGEST:
            none = _none(n, sigma, f"more than {LARGEST} parameters")
            values, directions = leading(problem, theta)
            return replace(none, singular_values=values, directions=directions)
        r, jacobian = problem.residuals_and_jacobian(theta)
    except (ValueError, *NOT_FINITE) as error:
        return _none(n, sigma, str(error))
    if not np.isfinite(jacobian).all():
        return _none(n, sigma, "the derivatives of the images are not finite")
    values, directions = spectrum(jacobian)
    least = max(SINGULAR, ROUNDINGS * float(np.finfo(problem.dtype).eps))
    if not values[-1] > least * values[0]:
        none = _none(n, sigma, "a direction of theta leaves no trace in the images")
        return replace(none, singular_values=values, directions=directions)
    if d.size <= n:
        none = _none(n, sigma, "the video has no more values than there are parameters")
        return replace(none, singular_values=values, directions=directions)
    pulled = [residuals_vjp(problem.loss, images, targets, column) for column in jacobian.T]
    AtJ = np.stack([p[..., : targets.shape[-1]].ravel() for p in pulled], axis=1)
    weighted = AtJ @ (directions.T / values**2)
    covariance = sigma**2 * directions.T @ (weighted.T @ weighted) @ directions
    t = float(stdtrit(d.size - n, 0.5 + LEVEL / 2.0))
    spread = t * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    frames, aligned = row_clusters(len(r), len(images))
    return Uncertainty(
        natural_interval(problem.parameters, theta, covariance, t),
        (theta - spread, theta + spread),
        sigma,
        values,
        directions,
        intervals=intervals(
            problem.parameters,
            theta,
            r,
            jacobian,
            frames=frames,
            aligned=aligned,
            pixel_covariance=covariance,
        ),
    )


def spectrum(jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of J, descending, and their directions in rows."""
    _, values, directions = np.linalg.svd(triangle(jacobian))
    return values, directions


def leading(problem: ImageProblem, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest singular values of J, descending, and their directions in rows.

    With random directions W: Y = J (J^T (J W)), Q an orthonormal basis of Y, and the singular
    values of Q^T J. They are never above those of J. It takes tangent and reverse sweeps, a few
    for each value, and no more however many parameters there are.
    """
    count = min(LEADING + SPARE, len(theta))
    drawn = np.random.default_rng(0).standard_normal((count, len(theta)))

    def push(rows: np.ndarray) -> np.ndarray:
        pushed = np.stack([problem.residuals_jvp(theta, row) for row in rows], axis=1)
        return np.linalg.qr(pushed)[0]

    def pull(basis: np.ndarray) -> np.ndarray:
        return np.stack([problem.residuals_vjp(theta, column) for column in basis.T])

    again = np.linalg.qr(pull(push(drawn)).T)[0].T  # one power iteration sharpens the range
    _, values, directions = np.linalg.svd(pull(push(again)), full_matrices=False)
    return values[:LEADING], directions[:LEADING]


def _none(n: int, sigma: float, reason: str) -> Uncertainty:
    nan = np.full(n, np.nan)
    none = no_intervals(n, reason)
    return Uncertainty((nan, nan), (nan, nan), sigma, np.zeros(0), np.zeros((0, 0)), reason, none)
