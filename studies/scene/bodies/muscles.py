"""Actuation of a body's elements: a number, a series over time, or a policy."""

from typing import Any

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.bodies.part import Additions, held_nodes, linear
from studies.scene.declared import Policy
from studies.scene.maps import Placed, Scaled, Value
from studies.scene.series import Series, Sines, read_series


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
) -> Additions:
    """Return the muscles among the elements of a force, whose parameter `target` is actuated.

    `elements` are the nodes of each, (n_elements, n_corners), and `points` the nodes in the world,
    (n, 3) [m]. `prefix` is in front of "actuation" and "policy" in keys and paths of the body;
    `free` are the scene's free paths.
    """
    field = f"{prefix}actuation"
    actuation, key, path = getattr(body, field), f"bodies.{name}.{field}", f"{name}.{field}"
    n = len(elements)
    if isinstance(actuation, str):
        return Additions(varying={target: Series(*read_series(key, actuation, {1, n}))})
    if isinstance(actuation, Policy):
        rows, weights = _chosen(key, actuation, elements, points), f"{name}.{prefix}policy"
        start = np.zeros((len(rows), actuation.sines))
        return Additions(
            {},
            {weights: Value(start, "-", "linear", (-np.inf, np.inf))},
            [Placed(weights, target, rows, n)],
            {target: Sines(actuation.frequency, actuation.scale)},
        )
    if actuation is None and path not in free:
        return Additions()
    value = linear(actuation or 0.0, unit, 1.0)
    return Additions({}, {path: value}, [Scaled(path, {target: 1.0})])


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
