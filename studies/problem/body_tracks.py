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
from typing import NamedTuple

import numpy as np
import scipy.sparse

from render.posed_camera import PosedCamera
from studies.problem.films import FilmObserver, PictureObserver
from studies.problem.first_frames import first_of_films, moves_first_frame
from studies.problem.observations.outlines import (
    are_alike,
    bodies_in,
    drawn_as_filmed,
    outline,
)
from studies.problem.observers import Moved, Observer, surfaces
from studies.problem.parameters import Parameters
from studies.problem.points import PointObserver, to_pixels
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.scene.filming import Carried, Still


LEAST_SEEN = 0.5  # part of the frames in which a body must be seen whole
LEAST_AREA = 0.3  # part of its area in the median frame with which it counts as seen
SIZE_RATIO = (
    3.0  # times the area that is drawn at first: a larger or smaller mask is something else
)
ERROR_KNOWN, ERROR_UNKNOWN = (
    0.03,
    0.1,
)  # error of a middle over the root of its area, without an offset and with one
ERROR = 0.5  # and at least so many pixels
WIDTH = 0.25  # of the bounds, or of theta: standard deviation about the start


def tracked_problem(problem: SceneProblem) -> SceneProblem | None:
    """Return the problem whose films are the places of their bodies; None where none is seen.

    A film of one body alone is tracked, others are left out. What is free is drawn to its start
    weakly, since no middle shows how far away a body is.
    """
    films = {one.name for one in problem.observers if isinstance(one, FilmObserver)}
    if (
        problem.is_still
        or not films
        or any(
            isinstance(one, PictureObserver) and one.name not in films for one in problem.observers
        )
    ):
        return None
    is_known, begun = not moves_first_frame(problem), _begun(problem)
    followed = [
        _followed(problem, one, begun[one.name], is_known=is_known)
        if isinstance(one, FilmObserver)
        else one
        for one in problem.observers
    ]
    observers: list[Observer] = [one for one in followed if one is not None]
    if films.isdisjoint(one.name for one in observers):
        return None
    return on_one_timeline(replace(problem, parameters=_drawn_to_start(problem)), observers)


class _Begun(NamedTuple):
    """The first frame of a film as the start of the search has it."""

    drawing: np.ndarray  # (H, W, 4)
    vertices: Moved  # by name, (n, 3), from the point that the camera turns about [m]
    camera: PosedCamera


def _begun(problem: SceneProblem) -> dict[str, _Begun]:
    """Return the first frame of every film by name."""
    first = first_of_films(problem)
    moved, samplings, values = first.run_at(problem.parameters.start)
    begun = {}
    for one, at in zip(first.observers, samplings, strict=True):
        assert isinstance(one, FilmObserver)
        drawing = one.as_images(one.predict(moved, at, values))[0]
        vertices = {name: at.at(rows)[0] - one.center for name, rows in surfaces(moved).items()}
        begun[one.name] = _Begun(drawing, vertices, one.camera_at(values))
    return begun


def _followed(
    problem: SceneProblem, one: FilmObserver, begun: _Begun, *, is_known: bool
) -> PointObserver | None:
    """Return the middle of the only body of a film as a tracked point; None if it is not seen."""
    subjects = problem.built.subjects
    bodies = [name for name in one.scene.objects if not isinstance(subjects[name], Still | Carried)]
    if len(bodies) != 1 or one.camera is None:
        return None
    (body,) = bodies
    plate = np.broadcast_to(one.rasterizer.background, one.frames.shape[1:])
    outlines = [outline(bodies_in(frame, plate)) for frame in one.frames]
    areas = np.array([0.0 if own is None else own.area for own in outlines])
    usual = float(np.median(areas))
    least = LEAST_AREA * usual
    middles = np.array(
        [
            (np.nan, np.nan) if own is None or own.touches_edge or own.area < least else own.middle
            for own in outlines
        ]
    )
    ahead = begun.vertices[body]
    pixels = to_pixels(begun.camera, ahead, one.size)
    faces = np.asarray(one.scene.objects[body].faces)
    a, b = (pixels[faces[:, i]] - pixels[faces[:, 0]] for i in (1, 2))
    area = 0.5 * np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    drawn_area = 0.5 * float(area.sum())  # front and back
    is_tracked = np.isfinite(middles[:, 0])
    if is_tracked.mean() < LEAST_SEEN or not 1.0 / SIZE_RATIO < usual / drawn_area < SIZE_RATIO:
        return None
    is_offset = False
    if is_tracked[0] and (first := outlines[0]) is not None:
        mask, off = drawn_as_filmed(begun.drawing, plate, first)
        shown = area * _lies_in(mask, pixels[faces].mean(axis=1))
        is_whole = are_alike(0.5 * float(shown.sum()), drawn_area)
        # a part that some frames show and others do not, as of a box that turns, is not followed
        is_part = off is not None and are_alike(first.area, usual) and bool(shown.any())
        area = shown if is_part and not is_whole else area
        is_offset = is_known and off is not None and (is_whole or is_part)
    weights = np.bincount(faces.ravel(), np.repeat(area, 3), len(ahead)) / (3.0 * area.sum())
    error = ERROR_KNOWN if is_offset else ERROR_UNKNOWN
    point = PointObserver(
        one.name,
        weight=one.weight,
        times=one.times,
        start=one.start,
        index=one.index,
        places=middles[:, None],
        error=max(ERROR, error * float(np.sqrt(drawn_area))),
        matrix=scipy.sparse.csr_array(weights[None]),
        object=body,
        camera=one.camera,
        camera_path=one.camera_path,
        center=one.center,
        size=one.size,
    )
    if is_offset:
        middle = to_pixels(begun.camera, (weights @ ahead)[None], one.size)[0]
        point = replace(point, places=point.places + (middle - middles[0]))
    return point


def _lies_in(mask: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Return which points (column, row), (n, 2), are in a mask, (n,) bool."""
    columns, rows = np.rint(pixels).astype(int).T
    is_inside = (columns >= 0) & (columns < mask.shape[1]) & (rows >= 0) & (rows < mask.shape[0])
    return is_inside & mask[np.where(is_inside, rows, 0), np.where(is_inside, columns, 0)]


def relative_errors(tracks: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return the error that the tracks leave each component of theta, over that of its prior, (p,).

    Middles that are followed less well than their error says, as where a shadow counts as a part of
    the body, say less.
    """
    r, J = tracks.residuals_and_jacobian(theta)
    error = np.sqrt(np.diag(np.linalg.inv(J.T @ J))) * max(1.0, float(np.linalg.norm(r)))
    return error / tracks.parameters.prior_error


def _drawn_to_start(problem: SceneProblem) -> Parameters:
    """Return the parameters with a weak prior about their start where they have none."""
    parameters = problem.parameters
    free = []
    for one, theta in parameters.parts(parameters.start):
        low, high = one.transform.box(*(np.broadcast_to(end, theta.shape) for end in one.bounds))
        width = np.where(np.isfinite(high - low), high - low, 1.0 / WIDTH)
        free.append(replace(one, prior=one.prior or (theta, WIDTH * width)))
    return Parameters(tuple(free), parameters.ties, parameters.wholes)
