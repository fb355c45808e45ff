"""Positions of all nodes of a body at times: .npz with `times` and `x`."""

from dataclasses import dataclass
from zipfile import BadZipFile

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.declared import States
from studies.scene.tables import unknown


@dataclass(frozen=True, eq=False)
class StateData:
    """Positions (n_times, n_nodes, 3) [m] at times (n_times,) [s], from small to large."""

    times: np.ndarray
    values: np.ndarray


def read_states(states: States, key: str = "states") -> StateData:
    """Read positions of nodes; messages call the table by `key`, "observations.NAME"."""
    assert states.file is not None
    arrays = _loaded(states.file, f"{key}.file")
    for name in ("times", "x"):
        if name not in arrays:
            raise StudyError(f"`{key}.file`: {unknown('array', name, arrays)}")
    return _checked(arrays["times"], arrays["x"], key)


def _loaded(path: str, key: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; nothing in it is run."""
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise StudyError(
                f"`{key}`: {path} is one array. Save `times` and `x` together, with numpy.savez."
            )
        with file:
            return dict(file)
    except (OSError, BadZipFile, EOFError) as error:
        raise StudyError(f"`{key}`: {path} cannot be read: {error}.") from error
    except ValueError as error:
        if isinstance(error, StudyError):
            raise
        raise StudyError(
            f"`{key}`: {path} must be .npz with arrays of numbers: {error}."
        ) from error


def _checked(times: np.ndarray, x: np.ndarray, key: str) -> StateData:
    """Return the two arrays in float64, if they fit."""
    for name, array in (("times", times), ("x", x)):
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise StudyError(f"`{key}.file`: `{name}` must hold finite numbers.")
    if times.ndim != 1 or not len(times) or (np.diff(times) <= 0.0).any():
        raise StudyError(f"`{key}.file`: `times` must be (n,) and grow, got shape {times.shape}.")
    if x.ndim != 3 or x.shape[0] != len(times) or x.shape[2] != 3:
        raise StudyError(
            f"`{key}.file`: `x` must have shape ({len(times)}, n_nodes, 3), one row for each of "
            f"`times`, got {x.shape}."
        )
    return StateData(times.astype(np.float64), x.astype(np.float64))
