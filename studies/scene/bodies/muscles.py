"""Actuation of a body's elements: a number, a series over time, or a policy."""

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


def make_muscles(
    name: str,
    body: Any,
    elements: np.ndarray,
    points: np.ndarray,
    *,
    target: str,
    free: frozenset[str],
    prefix: str = "",
    unit: str = "-",
) -> Muscles:
    """Return the muscles among the elements of a force, whose parameter `target` is actuated.

    `elements` are the nodes of each, (n_elements, n_corners), and `points` the nodes in the world,
    (n, 3) [m]. `prefix` is in front of "actuation" and "policy" in keys and paths of the body;
    `free` are the scene's free paths.
    """
    own = f"{prefix}actuation"
    given, key, path = getattr(body, own), f"bodies.{name}.{own}", f"{name}.{own}"
    n = len(elements)
    if isinstance(given, str):
        return Muscles(varying={target: Series(*read_series(key, given, {1, n}))})
    if isinstance(given, Policy):
        rows, weights = _chosen(key, given, elements, points), f"{name}.{prefix}policy"
        start = np.zeros((len(rows), given.sines))
        return Muscles(
            {weights: Value(start, "-", "linear", (-np.inf, np.inf))},
            [Placed(weights, target, rows, n)],
            {target: Sines(given.frequency, given.scale)},
        )
    if given is None and path not in free:
        return Muscles()
    value = linear(given or 0.0, unit, 1.0)
    return Muscles({path: value}, [Scaled(path, {target: 1.0})])


def _chosen(key: str, policy: Policy, elements: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the numbers of the elements that are muscles."""
    if policy.where is None:
        return np.arange(len(elements))
    nodes = held_nodes(f"{key}.where", policy.where, points, numbered=True)
    rows = np.flatnonzero(nodes[elements].all(axis=1))
    if not len(rows):
        raise StudyError(
            f"`{key}.where` must select all nodes of some elements, but it selects "
            f"{int(nodes.sum())} nodes and no element between them. Make it larger."
        )
    return rows
