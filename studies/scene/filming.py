"""Where the vertices of what is drawn are at every frame, with tangent and adjoint.

They depend on the trajectory, and for some subjects also on values of the system itself, such as
the length of a drawn rod. Every subject has

    vertices        [m], (n_frames, n_vertices, 3)
    vertices_jvp    their tangent from that of the trajectory and of the system's values by path
    vertices_vjp    what their cotangent is pulled back to
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from adjoint.render.pendulum import rods_and_bobs_jvp, rods_and_bobs_vjp
from adjoint.rigid.pose import mesh_vertices_vjp, vertices_vjp
from adjsim.engine.sparse import product
from adjsim.jit.device_arrays import beside
from adjsim.model import Model
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import vertices, vertices_jvp
from render.pendulum import RodsAndBobs
from studies.scene.grips import weights_at
from studies.scene.maps import Arrays, add_up
from studies.scene.motion import AtRest, Motion


@dataclass(frozen=True, eq=False)
class ImageCotangents:
    """Cotangents of what an image depends on."""

    # Of the trajectory's fields by name, e.g. "x" (n_frames, n_nodes, 3), or "block.position"
    # (n_frames, n_bodies, 3) of bodies.
    frames: dict[str, np.ndarray] = field(default_factory=dict)
    # Of parameters of the system by path, where an image shows them directly.
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, other: "ImageCotangents") -> None:
        """Add another's cotangents."""
        for mine, theirs in ((self.frames, other.frames), (self.values, other.values)):
            mine.update(add_up((mine, theirs)))


@dataclass(frozen=True, eq=False)
class Skin:
    """Vertices S x + offset of the nodes' positions x."""

    matrix: scipy.sparse.csr_array  # S, (n_vertices, n_nodes)
    offset: Any = 0.0  # (n_vertices, 3) or () [m]
    # S and its transpose in the types of a GPU's arrays, made once: they stay there
    _made: dict[tuple[bool, Any], scipy.sparse.csr_array] = field(default_factory=dict, init=False)

    def _matrix(self, x: Any, *, transposed: bool = False) -> scipy.sparse.csr_array:
        """Return S or its transpose, for arrays of a GPU in their type."""
        key = transposed, None if isinstance(x, np.ndarray) else x.dtype
        if key not in self._made:
            matrix = self.matrix.T.tocsr() if transposed else self.matrix
            self._made[key] = scipy.sparse.csr_array(matrix, dtype=key[1] or matrix.dtype)
        return self._made[key]

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return S x + offset."""
        moved = product(self._matrix(run.x), run.x)
        return moved + beside(np.asarray(self.offset, moved.dtype), moved)

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        """Return S tan_x."""
        return product(self._matrix(tan_run.x), tan_run.x)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        """Return S^T adj_vertices as the cotangent of x."""
        transpose = self._matrix(adj_vertices, transposed=True)
        return ImageCotangents({"x": product(transpose, adj_vertices)})


@dataclass(frozen=True, eq=False)
class Hulls:
    """Vertices of a set of rigid bodies, which are drawn with the set's `faces`."""

    name: str  # the set, as the model's `bodies` name it
    moves_mesh: bool = False  # whether values move the vertices about the centre of mass

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return x + R c."""
        return vertices(self.set_of(motion.system), run.bodies[self.name])

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        bodies, tan_vertices = self.set_of(motion.system), None
        if self.moves_mesh:
            tan_vertices = tangents.get(f"{self.name}.vertices")
        return vertices_jvp(bodies, run.bodies[self.name], tan_run.bodies[self.name], tan_vertices)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        bodies, poses = self.set_of(motion.system), run.bodies[self.name]
        adj = vertices_vjp(bodies, poses, adj_vertices)
        values = {}
        if self.moves_mesh:
            values[f"{self.name}.vertices"] = mesh_vertices_vjp(bodies, poses, adj_vertices)
        return ImageCotangents(
            {f"{self.name}.position": adj.position, f"{self.name}.orientation": adj.orientation},
            values,
        )

    def set_of(self, system: Any) -> RigidBodies:
        """Return the set of bodies whose hulls are drawn."""
        assert isinstance(system, Model)
        return system.bodies[self.name]


@dataclass(frozen=True, eq=False)
class Carried(Hulls):
    """An object that a rigid body carries, as the hull of a body where that one is."""

    hull: RigidBodies = field(kw_only=True)

    @classmethod
    def by(cls, body: str, points: np.ndarray) -> "Carried":
        """Return an object that a body carries, points about its centre of mass, (n, 3) [m]."""
        return cls(body, hull=RigidBodies(points, mass=1.0, inertia=[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))

    def set_of(self, system: Any) -> RigidBodies:
        return self.hull


@dataclass(frozen=True, eq=False)
class Still:
    """An object that does not move, (n_vertices, 3) [m], or the parameter `path` of an `AtRest`."""

    points: np.ndarray | None = None
    path: str = ""

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        system, given = motion.system, self.points
        if self.path:
            assert isinstance(system, AtRest)
            given = system.points[self.path]
        points = np.asarray(given, motion.dtype)
        return np.broadcast_to(points, (len(motion.frames), *points.shape))

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        still = self.vertices(motion, run)
        tangent = np.asarray(tangents.get(self.path, 0.0), still.dtype)
        return np.broadcast_to(tangent, still.shape)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        """Return the sum over frames as the cotangent of the points, unless they are constant."""
        return ImageCotangents(values={self.path: adj_vertices.sum(axis=0)} if self.path else {})


@dataclass(frozen=True, eq=False)
class Sliding:
    """A drawn obstacle that moves, by a parameter of a contact: (n_vertices, 3) [m] if it is `at`.

    `times` are those of the parameter [s], `along` as of `Shape.track`.
    """

    points: np.ndarray
    path: str
    at: Any
    times: np.ndarray
    along: np.ndarray

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        moved = self._offsets(motion, motion.system.parameters()[self.path] - self.at)
        return np.asarray(self.points + moved, motion.dtype)

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        place = motion.system.parameters()[self.path]
        tan = self._offsets(motion, np.asarray(tangents.get(self.path, np.zeros_like(place))))
        return np.broadcast_to(tan, (len(tan), *self.points.shape))

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        weights = weights_at(self.times, motion.frames * motion.dt)
        adj = weights.T @ adj_vertices.sum(axis=1) @ self.along
        return ImageCotangents(values={self.path: adj})

    def _offsets(self, motion: Motion, change: np.ndarray) -> np.ndarray:
        """Return how far it is moved by a change of the parameter, (n_frames, 1, 3)."""
        weights = weights_at(self.times, motion.frames * motion.dt)
        rows = (weights @ change).reshape(len(weights), -1)
        return (rows @ self.along.reshape(3, -1).T)[:, None]


@dataclass(frozen=True, eq=False)
class HangingRods:
    """The vertices of a pendulum. An image shows its length twice: as it swings, and as drawn."""

    shape: RodsAndBobs

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        return self.shape.vertices(run.angle, _lengths(motion))

    def vertices_jvp(self, motion: Motion, run: Any, tan_run: Any, tangents: Arrays) -> np.ndarray:
        length = _lengths(motion)
        tan_length = tangents.get("length", np.zeros_like(length))
        return rods_and_bobs_jvp(self.shape, run.angle, length, tan_run.angle, tan_length)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> ImageCotangents:
        length = _lengths(motion)
        adj_angle, adj_length = rods_and_bobs_vjp(self.shape, run.angle, length, adj_vertices)
        return ImageCotangents({"angle": adj_angle}, {"length": adj_length})


Subject = Skin | Hulls | Still | Sliding | HangingRods


def _lengths(motion: Motion) -> np.ndarray:
    """Return the lengths of a pendulum's rods [m]."""
    return motion.system.parameters()["length"]
