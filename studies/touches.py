r"""How far an optimum is from the next touch that moves to another step.

A point touches a plane at the first step whose state has c = h + r - n.p > 0. As theta moves,
a touch jumps from one step to the next where some c crosses 0, and the rollout has a kink
there, or with contact damping a jump. To first order the nearest such theta is

    min over steps and points of |c| / |dc/dtheta|

away, which is found from one tangent rollout per component of theta.
"""

from dataclasses import dataclass

import numpy as np

from studies.filming import Subject
from studies.video_problem import VideoProblem


@dataclass(frozen=True)
class Touch:
    """The touch that is nearest to moving: its step, its time [s], its distance in theta."""

    step: int
    time: float
    point: int
    distance: float


def nearest_touch(
    problem: VideoProblem,
    theta: np.ndarray,
    points: Subject,
    plane: tuple[np.ndarray, float],
) -> Touch | None:
    """Return the touch nearest to moving to another step; None if nothing comes near.

    Parameters
    ----------
    problem : VideoProblem
    theta : numpy.ndarray
        (n,).
    points : Subject
        The points that may touch.
    plane : tuple
        Its unit normal n, (3,), and h + r [m], where the points touch.
    """
    normal, height = plane
    motion = problem.motion_at(theta)
    motion = motion.at(np.arange(motion.n_steps + 1))
    squares, depth = 0.0, np.zeros(0)
    for direction in np.eye(len(theta)):
        tangents = problem.parameters.tangents(theta, direction)
        run, tan_run = motion.jvp(tangents)
        depth = height - points.vertices(motion, run) @ normal
        squares = squares + (points.vertices_jvp(motion, run, tan_run, tangents) @ normal) ** 2
    slope = np.sqrt(squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(slope > 0.0, np.abs(depth) / slope, np.inf)
    # The state after the last step acts on nothing, and the first one does not move.
    away[-1] = np.inf
    step, point = np.unravel_index(np.argmin(away), away.shape)
    distance = float(away[step, point])
    if not np.isfinite(distance):
        return None
    return Touch(int(step), float(step * motion.dt), int(point), distance)


def told(touch: Touch | None) -> list[str]:
    """Return the distance in a sentence."""
    if touch is None:
        return ["Nothing comes near a touch."]
    return [
        f"Nearest event: the touch of point {touch.point} at step {touch.step} "
        f"(t = {touch.time:.4g} s) moves to another step if theta moves by {touch.distance:.1e}."
    ]
