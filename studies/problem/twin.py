"""Twin experiments: observations simulated with a hidden truth, by the engine that fits them.

Where `[truth]` says nothing a value is that of the scene, so that it only names what is drawn, or
what the scene has wrong.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.problem.truth import Truth
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.components import component_of, split_component, with_components
from studies.scene.maps import Value
from studies.scene.tables import unknown


RADIAN = {"deg": 180.0 / np.pi, "deg/s": 180.0 / np.pi, "rad": 1.0, "rad/s": 1.0}


def true_values(
    file: declared.SceneFile, values: Mapping[str, Value]
) -> dict[str, np.ndarray] | None:
    """Return the values by path that observations are simulated with; None if none is."""
    if not file.is_simulated:
        return None
    declared_truth: dict[str, Any] = {
        path: value for path, value in file.truth.items() if not path.startswith("bodies.")
    }
    for path, row in file.free.items():
        if row.tied_to in declared_truth and path not in declared_truth:
            declared_truth[path] = row.factor * np.asarray(declared_truth[row.tied_to], np.float64)
    out, wholes = {}, {}
    for path, value in declared_truth.items():
        owner, _ = split_component(path)
        if owner not in values:
            raise StudyError(f"`truth`: {unknown('path', path, values)}")
        wholes[owner] = values[owner].value
        default = component_of(f'truth."{path}"', path, values[owner].value)
        array = np.asarray(value, np.float64)
        if array.shape not in {default.shape, ()}:
            raise StudyError(
                f'`truth."{path}"` must have the shape {default.shape}, or be one number, got '
                f"shape {array.shape}."
            )
        out[path] = np.broadcast_to(array, default.shape).copy()
    return with_components(out, wholes)


def hidden_scene(file: declared.SceneFile) -> declared.SceneFile:
    """Return the scene that is simulated: the file's, with its bodies as the truth has them."""
    changes: dict[str, dict[str, Any]] = {}
    for path, value in file.truth.items():
        if path.startswith("bodies."):
            _, name, key = path.split(".")
            others = {"size": None, "cells": None} if key == "mesh" else {}  # of the other mesh
            changes[name] = others | changes.get(name, {}) | {key: value}
    bodies: dict[str, Any] = {
        name: replace(file.bodies[name], **change) for name, change in changes.items()
    }
    return replace(file, bodies={**file.bodies, **bodies})


def with_simulated(
    problem: SceneProblem,
    hidden: SceneProblem,
    file: declared.SceneFile,
    truth: Mapping[str, np.ndarray],
) -> SceneProblem:
    """Return the problem whose simulated observations are those of `hidden` at the truth."""
    predictions = hidden.predictions({**problem.fixed, **truth})
    rows = {
        observer.name: rows for observer, rows in zip(hidden.observers, predictions, strict=True)
    }
    how = {name: spec.simulate for name, spec in file.observations.items() if spec.simulate}
    observers = [
        observer.simulated(_recorded(rows[observer.name], how[observer.name]))
        if observer.name in how
        else observer
        for observer in problem.observers
    ]
    return replace(problem, observers=tuple(observers))


def _recorded(rows: np.ndarray, simulate: declared.Simulated) -> np.ndarray:
    """Return rows of four whose first three have noise, and of a film are bytes if it asks so."""
    numbers = rows[:, :3]
    if simulate.noise:
        noise = np.random.default_rng(simulate.seed or 0).standard_normal(numbers.shape)
        numbers = numbers + simulate.noise * noise
    if getattr(simulate, "eight_bit", False):
        numbers = np.rint(255.0 * np.clip(numbers, 0.0, 1.0)) / 255.0
    return np.concatenate([numbers, rows[:, 3:]], axis=1)


def truth_of(
    parameters: Parameters, truth: Mapping[str, np.ndarray] | None, values: Mapping[str, Value]
) -> Truth | None:
    """Return the hidden value of every free path, and what its error is relative to.

    The error of an angle is one in radians, that of a component of a vector relative to its length,
    of many vectors to the mean of theirs.
    """
    if truth is None:
        return None
    hidden, scales = {}, {}
    for path in parameters.paths:
        owner, _ = split_component(path)
        whole = truth.get(owner, values[owner].value)
        hidden[path] = component_of(path, path, whole)
        if values[owner].unit in RADIAN:
            scales[path] = RADIAN[values[owner].unit]
        elif values[owner].transform == "linear" and np.any(whole):
            scales[path] = float(np.linalg.norm(np.atleast_2d(whole), axis=-1).mean())
    if any(np.shape(hidden[free.path]) != free.start.shape for free in parameters.free):
        return None  # the vertices of another mesh
    return Truth(hidden, scales)
