"""One controlled motion: the search by a picture, and what it is held against.

    picture   the loss of the pictures that are compared with that of the goal
    states    the same search, told in 3-D where the centre of mass shall be at these frames
    random    policies drawn at random, as many as the searches evaluate

All three begin with the same body, have the same budget, and are measured alike: by the distance
of the centre of mass from the goal's at the end [m], and by how well the last picture covers that
of the goal (intersection over union of the alphas).
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim.losses import center_of_mass
from render.losses import Mse, residuals
from studies.control.centers import CenterFilming
from studies.filming import Filming
from studies.fit import Fit
from studies.motion import Motion, pull_frames
from studies.parameters import Parameters, block
from studies.registry import RunOptions
from studies.search.local import make_loss, make_search
from studies.transforms import Identity
from studies.truth import Truth
from studies.video_problem import VideoProblem


BOUND = 1e3  # of a weight: tanh is flat long before
PLAYED = 51  # frames of the video on the way to the picture


class Supervision(enum.StrEnum):
    """What a search is told of its goal."""

    PICTURE = "picture"
    STATES = "states"
    RANDOM = "random"


@dataclass(frozen=True, eq=False)
class Case:
    """One instance of a control study.

    Attributes
    ----------
    fit : Fit
        The search by the picture.
    center : numpy.ndarray
        Centre of mass of the state that the goal's picture was drawn of, (3,) [m].
    drawn : callable
        drawn(rng) is the theta of a policy at random.
    """

    fit: Fit
    center: np.ndarray
    drawn: Callable[[np.random.Generator], np.ndarray]

    def problem(self, supervision: Supervision) -> VideoProblem:
        """Return what a search lowers; policies at random are judged by the picture."""
        picture = self.fit.problem
        if supervision is not Supervision.STATES:
            return picture
        goal = np.broadcast_to(self.center, (len(picture.motion.frames), 1, 1, 3))
        return replace(picture, filming=CenterFilming(), loss=Mse(), targets=goal)

    def measure(self, motion: Motion, run: Any) -> dict[str, float]:
        """Return rise and distance [m], and the cover [-], at the last frame of a trajectory."""
        return measured(self.fit.problem, self.center, motion, run)


def measured(problem: VideoProblem, center: np.ndarray, motion: Motion, run: Any) -> dict[str, Any]:
    """Return rise and distance [m], and the cover [-], at the last frame of a trajectory."""
    last, end = motion.at(motion.frames[-1:]), replace(run, x=run.x[-1:])
    mass = np.asarray(motion.system.parameters()["mass"], np.float64)
    shown, wanted = problem.filming.shoot(last, end)[0, ..., 3], problem.targets[-1, ..., 3]
    begin = np.asarray(motion.state.x, np.float64)[None]
    ended = center_of_mass(end.x, mass)[0]
    return {
        "rise": float((ended - center_of_mass(begin, mass)[0])[1]),
        "distance": float(np.linalg.norm(ended - center)),
        "cover": float(np.minimum(shown, wanted).sum() / np.maximum(shown, wanted).sum()),
    }


def told(found: dict[str, float]) -> list[str]:
    """Say in sentences how near a motion ended."""
    return [
        f"The last picture covers {found['cover']:.3f} of what it and the target cover together "
        "(IoU).",
        f"Its centre of mass ends {found['distance']:.3g} m from that of the target.",
    ]


@dataclass(frozen=True, eq=False)
class Sought:
    """What a search may choose.

    Attributes
    ----------
    parameters : Parameters
    unit : str
        Of all of them.
    drawn : callable
        drawn(rng) is a theta at random.
    hidden : mapping, optional
        Natural values by path that the goal was made with, if it was made with any.
    """

    parameters: Parameters
    unit: str
    drawn: Callable[[np.random.Generator], np.ndarray]
    hidden: Mapping[str, np.ndarray] | None = None


def policy(settings: dict[str, Any], rng: np.random.Generator, motion: Motion, path: str) -> Sought:
    """Return the weights of a policy, by a path such as "gear.actuation".

    `rng` draws those that the search begins with.
    """
    shape = motion.system.parameters()[path].shape
    begin = settings["start"]["size"] * rng.standard_normal(shape)
    free = Parameters([block((path,), Identity(), [begin], {path: (-BOUND, BOUND)})])
    size = settings["random"]["size"]
    return Sought(free, "-", lambda rng: size * rng.standard_normal(free.size))


def make_case(  # noqa: PLR0913 -- what differs between the bodies
    settings: dict[str, Any],
    options: RunOptions,
    sought: Sought,
    *,
    motion: Motion,
    filming: Filming,
    goal: Any,
    title: str,
    what: str,
    instance: int = 0,
) -> Case:
    """Return the case of a body that is to get to a goal.

    Parameters
    ----------
    settings, options
        Of the study.
    sought : Sought
    motion : Motion
    filming : Filming
    goal : Trajectory
        Where the body shall be, at the frames of the motion.
    title, what : str
        As `Fit` takes them.
    instance : int, optional
    """
    targets = filming.shoot(motion, goal)
    mass = np.asarray(motion.system.parameters()["mass"], np.float64)
    center = center_of_mass(goal.x, mass)[-1]
    loss, hidden = make_loss(settings["loss"]), sought.hidden
    problem = VideoProblem(motion, filming, sought.parameters, loss, targets)

    def findings(theta: np.ndarray) -> list[str]:
        there = problem.motion_at(theta)
        return told(measured(problem, center, there, there.run()))

    fit = Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title=title,
        units=dict.fromkeys(sought.parameters.paths, sought.unit),
        what=what,
        truth=None if hidden is None else Truth(hidden, targets, scales=_norms(hidden)),
        findings=findings,
        instance=instance,
        played=np.unique(np.rint(np.linspace(0, motion.n_steps, PLAYED)).astype(int)),
    )
    return Case(fit, center, sought.drawn)


def _norms(values: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return what errors are relative to: a component of a vector may be 0."""
    return {path: float(np.linalg.norm(value)) for path, value in values.items()}


class Measured:
    """A `studies.optimizers.problem.Problem` whose log tells measures in place of values."""

    def __init__(self, problem: VideoProblem, measure: Callable[[Motion, Any], Any]) -> None:
        self._problem = problem
        self._measure = measure
        self._found: dict[str, float] = {}

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self._problem.bounds

    @property
    def dtype(self) -> str:
        """Kind of number that the loss is worked out in."""
        return self._problem.dtype

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient, and measure the trajectory that they are of."""
        problem, motion = self._problem, self._begun(theta)
        recorded = motion.record()
        self._found = self._measure(motion, recorded.trajectory)
        value, pulled = problem.judged(motion, recorded.trajectory, problem.judge)
        adjoints = pull_frames(recorded, pulled.frames, problem.parameters.targets)
        more, slope = problem.penalty(theta)
        return value + more, problem.gathered(theta, adjoints, pulled) + slope

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return the residuals, and measure the trajectory that they are of."""
        problem, motion = self._problem, self._begun(theta)
        run = motion.run()
        self._found = self._measure(motion, run)
        return residuals(problem.loss, problem.filming.shoot(motion, run), problem.targets)

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and their Jacobian, and measure the trajectory at theta."""
        self.residuals(theta)
        return self._problem.residuals_and_jacobian(theta)

    def values(self, theta: np.ndarray) -> dict[str, float]:
        """Return the measures of what was evaluated last; none where it blew up."""
        del theta
        return self._found

    def _begun(self, theta: np.ndarray) -> Motion:
        self._found = {}
        return self._problem.motion_at(theta)
