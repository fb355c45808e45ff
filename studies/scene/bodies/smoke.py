"""Smoke: pictures as the start of a periodic grid. Alone in a scene, and drawn by its density.

The values "B.density" (n_rows, n_columns) [-] and "B.velocity" (n_rows, n_columns, 2)
[cells per step] are arrays; a wind "B.wind" (2,) and waves "B.waves" (n_waves, 2) add to the
velocity.

Tests: `tests/studies/scene/bodies/test_smoke.py`.
"""

from pathlib import Path

import numpy as np

from adjsim.reduced.smoke import Smoke as SmokeSystem, SmokeState
from render.textured_files import read_texture
from studies.runs.errors import StudyError
from studies.scene.declared import Smoke
from studies.scene.maps import ParameterMap, Scaled, Value
from studies.scene.mesh_source import tried
from studies.scene.waves import Waves


FASTEST = 5.0  # cells per step, by default


def make_smoke(
    name: str, body: Smoke
) -> tuple[SmokeSystem, SmokeState, dict[str, Value], list[ParameterMap]]:
    """Return the system, its state, its values and maps."""
    key = f"bodies.{name}"
    picture = tried(f"{key}.density", lambda: read_texture(body.density))
    density = np.asarray(picture.texels).mean(axis=2)
    velocity = np.zeros((*density.shape, 2))
    if body.velocity is not None:
        velocity = _velocity(f"{key}.velocity", Path(body.velocity), velocity.shape)
    system = tried(f"{key}.density", lambda: SmokeSystem(density.shape))
    values = {
        f"{name}.density": Value(density, "-", "linear", (0.0, 1.0)),
        f"{name}.velocity": Value(velocity, "cells/step", "linear", (-FASTEST, FASTEST)),
    }
    maps: list[ParameterMap] = [
        Scaled(f"{name}.{which}", {f"state.{which}": 1.0}) for which in ("density", "velocity")
    ]
    if body.waves:
        flow = Waves(f"{name}.wind", f"{name}.waves", density.shape, body.waves)
        starts = {flow.wind: np.zeros(2), flow.waves: np.zeros((len(flow.numbers), 2))}
        for path, start in starts.items():
            values[path] = Value(start, "cells/step", "linear", (-FASTEST, FASTEST))
        maps.append(flow)
    return system, SmokeState(velocity, density), values, maps


def _velocity(key: str, path: Path, shape: tuple[int, ...]) -> np.ndarray:
    if not path.is_file():
        raise StudyError(f"`{key}`: there is no file {path}.")
    velocity = tried(key, lambda: np.load(path, allow_pickle=False))
    if not isinstance(velocity, np.ndarray) or velocity.shape != shape:
        got = getattr(velocity, "shape", "an archive")
        raise StudyError(
            f"`{key}`: {path} must have the shape (rows, columns, 2) = {shape} of the picture, got "
            f"{got}."
        )
    return velocity.astype(np.float64)
