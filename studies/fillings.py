"""Tetrahedra that fill a surface: made once, and kept with what was computed from them.

The mesher takes no seed and draws an order from the operating system, so two fillings of one
surface differ (`adjsim/meshes/tetrahedralise.py`). So the run of a scene keeps its own in its
folder and takes them from there when it is resumed. A folder of the machine's cache serves the
next run of the same surface.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from adjsim.backend import CACHE_DIR
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.tetrahedralise import tetrahedralise
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.run_folder import FILLINGS, RunFolder


KEPT: dict[str, TetMesh] = {}  # in this process, by `key_of`


def key_of(surface: TriangleMesh, edge_length: float) -> str:
    """Return what a filling is kept by: 24 hex digits of all that it depends on but chance."""
    digest = hashlib.sha256(np.float64(edge_length).tobytes())
    digest.update(surface.points.tobytes())
    digest.update(surface.faces.tobytes())
    return digest.hexdigest()[:24]


def filled(surface: TriangleMesh, edge_length: float) -> TetMesh:
    """Return the tetrahedra that fill a surface: those kept, or new ones."""
    key = key_of(surface, edge_length)
    if key not in KEPT:
        KEPT[key] = _cached(CACHE_DIR.parent / "meshes" / f"{key}.npz", surface, edge_length)
    return KEPT[key]


def _cached(path: Path, surface: TriangleMesh, edge_length: float) -> TetMesh:
    """Return the filling in a file; without it, make one and write it there."""
    if path.is_file():
        with np.load(path, allow_pickle=False) as kept:
            return TetMesh(kept["points"], kept["tets"])
    mesh = tetrahedralise(surface, edge_length=edge_length)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{os.getpid()}-{path.name}")
    with part.open("wb") as stream:
        np.savez(stream, points=mesh.points, tets=mesh.tets)
    part.replace(path)
    return mesh


def write_fillings(folder: RunFolder, fillings: Mapping[str, TetMesh]) -> None:
    """Write fillings, if there are any, into the folder of the run that they are of."""
    arrays = {
        f"{key}.{name}": getattr(mesh, name)
        for key, mesh in fillings.items()
        for name in ("points", "tets")
    }
    if arrays:
        folder.write_npz(FILLINGS, **arrays)


def keep_fillings_of(folder: RunFolder) -> None:
    """Take the fillings of a run that goes on for those of this process."""
    if folder.has(FILLINGS):
        arrays = folder.read_npz(FILLINGS)
        keys = {name.partition(".")[0] for name in arrays}
        KEPT.update(
            {key: TetMesh(arrays[f"{key}.points"], arrays[f"{key}.tets"]) for key in sorted(keys)}
        )
