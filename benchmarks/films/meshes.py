"""The meshes of the films: boxes cut into tetrahedra, surfaces that are filled, and sheets."""

from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np


TETS_OF_A_CELL = [[0, a, b, 7] for a, b in ((4, 6), (6, 2), (2, 3), (3, 1), (1, 5), (5, 4))]
FACES_OF_A_TET = [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]  # outward


def box(
    size: tuple[float, ...],
    cells: tuple[int, ...],
    keep: Callable[[np.ndarray], np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3), centred, and tetrahedra (n_tets, 4): six in every cell.

    `keep` says of the centres of cells, (n_cells, 3), which ones belong to the body.
    """
    axes = [np.linspace(-s / 2, s / 2, n + 1) for s, n in zip(size, cells, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    number = np.arange(len(points)).reshape([n + 1 for n in cells])
    corners = [
        number[i : i + cells[0], j : j + cells[1], k : k + cells[2]].ravel()
        for i in (0, 1)
        for j in (0, 1)
        for k in (0, 1)
    ]
    corners = np.stack(corners, 1)
    if keep is not None:
        corners = corners[keep(points[corners].mean(1))]
    return tidy(points, corners[:, TETS_OF_A_CELL].reshape(-1, 4))


def fill(surface: Any, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points and tetrahedra inside a closed PyVista surface, with about this edge [m]."""
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


def tidy(points: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mesh without unused points, every volume positive."""
    used, tets = np.unique(tets, return_inverse=True)
    points, tets = points[used], tets.reshape(-1, 4).astype(np.int64)
    corners = points[tets]
    negative = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0
    tets[negative] = tets[negative][:, [0, 2, 1, 3]]
    return points, tets


def skin(tets: np.ndarray) -> np.ndarray:
    """Return the faces of tetrahedra that belong to one of them alone, (n_faces, 3), outward."""
    faces = tets[:, FACES_OF_A_TET].reshape(-1, 3)
    _, first, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    return faces[first[count == 1]]


def sheet(size: tuple[float, float], cells: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return points in the plane y = 0, centred, and triangles whose diagonals alternate."""
    axes = [np.linspace(-s / 2, s / 2, n + 1) for s, n in zip(size, cells, strict=True)]
    x, z = np.meshgrid(*axes, indexing="ij")
    points = np.stack([x, np.zeros_like(x), z], -1).reshape(-1, 3)
    i, j = np.meshgrid(*(np.arange(n) for n in cells), indexing="ij")
    a = (i * (cells[1] + 1) + j).ravel()
    b, c, d = a + cells[1] + 1, a + 1, a + cells[1] + 2
    even = ((i + j) % 2 == 0).ravel()
    first = np.where(even[:, None], np.stack([a, c, d], 1), np.stack([a, c, b], 1))
    second = np.where(even[:, None], np.stack([a, d, b], 1), np.stack([c, d, b], 1))
    return points, np.concatenate([first, second])


def save(path: Path, points: np.ndarray, cells: np.ndarray) -> None:
    """Write a mesh of tetrahedra or triangles, in the format of the file's name."""
    import pyvista

    if cells.shape[1] == 3:
        pyvista.PolyData.from_regular_faces(points, cells).save(path)
    else:
        pyvista.UnstructuredGrid({pyvista.CellType.TETRA: cells}, points).save(path)
