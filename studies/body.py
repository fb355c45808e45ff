"""The user's body: tetrahedra to simulate, a skin to draw, and the nodes that are held.

A volume mesh is drawn by its own boundary; a closed surface is filled with tetrahedra and
carried by them (`studies/fillings.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from adjsim import checks
from adjsim.forces.neo_hookean import lame
from adjsim.meshes.embedding import embedding
from adjsim.meshes.files import read_mesh
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.fillings import filled, key_of


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
    is_filled : bool
        Whether the tetrahedra were made here, to fill a surface.
    """

    mesh: TetMesh
    skin: scipy.sparse.csr_array
    faces: np.ndarray
    pinned: np.ndarray
    is_filled: bool

    @property
    def rest_vertices(self) -> np.ndarray:
        """The vertices at rest, (n_vertices, 3) [m]."""
        return self.skin @ self.mesh.points


def read_body(settings: Mapping[str, Any]) -> Body:
    """Return the body of a study's settings: `mesh`, `[body]` and `[pinned]`."""
    read = _read(settings)
    if isinstance(read, TetMesh):
        mesh, surface = read, read.surface()
        rows = np.arange(len(surface.nodes))
        skin = scipy.sparse.csr_array(
            (np.ones(len(rows)), (rows, surface.nodes)), shape=(len(rows), mesh.n_points)
        )
        faces = surface.local_faces
    else:
        mesh = filled(read, settings["body"]["edge_length"])
        skin, faces = embedding(mesh, read.points), read.faces
    pinned = pinned_nodes(mesh.points, settings["pinned"])
    return Body(mesh, skin, faces, pinned, is_filled=mesh is not read)


def fillings(settings: Mapping[str, Any]) -> dict[str, TetMesh]:
    """Return the tetrahedra that fill the surface of the settings, by key; {} of a volume mesh."""
    read, edge_length = _read(settings), settings["body"]["edge_length"]
    if isinstance(read, TetMesh):
        return {}
    return {key_of(read, edge_length): filled(read, edge_length)}


def _read(settings: Mapping[str, Any]) -> TetMesh | TriangleMesh:
    """Return the mesh of the settings, in metres; a surface is closed."""
    scale, edge_length = settings["body"]["scale"], settings["body"]["edge_length"]
    checks.positive("body.scale", scale)
    read = read_mesh(settings["mesh"], scale=scale)
    if isinstance(read, TriangleMesh):
        read.require_closed("mesh")
        if not 0.0 < edge_length < 1.0:
            raise ValueError(f"`body.edge_length` must be in (0, 1), got {edge_length}.")
    return read


def check_body(settings: Mapping[str, Any]) -> None:
    """Complain of what can be wrong in `[body]` and `[pinned]` before the mesh is read."""
    checks.positive("body.scale", settings["body"]["scale"])
    _check_pinned(settings["pinned"])


def _check_pinned(settings: Mapping[str, Any]) -> None:
    shape = settings["shape"]
    keys = {"box": ("lower", "upper"), "plane": ("point", "normal"), "none": ()}
    if shape not in keys:
        raise ValueError(f'`pinned.shape` must be "box", "plane" or "none", got {shape!r}.')
    for key in keys[shape]:
        _pinned_vector(settings, key)
    if shape == "plane" and not np.any(settings["normal"]):
        raise ValueError("`pinned.normal` must not be zero: it points away from what is held.")


def pinned_nodes(points: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
    """Return the mask of nodes inside the box, or behind the plane, of the table `pinned`."""
    _check_pinned(settings)
    shape = settings["shape"]
    if shape == "none":
        return np.zeros(len(points), bool)
    if shape == "box":
        lower, upper = (_pinned_vector(settings, key) for key in ("lower", "upper"))
        mask = np.all((points >= lower) & (points <= upper), axis=1)
    else:
        point, normal = (_pinned_vector(settings, key) for key in ("point", "normal"))
        mask = (points - point) @ normal <= 0.0
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


def _pinned_vector(settings: Mapping[str, Any], key: str) -> np.ndarray:
    return checks.array(f"pinned.{key}", settings[key], (3,))


def lam_over_mu(poisson_ratio: float) -> float:
    """Return lam/mu of the neo-Hookean solid with this Poisson ratio."""
    if not -1.0 < poisson_ratio < 0.5:
        raise ValueError(
            f"`body.poisson_ratio` must be in (-1, 0.5), got {poisson_ratio}: at 0.5 lam "
            "would be infinite."
        )
    mu, lam = lame(1.0, poisson_ratio)
    return lam / mu
