"""The videos of a data set and what is guessed from them, read with plain h5py."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from adjsim import checks
from studies.runs.errors import StudyError


@dataclass(frozen=True, eq=False)
class Videos:
    """Videos of one part of a data set.

    Attributes
    ----------
    images : numpy.ndarray
        (n, n_frames, 4, height, width) uint8, RGBA.
    values : numpy.ndarray
        What is guessed, in its own unit, positive, (n, n_targets).
    names : tuple of str
    units : tuple of str
    scenes : numpy.ndarray
        Their numbers, (n,).
    """

    images: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    scenes: np.ndarray

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: Any) -> "Videos":
        """Return some of the videos."""
        images, values = self.images[rows], self.values[rows]
        return Videos(images, values, self.names, self.units, self.scenes[rows])


def read_videos(path: Path, which: str | None, every: int) -> Videos:
    """Return the videos of the train or test set of a data set, from its first film.

    Parameters
    ----------
    path : pathlib.Path
        The folder that `adjsim dataset` made.
    which : str, optional
        "train" or "test"; None: both.
    every : int
        Every so many frames one is read; the last is among them.

    Raises
    ------
    StudyError
        If the folder holds no whole data set, or one that draws no positive numbers.
    """
    index = read_index(path)
    checks.whole("every", every, 1)
    images, values, scenes, names, units = [], [], [], (), ()
    for entry in index["shards"]:
        with h5py.File(path / entry["file"]) as shard:
            is_own = _array(shard, "problem")[:] == b""
            if which is not None:
                is_own &= _array(shard, "split")[:] == which.encode()
            good = np.flatnonzero(is_own)
            scenes.append(_array(shard, "scene")[:][good])
            films = _array(shard, "images")
            frames = films[next(iter(films))]
            images += [as_shown(frames[row], every) for row in good]
            drawn = {} if "parameters" not in shard else _array(shard, "parameters")
            columns = {
                name: data for name, data in drawn.items() if data.ndim == 1 and data[:].min() > 0
            }
            names = tuple(columns)
            if not names:
                raise StudyError(
                    f"{path} draws no positive number, so that there is none to guess."
                )
            values.append(np.stack([data[:][good] for data in columns.values()], axis=1))
            units = tuple(str(data.attrs["units"]) for data in columns.values())
    if not images:
        raise StudyError(
            f"{path} has no scene in its {which or 'whole'} set. Make more with `--count`."
        )
    return Videos(np.stack(images), np.concatenate(values), names, units, np.concatenate(scenes))


def as_shown(video: np.ndarray, every: int) -> np.ndarray:
    """Return every so many frames one, channels first: (n, height, width, 4) to (m, 4, ...)."""
    return np.moveaxis(video[(len(video) - 1) % every :: every], -1, 1)


def read_index(path: Path) -> dict[str, Any]:
    """Return the index of a whole data set."""
    try:
        index = json.loads((path / "index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{path} holds no data set with an index. Make one: `adjsim dataset rigid-contact "
            f"--out {path}`."
        ) from error
    there = sum(shard["count"] for shard in index["shards"])
    if there < index["count"]:
        raise StudyError(
            f"{path} has {there} of {index['count']} scenes. Go on with it: `adjsim dataset "
            f"{index['scene']} --out {path} --resume`."
        )
    return index


def _array(shard: h5py.File, name: str) -> Any:
    return shard[name]
