"""The meshes of the films, by the name of the file that the user has."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, cast

import numpy as np
import pyvista
from pyvista import examples

from benchmarks.films.meshes import box, fill, sheet, skin, tidy


Mesh = tuple[np.ndarray, np.ndarray]


@cache
def ball(radius: float, edge: float) -> Mesh:
    """Return a ball of tetrahedra."""
    return fill(pyvista.Icosphere(radius=radius, nsub=2), edge)


@cache
def torus(radius: float, tube: float, edge: float) -> Mesh:
    """Return a torus about the z axis."""
    surface = pyvista.ParametricTorus(
        ringradius=radius, crosssectionradius=tube, u_res=25, v_res=11, w_res=11
    )
    return fill(surface.triangulate().clean(), edge)


@cache
def duck(edge: float) -> Mesh:
    """Return a body and a head with a beak; its base is flat, at y = 0."""
    grid = pyvista.ImageData(
        dimensions=(45, 45, 33), spacing=(0.006,) * 3, origin=(-0.13, -0.015, -0.096)
    )
    x, y, z = np.asarray(grid.points).T
    blobs = [
        ((0.0, 0.05, 0.0), (0.105, 0.06, 0.065)),
        ((0.06, 0.13, 0.0), (0.05, 0.055, 0.05)),
        ((0.105, 0.12, 0.0), (0.03, 0.014, 0.025)),
    ]
    fields = [
        1 - np.sqrt(((x - c[0]) / r[0]) ** 2 + ((y - c[1]) / r[1]) ** 2 + ((z - c[2]) / r[2]) ** 2)
        for c, r in blobs
    ]
    smooth = 0.04 * np.log(sum(np.exp(f / 0.04) for f in fields))
    surface = grid.contour([0.0], scalars=np.minimum(smooth, y / 0.06))
    return fill(coarse(surface, 420), edge)


def coarse(surface: Any, n_faces: int) -> Any:
    """Return a closed surface with about so many faces."""
    surface = surface.triangulate().clean()
    return surface.decimate(1 - n_faces / surface.n_cells).clean()


def hexbeam() -> Mesh:
    """Return the beam of PyVista's examples, as tetrahedra: 1 x 1 x 5, without a unit."""
    mesh = pyvista.read(examples.hexbeamfile).triangulate()
    return tidy(np.asarray(mesh.points, float), mesh.cells_dict[pyvista.CellType.TETRA])


def nut() -> Mesh:
    """Return the nut of PyVista's examples, its faces outward."""
    mesh = pyvista.PolyData(examples.nutfile).clean()
    turned = mesh.compute_normals(auto_orient_normals=True, split_vertices=False)
    return np.asarray(mesh.points, float), np.asarray(cast("Any", turned).regular_faces)


def brick(size: tuple[float, ...], cells: tuple[int, ...]) -> Mesh:
    """Return the surface of a box."""
    points, tets = box(size, cells)
    faces = skin(tets)
    used, faces = np.unique(faces, return_inverse=True)
    return points[used], faces.reshape(-1, 3)


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
    "ball.vtu": partial(ball, 0.1, 0.045),
    "torus.vtu": partial(torus, 0.1, 0.035, 0.05),
    "duck.vtu": partial(duck, 0.05),
    "sheet.ply": partial(sheet, (0.4, 0.4), (12, 12)),
    "strip.ply": partial(sheet, (0.3, 0.1), (18, 6)),
    "box.ply": partial(brick, (0.16, 0.06, 0.1), (2, 1, 1)),
    "cuboid.obj": partial(brick, (0.2, 0.12, 0.06), (2, 2, 1)),
    "nut.ply": nut,
}
