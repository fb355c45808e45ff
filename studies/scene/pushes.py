"""Known forces on bodies: constant in a window of time, or a series.

The force of "shove" is the scene's value "pushes.shove.force" (3,) [N] unless it is a series.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjsim.forces.acted_rows import NODES
from adjsim.forces.external import ExternalForces
from studies.scene.bodies.part import Additions, NodePart, check_numbers, linear
from studies.scene.bodies.rigid import CENTRE, RigidPart
from studies.scene.declared import Push
from studies.scene.maps import Scaled
from studies.scene.series import Series, Window, read_series


RAMP = np.array([0.0, 1.0, 1.0, 0.0])  # of a force at the knots of its window


def make_pushes(
    pushes: Mapping[str, Push], nodes: Sequence[NodePart], rigid: Sequence[RigidPart]
) -> Additions:
    """Return all pushes on bodies."""
    out = Additions()
    of_nodes = {body.name: body for body in nodes}
    of_bodies = {body.name: body for body in rigid}
    for name, push in pushes.items():
        if push.body in of_nodes:
            body = of_nodes[push.body]
            vertices = _vertices(f"pushes.{name}", push, body.points)
            shares = np.ones(len(vertices)) if _is_local(push) else body.mass / body.mass.sum()
            _add(out, name, push, load=body.first + vertices, shares=shares)
        else:
            points = of_bodies[push.body].bodies.meshes[0].points
            places = _vertices(f"pushes.{name}", push, points) if _is_local(push) else (CENTRE,)
            _add(out, name, push, load=places, shares=np.ones(len(places)), on=push.body)
    return out


def _is_local(push: Push) -> bool:
    """Whether a push is at certain vertices, not at the centre of mass."""
    return bool(push.nodes) or push.at != CENTRE


def _vertices(key: str, push: Push, points: np.ndarray) -> np.ndarray:
    """Return the numbers of the vertices that are pushed, (n_loads,)."""
    if push.nodes:
        check_numbers(f"{key}.nodes", push.nodes, len(points))
        return np.asarray(push.nodes, np.int64)
    if not _is_local(push):
        return np.arange(len(points))
    return np.argmin(np.linalg.norm(points - push.at, axis=1), keepdims=True)


def _add(
    out: Additions, name: str, push: Push, *, load: Any, shares: np.ndarray, on: str = NODES
) -> None:
    """Add a push on nodes, or on points of a rigid body; each gets a share of the force."""
    path, target, parts = f"pushes.{name}.force", f"{name}.force", shares[:, None]
    if isinstance(push.force, str):
        times, values = read_series(path, push.force, {3})
        out.varying[target] = series = Series(times, parts * values[:, None, :])
        out.forces[name] = ExternalForces(load, series.course(1.0), acts_on=on)
        return
    given: Any = parts * np.asarray(push.force)
    if push.seconds is not None:
        parts = RAMP[:, None, None] * parts
        out.varying[target] = window = Window(push.seconds)
        given = window.course(1.0, parts * np.asarray(push.force))
    strength = float(np.linalg.norm(push.force))
    out.values[path] = linear(push.force, "N", 10.0 * strength or 1.0)
    out.maps.append(Scaled(path, {target: parts}))
    out.forces[name] = ExternalForces(load, given, acts_on=on)
