r"""Where the bodies of films are in every frame, found without the scene's motion.

What differs from the background in a frame is the body; its middle there, in pixels, is one
tracked point. The scene predicts it as the mean of the body's vertices, each weighed by the area of
its triangles as the camera sees them at the start: of a convex body that is the middle of its
outline. Triangles that a picture hardly shows, such as those of a thin rod, do not count: the start
is drawn, and its body found as in the film. Where no free number moves the first frame, the offset
in that frame is subtracted, if both areas there are alike.

A fit to these points knows no colours, and a body that is far from its place still has a slope.
"""

from dataclasses import replace

import numpy as np

from studies.problem.films import Begun, films_of
from studies.problem.first_frames import first_of_films, moves_first_frame
from studies.problem.observers import surfaces
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem, on_one_timeline


WIDTH = 0.25  # of the bounds, or of theta: standard deviation about the start


def tracked_problem(problem: SceneProblem) -> SceneProblem | None:
    """Return the problem whose films are the places of their bodies; None where none is seen.

    A film of one body alone is tracked (`FilmObserver.track`), others are left out. What is free is
    drawn to its start weakly, since no middle shows how far away a body is.
    """
    films = {film.name for film in films_of(problem.observers)}
    if problem.is_still or not films:
        return None
    is_known, first = not moves_first_frame(problem), first_of_films(problem)
    moved, samplings, values = first.run_at(problem.parameters.start)
    begun = {}  # the first frame of every film by name
    for film, at in zip(films_of(first.observers), samplings, strict=True):
        drawing = film.as_images(film.predict(moved, at, values))[0]
        vertices = {name: at.at(rows)[0] - film.center for name, rows in surfaces(moved).items()}
        begun[film.name] = Begun(drawing, vertices, film.camera_at(values), is_known)
    tracks = [observer.track(problem.built.subjects, begun) for observer in problem.observers]
    observers = [track for track in tracks if track is not None]
    if films.isdisjoint(track.name for track in observers):
        return None
    parameters, free = problem.parameters, []
    for parameter, theta in parameters.parts(parameters.start):
        low, high = parameter.transform.box(
            *(np.broadcast_to(end, theta.shape) for end in parameter.bounds)
        )
        width = np.where(np.isfinite(high - low), high - low, 1.0 / WIDTH)
        free.append(replace(parameter, prior=parameter.prior or (theta, WIDTH * width)))
    drawn_to_start = Parameters(tuple(free), parameters.ties, parameters.wholes)
    return on_one_timeline(replace(problem, parameters=drawn_to_start), observers)


def relative_errors(tracks: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return the error that the tracks leave each component of theta, over that of its prior, (p,).

    Middles that are followed less well than their error says, as where a shadow counts as a part of
    the body, say less.
    """
    r, J = tracks.residuals_and_jacobian(theta)
    error = np.sqrt(np.diag(np.linalg.inv(J.T @ J))) * max(1.0, float(np.linalg.norm(r)))
    return error / tracks.parameters.prior_error
