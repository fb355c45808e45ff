"""Mesh files in and out, through PyVista.

A file with volume cells becomes a `TetMesh`: cells of second order become linear ones
between their corners, cells that are no tetrahedra are cut into tetrahedra by VTK,
lower-dimensional cells (boundary triangles of a Gmsh file) are left out, as are points that
no cell uses. A file with faces only becomes a `TriangleMesh`: polygons are cut into
triangles, and points at the same position become one (an .stl file lists each corner of each
triangle); what their arrays say at each corner is kept. Meshes whose cells are all inverted, the
order of nodes in some formats, are turned over.

Tests: `tests/meshes/test_files.py`.
"""

import importlib.util
import io
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.extras import how_to_install, optional
from adjsim.meshes.cells import merged_points, used_points
from adjsim.meshes.obj import check_corners
from adjsim.meshes.tet_files import read_tet_file
from adjsim.meshes.tet_mesh import TetMesh, signed_volumes
from adjsim.meshes.triangle_mesh import TriangleMesh


TRIANGLE, TETRA = 5, 10  # VTK's numbers of cell types
# Of cells of second order: the linear one, and how many corners come first among the nodes.
SECOND_ORDER = {
    21: (3, 2), 22: (TRIANGLE, 3), 34: (TRIANGLE, 3), 23: (9, 4), 28: (9, 4), 24: (TETRA, 4),
    25: (12, 8), 29: (12, 8), 33: (12, 8), 26: (13, 6), 31: (13, 6), 32: (13, 6), 27: (14, 5),
    37: (14, 5),
}  # fmt: skip
EXAMPLES = "pyvista:"
VTK = ("vtk", "VTK")
HEADER = 65_536  # bytes of a .ply file, of which its counts are read
PICKLES = (".pkl", ".pickle")  # PyVista before 0.49 loads them, and so runs what is in them


def read_mesh(path: str | os.PathLike, *, scale: float = 1.0) -> TetMesh | TriangleMesh:
    """Read a volume or surface mesh in any format PyVista reads, but for pickles.

    Parameters
    ----------
    path : path-like
        The file: .vtu, .vtk, .obj, .stl, .ply, .tet, ...; with the extra `mesh`, which brings
        meshio, also .msh (Gmsh 2.2 and 4.1) and others. "pyvista:NAME" is a file that PyVista
        ships, e.g. "pyvista:hexbeam.vtk".
    scale : float
        Factor on the positions, to get metres.

    Returns
    -------
    TetMesh or TriangleMesh
        Whichever the file holds.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it cannot be read, has no cells or faces, has cells that cannot be cut into
        tetrahedra, or is not a valid mesh; the message names the file.

    Examples
    --------
    >>> from adjsim.meshes import box_tets, read_mesh, write_tet_mesh
    >>> path = write_tet_mesh("box.vtu", box_tets(cells=(2, 1, 1)))
    >>> print(read_mesh(path, scale=0.001).tets.shape)  # it was in millimetres
    (10, 4)
    """
    return read_mesh_data(path, scale=scale).mesh


@dataclass(frozen=True, eq=False)
class MeshData:
    """A mesh, and the arrays that its file has for cells and points, by name.

    Attributes
    ----------
    mesh : TetMesh or TriangleMesh
    cells : dict
        Rows for the tetrahedra or triangles of the mesh, (n_cells,) or (n_cells, k).
    points : dict
        Rows for the points of the mesh, (n_points,) or (n_points, k). Where points of the file that
        differ become one, it has the row of one of them.
    corners : dict
        The arrays of points at the corners of the triangles, (n_faces, 3) or (n_faces, 3, k), where
        the corners at a point differ, as colours do at a hard edge.
    """

    mesh: TetMesh | TriangleMesh
    cells: dict[str, np.ndarray]
    points: dict[str, np.ndarray]
    corners: dict[str, np.ndarray] = field(default_factory=dict)


def read_mesh_data(path: str | os.PathLike, *, scale: float = 1.0) -> MeshData:
    """Read a mesh as `read_mesh` does, with the arrays of its file."""
    checks.positive("scale", checks.number("scale", scale))
    path = find_mesh(path)
    data = _unstructured(read_data(path), path)
    try:
        volume = data.extract_cells(_dimensions(data) == 3) if data.n_cells else data
        if volume.n_cells:
            return _tet_mesh(volume, scale)
        return _triangle_mesh(data, scale)
    except ValueError as error:
        raise ValueError(f"`mesh`: {path.name} is not usable: {error}") from error


def find_mesh(path: str | os.PathLike) -> Path:
    """Return the path of a mesh file; "pyvista:NAME" is one that PyVista ships."""
    text = os.fspath(checks.instance("path", path, (str, os.PathLike)))
    mesh_path = Path(text)
    if text.startswith(EXAMPLES):
        spec = importlib.util.find_spec("pyvista")  # which is not loaded for a path
        origin = spec.origin if spec else optional("pyvista").__file__  # which raises
        folder = Path(origin or "").parent / "examples"
        mesh_path = folder / text.removeprefix(EXAMPLES)
    if not mesh_path.is_file():
        raise FileNotFoundError(f"`mesh`: there is no file {mesh_path}.")
    return mesh_path


def write_tet_mesh(path: str | os.PathLike, mesh: TetMesh) -> Path:
    """Write a tetrahedral mesh in a format PyVista writes, by its suffix: .vtu or .vtk.

    Examples
    --------
    >>> from adjsim.meshes import box_tets, write_tet_mesh
    >>> print(write_tet_mesh("box.vtu", box_tets(cells=(2, 1, 1))).name)
    box.vtu
    """
    checks.instance("mesh", mesh, TetMesh)
    path = writable(path, ".vtu", ".vtk")
    temporary = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    unstructured_grid(mesh).save(temporary)
    temporary.replace(path)
    return path


def writable(path: str | os.PathLike, *suffixes: str) -> Path:
    """Return the path of a file to write: of one of these suffixes, in a folder that exists."""
    path = Path(checks.instance("path", path, (str, os.PathLike)))
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"`path` must end in {' or '.join(suffixes)}, got {path.name}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"`path`: there is no folder {path.parent} to write to.")
    return path


def unstructured_grid(mesh: TetMesh) -> Any:
    """Return the mesh as a `pyvista.UnstructuredGrid`."""
    pyvista = optional("pyvista")

    cells = np.hstack([np.full((mesh.n_tets, 1), 4), mesh.tets])
    return pyvista.UnstructuredGrid(cells, np.full(mesh.n_tets, TETRA, np.uint8), mesh.points)


def poly_data(mesh: TriangleMesh) -> Any:
    """Return the mesh as a `pyvista.PolyData`."""
    pyvista = optional("pyvista")

    return pyvista.PolyData.from_regular_faces(mesh.points, mesh.faces)


def read_data(path: Path) -> Any:
    """Return what PyVista reads; whatever its readers say becomes one error."""
    pyvista = optional("pyvista")

    if path.suffix.lower() in PICKLES:
        raise ValueError(
            f"`mesh`: {path} is a pickle, which can run a program. Save the mesh as .vtu or .ply."
        )
    if path.suffix.lower() == ".obj":
        check_corners(path)
    _check_counts(path)
    if path.suffix.lower() == ".tet":
        points, tets = read_tet_file(path)
        cells = np.hstack([np.full((len(tets), 1), 4), tets])
        return pyvista.UnstructuredGrid(cells, np.full(len(tets), TETRA, np.uint8), points)
    try:
        with _quiet_readers(), warnings.catch_warnings(record=True) as complaints:
            warnings.simplefilter("always")
            data = pyvista.read(path)
    except (Exception, SystemExit) as error:  # meshio exits when it fails
        known = importlib.util.find_spec("meshio")
        hint = "" if known else f" For .msh, .mesh, .off and others: {how_to_install('mesh')}."
        raise ValueError(
            f"`mesh`: {path} cannot be read as a mesh: it is damaged or of another kind.{hint}"
        ) from error
    if any("error while reading" in str(complaint.message) for complaint in complaints):
        raise ValueError(f"`mesh`: {path} cannot be read as a mesh: it is damaged.")
    return data


def _check_counts(path: Path) -> None:
    """Raise on a .ply file whose header counts more than the file holds: it crashes the reader."""
    with path.open("rb") as stream:
        head = stream.read(HEADER).partition(b"end_header")[0]
    counts = re.findall(rb"^element\s+\S+\s+(\d{1,18})", head, re.MULTILINE)
    if head.startswith(b"ply") and sum(map(int, counts)) > path.stat().st_size:
        raise ValueError(
            f"`mesh`: {path} cannot be read as a mesh: it is damaged. Its header counts more "
            f"vertices and faces than its {path.stat().st_size} bytes hold."
        )


@contextmanager
def _quiet_readers() -> Iterator[None]:
    """Keep the readers from printing pages about a file that we report in one line."""
    from vtkmodules.vtkCommonCore import vtkLogger

    verbosity, level = vtkLogger.GetCurrentVerbosityCutoff(), logging.root.manager.disable
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(level)
        vtkLogger.SetStderrVerbosity(verbosity)


def _unstructured(data: Any, path: Path) -> Any:
    """Return any data set of PyVista's as an unstructured grid; blocks are joined."""
    pyvista = optional("pyvista")

    if isinstance(data, pyvista.MultiBlock):
        data = data.combine()
    if not isinstance(data, pyvista.DataSet) or data.n_points == 0 or data.n_cells == 0:
        raise ValueError(f"`mesh`: {path} cannot be read as a mesh: no cells were found in it.")
    grid = data.cast_to_unstructured_grid()
    corners = np.asarray(grid.cell_connectivity)
    if corners.size and not 0 <= corners.min() <= corners.max() < grid.n_points:
        raise ValueError(
            f"`mesh`: {path} cannot be read as a mesh: it is damaged. A cell names point "
            f"{corners.max() if corners.min() >= 0 else corners.min()}, counted from 0, but there "
            f"are {grid.n_points} points."
        )
    return _between_corners(grid) if np.isin(grid.celltypes, list(SECOND_ORDER)).any() else grid


def _between_corners(grid: Any) -> Any:
    """Return the grid with each cell of second order as the linear one between its corners."""
    pyvista = optional("pyvista")
    from vtkmodules.util.numpy_support import vtk_to_numpy

    kinds, first = grid.celltypes, vtk_to_numpy(grid.GetCells().GetOffsetsArray())
    sizes = np.diff(first)
    corners = np.array(
        [SECOND_ORDER[k][1] if k in SECOND_ORDER else n for k, n in zip(kinds, sizes, strict=True)]
    )
    place = np.arange(first[-1]) - np.repeat(first[:-1], sizes)
    nodes = np.asarray(grid.cell_connectivity)[place < np.repeat(corners, sizes)]
    cells = np.insert(nodes, np.concatenate([[0], np.cumsum(corners)[:-1]]), corners)
    linear = [SECOND_ORDER[k][0] if k in SECOND_ORDER else k for k in kinds]
    out = pyvista.UnstructuredGrid(cells, np.array(linear, np.uint8), grid.points)
    for mine, theirs in ((out.cell_data, grid.cell_data), (out.point_data, grid.point_data)):
        for name in theirs:
            mine[name] = theirs[name]
    return out


def _dimensions(data: Any) -> np.ndarray:
    """Return the dimension of each cell, 0 to 3."""
    from vtkmodules.vtkCommonDataModel import vtkGenericCell

    cell = vtkGenericCell()
    dimension = {}
    for kind in np.unique(data.celltypes):
        cell.SetCellType(int(kind))
        dimension[kind] = cell.GetCellDimension()
    return np.vectorize(dimension.get, otypes=[int])(data.celltypes)


def _tet_mesh(grid: Any, scale: float) -> MeshData:
    """Return the tetrahedra of volume cells."""
    kinds = set(grid.celltypes.tolist())
    if kinds != {TETRA}:
        grid = grid.triangulate()
        kinds = set(grid.celltypes.tolist())
    tets = grid.cells_dict.get(TETRA)
    if tets is None or kinds != {TETRA}:
        raise ValueError(
            f"its volume cells (VTK types {sorted(kinds)}) cannot be cut into tetrahedra. "
            "Save it with tetrahedra, hexahedra, wedges or pyramids."
        )
    given = tets
    points, tets = used_points(np.asarray(grid.points, np.float64) * scale, tets)
    arrays = _arrays(grid.cell_data), _rows(_arrays(grid.point_data), given, tets, len(points))
    if (signed_volumes(points, tets) < 0.0).all():
        tets = tets[:, [0, 1, 3, 2]]
    return MeshData(TetMesh(points, tets), *arrays)


def _triangle_mesh(data: Any, scale: float) -> MeshData:
    """Return the triangles of faces; points at one position become one."""
    surface = data.triangulate()
    faces = surface.cells_dict.get(TRIANGLE)
    if faces is None:
        raise ValueError("it has neither volume cells nor faces.")
    given = faces
    points, faces = merged_points(np.asarray(surface.points, np.float64) * scale, faces)
    is_face = ~(faces == np.roll(faces, 1, axis=1)).any(axis=1)
    points, faces = used_points(points, faces[is_face])
    mesh = TriangleMesh(points, faces)
    of_faces = surface.celltypes == TRIANGLE
    cells = {name: rows[of_faces][is_face] for name, rows in _arrays(surface.cell_data).items()}
    arrays, before = _arrays(surface.point_data), given[is_face]
    rows = _rows(arrays, before, faces, len(points))
    if mesh.volume <= 0.0:
        mesh, is_turned = _outward_if_closed(mesh)
        before = before[:, ::-1] if is_turned else before
    corners = {name: array[before] for name, array in arrays.items()}
    jumps = {n: at for n, at in corners.items() if not np.array_equal(at, rows[n][mesh.faces])}
    return MeshData(mesh, cells, rows, jumps)


def _arrays(data: Any) -> dict[str, np.ndarray]:
    """Return the arrays of numbers of a data set by name, without those that VTK adds."""
    arrays = {name: np.asarray(data[name]) for name in data if not name.startswith(VTK)}
    return {name: array for name, array in arrays.items() if array.dtype.kind in "biuf"}


def _rows(
    arrays: dict[str, np.ndarray], before: np.ndarray, after: np.ndarray, n: int
) -> dict[str, np.ndarray]:
    """Return rows of points whose numbers in cells were `before` and are `after`."""
    source = np.empty(n, np.int64)
    source[after.ravel()] = before.ravel()
    return {name: array[source] for name, array in arrays.items()}


def _outward_if_closed(mesh: TriangleMesh) -> tuple[TriangleMesh, bool]:
    """Turn a closed mesh that faces inwards, leave any other as it is; return whether turned."""
    turned = TriangleMesh(mesh.points, mesh.faces[:, ::-1])
    try:
        turned.require_closed()
    except ValueError:
        return mesh, False
    return turned, True
