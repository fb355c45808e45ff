r"""How near a motion ends to its goal.

    cover      intersection over union of what the last picture and the target's show of the bodies
    distance   between their centre of mass at the end and that of the goal [m]
    gain       by how much that is less than where they begin [m]

The cover is of alphas, sum min(a, b) / sum max(a, b). Those of a target that was simulated are
known. In a picture from a file a pixel shows a body, or does not: it does where it differs from the
background by more than half of what most such pixels differ by; then pixels of the motion count
where a body covers half of them or more.

Tests: `tests/studies/control/test_goal.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.model import Model
from studies.errors import StudyError
from studies.problem.films import FilmObserver, PictureObserver
from studies.problem.making import Made
from studies.problem.observers import Observer
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.problem.smoke import WHITE, SmokeObserver


CENTER = "center"  # of mass, as an observation that is only measured, or told in place of pictures
DIFFERS = 0.1  # from the background: a pixel of a target from a file that may show a body
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Target:
    """What a motion shall end at; what is not known of it is None.

    Attributes
    ----------
    silhouette : ndarray, optional
        Alphas of the picture that is compared last, (height, width); bool of one from a file.
    center : ndarray, optional
        Centre of mass of the bodies, (3,) [m].
    begin : ndarray, optional
        The same where they begin.
    size : float
        Longest edge of the box around the bodies [m].
    """

    silhouette: np.ndarray | None
    center: np.ndarray | None
    begin: np.ndarray | None
    size: float

    def measure(self, problem: SceneProblem, rows: np.ndarray) -> dict[str, float]:
        """Return cover [-], distance and gain [m], as far as they are known, of predictions."""
        counts = [one.rows_per_frame() * len(one.times) for one in problem.observers]
        parts = np.split(rows, np.cumsum(counts)[:-1])
        found: dict[str, float] = {}
        for one, part in zip(problem.observers, parts, strict=True):
            if one.name == _pictured(problem.observers) and self.silhouette is not None:
                shown = last_alpha(one, part)
                if self.silhouette.dtype == bool:
                    shown = shown > HALF
                both = np.minimum(shown, self.silhouette).sum()
                found["cover"] = float(both / np.maximum(shown, self.silhouette).sum())
            if one.name == _centered(problem.observers) and self.center is not None:
                assert self.begin is not None
                found["distance"] = float(np.linalg.norm(part[-1, :3] - self.center))
                begun = float(np.linalg.norm(self.begin - self.center))
                found["gain"] = begun - found["distance"]
        return found


def make_target(made: Made, supervision: str) -> tuple[SceneProblem, Target]:
    """Return the problem that a search is told, and what it is measured by.

    Parameters
    ----------
    made : Made
    supervision : str
        "picture", "states" or "random": as `studies.scene.declared.Goal` has them. What it is not
        told has the weight 0 and is measured all the same.

    Raises
    ------
    StudyError
        If states shall be told where the goal's are not known.
    """
    problem = made.everything
    observers = list(problem.observers)
    has_own = _centered(observers) is not None
    if not has_own and (center := _center_of(problem)) is not None:
        observers.append(center)
    silhouette = _drawn_silhouette(observers)
    if made.hidden is not None and made.true_values is not None:
        told_of = [*made.hidden.observers]
        if not has_own and (center := _center_of(made.hidden)) is not None:
            told_of.append(center)
        whole = on_one_timeline(made.hidden, told_of)
        rows = whole.predictions({**problem.fixed, **made.true_values})
        seen = {one.name: own for one, own in zip(told_of, rows, strict=True)}
        if (name := _pictured(observers)) is not None:
            film = next(one for one in observers if one.name == name)
            silhouette = last_alpha(film, seen[name])
        observers = [
            one.showing(seen[CENTER][:, :3])
            if isinstance(one, PointObserver) and one.name == CENTER
            else one
            for one in observers
        ]
    elif not has_own:
        observers = list(problem.observers)
    told = _centered(observers) if supervision == "states" else None
    if supervision == "states" and told is None:
        raise StudyError(
            '`goal.supervision` = "states" needs a goal whose centre of mass is known: simulate '
            "the target with `truth`, or give it as [observations.NAME] with `center = true`."
        )
    weighted = [_weighted(one, told) for one in observers]
    x = problem.built.state.x if isinstance(problem.built.system, Model) else np.zeros((0, 3))
    known = next((one for one in weighted if one.name == _centered(observers)), None)
    is_known = isinstance(known, PointObserver)
    target = Target(
        silhouette,
        known.places[-1, 0] if is_known else None,
        known.matrix @ x if is_known else None,
        float(np.ptp(x, axis=0).max()) if len(x) else 0.0,
    )
    if target.begin is not None:
        target = replace(target, begin=target.begin[0])
    return on_one_timeline(problem, weighted), target


def last_alpha(one: Observer, rows: np.ndarray) -> np.ndarray:
    """Return the alphas of the last picture of a film, (height, width)."""
    assert isinstance(one, PictureObserver)
    return one.as_images(rows)[-1, ..., 3]


def _pictured(observers: Sequence[Observer]) -> str | None:
    """Return the name of the film whose last picture is measured: the one that ends last."""
    films = [one for one in observers if isinstance(one, PictureObserver)]
    return max(films, key=lambda one: one.start + one.times[-1]).name if films else None


def _centered(observers: Sequence[Observer]) -> str | None:
    """Return the name of the observation of a centre of mass."""
    points = [one for one in observers if isinstance(one, PointObserver) and not one.object]
    return next((one.name for one in points if one.matrix.shape[0] == 1), None)


def _center_of(problem: SceneProblem) -> PointObserver | None:
    """Return the centre of mass of all nodes, at the end, its place still 0; None without nodes."""
    system = problem.built.system
    if not isinstance(system, Model) or not system.n_nodes:
        return None
    weights = scipy.sparse.csr_array((system.mass / system.mass.sum())[None])
    end = max(one.start + one.times[-1] for one in problem.observers)
    nothing = np.zeros((1, 1, 3))
    return PointObserver(
        CENTER, 1.0, np.array([end]), 0.0, np.zeros(1, int), nothing, 1.0, weights, ""
    )


def _weighted(one: Observer, told: str | None) -> Observer:
    """Return an observation with the weight 0 unless a search is told it; None: all but CENTER."""
    is_told = one.name == told if told is not None else one.name != CENTER
    return one if is_told else replace(one, weight=0.0)


def _drawn_silhouette(observers: Sequence[Observer]) -> np.ndarray | None:
    """Return where the target from a file shows the bodies, 0 or 1; None without a picture.

    Of smoke it is its density, from 0 to 1.
    """
    film = next((one for one in observers if one.name == _pictured(observers)), None)
    if isinstance(film, SmokeObserver):
        shown = film.frames[-1] - film.background
        return shown.sum(axis=-1) / np.sum(np.asarray(WHITE) - film.background)
    if not isinstance(film, FilmObserver):
        return None
    off = np.abs(film.frames[-1] - np.asarray(film.rasterizer.background)).max(axis=-1)
    differs = off > DIFFERS
    return off > HALF * np.median(off[differs]) if differs.any() else differs


def measures_of(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of what was measured, in the order of this page."""
    return [name for name in ("cover", "distance", "gain") if any(name in one for one in found)]
