r"""From values of a scene to the parameters of its system, through all parameter maps.

A parameter of the system is the sum of what all maps that end at it give. Beside the scene's own
maps there is the start half a step early: the velocities of semi-implicit Euler are those of
leapfrog at half steps, so that with

    v_0 = v(0) - dt/2 g

positions are right to second order in dt, where they would be to first order with v_0 = v(0): a
free fall is exact at every step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from adjsim.model import Model
from studies.scene.building import BuiltScene
from studies.scene.maps import ParameterMap, add_up
from studies.scene.series import in_steps


Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class HalfStep(ParameterMap):
    """What gravity takes from the velocities in half a step: -dt/2 g, 0 where a node is held."""

    sources: tuple[str, ...]  # those of `gravity`
    gravity: ParameterMap  # to "gravity"
    targets: tuple[str, ...]
    half: float  # dt/2 [s]
    moving: np.ndarray  # 1 or 0 of every node, (n_nodes,)
    bodies: dict[str, int]  # number of bodies in each set of rigid bodies

    def values(self, sources: Values) -> dict[str, np.ndarray]:
        return self._taken(self.gravity.values(sources))

    def jvp(self, sources: Values, tangents: Values) -> dict[str, np.ndarray]:
        if not set(self.sources) & set(tangents):
            return {}
        return self._taken(self.gravity.jvp(sources, tangents))

    def vjp(self, sources: Values, adjoints: Values) -> dict[str, np.ndarray]:
        adj = np.zeros(3)
        for name in self.bodies:
            adj += np.asarray(adjoints.get(f"{name}.velocity", np.zeros((1, 3)))).sum(axis=0)
        if "state.v" in adjoints:
            adj += self.moving @ adjoints["state.v"]
        return self.gravity.vjp(sources, {"gravity": -self.half * adj})

    def _taken(self, gravity: Values) -> dict[str, np.ndarray]:
        g = -self.half * np.asarray(gravity["gravity"], np.float64)
        out = {f"{name}.velocity": np.tile(g, (n, 1)) for name, n in self.bodies.items()}
        if len(self.moving):
            out["state.v"] = np.multiply.outer(self.moving, g)
        return out


@dataclass(frozen=True, eq=False)
class SceneMaps:
    """All parameter maps of a built scene at one time step."""

    built: BuiltScene
    dt: float  # [s]

    @cached_property
    def maps(self) -> tuple[ParameterMap, ...]:
        """The scene's maps, and the start half a step early."""
        system = self.built.system
        if not isinstance(system, Model):
            return tuple(self.built.maps)
        moving = np.where(system.pinned, 0.0, 1.0)
        bodies = {name: body_set.n_bodies for name, body_set in system.bodies.items()}
        nodes = ("state.v",) if len(moving) else ()
        targets = (*nodes, *(f"{name}.velocity" for name in bodies))
        gravity = next(map_ for map_ in self.built.maps if "gravity" in map_.targets)
        half = HalfStep(gravity.sources, gravity, targets, self.dt / 2.0, moving, bodies)
        return (*self.built.maps, half)

    @cached_property
    def defaults(self) -> dict[str, np.ndarray]:
        """The scene's own values, by path."""
        return {path: value.value for path, value in self.built.values.items()}

    def targets(self, paths: Values) -> tuple[str, ...]:
        """Return the parameters of the system that scene paths reach."""
        reached = (t for map_ in self.maps if set(map_.sources) & set(paths) for t in map_.targets)
        return tuple(dict.fromkeys(reached))

    def values(self, scene_values: Values) -> dict[str, np.ndarray]:
        """Return the system's parameters that differ from those of the built scene."""
        every = {**self.defaults, **scene_values}
        always = (map_.targets for map_ in self.maps if isinstance(map_, HalfStep))
        wanted = {*self.targets(scene_values), *chain.from_iterable(always)}
        summed = add_up(map_.values(every) for map_ in self._ending_at(wanted))
        return {path: value for path, value in summed.items() if path in wanted}

    def jvp(self, scene_values: Values, tangents: Values) -> dict[str, np.ndarray]:
        """Return the tangents of the system's parameters for tangents of scene paths."""
        every = {**self.defaults, **scene_values}
        moved = [map_ for map_ in self.maps if set(map_.sources) & set(tangents)]
        return add_up(map_.jvp(every, tangents) for map_ in moved)

    def vjp(self, scene_values: Values, adjoints: Values) -> dict[str, np.ndarray]:
        """Return the cotangents of scene paths for those of the system's parameters."""
        every = {**self.defaults, **scene_values}
        return add_up(map_.vjp(every, adjoints) for map_ in self._ending_at(set(adjoints)))

    def _ending_at(self, targets: set[str]) -> list[ParameterMap]:
        return [map_ for map_ in self.maps if set(map_.targets) & targets]


def system_at(
    built: BuiltScene, given: Values, dt: float, *, varies: bool = False
) -> tuple[Any, Any]:
    """Return system and state for values by scene path; `varies` adds what changes over time."""
    system, state = built.system.with_values(built.state, SceneMaps(built, dt).values(given))
    if varies and built.varying:
        courses = in_steps(built.varying, system.parameters(), dt)
        system, state = system.with_values(state, courses)
    return system, state
