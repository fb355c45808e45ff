r"""95 % intervals of parameters fitted to a film: of pixel noise alone, and with model error.

Both start from the residuals r, (n,), and their Jacobian J, (n, p), at the optimum, H = J^T J.

Pixel noise is independent in every pixel, which gives s^2 H^-1 with s^2 = r @ r / (n - p).

Model error (another energy law, a camera that is 1 % off, a texture) lasts for many frames and
covers many pixels. Three estimates of the covariance it causes are combined:

    lasting    H^-1 sum_{s,t} (J_t^T r_s)(J_t^T r_s)^T H^-1    over all pairs of frames s, t
    jackknife  (B-1)/B sum_b d_b d_b^T,  d_b = (H - H_b)^-1 g_b,  g_b = J_b^T r_b
    drift      mean of (theta_k - theta)(theta_k - theta)^T over the stages k of the search

`lasting` is cluster-robust: its terms s = t are the usual estimate with one cluster a frame. The
other terms let the residual of any frame s last through the whole film, with the signs that do
most harm: (sum_t J_t^T r_s)^2 <= n_frames sum_t (J_t^T r_s)^2. Where frames do not correspond row
by row, the terms s = t are multiplied by the number of frames instead.
`jackknife` leaves out one of B blocks of consecutive frames, by one Gauss-Newton step.

The covariance with model error is the smallest matrix that is above `lasting` and `jackknife`, plus
`drift`. Intervals use Student's quantile with B - 1 degrees of freedom. An error that
the parameters absorb leaves no residual and no estimate finds it; `floor` adds a relative standard
deviation for it.

Sources: Cameron & Miller, "A practitioner's guide to cluster-robust inference", J. Human Resources
2015; Efron & Tibshirani, An Introduction to the Bootstrap, 1993, ch. 11.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import stdtrit

from studies.optimizers.jacobian import Jacobian
from studies.problem.parameters import Parameters
from studies.runs.errors import StudyError
from studies.search.coarse import is_log


LEVEL = 0.95
BLOCKS = 8  # of frames for the jackknife: each long enough to be nearly independent
# Part of the information on a direction that one block may hold in the jackknife. A step without
# the block is not small beyond that, and its linear estimate means nothing.
MOST_LEVERAGE = 0.9
WELL_CONDITIONED = 1e-8  # ratio of eigenvalues of H above which it has the digits that are needed
SINGULAR = 1e-11  # ratio of diagonal entries of R at which J counts as singular
# Relative standard deviation of the parameters of a film from outside by errors that they absorb:
# with a camera known to 1 %, and laws of material that differ, a stiffness is off by a percent or
# two though the film is matched. A film that adjsim drew itself has none.
FOOTAGE_FLOOR = 0.015
SHOWN, LEAST_SHOWN = 8, 0.05  # components told of the worst and the best direction


@dataclass(frozen=True, eq=False)
class Intervals:
    """Two intervals for every natural parameter, and the spectrum of the Jacobian.

    `reason` says why there are none. The spectrum is that of J itself: J^T J would hide all below
    the root of the rounding error.
    """

    # Lower and upper ends, (p,) each: pixel noise only, and with model error
    pixel: tuple[np.ndarray, np.ndarray]
    model: tuple[np.ndarray, np.ndarray]
    covariance: np.ndarray  # of theta with model error, (p, p)
    half_width: np.ndarray  # of theta with model error, (p,)
    gradient: np.ndarray  # of r @ r, (p,)
    # The Gauss-Newton step in theta that is left at the optimum, (p,); 0 towards a bound
    remaining: np.ndarray
    # Standard deviation of theta by source: pixel, lasting, jackknife, drift, floor, and what
    # widened it later, such as "trial", "mesh" or "law"
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    reason: str = ""
    quantile: float = np.nan  # half-width with model error over the standard deviation
    noise: float = 0.0  # estimated standard deviation of a pixel [-]
    # Of J in theta: values descending, (p,), and a unit direction in each row, (p, p)
    singular_values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    directions: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def to_dict(self, labels: tuple[str, ...]) -> dict[str, Any]:
        """Return the spectrum and the noise as plain numbers, ready for JSON."""
        values, n = self.singular_values, self.directions.shape[1]
        is_known = 0 < n == len(values) and values[-1] > 0.0
        return {
            "level": LEVEL,
            "reason": self.reason,
            "sources": {k: v.tolist() for k, v in self.parts.items()},
            "noise": self.noise,
            "singular_values": values.tolist(),
            "condition": float(values[0] / values[-1]) if is_known else None,
            "worst_direction": self.worst_direction(labels),
            "best_direction": largest_components(self.directions[0], labels) if values.size else {},
        }

    def worst_direction(self, labels: tuple[str, ...]) -> dict[str, float]:
        """Return the weights of the combination determined worst, by label; {} if it is unknown."""
        is_whole = 0 < self.directions.shape[1] == len(self.directions)
        return largest_components(self.directions[-1], labels) if is_whole else {}


def no_intervals(n: int, reason: str, noise: float = 0.0) -> Intervals:
    """Return intervals of n parameters that could not be computed, with the reason."""
    nan, square = np.full(n, np.nan), np.full((n, n), np.nan)
    return Intervals(
        (nan, nan), (nan, nan), square, nan, nan, nan,
        reason=reason, noise=noise, directions=np.zeros((0, n)),
    )  # fmt: skip


def intervals(  # noqa: PLR0913 -- what an interval may rest on
    parameters: Parameters,
    theta: np.ndarray,
    residuals: np.ndarray,
    jacobian: Jacobian | np.ndarray,
    *,
    frames: np.ndarray,
    aligned: bool = True,
    pixel_covariance: np.ndarray | None = None,
    stages: Sequence[np.ndarray] = (),
    floor: float = 0.0,
) -> Intervals:
    """Return the intervals of a fit whose optimum is theta, `(p,)`.

    `residuals` are r, `(n,)`, with loss = r @ r, `jacobian` dr/dtheta, `(n, p)`, and `frames` the
    frame of each row, -1 for the rows of priors, which count in H only. `aligned` says whether row
    i of one frame is the same pixel as row i of another, `pixel_covariance` is that of theta by
    pixel noise, by default s^2 H^-1. `stages` are optima of earlier windows of the film, and
    `floor` is the relative standard deviation that model error has at least.
    """
    r, J = np.asarray(residuals, np.float64), Jacobian.of(jacobian)
    if not (np.isfinite(r).all() and np.isfinite(J.values).all()):
        raise StudyError(
            "`residuals` and `jacobian` must be finite. Give those of a theta where the rollout "
            "stays finite."
        )
    n, p = J.shape
    if n <= p:
        return no_intervals(p, "the film has no more values than there are parameters")
    R = triangle(J)
    diagonal = np.abs(np.diag(R))
    if not diagonal.min() > SINGULAR * diagonal.max():
        return no_intervals(p, "a direction of theta leaves no trace in the images")
    fit = _Whitened(J, r, frames, R)
    # The square of theta's scale for a relative error: 1 for a logarithm. The components of a
    # vector share its length: an error of a camera turns it.
    squares = parameters.each([np.square(value).sum() for _, value in parameters.parts(theta)])
    squares = np.where(is_log(parameters), 1.0, squares)
    if pixel_covariance is None:
        pixel = float(r @ r) / (n - p) * np.eye(p)
    else:
        pixel = R @ pixel_covariance @ R.T
    sources = {
        "pixel": pixel,
        "lasting": fit.lasting(aligned=aligned),
        "jackknife": fit.jackknife(),
        "drift": fit.drift(theta, stages),
        "floor": floor**2 * ((R * squares) @ R.T),  # of independent relative errors
    }
    residual = upper_bound(upper_bound(sources["pixel"], sources["lasting"]), sources["jackknife"])
    with_model = residual + sources["drift"] + sources["floor"]
    covariance = fit.in_theta(with_model)
    by_source = {name: fit.in_theta(whitened) for name, whitened in sources.items()}
    of_noise = float(stdtrit(n - p, 0.5 + LEVEL / 2.0))
    quantile = float(stdtrit(max(fit.n_blocks - 1, 1), 0.5 + LEVEL / 2.0))
    gradient = fit.J.T @ fit.r
    return Intervals(
        natural_interval(parameters, theta, by_source["pixel"], of_noise),
        natural_interval(parameters, theta, covariance, quantile),
        covariance,
        quantile * _deviation(covariance),
        2.0 * gradient,
        _remaining(parameters, theta, fit.R, gradient),
        {name: _deviation(matrix) for name, matrix in by_source.items()},
        quantile=quantile,
    )


def widened(
    before: Intervals, parameters: Parameters, theta: np.ndarray, more: np.ndarray, *, source: str
) -> Intervals:
    """Return intervals whose model error has one more source, of this covariance of theta, (p, p).

    `source` is its name. Those that could not be computed stay as they are.
    """
    if before.reason:
        return before
    covariance = before.covariance + more
    return replace(
        before,
        model=natural_interval(parameters, theta, covariance, before.quantile),
        covariance=covariance,
        half_width=before.quantile * _deviation(covariance),
        parts={**before.parts, source: _deviation(more)},
    )


class _Whitened:
    """A linear fit in coordinates R theta, in which H is 1 and every covariance is compared."""

    def __init__(self, J: Jacobian, r: np.ndarray, frames: np.ndarray, R: np.ndarray) -> None:
        self.R, self.J, self.r = R, J, r
        rows: slice | np.ndarray = slice(0, np.count_nonzero(frames >= 0))  # a view if possible
        kept = frames[rows]
        if kept.min(initial=0) < 0 or (kept[1:] < kept[:-1]).any():
            rows = np.argsort(frames, kind="stable")
            rows = rows[frames[rows] >= 0]
            kept = frames[rows]
        self.rows_J, self.rows_r = J[rows], r[rows]
        starts = np.flatnonzero(np.append(True, kept[1:] != kept[:-1]))
        self.bounds = np.append(starts, len(kept))
        self.n_frames = len(starts)
        self.n_blocks = min(BLOCKS, self.n_frames)

    def white(self, vectors: np.ndarray) -> np.ndarray:
        """Return R^-T v of vectors in rows, `(m, p)`: a gradient in the new coordinates."""
        return solve_triangular(self.R, vectors.T, trans=1).T

    def in_theta(self, covariance: np.ndarray) -> np.ndarray:
        """Return R^-1 C R^-T."""
        half = solve_triangular(self.R, covariance)
        return solve_triangular(self.R, half.T).T

    def lasting(self, *, aligned: bool) -> np.ndarray:
        """Return the covariance by residuals that last through the film."""
        sizes = np.diff(self.bounds)
        if aligned and (sizes == sizes[0]).all() and self.n_frames > 1:
            frames, pixels = np.divmod(self.rows_J.rows, sizes[0])
            pixels, places = np.unique(pixels, return_inverse=True)  # with a slope in some frame
            by_frame = self.rows_r.reshape(self.n_frames, -1)[:, pixels]
            column, columns = np.zeros_like(by_frame), []
            for values in self.rows_J.values.T:
                column[frames, places] = values
                columns.append((column @ by_frame.T).ravel())
            scores = self.white(np.stack(columns, axis=1))  # of all pairs of frames
            return scores.T @ scores
        scores = self.white(self.scores(self.bounds))
        return self.n_frames * scores.T @ scores

    def scores(self, bounds: np.ndarray) -> np.ndarray:
        """Return J_c^T r_c of clusters of consecutive rows, `(n_clusters, p)`."""
        ends = itertools.pairwise(bounds)
        return np.stack([self.rows_J[a:b].T @ self.rows_r[a:b] for a, b in ends])

    def jackknife(self) -> np.ndarray:
        """Return the covariance by leaving out blocks of consecutive frames."""
        if self.n_blocks < 2:
            return np.zeros_like(self.R)
        B = self.n_blocks
        bounds = self.bounds[np.rint(np.linspace(0, self.n_frames, B + 1)).astype(int)]
        total = np.zeros_like(self.R)
        scores = self.white(self.scores(bounds))
        for g, (a, b) in zip(scores, itertools.pairwise(bounds), strict=True):
            block = self.rows_J[a:b]
            share, axes = np.linalg.eigh(self.white(self.white(block.T @ block).T))
            step = axes @ ((axes.T @ g) / (1.0 - np.clip(share, 0.0, MOST_LEVERAGE)))
            total += np.outer(step, step)
        return (B - 1) / B * total

    def drift(self, theta: np.ndarray, stages: Sequence[np.ndarray]) -> np.ndarray:
        """Return the covariance by the change of the optimum between stages."""
        if not len(stages):
            return np.zeros_like(self.R)
        earlier = np.stack(stages)
        moved = (earlier - theta) @ self.R.T
        return moved.T @ moved / len(moved)


def triangle(J: Jacobian) -> np.ndarray:
    """Return R of J = Q R, `(p, p)`, by Cholesky where J is well-conditioned: that is fast."""
    H = J.T @ J
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    values = np.linalg.eigvalsh(H / np.outer(scale, scale))
    if values[0] > WELL_CONDITIONED * values[-1]:
        return np.linalg.cholesky(H / np.outer(scale, scale)).T * scale
    rows = np.linalg.qr(J.values, mode="r")
    return np.concatenate([rows, np.zeros((len(H) - len(rows), len(H)))])


def upper_bound(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the smallest covariance C with C - A and C - B positive semidefinite, `(p, p)`.

    It is A + the positive part of B - A, in coordinates in which A is 1.
    """
    values, axes = np.linalg.eigh(A)
    root = np.sqrt(np.maximum(values, 1e-14 * max(np.trace(A), np.trace(B), 1e-300)))
    out = axes / root  # columns: to coordinates in which A is 1
    share, turned = np.linalg.eigh(out.T @ B @ out)
    back = (axes * root) @ turned
    return (back * np.maximum(share, 1.0)) @ back.T


def natural_interval(
    parameters: Parameters, theta: np.ndarray, covariance: np.ndarray, quantile: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals of the natural values, `(p,)` each, by the delta method.

    The interval of a value that its transform keeps positive is one of its logarithm.
    """
    value = parameters.natural(theta)
    spread = quantile * np.abs(parameters.natural_rates(theta)) * _deviation(covariance)
    positive = is_log(parameters)
    with np.errstate(over="ignore"):  # not determined at all: from 0 to infinity
        factor = np.exp(np.where(positive, spread / np.where(positive, value, 1.0), 0.0))
    low = np.where(positive, value / factor, value - spread)
    high = np.where(positive, value * factor, value + spread)
    return low, high


def _deviation(covariance: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def _remaining(
    parameters: Parameters, theta: np.ndarray, R: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Return the Gauss-Newton step from theta; a component that leaves the bounds stays."""
    near = 1e-3 * np.minimum(parameters.upper - parameters.lower, 1.0)
    is_out = (gradient > 0.0) & (theta - parameters.lower <= near)
    is_out |= (gradient < 0.0) & (parameters.upper - theta <= near)
    step = np.zeros_like(theta)
    if not is_out.all():
        projected = solve_triangular(R, gradient, trans=1)  # Q^T r with J = Q R
        step[~is_out] = -np.linalg.lstsq(R[:, ~is_out], projected, rcond=None)[0]
    return step


def largest_components(
    direction: np.ndarray, labels: list[str] | tuple[str, ...], most: int = SHOWN
) -> dict[str, float]:
    """Return the largest components of a direction by name, the first one positive."""
    order = np.argsort(-np.abs(direction), kind="stable")[:most]
    sign = np.sign(direction[order[0]])
    weights = {labels[i]: float(sign * direction[i]) for i in order}
    return {label: weight for label, weight in weights.items() if abs(weight) >= LEAST_SHOWN}


def spectrum(jacobian: Jacobian) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of J, descending, and their directions in rows."""
    _, values, directions = np.linalg.svd(triangle(jacobian))
    return values, directions
