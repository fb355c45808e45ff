"""The user's body: tetrahedra to simulate, a skin to draw, and the nodes that are held.

A volume mesh is drawn by its own boundary; a closed surface is filled with tetrahedra and
carried by them. Filling is repeated only for a new surface: the result is kept in the
cache folder, so that a run that is resumed or repeated has the same mesh.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.backend import CACHE_DIR
from adjsim.forces.neo_hookean import lame
from adjsim.meshes.embedding import embedding
from adjsim.meshes.files import read_mesh
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.tetrahedralise import tetrahedralise
from adjsim.meshes.triangle_mesh import TriangleMesh


@dataclass(frozen=True, eq=False)
class Body:
    """A mesh, its skin, and where it is held.

    Attributes
    ----------
    mesh : TetMesh
        What is simulated.
    skin : csr_array
        S, (n_vertices, n_nodes): the vertices that are drawn are S x.
    faces : ndarray
        Triangles of the skin, (n_faces, 3), outward.
    pinned : ndarray
        Mask of held nodes, (n_nodes,).
    """

    mesh: TetMesh
    skin: scipy.sparse.csr_array
    faces: np.ndarray
    pinned: np.ndarray

    @property
    def rest_vertices(self) -> np.ndarray:
        """The vertices at rest, (n_vertices, 3) [m]."""
        return self.skin @ self.mesh.points


def read_body(settings: Mapping[str, Any]) -> Body:
    """Return the body of a study's settings: `mesh`, `[body]` and `[pinned]`."""
    given = settings["body"]
    read = read_mesh(settings["mesh"], scale=given["scale"])
    if isinstance(read, TetMesh):
        mesh, surface = read, read.surface()
        rows = np.arange(len(surface.nodes))
        skin = scipy.sparse.csr_array(
            (np.ones(len(rows)), (rows, surface.nodes)), shape=(len(rows), mesh.n_points)
        )
        faces = surface.local_faces
    else:
        read.require_closed("mesh")
        mesh = filled(read, given["edge_length"], CACHE_DIR.parent / "meshes")
        skin, faces = embedding(mesh, read.points), read.faces
    return Body(mesh, skin, faces, pinned_nodes(mesh.points, settings["pinned"]))


def filled(surface: TriangleMesh, edge_length: float, folder: Path) -> TetMesh:
    """Return the tetrahedra that fill a surface, from the folder if they are there."""
    key = hashlib.sha256(np.float64(edge_length).tobytes())
    key.update(surface.points.tobytes())
    key.update(surface.faces.tobytes())
    path = folder / f"{key.hexdigest()[:24]}.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as kept:
            return TetMesh(kept["points"], kept["tets"])
    mesh = tetrahedralise(surface, edge_length=edge_length)
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{os.getpid()}-{path.name}")
    with part.open("wb") as stream:
        np.savez(stream, points=mesh.points, tets=mesh.tets)
    part.replace(path)
    return mesh


def pinned_nodes(points: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
    """Return the mask of nodes inside the box, or behind the plane, of the settings."""
    shape = settings["shape"]
    if shape == "none":
        return np.zeros(len(points), bool)
    if shape == "box":
        inside = (points >= settings["lower"]) & (points <= settings["upper"])
        mask = inside.all(axis=1)
    elif shape == "plane":
        mask = (points - settings["point"]) @ np.asarray(settings["normal"]) <= 0.0
    else:
        raise ValueError(f'`pinned.shape` must be "box", "plane" or "none", got {shape!r}.')
    if not mask.any() or mask.all():
        low, high = (
            ", ".join(f"{value:.4g}" for value in end)
            for end in (points.min(axis=0), points.max(axis=0))
        )
        raise ValueError(
            f"`pinned` must hold some nodes and leave some free, but it holds "
            f"{int(mask.sum())} of {len(mask)}. The body reaches from [{low}] to [{high}] m."
        )
    return mask


def lam_over_mu(poisson_ratio: float) -> float:
    """Return lam/mu of the neo-Hookean solid with this Poisson ratio."""
    if not -1.0 < poisson_ratio < 0.5:
        raise ValueError(
            f"`body.poisson_ratio` must be in (-1, 0.5), got {poisson_ratio}: at 0.5 lam "
            "would be infinite."
        )
    mu, lam = lame(1.0, poisson_ratio)
    return lam / mu
