"""What is doubtful about films, before anything is made of them."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from studies.problem.observations.films import STILL, FilmData
from studies.runs.errors import StudyError
from studies.scene.declared import Film


VISIBLE = 4  # pixels that must change in one frame, for something to move
REPEATED = 0.25  # part of the frames of a motion that repeat the one before, which is suspicious
SAME = 1.0 / 255.0  # a change that is none


def advice_on_film(data: FilmData, key: str = "film") -> list[str]:
    """Return what is doubtful about a film; raise if it has two frames or more and nothing moves.

    A film with masks, or of silhouettes, is judged by its colours too.
    """
    if len(data.frames) < 2:
        return []
    changes = np.stack([_change(frame, data.frames[0]) for frame in data.frames])
    moving = (changes > STILL).sum(axis=(1, 2))
    if moving.max() < VISIBLE:
        raise StudyError(
            f"`{key}.video`: nothing moves. No more than {moving.max()} pixels of a frame differ "
            f"from the first by more than {255 * STILL:g} of 255 levels. Give a film, or with "
            "`frames` a part of it, in which the bodies move."
        )
    advice = []
    if (changes.max(axis=0) > STILL).mean() > 0.9:
        advice.append(
            f"`{key}.video`: nearly every pixel changes. The camera must stand still, and the "
            "light must not change."
        )
    steps = np.array([np.abs(b - a).max() for a, b in pairwise(data.frames)])
    steps = steps[: np.flatnonzero(steps > SAME).max(initial=0) + 1]
    if len(steps) > 3 and (steps < SAME).mean() > REPEATED:
        n = int((steps < SAME).sum())
        advice.append(
            f"`{key}.video`: {n} of {len(steps) + 1} frames repeat the one before, as where a film "
            f"was converted to another rate. Check `{key}.fps`, now {data.fps:g}."
        )
    return advice


def check_lengths(films: Mapping[str, tuple[Film, FilmData]]) -> None:
    """Raise if films that begin at one time, by key, differ in length by more than a frame."""
    moving = [(key, film, data) for key, (film, data) in films.items() if len(data.frames) > 1]
    for (key, film, data), (other_key, other_film, other) in pairwise(moving):
        assert data.fps is not None
        assert other.fps is not None
        lengths = [len(one.frames) / one.fps for one in (data, other) if one.fps]
        frame = 1.0 / min(data.fps, other.fps)
        if film.start == other_film.start and abs(lengths[0] - lengths[1]) > 1.01 * frame:
            raise StudyError(
                f"`{key}` and `{other_key}` must show the same time: {len(data.frames)} frames at "
                f"{data.fps:g} per second are {lengths[0]:.3g} s, {len(other.frames)} at "
                f"{other.fps:g} are {lengths[1]:.3g} s. Cut one with `frames`, check `fps`, or "
                "give each its `start`."
            )


def _change(frame: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return by how much a frame differs from the first, (H, W), smoothed over 3 x 3 pixels."""
    from scipy.ndimage import uniform_filter

    change = frame - first
    channels = [np.abs(uniform_filter(change[..., c], 3)) for c in range(change.shape[2])]
    return np.max(channels, axis=0)
