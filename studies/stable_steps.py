"""Whether the steps of a study look too long: before anything runs, and where a search ended."""

from typing import Any

import numpy as np

from adjsim.model import Model
from studies.image_problem import ImageProblem
from studies.motion import DT, Motion
from studies.registry import Job
from studies.video_problem import VideoProblem


FAR = 1.5  # times the estimate, which is on the safe side; no study goes beyond 1.01
NEAR = 0.5  # of the estimate at the start, beyond which four times the stiffness is too much
FEW, HALVINGS = 16, 14  # parameters whose bounds are looked at, and of the way to a bound


def advice_on_steps(job: Job) -> str | None:
    """Return a warning if the search starts with steps far above the stable ones, or soon may."""
    problem = getattr(job, "problem", None)
    if not isinstance(problem, VideoProblem):
        return None
    start = problem.parameters.start
    return advice_on_motion(problem.motion_at(start)) or advice_on_bounds(problem)


def advice_on_motion(motion: Motion) -> str | None:
    """Return a warning if the steps of a motion are far above the stable ones; else None."""
    if not isinstance(motion.system, Model):
        return None
    stable = motion.system.stable_dt()
    if motion.dt <= FAR * stable:
        return None
    return (
        f"`{DT}` is too large: a step is {motion.dt:.3g} s, but at the start of the search the "
        f"estimated stable one is {stable:.3g} s, and the rollout will most likely leave the "
        f"finite numbers. Set it below {stable:.3g}, or start with a softer or denser material."
    )


def advice_on_bounds(problem: VideoProblem) -> str | None:
    """Return a warning if the steps hardly carry the start, and bounds let a search go beyond.

    Bounds are mostly far apart, and no search goes there: a step that is far below the stable one
    of the start is none to warn of.
    """
    parameters, dt = problem.parameters, problem.motion.dt
    start = stable_dt(problem, parameters.start)
    if parameters.size > FEW or dt <= NEAR * start:
        return None
    for i in range(parameters.size):
        for end in (parameters.upper[i], parameters.lower[i]):
            far = parameters.start.copy()
            far[i] = end
            if np.isfinite(end) and (allowed := stable_dt(problem, far)) < min(dt, start):
                label, carried = parameters.labels[i], _last_stable(problem, far)
                return (
                    f"`{DT}` leaves the search little room: a step is {dt:.3g} s, at the start the "
                    f"estimated stable one is {start:.3g} s. It carries {label} only to "
                    f"{parameters.natural(carried)[i]:.3g}, and the bounds allow "
                    f"{parameters.natural(far)[i]:.3g}, for which the step has to be below "
                    f"{allowed:.3g}. If the search may go there, set `{DT}` below that, or narrow "
                    "the bounds."
                )
    return None


def _last_stable(problem: VideoProblem, far: np.ndarray) -> np.ndarray:
    """Return the point on the way from the start to `far` up to which the steps are stable."""
    start = problem.parameters.start
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        is_stable = problem.motion.dt <= stable_dt(problem, start + middle * (far - start))
        low, high = (middle, high) if is_stable else (low, middle)
    return start + low * (far - start)


def stable_dt(problem: VideoProblem, theta: np.ndarray) -> float:
    """Return the estimated stable step at theta [s]; inf where there is no estimate."""
    system = problem.motion_at(theta).system
    return system.stable_dt() if isinstance(system, Model) else np.inf


def steps_at(problem: ImageProblem, theta: np.ndarray) -> dict[str, Any] | None:
    """Return the step and the estimated stable one at theta [s]; None where nothing is known."""
    if not isinstance(problem, VideoProblem):
        return None
    stable = stable_dt(problem, theta)
    return {"dt": problem.motion.dt, "stable_dt": stable} if np.isfinite(stable) else None
