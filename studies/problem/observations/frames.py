"""When the frames of a file are, and which of them are compared."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from studies.runs.errors import MissingTimesError, StudyError
from studies.scene.declared import Cloud, Depth, Points
from studies.scene.series import read_series


def declared_times(
    spec: Cloud | Depth, times: np.ndarray | None, count: int, key: str
) -> np.ndarray:
    """Return the times of all frames, (count,) [s]: the file's, else by `fps` or `times`.

    Raises
    ------
    MissingTimesError
        No times are known of several frames.
    StudyError
        There are no frames, times twice, or those of another number of frames.
    """
    if not count:
        raise StudyError(f"`{key}.file`: {spec.file} has no frames.")
    declared = [name for name in ("fps", "times") if getattr(spec, name) is not None]
    if len(declared) > (times is None):
        source = "`fps` says them" if times is None else f"{spec.file} has times"
        raise StudyError(f"`{key}.{declared[-1]}` must be left out: {source}.")
    if times is not None:
        return times
    if not declared and count > 1:
        raise MissingTimesError(
            f"`{key}` must have `fps`, or `times` as a CSV file with a column `time`, for the "
            f"{count} frames in {spec.file}, got neither."
        )
    if spec.times is None:
        return np.arange(count) / (spec.fps or 1.0)
    times, _ = read_series(f"{key}.times", spec.times, range(64))
    if len(times) != count:
        raise StudyError(
            f"`{key}.times` must have a row for each of the {count} frames in {spec.file}, got "
            f"{len(times)}."
        )
    return times


def chosen_frames(
    spec: Points | Cloud | Depth, times: np.ndarray, key: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of the frames that `frames` chooses [s], and their numbers, (n,) each.

    The first one that is chosen is time 0.

    Raises
    ------
    StudyError
        There are fewer frames in the file.
    """
    numbers = np.arange(len(times))
    if spec.frames is None:
        return times, numbers
    if spec.frames[1] > len(times):
        raise StudyError(
            f"`{key}.frames` must lie within the {len(times)} frames of {spec.file}, got "
            f"{list(spec.frames)}."
        )
    numbers = numbers[slice(*spec.frames)]
    return times[numbers] - times[numbers[0]], numbers


def check_lengths(recorded: Mapping[str, tuple[float, np.ndarray]]) -> None:
    """Raise if recordings that begin at one time, by key, differ in length by more than a frame.

    Each has its start [s] and times after it, (n_frames,) [s].
    """
    moving = [(key, *each) for key, each in recorded.items() if len(each[1]) > 1]
    for (key, start, times), (other_key, other_start, other) in pairwise(moving):
        frames = [float(np.median(np.diff(each))) for each in (times, other)]
        lengths = [times[-1] + frames[0], other[-1] + frames[1]]
        if start == other_start and abs(lengths[0] - lengths[1]) > 1.01 * max(frames):
            raise StudyError(
                f"`{key}` and `{other_key}` must show the same time: {len(times)} frames at "
                f"{1.0 / frames[0]:g} per second are {lengths[0]:.3g} s, {len(other)} at "
                f"{1.0 / frames[1]:g} are {lengths[1]:.3g} s. Cut one with `frames`, check `fps`, "
                "or give each its `start`."
            )
