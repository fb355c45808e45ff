"""Backgrounds, cameras and looks as the first frames show them, where bodies are at their start."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import scipy.ndimage

from studies.optimizers.minimize import minimize
from studies.optimizers.problem import NOT_FINITE, Stall
from studies.problem.films import VISIBLE, FilmObserver, films_of
from studies.problem.observations.films import FilmData, plate_of, silhouettes
from studies.problem.observers import surfaces
from studies.problem.parameters import FreeParameter, Parameters
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.runs.errors import StudyError
from studies.scene import declared


MARGIN = 0.03  # of the height: how far a body may be from where an unfitted camera sees it
BORDER = 0.04  # of the shorter side: where no body is
ELSEWHERE = 0.02  # of the size of the bodies
MOVED = 0.05  # of the bounds, or of theta: a change that shows what moves
FIRST = declared.Search(method="gauss-newton", max_evaluations=400, tolerance=1e-4)


def fit_first_frames(
    problem: SceneProblem,
    films: Mapping[str, FilmData],
    file: declared.SceneFile,
    looks: tuple[FreeParameter, ...],
    *,
    say: Callable[[str], None] = lambda _text: None,
    again: bool = False,
) -> SceneProblem:
    """Return the problem with backgrounds, cameras and looks as the first frames show them.

    Two rounds: the background is found around where the cameras see the bodies, then cameras and
    looks are fitted; then both again. In pictures of things at rest, cameras and looks that are the
    question are left to the search. Where shapes or cameras far off are asked for, the bodies may
    be anywhere at first: the background is that of the border. It is found once more with `again`,
    after the search. The same holds for equilibria, where the resting place is unknown until the
    search ends: looks are fitted after it too. Cameras stay as declared where a free number moves
    bodies in the first frame. `say` gets a line about what is fitted.
    """
    if not films_of(problem.observers):
        return problem
    is_loose, declared_free = moves_first_frame(problem), problem.parameters.free
    has_shape = any(parameter.is_shape for parameter in declared_free)
    views = [
        parameter
        for parameter in declared_free
        if parameter.is_view
        and not (problem.is_still and (parameter.is_answer or has_shape))
        and not (is_loose and parameter.is_camera)
    ]
    free = () if problem.settles and not again else (*views, *looks)
    are_cameras = [parameter.is_camera for parameter in free]
    what = ["cameras"] * any(are_cameras) + ["looks"] * (not all(are_cameras))
    if what:
        say(f"fitting {' and '.join(what)} to the first frame")
    margins: tuple[float | None, ...] = (MARGIN, MARGIN / 3.0)
    if not again and _is_anywhere(problem):
        margins = (None,)
    for margin in margins:
        problem = _with_backgrounds(problem, films, file, margin)
        if not free:
            return problem
        nuisances = Parameters(free, wholes=problem.parameters.wholes)
        nuisances = nuisances.held_at_values(problem.fixed)
        first = replace(first_of_films(problem), parameters=nuisances)
        fitted = minimize(first, nuisances.start, FIRST, stall=Stall(1e-3, 3))
        values = nuisances.scene_values(fitted.theta)
        problem = replace(
            problem,
            fixed={**problem.fixed, **values},
            parameters=problem.parameters.held_at_values(values),
        )
    return _with_backgrounds(problem, films, file, margins[-1])


def _is_anywhere(problem: SceneProblem) -> bool:
    """Whether bodies may be seen elsewhere in the first frame than where the start has them."""
    are_anywhere = (
        free.is_shape or (free.is_answer and free.is_camera and np.isfinite(free.bounds).all())
        for free in problem.parameters.free
    )
    return problem.settles or (problem.is_still and any(are_anywhere))


def first_frames_differ(problem: SceneProblem, theta: np.ndarray, other: np.ndarray) -> bool:
    """Whether bodies begin elsewhere for another theta, as where a camera is the question."""
    if not films_of(problem.observers):
        return False
    asks_for_camera = any(free.is_answer and free.is_camera for free in problem.parameters.free)
    return (problem.is_still and asks_for_camera) or _bodies_differ(problem, theta, other)


def moves_first_frame(problem: SceneProblem) -> bool:
    """Return whether a free number moves bodies in the first frame of a film.

    Then the frame does not show the camera: a body that is seen elsewhere is moved by either.
    """
    free = problem.parameters.free
    if not films_of(problem.observers) or all(parameter.is_view for parameter in free):
        return False
    (low, high), start = problem.bounds, problem.parameters.start
    width = np.where(np.isfinite(high - low), high - low, 1.0)
    # an error of a shape moves them by less than a guessed camera is off
    width = width * problem.parameters.each([not parameter.is_shape_error for parameter in free])
    nudged = start + np.where(start + MOVED * width < high, MOVED, -MOVED) * width
    try:
        return problem.settles or _bodies_differ(problem, start, nudged)
    except NOT_FINITE:  # what moves them so far
        return True


def _bodies_differ(problem: SceneProblem, theta: np.ndarray, other: np.ndarray) -> bool:
    """Return whether bodies are elsewhere in the first frames of films for another theta."""
    first = first_of_films(problem)
    places = []
    for at in (theta, other):
        moved, samplings, _ = first.with_steps_for(at).run_at(at)
        places += [
            np.concatenate([sampling.at(rows)[0] for rows in surfaces(moved).values()])
            for sampling in samplings
        ]
    half = len(places) // 2
    size = max(float(np.ptp(place, axis=0).max()) for place in places)
    pairs = zip(places[:half], places[half:], strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs) > ELSEWHERE * size


def first_of_films(problem: SceneProblem) -> SceneProblem:
    """Return the problem of the first frame of every film."""
    films = films_of(problem.observers)
    firsts = [film.between(np.arange(len(film.times)) == 0) for film in films]
    return on_one_timeline(problem, firsts)


def _with_backgrounds(
    problem: SceneProblem,
    films: Mapping[str, FilmData],
    file: declared.SceneFile,
    margin: float | None,
) -> SceneProblem:
    """Return the problem with backgrounds found outside the bodies, or at borders."""
    first = first_of_films(problem)
    moved, samplings, values = first.run_at(problem.parameters.start)
    by_name = {observer.name: observer for observer in problem.observers}
    new: dict[str, FilmObserver] = {}
    pairs = zip(films_of(problem.observers), films_of(first.observers), samplings, strict=True)
    for whole, film, at in pairs:
        spec, data = file.films[film.name], films[film.name]
        if spec.simulate is not None:  # its background is known
            continue
        alpha = film.as_images(film.predict(moved, at, values))[0, ..., 3]
        if alpha.sum() < VISIBLE:
            points = np.concatenate([moved[name][0] for name in spec.bodies or file.bodies])
            raise StudyError(film.unseen(points))
        if margin is None:
            edge = max(int(np.ceil(BORDER * min(film.size))), 2)
            covered = np.zeros(alpha.shape, bool)
            covered[edge:-edge, edge:-edge] = True
        else:
            reach = max(int(np.ceil(margin * film.size[0])), 2)
            covered = scipy.ndimage.binary_dilation(alpha > 0.01, iterations=reach)
        plate, frames = plate_of(data, covered), data.frames
        if spec.compare == "silhouette":
            frames = np.repeat(silhouettes(data, plate)[..., None], 3, axis=-1)
            plate = np.zeros_like(plate)
        rasterizer = replace(film.rasterizer, background=plate)
        new[film.name] = replace(whole, frames=frames, first=frames[0], rasterizer=rasterizer)
    return replace(
        problem, observers=tuple(new.get(k, observer) for k, observer in by_name.items())
    )
