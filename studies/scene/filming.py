"""Where the vertices of what is drawn are at every frame, with tangent and adjoint.

They depend on the trajectory, and for some subjects also on values of the system itself, such as
the length of a drawn rod.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from adjoint.rigid.pose import vertices_jvp, vertices_vjp
from adjsim.model import Model
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import vertices
from studies.scene.motion import Motion


@dataclass(frozen=True, eq=False)
class Pulled:
    """Cotangents of what an image depends on."""

    # Of the trajectory's fields by name, e.g. "x" (n_frames, n_nodes, 3), or "block.position"
    # (n_frames, n_bodies, 3) of bodies.
    frames: dict[str, np.ndarray] = field(default_factory=dict)
    # Of parameters of the system by path, where an image shows them directly.
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, other: "Pulled") -> None:
        """Add another's cotangents."""
        for mine, theirs in ((self.frames, other.frames), (self.values, other.values)):
            for key, value in theirs.items():
                mine[key] = mine[key] + value if key in mine else value


class Subject(ABC):
    """Where the vertices of one object are. Subclasses are frozen."""

    @abstractmethod
    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the vertices [m], (n_frames, n_vertices, 3)."""

    @abstractmethod
    def vertices_jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> np.ndarray:
        """Return their tangent from that of the trajectory and of values by path."""

    @abstractmethod
    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> Pulled:
        """Pull the cotangent of the vertices back."""


@dataclass(frozen=True, eq=False)
class Skin(Subject):
    """Vertices S x + offset of the nodes' positions x."""

    matrix: scipy.sparse.csr_array  # S, (n_vertices, n_nodes)
    offset: Any = 0.0  # (n_vertices, 3) or () [m]

    @classmethod
    def of_nodes(cls, nodes: np.ndarray, n_nodes: int, offset: Any = 0.0) -> "Skin":
        """Return the vertices that lie at these nodes, or at an offset from them."""
        rows = np.arange(len(nodes))
        shape = (len(nodes), n_nodes)
        entries = (np.ones(len(nodes)), (rows, np.asarray(nodes)))
        return cls(scipy.sparse.csr_array(entries, shape=shape), offset)

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return S x + offset."""
        del motion
        moved = _apply(self.matrix, run.x)
        return moved + np.asarray(self.offset, moved.dtype)

    def vertices_jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> np.ndarray:
        """Return S tan_x."""
        del motion, run, tangents
        return _apply(self.matrix, tan_run.x)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> Pulled:
        """Return S^T adj_vertices as the cotangent of x."""
        del motion, run
        return Pulled({"x": _apply(self.matrix.T.tocsr(), adj_vertices)})


@dataclass(frozen=True, eq=False)
class Hulls(Subject):
    """Vertices of a set of rigid bodies, which are drawn with the set's `faces`."""

    name: str  # the set, as the model's `bodies` name it

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return x + R c."""
        return vertices(self._set(motion), run.bodies[self.name])

    def vertices_jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> np.ndarray:
        """Return the tangent of the same."""
        del tangents
        bodies = self._set(motion)
        return vertices_jvp(bodies, run.bodies[self.name], tan_run.bodies[self.name])

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> Pulled:
        """Return the cotangents of positions and rotations."""
        adj = vertices_vjp(self._set(motion), run.bodies[self.name], adj_vertices)
        return Pulled(
            {f"{self.name}.position": adj.position, f"{self.name}.rotation": adj.rotation}
        )

    def _set(self, motion: Motion) -> RigidBodies:
        assert isinstance(motion.system, Model)
        return motion.system.bodies[self.name]


@dataclass(frozen=True, eq=False)
class Still(Subject):
    """An object at rest, (n_vertices, 3) [m]."""

    points: np.ndarray

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the points, once for each frame."""
        del run
        points = np.asarray(self.points, motion.dtype)
        return np.broadcast_to(points, (len(motion.frames), *points.shape))

    def vertices_jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> np.ndarray:
        """Return 0."""
        del tan_run, tangents
        return np.zeros_like(self.vertices(motion, run))

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> Pulled:
        """Return nothing: it does not move."""
        del motion, run, adj_vertices
        return Pulled()


def _apply(matrix: scipy.sparse.csr_array, x: np.ndarray) -> np.ndarray:
    """Return matrix @ x over the second axis from the end, in the type of x."""
    return np.stack([matrix @ frame for frame in x]).astype(x.dtype, copy=False)
