"""Whether every face of a film has soft edges: `seams`, where a scene file leaves it open.

Only outlines are soft by default, so where an edge between two colours lies inside the outline has
no slope (`docs/seamless.md`). Where a body may turn and has such edges, much of what a film shows
of its turning is there, and every face is drawn with soft edges.
"""

from collections.abc import Mapping

import numpy as np

from render.scene import Mesh
from render.textures import Wrap
from studies.scene.building import BuiltScene
from studies.scene.declared import Film, Rigid, Scene, Soft
from studies.scene.motion import AtRest, Settled


JUMP = 0.1  # difference of colours [-] that is an edge
FLAT, FLAT_PART = 0.05, 0.9  # of a texture: change within a face that is none, in so many faces
INSIDE = 0.2  # of the way from a corner to the middle of its face: where a texture is looked at


def with_seams(scene: Scene, built: BuiltScene, film: Film) -> bool:
    """Return whether every face of a film has soft edges: as declared, or as its bodies need it."""
    return bool(_showing_edges(scene, built, film)) if film.seams is None else film.seams


def notes_on_seams(scene: Scene, built: BuiltScene, films: Mapping[str, Film]) -> list[str]:
    """Return for which films `seams` was chosen, and why."""
    notes = []
    for name, film in films.items():
        bodies = _showing_edges(scene, built, film) if film.seams is None else []
        if bodies:
            notes.append(
                f"`observations.{name}.seams` = true is taken: `bodies.{bodies[0]}` may turn, and "
                "colours jump between its faces, whose edges would else have no slope."
            )
    return notes


def _showing_edges(scene: Scene, built: BuiltScene, film: Film) -> list[str]:
    """Return the names of the bodies of a film that may turn and have colours that jump."""
    if film.compare == "silhouette" or isinstance(built.system, AtRest | Settled):
        return []
    names = scene.bodies if film.bodies is None else film.bodies
    return [
        name
        for name in names
        if isinstance(body := scene.bodies[name], Rigid | Soft)
        and body.held is None
        and _has_edges(built.meshes[name])
    ]


def _has_edges(mesh: Mesh) -> bool:
    """Whether light, of which scenes have one at least, or colours jump from a face to the next."""
    is_faceted = not mesh.smooth_normals and bool(np.any(mesh.material.diffuse))
    return is_faceted or has_color_edges(mesh)


def has_color_edges(mesh: Mesh) -> bool:
    """Whether the colours of a mesh jump from a face to the next."""
    colors = _corner_colors(mesh)
    if colors is None:
        return False
    n = int(mesh.faces.max()) + 1
    low, high = np.full((n, 3), np.inf), np.full((n, 3), -np.inf)
    np.minimum.at(low, mesh.faces, colors)
    np.maximum.at(high, mesh.faces, colors)
    return bool((high - low).max() > JUMP)


def _corner_colors(mesh: Mesh) -> np.ndarray | None:
    """Return the colours of faces at their corners, (n_faces, 3, 3); None where they are even."""
    if mesh.face_colors is not None:
        return np.repeat(mesh.face_colors[:, None], 3, axis=1)
    if mesh.color_faces is not None:
        return mesh.vertex_colors[mesh.color_faces]
    if mesh.texture is None:
        return None  # a vertex has one colour in all its faces
    uv = mesh.uv[mesh.faces if mesh.uv_faces is None else mesh.uv_faces]
    middle = uv.mean(axis=1, keepdims=True)
    at = np.concatenate([(1.0 - INSIDE) * uv + INSIDE * middle, middle], axis=1)
    size = np.array(mesh.texture.texels.shape[1::-1])
    texel = np.floor(np.stack([at[..., 0], 1.0 - at[..., 1]], axis=-1) * size).astype(int)
    texel = np.clip(texel, 0, size - 1) if mesh.texture.wrap is Wrap.CLAMP else texel % size
    colors = mesh.texture.texels[texel[..., 1], texel[..., 0]]  # the nearest
    is_flat = np.ptp(colors, axis=1).max(axis=-1) < FLAT
    return colors[:, :3] if is_flat.mean() >= FLAT_PART else None
