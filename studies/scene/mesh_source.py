"""The mesh of a body: from a file or a generator, in the world, in its declared pose.

Generators are centred at the mesh's origin. Each gives what the kind of body asks for: "box" and
"ball" tetrahedra to a soft body and their surface to the others, "shape:NAME" a closed surface,
"sheet" a rectangle in the plane z = 0, "walker" the sheet that learns to walk, "chain" points along
x. "from-views" is made before, by `studies/problem/from_views.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from adjsim import checks
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.chains import Chain, chain
from adjsim.meshes.embedding import embedding
from adjsim.meshes.files import read_mesh_data
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import SHAPES, shape
from adjsim.meshes.sheets import sheet, walker
from adjsim.meshes.subdivision import Subdivision
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rotations import rotation_matrix
from studies.runs.errors import StudyError
from studies.runs.meshes import filled
from studies.scene.declared import FROM_VIEWS


SHAPE, FIELD = "shape:", "field:"
FILE_MARKS = (".", "/", "\\")  # a mesh whose name has none of these is a generator
SHORTEST, LONGEST = 1e-12, 1e12  # meshes [m]: beyond, volumes are rounding errors
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Source:
    """A mesh in the world, and what its file says of it."""

    mesh: TetMesh | TriangleMesh | Chain
    file: str | None = None  # none of a generator
    # Arrays of the file by name, with rows for cells and points of the mesh.
    cells: dict[str, np.ndarray] = field(default_factory=dict)
    points: dict[str, np.ndarray] = field(default_factory=dict)
    corners: dict[str, np.ndarray] = field(default_factory=dict)  # where those at a point differ

    def field(self, key: str, name: str) -> np.ndarray:
        """Return a field of the file with one number for each cell, (n_cells,).

        An array of points is averaged over the corners of each cell.
        """
        wanted = name.removeprefix(FIELD)
        mesh = self.mesh
        if wanted in self.cells:
            values = self.cells[wanted]
        elif wanted in self.points and not isinstance(mesh, Chain):
            corners = mesh.tets if isinstance(mesh, TetMesh) else mesh.faces
            values = self.points[wanted][corners].mean(axis=1)
        else:
            raise _unknown_array(key, name, {*self.cells, *self.points})
        if values.ndim != 1 or not np.isfinite(values).all():
            raise StudyError(
                f"`{key}`: the array {wanted!r} of the mesh must have one finite number for each "
                f"cell, got shape {values.shape}."
            )
        return values.astype(np.float64)

    def vectors(self, key: str, name: str) -> np.ndarray:
        """Return an array of the file with one vector for each point, (n_points, 3)."""
        wanted = name.removeprefix(FIELD)
        if wanted not in self.points:
            raise _unknown_array(key, name, self.points, "array of points")
        values = self.points[wanted]
        if values.shape[1:] != (3,) or not np.isfinite(values).all():
            raise StudyError(
                f"`{key}`: the array {wanted!r} of the mesh must have three finite numbers for "
                f"each point, got shape {values.shape}."
            )
        return values.astype(np.float64)

    def refined(self, finer: Subdivision[Any]) -> "Source":
        """Return the mesh twice as fine: its cells have what the file says of their parents."""
        cells = {name: values[finer.parents] for name, values in self.cells.items()}
        points = {name: finer.of_points(values) for name, values in self.points.items()}
        return Source(finer.mesh, self.file, cells, points)


def _unknown_array(key: str, name: str, known: Iterable[str], what: str = "array") -> StudyError:
    near = checks.known_names(name.removeprefix(FIELD), sorted(known))
    return StudyError(f"`{key}` must name an {what} of the mesh, got {name!r}.{near}")


def tried(key: str, make: Callable[[], T]) -> T:
    """Return what a function makes; its complaints become those of a key."""
    try:
        return make()
    except (ValueError, TypeError, FileNotFoundError, ImportError) as error:
        if isinstance(error, StudyError):
            raise
        raise StudyError(f"`{key}`: {str(error).removeprefix('`mesh`: ')}") from error


def read_source(key: str, body: Any) -> Source:
    """Return the mesh of a body in the world; `key` is the body's, e.g. "bodies.duck"."""
    name = body.mesh
    if name == FROM_VIEWS:
        raise StudyError(
            f'`{key}.mesh` must be a mesh where there are no films, got "{FROM_VIEWS}". Run the '
            "scene file that has them."
        )
    if name.startswith(SHAPE) or not any(mark in name for mark in FILE_MARKS):
        source = Source(tried(f"{key}.mesh", lambda: _generated(key, body)))
    else:
        for given in ("size", "cells"):
            if getattr(body, given) is not None:
                raise StudyError(
                    f"`{key}.{given}` is for generated meshes, but `{key}.mesh` is the file "
                    f"{name}. Leave it out; `{key}.scale` sizes a file."
                )
        data = tried(f"{key}.mesh", lambda: read_mesh_data(name))
        source = Source(data.mesh, name, data.cells, data.points, data.corners)
    mesh: Any = source.mesh
    points = in_world(body, np.asarray(body.scale) * np.asarray(mesh.points))
    mesh = mesh._replace(points=points) if isinstance(mesh, Chain) else replace(mesh, points=points)
    with np.errstate(over="ignore"):
        longest = float(np.ptp(np.asarray(mesh.points), axis=0).max())
    if not SHORTEST < longest < LONGEST:
        raise StudyError(
            f"`{key}.mesh` must be longer than {SHORTEST:g} m and shorter than {LONGEST:g} m, got "
            f"{longest:.3g} m. Check `{key}.scale` and the unit of the mesh."
        )
    return replace(source, mesh=mesh)


def in_world(body: Any, points: np.ndarray) -> np.ndarray:
    """Return points along the axes of a body's mesh [m] in the world, in its declared pose."""
    return turned(body, points) + np.asarray(body.position)


def along_mesh(body: Any, vectors: np.ndarray) -> np.ndarray:
    """Return vectors in the world, (..., 3), along the axes of a body's mesh."""
    return vectors @ rotation_matrix(np.radians(body.rotation))


def turned(body: Any, vectors: np.ndarray) -> np.ndarray:
    """Return vectors along the axes of a body's mesh, (..., 3), in those of the world."""
    if not np.any(body.rotation):
        return vectors
    return vectors @ rotation_matrix(np.radians(body.rotation)).T


def volume_of(key: str, source: Source, edge_length: float, error: float = 0.0) -> TetMesh:
    """Return the tetrahedra of a mesh; a closed surface, known to an error [m], is filled."""
    mesh = source.mesh
    if isinstance(mesh, TetMesh):
        return mesh
    if isinstance(mesh, Chain):
        raise StudyError(f"`{key}.mesh` must be a solid, got a chain. It is for springs.")
    tried(f"{key}.mesh", mesh.require_closed)
    return tried(f"{key}.mesh", lambda: filled(mesh, edge_length, error))


def surface_of(key: str, source: Source) -> TriangleMesh:
    """Return the triangles of a mesh; of tetrahedra those on the outside."""
    mesh = source.mesh
    if isinstance(mesh, TetMesh):
        surface = mesh.surface()
        return TriangleMesh(mesh.points[surface.nodes], surface.local_faces)
    if isinstance(mesh, Chain):
        raise StudyError(f"`{key}.mesh` must have faces, got a chain. It is for springs.")
    return mesh


def skin_of(source: Source, volume: TetMesh) -> tuple[scipy.sparse.csr_array, TriangleMesh]:
    """Return S, the drawn vertices over the nodes, and the surface of these vertices at rest."""
    if source.mesh is volume:
        surface = volume.surface()
        identity: Any = scipy.sparse.csr_array(scipy.sparse.eye_array(volume.n_points))
        drawn = TriangleMesh(volume.points[surface.nodes], surface.local_faces)
        return identity[surface.nodes], drawn
    assert isinstance(source.mesh, TriangleMesh)
    return embedding(volume, source.mesh.points), source.mesh


def _generated(key: str, body: Any) -> TetMesh | TriangleMesh | Chain:
    if body.mesh.startswith(SHAPE):
        name = checks.known_key("shape", body.mesh.removeprefix(SHAPE), SHAPES)
        _refuse(key, body, "cells")
        return shape(name, *_numbers(key, body, "size", (1.0,)))
    name = checks.known_key("generator", body.mesh, (*GENERATORS, SHAPE + "NAME"))
    make, sizes, cells = GENERATORS[name]
    size = _numbers(key, body, "size", sizes)
    if isinstance(cells, int):
        along = tuple(max(1, round(cells * edge / max(size))) for edge in size)
        cells = (1, 1, 1) if name == "box" and body.kind == "rigid" else along
    counts = _numbers(key, body, "cells", cells)
    return tried(f"{key}.cells", lambda: make(size, counts))


# By name: mesh from size and numbers of cells, size by default, and numbers of cells by default:
# one for each edge, or one along the longest edge.
GENERATORS: dict[str, tuple[Callable[[Any, Any], Any], tuple[float, ...], Any]] = {
    "box": (lambda s, n: box_tets(n, s, [-0.5 * edge for edge in s]), (1.0, 1.0, 1.0), 8),
    "ball": (lambda s, n: ball_tets(n[0], s[0]), (1.0,), (4,)),
    "sheet": (lambda s, n: sheet(n, s, (-0.5 * s[0], -0.5 * s[1], 0.0)), (1.0, 1.0), 12),
    "walker": (
        lambda s, n: walker(s[0], (0.0, 0.0, 0.0), cells=n[:2], leg=n[2:]), (2.0,), (10, 7, 3, 4)
    ),
    "chain": (
        lambda s, n: chain(n[0] + 1, (-0.5 * s[0], 0.0, 0.0), (0.5 * s[0], 0.0, 0.0)),
        (1.0,), (10,),
    ),
}  # fmt: skip


def _numbers(key: str, body: Any, which: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the size or the numbers of cells of a body's mesh, as many as by default."""
    kind, unit = ("positive", " [m]") if which == "size" else ("whole", "")
    least = " of at least 1" if which == "cells" else ""
    given = tuple(getattr(body, which) or default)
    if len(given) != len(default) or not min(given) > 0:
        raise StudyError(
            f"`{key}.{which}` must be {len(default)} {kind} number(s){least} for {body.mesh!r}"
            f"{unit}, got {list(given)}."
        )
    return given


def _refuse(key: str, body: Any, name: str) -> None:
    if getattr(body, name) is not None:
        raise StudyError(f"`{key}.{name}` means nothing for the mesh {body.mesh!r}: leave it out.")
