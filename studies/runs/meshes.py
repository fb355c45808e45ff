"""Tetrahedra that fill a surface: made once, in a process of their own, and kept with the run.

The mesher takes no seed and draws an order from the operating system, so two meshes of one surface
differ (`adjsim/meshes/tetrahedralise.py`). So a run keeps its own in its folder, and is resumed
with it. A folder of the machine's cache serves the next run of the same surface. The mesher may
crash on a surface that is nearly degenerate; in a process of its own it takes nobody with it.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from adjsim.jit.backend import CACHE_DIR
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.tetrahedralise import ENVELOPE, check_sizes, tetrahedralise
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.runs.errors import StudyError
from studies.runs.files import replacing
from studies.runs.folder import DAMAGED, MESHES, RunFolder


KEPT: dict[str, TetMesh] = {}  # in this process, by `key_of`
REFUSED = 2  # exit code of the process
OF_EDGE = 0.1  # the widest envelope, over the edge of a tetrahedron


def key_of(surface: TriangleMesh, edge_length: float, envelope: float) -> str:
    """Return what a mesh is kept by: 24 hex digits of all that it depends on but chance."""
    digest = hashlib.sha256(np.float64(edge_length).tobytes())
    if envelope != ENVELOPE:
        digest.update(np.float64(envelope).tobytes())
    digest.update(surface.points.tobytes())
    digest.update(surface.faces.tobytes())
    return digest.hexdigest()[:24]


def _envelope_of(surface: TriangleMesh, edge_length: float, error: float) -> float:
    """Return how far tetrahedra may lie from a surface, over its diagonal [-].

    To follow a surface more closely than it is known, by two standard deviations, takes slivers,
    and these take short steps.
    """
    diagonal = float(np.linalg.norm(np.ptp(surface.points, axis=0)))
    return max(ENVELOPE, min(2.0 * error / diagonal, OF_EDGE * edge_length))


def filled(surface: TriangleMesh, edge_length: float, error: float = 0.0) -> TetMesh:
    """Return the tetrahedra that fill a surface: those kept, or new ones.

    `edge_length` is that of a tetrahedron, over the diagonal of the surface [-], and `error` the
    standard uncertainty of where the surface is [m].
    """
    envelope = _envelope_of(surface, edge_length, error)
    key = key_of(surface, edge_length, envelope)
    if key in KEPT:
        return KEPT[key]
    check_sizes(surface, edge_length)
    path = CACHE_DIR.parent / "meshes" / f"{key}.npz"
    if path.is_file():
        try:
            KEPT[key] = _read(path)
            return KEPT[key]
        except DAMAGED:
            print(f"warning: {path} is damaged: the mesh is made again", file=sys.stderr)
    mesh = meshed_apart(surface, edge_length, envelope)
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, points=mesh.points, tets=mesh.tets)
    KEPT[key] = mesh
    return mesh


def _read(path: Path) -> TetMesh:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
        return TetMesh(kept["points"], kept["tets"])


def meshed_apart(surface: TriangleMesh, edge_length: float, envelope: float) -> TetMesh:
    """Return the tetrahedra that the mesher makes in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        surface_file, mesh_file = Path(place) / "surface.npz", Path(place) / "mesh.npz"
        np.savez(
            surface_file, points=surface.points, faces=surface.faces, edge_length=edge_length,
            envelope=envelope,
        )  # fmt: skip
        command = [sys.executable, "-m", __name__, str(surface_file), str(mesh_file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == REFUSED:
            raise StudyError(done.stderr.strip())
        if done.returncode:
            raise StudyError(
                f"the mesher has crashed on this surface (exit code {done.returncode}). Its "
                "triangles may cross or lie together: repair it, give another `edge_length`, or "
                "give a volume mesh."
            )
        return _read(mesh_file)


def write_meshes(folder: RunFolder) -> None:
    """Write the meshes of this process, if there are any, into the folder of their run."""
    arrays = {
        f"{key}.{name}": getattr(mesh, name)
        for key, mesh in KEPT.items()
        for name in ("points", "tets")
    }
    if arrays:
        folder.write_npz(MESHES, **arrays)


def keep_meshes(folder: RunFolder) -> None:
    """Use the meshes of a run that goes on."""
    if folder.has(MESHES):
        arrays = folder.read_npz(MESHES)
        keys = {name.partition(".")[0] for name in arrays}
        KEPT.update(
            {key: TetMesh(arrays[f"{key}.points"], arrays[f"{key}.tets"]) for key in sorted(keys)}
        )


def main(surface_file: str, mesh_file: str) -> int:
    """Fill the surface in a file; the command of `meshed_apart`."""
    with np.load(surface_file, allow_pickle=False) as arrays:
        surface = TriangleMesh(arrays["points"], arrays["faces"])
        sizes = {key: float(arrays[key]) for key in ("edge_length", "envelope")}
    try:
        mesh = tetrahedralise(surface, **sizes)
    except (ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    np.savez(mesh_file, points=mesh.points, tets=mesh.tets)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
