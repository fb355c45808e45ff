"""How a motion becomes a video: what is drawn where, with tangent and adjoint.

A `Filming` turns the trajectory of any system into images. `MeshFilming` draws a scene:
each object of it has a `Subject`, which says where its vertices are. What an image
depends on is the trajectory, and for some subjects also values of the system itself, such
as the length of a drawn rod.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.rigid.pose import vertices_jvp, vertices_vjp
from adjsim import checks
from adjsim.model import Model
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import vertices
from render.annealing import softness
from render.camera import AnyCamera, Camera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.motion import Motion
from studies.settings import sun


@dataclass(frozen=True, eq=False)
class Pulled:
    """Cotangents of what an image depends on.

    Attributes
    ----------
    frames : dict
        Of the trajectory's fields by name, e.g. "x" (n_frames, n_nodes, 3), or
        "block.position" (n_frames, n_bodies, 3) of bodies.
    values : dict
        Of parameters of the system by path, where an image shows them directly.
    """

    frames: dict[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, other: "Pulled") -> None:
        """Add another's cotangents."""
        for mine, theirs in ((self.frames, other.frames), (self.values, other.values)):
            for key, value in theirs.items():
                mine[key] = mine[key] + value if key in mine else value


@dataclass(frozen=True, eq=False)
class Filmed:
    """Images, and the way back from them.

    Attributes
    ----------
    images : numpy.ndarray
        The same to the bit as `Filming.shoot` gives.
    vjp : callable
        vjp(adj_images) is what `Filming.vjp` gives.
    """

    images: np.ndarray
    vjp: Callable[[np.ndarray], Pulled]


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
    """Vertices S x + offset of the nodes' positions x.

    Attributes
    ----------
    matrix : csr_array
        S, (n_vertices, n_nodes).
    offset : array
        (n_vertices, 3) or () [m].
    """

    matrix: scipy.sparse.csr_array
    offset: Any = 0.0

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
    """Vertices of a set of rigid bodies, which are drawn with the set's `faces`.

    Attributes
    ----------
    name : str
        The set, as the model's `bodies` name it.
    """

    name: str

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


class Filming(ABC):
    """How a motion becomes images, (n_frames, height, width, 4)."""

    size: tuple[int, int]  # height and width [pixels]

    @abstractmethod
    def shoot(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the images of a trajectory."""

    @abstractmethod
    def jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and their tangents."""

    @abstractmethod
    def record(self, motion: Motion, run: Any) -> Filmed:
        """Return the images of a trajectory, and what pulls cotangents of them back."""

    def vjp(self, motion: Motion, run: Any, adj_images: np.ndarray) -> Pulled:
        """Pull the cotangent of the images back."""
        return self.record(motion, run).vjp(adj_images)

    def meshes(self, motion: Motion, run: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return faces and vertices of the objects by name, for a view in 3-D."""
        del motion, run
        return {}


@dataclass(frozen=True, eq=False)
class MeshFilming(Filming):
    """A scene, rasterized.

    Attributes
    ----------
    scene, camera, rasterizer
    subjects : mapping of str to Subject
        Where the vertices of every object of the scene are.
    size : tuple of int
        Height and width [pixels].
    device : str
        cpu or cuda.
    """

    scene: Scene
    camera: AnyCamera
    rasterizer: SoftRasterizer
    subjects: Mapping[str, Subject]
    size: tuple[int, int]
    device: str = field(default="cpu", kw_only=True)

    def shoot(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the images of a trajectory."""
        return rasterize(*self._drawn(motion, run), device=self.device)

    def jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and their tangents."""
        tan_vertices = {
            f"{name}.vertices": subject.vertices_jvp(motion, run, tan_run, tangents)
            for name, subject in self.subjects.items()
        }
        return rasterize_jvp(*self._drawn(motion, run), tan_vertices, device=self.device)

    def record(self, motion: Motion, run: Any) -> Filmed:
        """Draw the images once; cotangents go back from them."""
        recorded = record_images(*self._drawn(motion, run), device=self.device)

        def vjp(adj_images: np.ndarray) -> Pulled:
            adj = recorded.vjp(adj_images, wrt=[f"{name}.vertices" for name in self.subjects])
            pulled = Pulled()
            for name, subject in self.subjects.items():
                pulled.add(subject.vertices_vjp(motion, run, adj[f"{name}.vertices"]))
            return pulled

        return Filmed(recorded.images, vjp)

    def meshes(self, motion: Motion, run: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return faces and vertices of the objects by name."""
        return {
            name: (self.scene.objects[name].faces, subject.vertices(motion, run))
            for name, subject in self.subjects.items()
        }

    def _drawn(
        self, motion: Motion, run: Any
    ) -> tuple[Scene, AnyCamera, SoftRasterizer, dict[str, np.ndarray], tuple[int, int]]:
        vertices = {name: subject.vertices(motion, run) for name, subject in self.subjects.items()}
        return self.scene, self.camera, self.rasterizer, vertices, self.size


def make_filming(
    settings: Mapping[str, Any],
    objects: Mapping[str, tuple[Mesh, Subject]],
    *,
    device: str = "cpu",
    camera: AnyCamera | None = None,
) -> MeshFilming:
    """Return how objects are seen, by the tables `camera` and `image` of the settings.

    The rasterizer's sigma is set by the pixel, `image.softness` of them. A camera that is given
    stands in place of the table.
    """
    table, image = settings["camera"], settings["image"]
    if camera is None:
        camera = Camera(table["eye"], table["target"], fov_y=table["fov_y"])
    height, width = image["height"], image["width"]
    for key in ("height", "width", "softness"):
        checks.positive(f"image.{key}", image[key])
    background = checks.array("image.background", image["background"], (3,))
    light = sun(image)
    return MeshFilming(
        Scene({name: mesh for name, (mesh, _) in objects.items()}, {"sun": light}),
        camera,
        SoftRasterizer(sigma=softness(image["softness"], height), background=background),
        {name: subject for name, (_, subject) in objects.items()},
        (height, width),
        device=device,
    )


def _apply(matrix: scipy.sparse.csr_array, x: np.ndarray) -> np.ndarray:
    """Return matrix @ x over the second axis from the end, in the type of x."""
    return np.stack([matrix @ frame for frame in x]).astype(x.dtype, copy=False)
