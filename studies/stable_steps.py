"""Whether the steps of a study look too long, before anything runs."""

from adjsim.model import Model
from studies.motion import DT, Motion
from studies.registry import Job
from studies.video_problem import VideoProblem


FAR = 1.5  # times the estimate, which is on the safe side; no study goes beyond 1.01


def advice_on_steps(job: Job) -> str | None:
    """Return a warning if the search would start with steps far above the stable ones."""
    problem = getattr(job, "problem", None)
    if not isinstance(problem, VideoProblem):
        return None
    return advice_on_motion(problem.motion_at(problem.parameters.start))


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
