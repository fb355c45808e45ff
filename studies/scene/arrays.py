"""Arrays of .npz files."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.tables import unknown


MOST_BYTES = 2_000_000_000  # of an .npz file, unpacked


def read_node_arrays(key: str, file: str) -> tuple[np.ndarray, np.ndarray]:
    """Return `times` (n,) [s] and positions `x` of nodes, (n, n_nodes, 3) [m], of an .npz file.

    Raise a StudyError if the file cannot be read, or its arrays are others.
    """
    arrays = load_arrays(file, key)
    for name in ("times", "x"):
        if name not in arrays:
            raise StudyError(f"`{key}`: {unknown('array', name, arrays)}")
    x = arrays["x"]
    if x.ndim != 3 or x.shape[2] != 3:
        raise StudyError(f"`{key}`: `x` must have shape (n_times, n_nodes, 3), got {x.shape}.")
    if x.dtype.kind not in "iuf" or not np.isfinite(x).all():
        raise StudyError(f"`{key}`: `x` must hold finite numbers.")
    return checked_times(arrays["times"], len(x), key, file), x.astype(np.float64)


def checked_times(times: np.ndarray, n: int, key: str, path: str | Path) -> np.ndarray:
    """Return the array `times` of an .npz file of n frames, (n,) [s], in float64.

    Raise a StudyError if there are no frames, or it holds something else than n finite numbers that
    increase.
    """
    has_numbers = n and times.shape == (n,) and times.dtype.kind in "iuf"
    if not has_numbers or not np.isfinite(times).all() or (times[1:] <= times[:-1]).any():
        raise StudyError(
            f"`{key}`: `times` in {path} must be finite numbers that increase, one for each of "
            f"its {n or 'missing'} frames, got the shape {times.shape} and the type {times.dtype}."
        )
    return times.astype(np.float64)


def load_arrays(path: str | Path, key: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; nothing in it is run.

    Raise a StudyError if the file cannot be read, is too large, or holds objects.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise StudyError(
                f"`{key}`: {path} is one array. Save `times` and `x` together, with numpy.savez."
            )
        with file:
            unpacked = sum(member.file_size for member in file.zip.infolist())
            if unpacked > MOST_BYTES:
                raise StudyError(
                    f"`{key}`: the arrays in {path} have {unpacked / 1e9:.1f} GB; at most "
                    f"{MOST_BYTES / 1e9:.0f} GB are read. Leave out frames, or save float32."
                )
            return dict(file)
    except (OSError, BadZipFile, EOFError) as error:
        raise StudyError(f"`{key}`: {path} cannot be read: {error}.") from error
    except ValueError as error:
        if isinstance(error, StudyError):
            raise
        raise StudyError(
            f"`{key}`: {path} must be .npz with arrays of numbers: {error}."
        ) from error
