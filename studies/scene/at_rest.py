r"""Scenes in which nothing moves: pictures of still things see drawn meshes, and nothing is run.

Where all observations are single pictures at time 0, a body is its surface, whatever it is made
of. With the vertices V, their declared centre C (the middle of the box around them), and position p
and rotation theta as in `studies.scene.motions`,

    x = V + (p - p0) + (R - 1)(V - C),   R = exp([theta]x)

and all three may be free, as "B.vertices", "B.position", "B.rotation".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.rotations import rotation_matrix, rotation_rate
from render.scene import Mesh
from studies.scene.bodies.part import motion_values
from studies.scene.filming import Pulled, Still, Subject
from studies.scene.looks import drawn_mesh
from studies.scene.maps import Arrays, ParameterMap, Value
from studies.scene.mesh_source import read_source, surface_of
from studies.scene.motion import AtRest, Motion


@dataclass(frozen=True, eq=False)
class Resting(Subject):
    """The vertices of a body at rest."""

    name: str

    @property
    def _path(self) -> str:
        return f"{self.name}.vertices"

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the vertices, once for each frame."""
        assert isinstance(motion.system, AtRest)
        return Still(motion.system.points[self._path]).vertices(motion, run)

    def vertices_jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> np.ndarray:
        """Return the tangent of the places, once for each frame."""
        del tan_run
        still = self.vertices(motion, run)
        tangent = tangents.get(self._path)
        if tangent is None:
            return np.zeros_like(still)
        return np.broadcast_to(np.asarray(tangent, still.dtype), still.shape)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> Pulled:
        """Return the sum over frames as the cotangent of the places."""
        del motion, run
        return Pulled(values={self._path: adj_vertices.sum(axis=0)})


@dataclass(frozen=True, eq=False)
class RestingPose(ParameterMap):
    """Where a body at rest is."""

    name: str  # of the body
    center: np.ndarray  # C and p0, (3,) [m]
    position: np.ndarray

    @property
    def sources(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Vertices, position and rotation."""
        return tuple(f"{self.name}.{key}" for key in ("vertices", "position", "rotation"))

    @property
    def targets(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The places of the vertices."""
        return (f"{self.name}.vertices",)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return x."""
        V, position, rotation = (np.asarray(sources[path]) for path in self.sources)
        R = rotation_matrix(rotation)
        x = V + (position - self.position) + (V - self.center) @ (R - np.eye(3)).T
        return {self.targets[0]: x}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return R tan_V + tan_p + w x R (V - C), w = J tan_theta."""
        V, _, rotation = (np.asarray(sources[path]) for path in self.sources)
        tan_V, tan_position, tan_rotation = (
            np.asarray(tangents.get(path, np.zeros(np.shape(sources[path]))))
            for path in self.sources
        )
        R = rotation_matrix(rotation)
        turning = np.cross(rotation_rate(rotation) @ tan_rotation, (V - self.center) @ R.T)
        return {self.targets[0]: tan_V @ R.T + tan_position + turning}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the cotangents of the three."""
        V, _, rotation = (np.asarray(sources[path]) for path in self.sources)
        adj = np.asarray(adjoints.get(self.targets[0], np.zeros_like(V)))
        R = rotation_matrix(rotation)
        moment = np.cross((V - self.center) @ R.T, adj).sum(axis=0)
        parts = (adj @ R, adj.sum(axis=0), rotation_rate(rotation).T @ moment)
        return dict(zip(self.sources, parts, strict=True))


def make_resting(name: str, body: Any) -> tuple[dict[str, Value], RestingPose, Mesh]:
    """Return the values of a body at rest, its map, and how it is drawn."""
    key = f"bodies.{name}"
    source = read_source(key, body)
    surface = surface_of(key, source)
    mesh = drawn_mesh(f"{key}.look", body.look, surface, source)
    low, high = surface.points.min(axis=0), surface.points.max(axis=0)
    size = float((high - low).max())
    moved = motion_values(name, body, size, 0.0)
    values = {
        f"{name}.vertices": Value(
            surface.points, "m", "linear", (-np.inf, np.inf), scale=size / 2.0
        ),
        **{path: moved[path] for path in (f"{name}.position", f"{name}.rotation")},
    }
    pose = RestingPose(name, 0.5 * (low + high), np.asarray(body.position))
    return values, pose, mesh
