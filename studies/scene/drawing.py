"""Random instances of a scene: numbers that are drawn, and hooks of bundled modules.

Instance k of seed s draws from `np.random.default_rng([s, k])`: first the numbers of `truth`, then
those of `free`, in the order of the file, then seeds of noise, then the hook.
"""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.checking import check_scene
from studies.scene.declared import Drawn, SceneFile
from studies.scene.files import BUNDLED
from studies.scene.tables import unknown


Hook = Callable[[SceneFile, np.random.Generator, int], SceneFile]


def instance_of(file: SceneFile, seed: int, instance: int = 0) -> SceneFile:
    """Return an instance of a scene file: pure data, which a run of its own can be given."""
    rng = np.random.default_rng([seed, instance])
    truth = {path: numbers(value, rng) for path, value in file.truth.items()}
    free = {path: replace(row, start=numbers(row.start, rng)) for path, row in file.free.items()}
    observations = {
        name: _seeded(observation, rng) for name, observation in file.observations.items()
    }
    scene = replace(file, truth=truth, free=free, observations=observations, instances=1, draw=None)
    is_footage = file.observations and not file.is_simulated and file.purpose == "identify"
    if file.draw is not None and not is_footage:  # what was filmed is not drawn at random
        draw = hook(file.draw)
        try:
            scene = replace(draw(scene, rng, instance), instances=1, draw=None)
        except (LookupError, AttributeError, AssertionError) as error:
            raise StudyError(
                f"`draw` = {file.draw!r} is for other scenes: this one has not what it fills in "
                f"({type(error).__name__} {error}). Leave it out, or begin with a bundled scene "
                "that has it."
            ) from error
    check_scene(scene)
    return scene


def hook(name: str) -> Hook:
    """Return the function `draw(file, rng, instance)` of a bundled module."""
    known = sorted(
        path.stem for path in BUNDLED.glob("*.py") if "def draw(" in path.read_text("utf-8")
    )
    if name not in known:
        raise StudyError(f"`draw`: {unknown('bundled module', name, known)}")
    return importlib.import_module(f"studies.bundled.{name}").draw


def numbers(value: Any, rng: np.random.Generator) -> Any:
    """Return a value with numbers where it is drawn."""
    if isinstance(value, tuple):
        return tuple(numbers(entry, rng) for entry in value)
    if not isinstance(value, Drawn):
        return value
    if value.between is not None:
        sample = rng.uniform(*value.between, size=value.shape)
    else:
        sample = value.mean + (value.normal or 0.0) * rng.standard_normal(value.shape)
    return _plain(np.asarray(sample).tolist())


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _seeded(observation: Any, rng: np.random.Generator) -> Any:
    simulate = observation.simulate
    if simulate is None or not simulate.noise or simulate.seed is not None:
        return observation
    return replace(observation, simulate=replace(simulate, seed=int(rng.integers(2**31))))
