"""The meshes of the films: boxes cut into tetrahedra, surfaces that are filled, and sheets."""

from collections.abc import Callable, Sequence
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyvista
from pyvista import examples


Mesh = tuple[np.ndarray, np.ndarray]  # points (n, 3) [m], and triangles or tetrahedra
Point = tuple[float, float, float]
TETS_OF_A_CELL = [[0, a, b, 7] for a, b in ((4, 6), (6, 2), (2, 3), (3, 1), (1, 5), (5, 4))]
FACES_OF_A_TET = [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]  # outward


def grid(size: tuple[float, ...], cells: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return centred points, (n, n_axes), and the corners of cells, (n_cells, 2^n_axes)."""
    axes = [np.linspace(-s / 2, s / 2, n + 1) for s, n in zip(size, cells, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(cells))
    number = np.arange(len(points)).reshape([n + 1 for n in cells])
    corners = [
        number[tuple(slice(i, i + n) for i, n in zip(corner, cells, strict=True))].ravel()
        for corner in np.ndindex((2,) * len(cells))
    ]
    return points, np.stack(corners, 1)


def box(
    size: tuple[float, ...],
    cells: tuple[int, ...],
    keep: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Mesh:
    """Return a box, six tetrahedra in every cell whose centre (n_cells, 3) `keep` keeps."""
    points, corners = grid(size, cells)
    if keep is not None:
        corners = corners[keep(points[corners].mean(1))]
    return tidy(points, corners[:, TETS_OF_A_CELL].reshape(-1, 4))


def brick(size: tuple[float, ...], cells: tuple[int, ...]) -> Mesh:
    """Return the surface of a box."""
    points, tets = box(size, cells)
    used, faces = np.unique(skin(tets), return_inverse=True)
    return points[used], faces.reshape(-1, 3)


def sheet(size: tuple[float, float], cells: tuple[int, int]) -> Mesh:
    """Return a sheet in the plane y = 0 whose diagonals alternate."""
    points, corners = grid(size, cells)
    even = (np.indices(cells).sum(0).ravel() % 2 == 0)[:, None]
    first = np.where(even, corners[:, [0, 1, 3]], corners[:, [0, 1, 2]])
    second = np.where(even, corners[:, [0, 3, 2]], corners[:, [1, 3, 2]])
    return np.insert(points, 1, 0.0, axis=1), np.concatenate([first, second])


def globe() -> Mesh:
    """Return the surface of a ball of 6 cm radius."""
    surface = pyvista.Icosphere(radius=0.06, nsub=3)
    return np.asarray(surface.points, float), surface.regular_faces


def tidy(points: np.ndarray, tets: np.ndarray) -> Mesh:
    """Return the mesh without unused points, every volume positive."""
    used, tets = np.unique(tets, return_inverse=True)
    points, tets = points[used], tets.reshape(-1, 4).astype(np.int64)
    corners = points[tets]
    negative = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0
    tets[negative] = tets[negative][:, [0, 2, 1, 3]]
    return points, tets


def skin(tets: np.ndarray) -> np.ndarray:
    """Return the faces that belong to one tetrahedron alone, (n_faces, 3), outward."""
    faces = tets[:, FACES_OF_A_TET].reshape(-1, 3)
    _, first, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    return faces[first[count == 1]]


def fill(surface: Any, edge: float) -> Mesh:
    """Return tetrahedra inside a closed PyVista surface, with about this edge [m]."""
    from pytetwild.pytetwild import tetrahedralize

    faces = surface.triangulate().faces.reshape(-1, 4)[:, 1:]
    with TemporaryDirectory() as folder, chdir(folder):  # it leaves files where it runs
        points, tets = tetrahedralize(
            np.asarray(surface.points, float),
            faces.astype(np.int32),
            edge_length_abs=edge,
            epsilon=2e-3,
            coarsen=True,
            num_threads=1,
        )
    return tidy(np.asarray(points), np.asarray(tets))


@cache
def ball() -> Mesh:
    """Return a ball of tetrahedra."""
    return fill(pyvista.Icosphere(radius=0.1, nsub=2), 0.045)


@cache
def torus(ring: float = 0.1, tube: float = 0.035, around: int = 25, edge: float = 0.05) -> Mesh:
    """Return a torus about the z axis with these radii [m]."""
    across = round(0.44 * around)
    surface = pyvista.ParametricTorus(
        ringradius=ring, crosssectionradius=tube, u_res=around, v_res=across, w_res=across
    )
    return fill(surface.triangulate().clean(), edge)


def blended(grid: Any, blobs: Sequence[tuple[Point, Point]]) -> np.ndarray:
    """Return a function at the points of a grid that is positive in ellipsoids that flow together.

    An ellipsoid is its centre and its half axes [m].
    """
    p = np.asarray(grid.points)
    fields = [1 - np.linalg.norm((p - centre) / np.array(radii), axis=1) for centre, radii in blobs]
    return 0.04 * np.log(sum(np.exp(f / 0.04) for f in fields))


@cache
def duck() -> Mesh:
    """Return a body and a head with a beak; its base is flat, at y = 0."""
    grid: Any = pyvista.ImageData(
        dimensions=(45, 45, 33), spacing=(0.006,) * 3, origin=(-0.13, -0.015, -0.096)
    )
    blobs = [
        ((0.0, 0.05, 0.0), (0.105, 0.06, 0.065)),
        ((0.06, 0.13, 0.0), (0.05, 0.055, 0.05)),
        ((0.105, 0.12, 0.0), (0.03, 0.014, 0.025)),
    ]
    field = np.minimum(blended(grid, blobs), grid.points[:, 1] / 0.06)
    surface: Any = grid.contour([0.0], scalars=field).triangulate().clean()
    return fill(surface.decimate(1 - 420 / surface.n_cells).clean(), 0.05)


@cache
def bird() -> Mesh:
    """Return a body with a head, a beak, a tail and two wings that are spread, 0.6 m wide."""
    grid: Any = pyvista.ImageData(
        dimensions=(80, 45, 90), spacing=(0.008,) * 3, origin=(-0.316, -0.176, -0.356)
    )
    blobs = [
        ((0.0, 0.0, 0.0), (0.17, 0.11, 0.11)),
        ((0.17, 0.08, 0.0), (0.085, 0.08, 0.075)),
        ((0.26, 0.07, 0.0), (0.05, 0.03, 0.03)),
        ((-0.2, 0.03, 0.0), (0.1, 0.04, 0.07)),
        ((0.0, 0.04, 0.19), (0.1, 0.045, 0.14)),
        ((0.0, 0.04, -0.19), (0.1, 0.045, 0.14)),
    ]
    surface: Any = grid.contour([0.0], scalars=blended(grid, blobs)).triangulate().clean()
    return fill(surface.decimate(1 - 4000 / surface.n_cells).clean(), 0.016)


def hexbeam() -> Mesh:
    """Return the beam of PyVista's examples, as tetrahedra: 1 x 1 x 5, without a unit."""
    mesh = pyvista.read(examples.hexbeamfile).triangulate()
    return tidy(np.asarray(mesh.points, float), mesh.cells_dict[pyvista.CellType.TETRA])


def nut() -> Mesh:
    """Return the nut of PyVista's examples, its faces outward."""
    mesh = pyvista.PolyData(examples.nutfile).clean()
    turned = mesh.compute_normals(auto_orient_normals=True, split_vertices=False)
    return np.asarray(mesh.points, float), np.asarray(cast("Any", turned).regular_faces)


def is_bracket(centers: np.ndarray) -> np.ndarray:
    """Return which cells belong to an L: an arm along x, and one along z at its end."""
    return (centers[:, 2] < -0.06) | (centers[:, 0] > 0.1)


MESHES: dict[str, Callable[[], Mesh]] = {
    "beam.vtu": partial(box, (0.4, 0.06, 0.06), (16, 3, 2)),
    "bracket.vtu": partial(box, (0.32, 0.06, 0.24), (12, 2, 8), is_bracket),
    "bridge.vtu": partial(box, (0.5, 0.04, 0.12), (16, 2, 4)),
    "rod.vtu": partial(box, (0.4, 0.06, 0.06), (14, 2, 2)),
    "block.vtu": partial(box, (0.16, 0.14, 0.12), (5, 5, 4)),
    "block-fine.vtu": partial(box, (0.16, 0.14, 0.12), (10, 10, 8)),
    "puck.vtu": partial(box, (0.16, 0.06, 0.12), (6, 3, 4)),
    "hexbeam.vtk": hexbeam,
    "ball.vtu": ball,
    "torus.vtu": torus,
    "torus-fine.vtu": partial(torus, 0.25, 0.09, 64, 0.014),
    "duck.vtu": duck,
    "bird-fine.vtu": bird,
    "sheet.ply": partial(sheet, (0.4, 0.4), (12, 12)),
    "strip.ply": partial(sheet, (0.3, 0.1), (18, 6)),
    "box.ply": partial(brick, (0.16, 0.06, 0.1), (2, 1, 1)),
    "cuboid.obj": partial(brick, (0.2, 0.12, 0.06), (2, 2, 1)),
    "link.ply": partial(brick, (0.3, 0.04, 0.06), (3, 1, 1)),
    "nut.ply": nut,
    "globe.ply": globe,
}


def save(path: Path, points: np.ndarray, cells: np.ndarray) -> None:
    """Write tetrahedra or triangles in the format of the file's name."""
    if cells.shape[1] == 3:
        pyvista.PolyData.from_regular_faces(points, cells).save(path)
    else:
        pyvista.UnstructuredGrid({pyvista.CellType.TETRA: cells}, points).save(path)
