"""Code of the user's own that a scene file names by its import path, and forces and steps of it.

A scene file is data: what it names is imported only where the environment variable ADJSIM_MODULES
has the name of the module. Of a module that this process has imported already, a class of forces
or of steps needs no permission; a function does, since it is called before anything is known
about it.
"""

import dataclasses
import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from adjsim.forces.element import Force
from studies.runs.errors import StudyError
from studies.scene.bodies.part import Additions, NodePart, linear, positive
from studies.scene.declared import OwnForce, OwnObservation, Scene
from studies.scene.maps import Scaled


ALLOWED = "ADJSIM_MODULES"  # names of modules, with commas


def make_own_forces(forces: Mapping[str, OwnForce], nodes: Sequence[NodePart]) -> Additions:
    """Return all forces of the user's own."""
    out, of_nodes = Additions(), {body.name: body for body in nodes}
    for name, settings in forces.items():
        key, kind = f"forces.{name}", imported(f"forces.{name}.type", settings.type)
        is_class = isinstance(kind, type) and dataclasses.is_dataclass(kind)
        if not (is_class and issubclass(kind, Force)):
            raise StudyError(
                f"`{key}.type` must be module:Class with a subclass of Force that is a dataclass, "
                f"got {settings.type!r}."
            )
        where = _where(key, kind, settings, of_nodes.get(settings.body))
        try:
            force = kind(**{**settings.values, **where})
        except (TypeError, ValueError) as error:
            raise StudyError(
                f"`{key}.values` must be arguments of {settings.type}: {error}"
            ) from error
        out.forces[name] = force
        for parameter in kind.PARAMETERS:
            value = force.parameters().get(parameter.name)
            if value is None:
                continue
            path = f"{key}.{parameter.name}"
            reach = 10.0 * float(np.abs(value).max()) or 1.0
            out.values[path] = (
                positive(value, parameter.unit)
                if parameter.positive
                else linear(value, parameter.unit, reach)
            )
            out.maps.append(Scaled(path, {f"{name}.{parameter.name}": 1.0}))
    return out


def _where(key: str, kind: Any, settings: OwnForce, body: NodePart | None) -> dict[str, Any]:
    """Return the arguments that say on what of a body a force acts."""
    fields, rows = {field.name for field in dataclasses.fields(kind)}, kind.ELEMENTS
    elements = settings.values.get(rows)
    if body is None:
        if "acts_on" not in fields:
            raise StudyError(
                f"`{key}.body` is rigid: {settings.type} needs a field `acts_on` for it."
            )
        chosen = {} if elements is None else {rows: np.asarray(elements, np.int64)}
        return {"acts_on": settings.body, **chosen}
    if rows not in fields:
        raise StudyError(
            f"`{key}.type`: {settings.type} must name the field with its nodes in `ELEMENTS`, or "
            "it would act on all bodies."
        )
    every = np.arange(len(body.points))
    return {rows: body.first + (every if elements is None else np.asarray(elements, np.int64))}


def imported(key: str, path: str, *, is_called: bool = False) -> Any:
    """Return what an import path leads to, "module:name"; None where the module has no such name.

    What is called must be in a module that is allowed by its name.

    Raise a StudyError if the module is not allowed, or cannot be imported.
    """
    module, _, name = path.partition(":")
    allowed = [entry.strip() for entry in os.environ.get(ALLOWED, "").split(",")]
    if not module or module not in (allowed if is_called else [*sys.modules, *allowed]):
        raise StudyError(
            f"`{key}` is {path!r}, but a scene file runs no code that you have not allowed. If you "
            f"trust the module, set the environment variable {ALLOWED}={module}."
        )
    try:
        return getattr(import_module(module), name, None)
    except ImportError as error:
        raise StudyError(
            f"`{key}` is {path!r}, but its module cannot be imported ({error}). Add its folder to "
            "PYTHONPATH."
        ) from error


def sources(scene: Scene) -> dict[str, str]:
    """Return the source of each module of the user's own, which the numbers of a run depend on."""
    paths = {f"forces.{name}.type": force.type for name, force in scene.forces.items()}
    for name, observation in getattr(scene, "observations", {}).items():
        if isinstance(observation, OwnObservation):
            paths[f"observations.{name}.type"] = observation.type
    if ":" in scene.world.step:
        paths["world.step"] = scene.world.step
    code = dict.fromkeys(paths, "")
    for key, path in paths.items():
        leads_to = imported(key, path)
        with suppress(AttributeError, KeyError, OSError, TypeError):  # a notebook, or no function
            code[key] = inspect.getsource(sys.modules[leads_to.__module__])
    return code
