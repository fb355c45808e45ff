r"""Obstacles that move along a path without turning, as an indenter or a piston does.

    c(t) = c + p(t) - p(0)        where contacts have the centre, or h(t) = h + n.(p(t) - p(0))
    V = dp/dt                     constant between the times of the path, which is linear there

with p as of a grip (`studies/scene/grips.py`), whose places after the first are the value
"OBSTACLE.position". In equilibria nothing moves: V is 0, and each is that of one place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from adjsim.courses import Signal
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.part import Additions, linear
from studies.scene.grips import Led, Poses
from studies.scene.maps import Arrays, ParameterMap
from studies.scene.obstacle_shapes import Shape
from studies.scene.series import Varying


SWITCH = 1e-6  # of the shortest time between two places: how long the velocity takes to change


@dataclass(frozen=True, eq=False)
class Speed:
    """A velocity with two values at each of the times, (n,) [s]: until then, and from then on."""

    times: np.ndarray
    ahead: int  # 1 where step k reads what is at its end, 0 where at its start

    def course(self, dt: float, values: np.ndarray | None) -> Signal:
        short = SWITCH * float(np.diff(self.times).min(initial=1.0))
        knots = np.stack([self.times, self.times + short], axis=1).ravel()
        return Signal(knots / dt - self.ahead, values)


class Moving(NamedTuple):
    """A parameter of a contact that is base + M p A, of the places p after the first, (n, 3)."""

    varying: Varying
    base: Any
    M: np.ndarray
    A: np.ndarray  # (3, 3) or (3,)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the parameter."""
        return self.base + self.M @ places @ self.A


class Path(ParameterMap):
    """From the places of an obstacle to what its contacts have of them, by target."""

    def __init__(self, source: str, moving: Mapping[str, Moving]) -> None:
        self.sources, self.targets = (source,), tuple(moving)
        self.source, self.moving = source, moving

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return base + M p A."""
        places = np.asarray(sources[self.source])
        return {key: term.at(places) for key, term in self.moving.items()}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return M tan_p A."""
        tan = np.asarray(tangents.get(self.source, np.zeros_like(sources[self.source])))
        return {key: term.M @ tan @ term.A for key, term in self.moving.items()}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the sum of M^T adj A^T."""
        adj = np.zeros_like(sources[self.source])
        for key, (_, _, M, A) in self.moving.items():
            if key in adjoints:
                adj = adj + M.T @ adjoints[key].reshape(len(M), -1) @ A.reshape(3, -1).T
        return {self.source: adj}


@dataclass(frozen=True, eq=False)
class ObstaclePath:
    """The path of an obstacle: what of its contacts varies, by name, at the declared places."""

    name: str
    size: float  # of what touches it [m]
    places: Any = ()  # after the first, (n, 3) [m]
    moving: Mapping[str, Moving] = field(default_factory=dict)  # empty: it does not move
    offsets: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))  # at its times [m]

    def depth(self, shape: Shape, points: np.ndarray) -> float:
        """Return how deep it would come into points (n, 3) that stay, at most their size [m]."""
        deep = [-shape.distance(points - offset).min() for offset in self.offsets]
        return float(np.clip(max(deep, default=0.0), 0.0, self.size))

    @property
    def pose(self) -> dict[str, Any]:
        """What contacts get, in steps of 1 s."""
        return {
            k: term.varying.course(1.0, term.at(self.places)) for k, term in self.moving.items()
        }

    def add(self, out: Additions, pairs: Sequence[str], values: Mapping[str, Any]) -> None:
        """Add the motion to contacts of these names; `values` of the shape may be free, too."""
        if not self.moving:
            return
        targets = {}
        for key, term in self.moving.items():
            base = term.base - values[key].value if key in values else term.base
            for pair in pairs:
                targets[f"{pair}.{key}"] = term._replace(base=base)
                out.varying[f"{pair}.{key}"] = term.varying
        out.values[f"{self.name}.position"] = linear(self.places, "m", self.size)
        out.maps.append(Path(f"{self.name}.position", targets))


def path_of(shape: Shape, world: declared.World, size: float) -> ObstaclePath:
    """Return the path of an obstacle; `size` is that of what touches it [m]."""
    if shape.spec.path is None:
        return ObstaclePath(shape.name, size)
    key = f"obstacles.{shape.name}.path"
    poses = Poses.of(key, shape.spec, turns=False)
    if poses.rotations.any():
        raise StudyError(f"`{key}` must not turn the obstacle: leave the rotations out.")
    at_rest = world.motion == declared.EQUILIBRIUM
    ahead = int(not at_rest and world.step != declared.SEMI_IMPLICIT)
    times, W, first = poses.fine, poses.weights, poses.positions[0]
    (track, along), M = shape.track, W[:, 1:]
    start = np.outer(W[:, 0] - 1.0, first)
    offsets = start + M @ poses.positions[1:]
    places = (shape.place + offsets)[:, None]
    led = Led(key, "", times, places, places[0], size, ahead)
    moving = {track: Moving(led, shape.pose[track] + start @ along, M, along)}
    if not at_rest:
        rates = np.diff(W, axis=0) / np.diff(times)[:, None]  # of the weights
        rates = np.pad(np.repeat(rates, 2, axis=0), ((1, 1), (0, 0)))
        base = np.outer(rates[:, 0], first)
        moving["velocity"] = Moving(Speed(times, ahead), base, rates[:, 1:], np.eye(3))
    return ObstaclePath(shape.name, size, poses.positions[1:], moving, offsets)
