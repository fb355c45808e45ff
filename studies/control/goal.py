r"""How near a motion ends to its goal.

    cover      intersection over union of what the last picture and the target's show of the bodies
    distance   between their centre of mass at the end and that of the goal [m]
    gain       by how much that is less than where they begin [m]

The cover is of alphas, sum min(a, b) / sum max(a, b). Those of a target that was simulated are
known. In a picture from a file a pixel shows a body, or does not: it does where it differs from the
background by more than half of what most such pixels differ by; then pixels of the motion count
where a body covers half of them or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from adjsim.model import Model
from studies.problem.making import PreparedProblem
from studies.problem.observers import Observer
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.runs.errors import StudyError


CENTER = "center"  # of mass, as an observation that is only measured, or told in place of pictures
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Target:
    """What a motion shall end at; what is not known of it is None.

    The silhouette is that of the picture that is compared last: alphas, or bool if from a file.
    """

    silhouette: np.ndarray | None  # (height, width)
    center: np.ndarray | None  # of mass of the bodies, (3,) [m]
    begin: np.ndarray | None  # where that begins
    size: float  # longest edge of the box around the bodies [m]

    def measure(self, problem: SceneProblem, rows: np.ndarray) -> dict[str, float]:
        """Return cover [-], distance and gain [m], as far as they are known, of predictions."""
        film, center = _pictured(problem.observers), _centered(problem.observers)
        measures: dict[str, float] = {}
        for observer, predicted in problem.by_observer(rows):
            if film is not None and observer is film and self.silhouette is not None:
                alpha = film.as_images(predicted)[-1, ..., 3]
                if self.silhouette.dtype == bool:
                    alpha = alpha > HALF
                both = np.minimum(alpha, self.silhouette).sum()
                measures["cover"] = float(both / np.maximum(alpha, self.silhouette).sum())
            if observer is center and self.center is not None and self.begin is not None:
                measures["distance"] = float(np.linalg.norm(predicted[-1, :3] - self.center))
                begun = float(np.linalg.norm(self.begin - self.center))
                measures["gain"] = begun - measures["distance"]
        return measures


def make_target(prepared: PreparedProblem, supervision: str) -> tuple[SceneProblem, Target]:
    """Return the problem that a search under this supervision is told, and what it is measured by.

    What the search is not told has the weight 0 and is measured all the same.
    """
    problem, at_goal = prepared.everything, _seen_at_the_goal(prepared)
    film, center = _pictured(problem.observers), _centered(problem.observers)
    observers = list(problem.observers)
    if center is None and CENTER in at_goal and (center_of_mass := _center_of(problem)) is not None:
        center = center_of_mass.simulated(at_goal[CENTER])
        observers.append(center)
    if supervision == "states" and center is None:
        raise StudyError(
            '`goal.supervision` = "states" needs a goal whose centre of mass is known: simulate '
            "the target with `truth`, or give it as [observations.NAME] with `center = true`."
        )
    silhouette = None
    if film is not None:
        goal_rows = at_goal.get(film.name)
        silhouette = (
            film.silhouette() if goal_rows is None else film.as_images(goal_rows)[-1, ..., 3]
        )
    x = problem.built.state.x if isinstance(problem.built.system, Model) else np.zeros((0, 3))
    target = Target(
        silhouette,
        None if center is None else center.places[-1, 0],
        None if center is None else (center.matrix @ x)[0],
        float(np.ptp(x, axis=0).max()) if len(x) else 0.0,
    )
    compared = [center] if supervision == "states" else problem.observers
    weighted = [
        observer if observer in compared else replace(observer, weight=0.0)
        for observer in observers
    ]
    return on_one_timeline(problem, weighted), target


def _seen_at_the_goal(prepared: PreparedProblem) -> dict[str, np.ndarray]:
    """Return what a simulated goal shows, in rows by observation and `CENTER`; {} of no such."""
    if prepared.hidden is None or prepared.true_values is None:
        return {}
    observers = [*prepared.hidden.observers]
    if (center := _center_of(prepared.hidden)) is not None:
        observers.append(center)
    whole = on_one_timeline(prepared.hidden, observers)
    rows = whole.predictions({**prepared.everything.fixed, **prepared.true_values})
    return {observer.name: predicted for observer, predicted in zip(observers, rows, strict=True)}


def _pictured(observers: Sequence[Observer]) -> Observer | None:
    """Return the film whose last picture is measured: the one that ends last."""
    films = [observer for observer in observers if observer.IS_PICTURE]
    return max(films, key=lambda film: film.start + film.times[-1], default=None)


def _centered(observers: Sequence[Observer]) -> PointObserver | None:
    points = (observer for observer in observers if isinstance(observer, PointObserver))
    return next((observer for observer in points if observer.is_center), None)


def _center_of(problem: SceneProblem) -> PointObserver | None:
    """Return the centre of mass of all nodes, at the end, its place still 0; None without nodes."""
    system = problem.built.system
    if not isinstance(system, Model) or not system.n_nodes:
        return None
    mass = np.asarray(system.mass, np.float64)
    weights = scipy.sparse.csr_array((mass / mass.sum())[None])
    end = max(observer.start + observer.times[-1] for observer in problem.observers)
    nothing = np.zeros((1, 1, 3))
    return PointObserver(
        CENTER, 1.0, np.array([end]), 0.0, np.zeros(1, int), 1.0, nothing, weights, "",
        is_center=True,
    )  # fmt: skip
