"""Observations that are simulated: when their frames are, and blanks of what will be seen."""

import numpy as np

from studies.problem.observations.films import FilmData, declared_backdrop
from studies.problem.observations.points import PointData
from studies.runs.errors import StudyError
from studies.scene import declared


Observed = declared.Film | declared.Points | declared.States


def frame_times(one: Observed, world: declared.World, key: str) -> np.ndarray:
    """Return when the frames of a simulated observation are, the last at the end, (n_frames,) [s].

    `key` is "observations.NAME".
    """
    assert one.simulate is not None
    duration = one.simulate.duration
    if duration is None:
        duration = world.duration
    if duration is None:
        raise StudyError(
            f"`{key}.simulate.duration` is missing: give it, or `world.duration`, in seconds."
        )
    if duration == 0.0 and one.simulate.frames > 1:
        raise StudyError(
            f"`{key}.simulate.frames` must be 1 where the duration is 0, got {one.simulate.frames}."
        )
    n = one.simulate.frames
    return np.arange(1, n + 1) * (duration / n)


def blank_film(film: declared.Film, times: np.ndarray, key: str) -> FilmData:
    """Return a film of the right size whose frames are still black, over its background."""
    assert film.simulate is not None
    size = film.simulate.height, film.simulate.width
    frames = np.zeros((len(times), *size, 3))
    return FilmData(frames, None, times, None, 1, size, declared_backdrop(film, size, key))


def blank_points(points: declared.Points, times: np.ndarray, key: str) -> PointData:
    """Return the points of `at` at places that are still 0."""
    if not points.at:
        raise StudyError(
            f"`{key}.at` must say where the points are that are simulated: NAME = [x, y, z]."
        )
    columns = 3 if points.camera is None else 2
    return PointData(tuple(points.at), times, np.zeros((len(times), len(points.at), columns)))
