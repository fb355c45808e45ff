r"""How far an optimum is from the next touch that moves to another step.

A node touches an obstacle at the first step whose state has a penetration c > 0. As theta
moves, a touch jumps from one step to the next where some c crosses 0, and the loss has a kink
there, or with contact damping a jump. To first order the nearest such theta is

    min over steps and contacts of |c| / |dc/dtheta|

away, with central differences of c along every theta_i, or for a long theta along random
directions, of which |dc/dtheta| is estimated. Obstacles of every shape count, moving ones too.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adjsim.contact_margins import ContactMargins, contact_margins
from adjsim.model import Model
from adjsim.rollout import rollout
from studies.motion import Motion
from studies.video_problem import VideoProblem


PROBE = 1e-6  # step of the differences in theta
MOST_DIRECTIONS = 16


@dataclass(frozen=True)
class Touch:
    """The touch that is nearest to moving to another step.

    Attributes
    ----------
    force : str
        Name of the contact.
    node, step : int
        Which node, or vertex of the force's `body`, and in which state.
    time : float
        Of that state [s].
    depth : float
        |c| there [m].
    distance : float
        How far theta may move; inf if no node's depth moves with it.
    """

    force: str
    node: int
    step: int
    time: float
    depth: float
    distance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the touch as plain values, ready for JSON."""
        return {**asdict(self), "distance": self.distance if np.isfinite(self.distance) else None}


def nearest_touch(problem: VideoProblem, theta: np.ndarray) -> Touch | None:
    """Return the touch nearest to moving to another step; None without contact.

    Parameters
    ----------
    problem : VideoProblem
    theta : numpy.ndarray
        (n,).
    """
    exact = problem.with_dtype("float64")
    depths, squares = margins(exact.motion_at(theta)), {}
    directions = _directions(len(theta)) if depths else np.zeros((0, len(theta)))
    for direction in PROBE * directions:
        ahead = margins(exact.motion_at(theta + direction))
        behind = margins(exact.motion_at(theta - direction))
        for name in depths:
            slope = (ahead[name].touch - behind[name].touch) / (2.0 * PROBE)
            squares[name] = squares.get(name, 0.0) + slope**2 * len(theta) / len(directions)
    touches = (
        _nearest(name, depths[name], np.sqrt(squares[name]), problem.motion.dt) for name in depths
    )
    return min(touches, key=lambda touch: touch.distance, default=None)


def told(touch: Touch | None) -> list[str]:
    """Return the distance in a sentence."""
    if touch is None or not np.isfinite(touch.distance):
        return ["Nothing comes near a touch."]
    return [
        f"Nearest event: the touch of point {touch.node} by `{touch.force}` at step {touch.step} "
        f"(t = {touch.time:.4g} s) moves to another step if theta moves by {touch.distance:.1e}."
    ]


def _directions(n: int) -> np.ndarray:
    """Return orthonormal directions, (min(n, MOST_DIRECTIONS), n): every axis where n is small."""
    if n <= MOST_DIRECTIONS:
        return np.eye(n)
    rng = np.random.default_rng(0)
    return np.linalg.qr(rng.standard_normal((n, MOST_DIRECTIONS)))[0].T


def margins(motion: Motion) -> dict[str, ContactMargins]:
    """Return the margins of every contact, in the states that a force was computed for."""
    if not isinstance(motion.system, Model):
        return {}
    n = motion.n_steps
    run = rollout(motion.system, motion.state, motion.dt, n, frames=range(n), device=motion.device)
    return contact_margins(motion.system, run)


def _nearest(name: str, margins: ContactMargins, slope: np.ndarray, dt: float) -> Touch:
    depth = np.abs(margins.touch)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(slope > 0.0, depth / slope, np.inf)
    at, node, step = margins.least(away)
    return Touch(name, node, step, step * dt, float(depth[at]), float(away[at]))
