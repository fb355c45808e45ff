"""The time step that a scene names: one of the package, or a class of the user's own."""

import math
from typing import Any

from adjsim.steps import STEPS
from adjsim.system import TimeStep
from studies.runs.errors import StudyError
from studies.scene.declared import World
from studies.scene.own_code import imported


def step_of(world: World) -> TimeStep:
    """Return the step of a world.

    Raise a StudyError if it is no name of a step, and no class of steps that may be imported.
    """
    kind: Any = STEPS.get(world.step) or imported("world.step", world.step)
    if not (isinstance(kind, type) and issubclass(kind, TimeStep)):
        raise StudyError(
            f"`world.step` must be module:Class with a subclass of TimeStep, got {world.step!r}."
        )
    try:
        return kind()
    except TypeError as error:
        raise StudyError(
            f"`world.step`: {world.step} is made without arguments. {error}"
        ) from error


def longest_step(world: World) -> float | None:
    """Return the longest step [s]: infinity is from frame to frame, None what is stable."""
    return math.inf if world.dt is None and step_of(world).IS_STABLE else world.dt
