"""Trajectories out, for ParaView: a .pvd file that lists one mesh file for each frame.

The frames lie in a folder beside the .pvd file, which has its name: .vtu for tetrahedra,
.vtp for triangles; binary, so that every double is kept. The .pvd file is written last: what
it lists is whole.

Tests: `tests/test_series_files.py`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from adjsim import checks
from adjsim.meshes.files import poly_data, unstructured_grid, writable
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Trajectory
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.placing import point_states
from adjsim.rigid.pose import BodyTrajectory


def write_series(
    path: str | os.PathLike,
    mesh: TetMesh | TriangleMesh,
    trajectory: Trajectory,
    *,
    fields: Mapping[str, ArrayLike] | None = None,
    cell_fields: Mapping[str, ArrayLike] | None = None,
) -> Path:
    """Write a trajectory as a .pvd file with one .vtu or .vtp file for each frame.

    Parameters
    ----------
    path : path-like
        The .pvd file; its frames go to a folder of the same name without .pvd.
    mesh : TetMesh or TriangleMesh
        The cells; point k is node k of the trajectory.
    trajectory : Trajectory
        Positions become the points, velocities the field "velocity" [m/s]; the times are
        those of the frames [s].
    fields : mapping of str to array_like, optional
        More fields at the nodes, (n_frames, n_points) or (n_frames, n_points, k), or without
        the first axis if they do not change.
    cell_fields : mapping of str to array_like, optional
        Fields of the cells, likewise with n_cells.

    Returns
    -------
    pathlib.Path
        The .pvd file.

    Raises
    ------
    ValueError
        If the path does not end in .pvd, or a field or the trajectory does not fit the mesh.
    FileNotFoundError
        If the folder to write to does not exist.
    """
    checks.instance("mesh", mesh, (TetMesh, TriangleMesh))
    n_points = checks.instance("trajectory", trajectory, Trajectory).x.shape[1]
    if n_points != len(mesh.points):
        raise ValueError(
            f"`trajectory` must have one node per point of the mesh: expected "
            f"{len(mesh.points)}, got {n_points}. Of a model of several bodies, take the part: "
            "Trajectory(t.steps, t.dt, t.x[:, nodes], t.v[:, nodes])."
        )
    with_velocity = {"velocity": trajectory.v, **(fields or {})}
    return write_moved(
        path, mesh, trajectory.x, trajectory.times, fields=with_velocity, cell_fields=cell_fields
    )


def write_moved(
    path: str | os.PathLike,
    mesh: TetMesh | TriangleMesh,
    points: ArrayLike,
    times: ArrayLike,
    *,
    fields: Mapping[str, ArrayLike] | None = None,
    cell_fields: Mapping[str, ArrayLike] | None = None,
) -> Path:
    """Write a mesh whose points move, however they were computed: rigid bodies, a skin.

    Parameters
    ----------
    path, mesh, fields, cell_fields
        As in `write_series`; of the mesh only the cells count.
    points : array_like
        Positions at each frame, (n_frames, n_points, 3) [m].
    times : array_like
        Time of each frame, (n_frames,) [s].

    Returns
    -------
    pathlib.Path
        The .pvd file.

    Raises
    ------
    ValueError, FileNotFoundError
        As `write_series`.
    """
    path = writable(path, ".pvd")
    checks.instance("mesh", mesh, (TetMesh, TriangleMesh))
    kept = np.result_type(np.asarray(points), np.float32)  # single precision stays single
    moved = checks.array("points", points, ("n_frames", len(mesh.points), 3), dtype=kept)
    if not len(moved):
        raise ValueError("`points` must have at least one frame, got none.")
    at = checks.array("times", times, (len(moved),))
    data = poly_data(mesh) if isinstance(mesh, TriangleMesh) else unstructured_grid(mesh)
    at_nodes = _checked("fields", fields or {}, *moved.shape[:2])
    in_cells = _checked("cell_fields", cell_fields or {}, len(moved), data.n_cells)
    path.unlink(missing_ok=True)
    names = _write_frames(path, data, moved, at_nodes, in_cells)
    _remove_others(path.with_suffix(""), path.stem, names)
    _write_list(path, [f"{path.stem}/{name}" for name in names], at)
    return path


def write_bodies(
    path: str | os.PathLike, bodies: RigidBodies, states: BodyTrajectory, times: ArrayLike
) -> Path:
    """Write a set of rigid bodies that move, with one .vtp file for each frame.

    Parameters
    ----------
    path : path-like
        As in `write_series`.
    bodies : RigidBodies
        The set, `model.bodies["blocks"]`.
    states : BodyTrajectory
        Its states at the frames, `trajectory.bodies["blocks"]`. The velocities of the vertices
        become the field "velocity" [m/s]; each face has the number of its body in "body".
    times : array_like
        Time of each frame, (n_frames,) [s].

    Returns
    -------
    pathlib.Path
        The .pvd file.

    Raises
    ------
    ValueError, FileNotFoundError
        As `write_series`, or if the states are of another number of bodies.
    """
    checks.instance("bodies", bodies, RigidBodies)
    checks.instance("states", states, BodyTrajectory)
    x, v = (field[:, bodies.hull] for field in point_states(bodies, states))
    number = np.repeat(np.arange(bodies.n_bodies), [len(mesh.faces) for mesh in bodies.meshes])
    hulls = TriangleMesh(x[0], bodies.faces)
    return write_moved(path, hulls, x, times, fields={"velocity": v}, cell_fields={"body": number})


def _write_frames(
    path: Path,
    data: Any,
    points: np.ndarray,
    fields: Mapping[str, np.ndarray],
    cell_fields: Mapping[str, np.ndarray],
) -> list[str]:
    """Write each frame of `data`, moved along, and return the names of the files."""
    suffix = ".vtu" if type(data).__name__ == "UnstructuredGrid" else ".vtp"
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    names = [f"{path.stem}_{k:06d}{suffix}" for k in range(len(points))]
    for k, name in enumerate(names):
        data.points = points[k]
        for field, rows in fields.items():
            data.point_data[field] = rows[k]
        for field, rows in cell_fields.items():
            data.cell_data[field] = rows[k]
        temporary = folder / f".part-{os.getpid()}-{name}"
        data.save(temporary)
        os.replace(temporary, folder / name)
    return names


def _checked(
    what: str, given: Mapping[str, ArrayLike], n_frames: int, n: int
) -> dict[str, np.ndarray]:
    """Return each field with one entry per frame."""
    fields = {}
    for name, value in checks.mapping(what, given, "{'stress': ...}").items():
        checks.instance(f"a name in {what}", name, str)
        rows = checks.array(f"{what}[{name!r}]", value)
        if rows.ndim and rows.shape[0] == n and rows.shape[:2] != (n_frames, n):
            rows = np.broadcast_to(rows, (n_frames, *rows.shape))
        if rows.shape[:2] != (n_frames, n) or rows.ndim > 3:
            raise ValueError(
                f"`{what}[{name!r}]` must have shape ({n_frames}, {n}) or ({n_frames}, {n}, k), "
                f"frames and then places, or ({n},) or ({n}, k) if it does not change; got "
                f"{rows.shape}."
            )
        fields[name] = rows
    return fields


def _remove_others(folder: Path, stem: str, names: Sequence[str]) -> None:
    """Remove frames that an earlier series of the same name left."""
    frame = re.compile(re.escape(stem) + r"_\d{6,}\.vt[up]")
    for path in folder.iterdir():
        if frame.fullmatch(path.name) and path.name not in names:
            path.unlink()


def _write_list(path: Path, names: Sequence[str], times: np.ndarray) -> None:
    """Write the .pvd file; `repr` of a time is read back as the same double."""
    lines = [
        '<?xml version="1.0"?>',
        '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">',
        "  <Collection>",
        *(
            f'    <DataSet timestep="{float(time)!r}" group="" part="0" file={quoteattr(name)}/>'
            for time, name in zip(times, names, strict=True)
        ),
        "  </Collection>",
        "</VTKFile>",
    ]
    temporary = path.with_name(f".part-{os.getpid()}-{path.name}")
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(temporary, path)
