"""Instances of a study of rigid bodies: scenes like those of tables 1 and 2.

Scene k is instance k of the study, as the study itself draws and films it. A network that learns
from these videos has seen what the instances of a table are drawn from, though none of them: its
seed is another.
"""

from functools import cache
from typing import Any

import numpy as np

from adjsim import checks
from studies import config, rigid
from studies.datasets import rigid_scenes
from studies.datasets.scene import Field, Scene
from studies.errors import StudyError
from studies.motion import Motion
from studies.registry import RunOptions
from studies.timeline import frame_steps


STUDIES = ("rigid-mass", "rigid-contact")


def study_values(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the study that is filmed."""
    return _resolved(settings["study"], tuple(settings["settings"]))


@cache
def _resolved(study: str, overrides: tuple[str, ...]) -> dict[str, Any]:
    checks.known_key("study in `study`", study, STUDIES)
    try:
        return config.resolve(study, overrides).values
    except StudyError as error:
        raise StudyError(f"`settings`: {error}") from error


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    values = study_values(settings)
    rigid.check_settings(values)
    time = values["time"]
    frame_steps(time)
    if time["steps"] % time["frames"]:
        raise StudyError(
            f"`time.steps` of the study must be a multiple of `time.frames` = {time['frames']}, "
            f"got {time['steps']}: frames of a data set are evenly spaced."
        )


def seen(settings: dict[str, Any]) -> dict[str, Any]:
    """Return time, image and camera of the study; its steps are as they are."""
    values = study_values(settings)
    time = values["time"]
    steps = time["steps"] // time["frames"]
    own = {"frames": time["frames"], "fps": 1.0 / (steps * time["dt"])}
    return {**values, "time": {**own, "steps": steps, "most_steps": steps, "tolerance": 1.0}}


def fields(settings: dict[str, Any]) -> dict[str, Field]:
    """Return what is kept of a scene, by name."""
    kept = {f"parameters/{name}" for name in _drawn(study_values(settings))}
    return {
        name: field
        for name, field in rigid_scenes.FIELDS.items()
        if name in kept or not name.startswith("parameters/")
    }


def _drawn(values: dict[str, Any]) -> tuple[str, ...]:
    """Return what the study draws: without a floor there is no contact."""
    return tuple(rigid.PATHS) if values["floor"]["exists"] else ("mass",)


def draw_scene(settings: dict[str, Any], options: RunOptions, number: int) -> Scene:
    """Return instance `number` of the study."""
    values = study_values(settings)
    rng = np.random.default_rng([options.seed, number])
    name, mesh, motion, hidden, _ = rigid.draw_thrown(values, options, number, rng)

    def of_study(steps: int) -> Motion:
        """Return the motion with the study's own step, as a table simulates it."""
        assert steps * values["time"]["frames"] == values["time"]["steps"]
        return motion

    return Scene(
        of_study,
        rigid.body_filming(values, mesh, options.device),
        {
            "shape": np.array(name),
            **{f"parameters/{key}": np.array(hidden[key]) for key in _drawn(values)},
            **rigid_scenes.push_values(values, motion),
            **rigid_scenes.initial_values(motion),
        },
        rigid_scenes.frame_states,
    )
