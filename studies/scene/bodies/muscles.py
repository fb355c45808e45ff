"""Actuation of a body's elements: a number, a series over time, or a policy.

Tests: `tests/studies/scene/bodies/test_muscles.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.bodies.part import linear
from studies.scene.declared import Policy
from studies.scene.held import held_nodes
from studies.scene.maps import ParameterMap, Placed, Scaled, Value
from studies.scene.series import Series, Sines, Varying, in_steps, read_series


@dataclass(frozen=True, eq=False)
class Muscles:
    """What an actuation adds to a body: values by path, maps, and what varies, by target."""

    values: dict[str, Value] = field(default_factory=dict)
    maps: list[ParameterMap] = field(default_factory=list)
    varying: dict[str, Varying] = field(default_factory=dict)

    def __add__(self, other: "Muscles") -> "Muscles":
        """Return those of two kinds of elements."""
        values, varying = self.values | other.values, self.varying | other.varying
        return Muscles(values, self.maps + other.maps, varying)

    def at_work(self, targets: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return parameters by target with what varies as functions of steps of 1 s."""
        return {**targets, **in_steps(self.varying, targets, 1.0)}


@dataclass(frozen=True, eq=False)
class Actuated:
    """The elements of a force that may be muscles."""

    elements: np.ndarray  # nodes of each, (n_elements, n_corners)
    points: np.ndarray  # nodes of the body in the world, (n, 3) [m]
    target: str  # parameter of the system that is actuated, e.g. "walker.actuation".
    prefix: str = ""  # in front of "actuation" and "policy" in keys and paths of the body
    unit: str = "-"


def make_muscles(name: str, body: Any, of: Actuated, free: frozenset[str]) -> Muscles:
    """Return the muscles of a body of this name; `free` are the scene's free paths."""
    own = f"{of.prefix}actuation"
    given, key, path = getattr(body, own), f"bodies.{name}.{own}", f"{name}.{own}"
    n = len(of.elements)
    if isinstance(given, str):
        return Muscles(varying={of.target: Series(*read_series(key, given, {1, n}))})
    if isinstance(given, Policy):
        rows, weights = _chosen(key, given, of), f"{name}.{of.prefix}policy"
        start = np.zeros((len(rows), given.sines))
        return Muscles(
            {weights: Value(start, "-", "linear", (-np.inf, np.inf))},
            [Placed(weights, of.target, rows, n)],
            {of.target: Sines(given.frequency, given.scale)},
        )
    if given is None and path not in free:
        return Muscles()
    value = linear(given or 0.0, of.unit, 1.0)
    return Muscles({path: value}, [Scaled(path, {of.target: 1.0})])


def _chosen(key: str, policy: Policy, of: Actuated) -> np.ndarray:
    """Return the numbers of the elements that are muscles."""
    if policy.where is None:
        return np.arange(len(of.elements))
    nodes = held_nodes(f"{key}.where", policy.where, of.points, numbered=True)
    rows = np.flatnonzero(nodes[of.elements].all(axis=1))
    if not len(rows):
        raise StudyError(
            f"`{key}.where` must select all nodes of some elements, but it selects "
            f"{int(nodes.sum())} nodes and no element between them. Make it larger."
        )
    return rows
