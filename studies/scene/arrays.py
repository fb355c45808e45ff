"""Arrays of .npz files."""

from zipfile import BadZipFile

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.tables import unknown


MOST_BYTES = 2_000_000_000  # of an .npz file, unpacked


def read_node_arrays(key: str, file: str) -> tuple[np.ndarray, np.ndarray]:
    """Return `times` (n,) [s] and positions `x` of nodes, (n, n_nodes, 3) [m], of an .npz file."""
    arrays = load_arrays(file, key)
    for name in ("times", "x"):
        if name not in arrays:
            raise StudyError(f"`{key}`: {unknown('array', name, arrays)}")
    times, x = arrays["times"], arrays["x"]
    for name, array in (("times", times), ("x", x)):
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise StudyError(f"`{key}`: `{name}` must hold finite numbers.")
    if times.ndim != 1 or not len(times) or (np.diff(times) <= 0.0).any():
        raise StudyError(f"`{key}`: `times` must be (n,) and grow, got shape {times.shape}.")
    if x.ndim != 3 or x.shape[0] != len(times) or x.shape[2] != 3:
        raise StudyError(
            f"`{key}`: `x` must have shape ({len(times)}, n_nodes, 3), one row for each of "
            f"`times`, got {x.shape}."
        )
    return times.astype(np.float64), x.astype(np.float64)


def load_arrays(path: str, key: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; nothing in it is run."""
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise StudyError(
                f"`{key}`: {path} is one array. Save `times` and `x` together, with numpy.savez."
            )
        with file:
            unpacked = sum(one.file_size for one in file.zip.infolist())
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
