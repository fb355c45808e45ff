r"""How a body is painted: in one colour, shaded, or with a texture under the same shade.

Where a point x of the surface lies on the texture, by its longitude and latitude seen from the
centre of mass:

    u = atan2(x, z) / 2 pi,    v = 1/2 + asin(y / |x|) / pi

Each corner of a face has a u of its own, within half a turn of the first one's, so that no face
of a round body spans the texture backwards; on the axis, where there is no longitude, it is the
mean of the others'.

Tests: `tests/studies/test_painting.py`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.scene import Material, Mesh
from render.textures import Texture
from studies.errors import StudyError
from studies.settings import require_not_negative, require_positive


POLE = 1e-6  # distance from the axis below which there is no longitude, in parts of |x|
TEXELS = 4  # along the edge of a tile: colours run into one another over the width of one


class Kind(StrEnum):
    """How a body is drawn."""

    COLOR = "color"  # one colour, whatever the light
    SHADING = "shading"  # that colour in the light of a sun: Phong's shade and highlight
    TEXTURE = "texture"  # a texture whose mean is that colour, in the same light


def check_paint(settings: Mapping[str, Any]) -> None:
    """Complain of the tables `paint`, `shading` and `texture`, by key."""
    checks.array("paint.color", settings["paint"]["color"], (3,))
    require_not_negative(settings, "paint", "color")
    require_not_negative(settings, "shading", "ambient", "diffuse", "specular")
    require_positive(settings, "shading", "shininess")
    tiles, contrast = settings["texture"]["tiles"], settings["texture"]["contrast"]
    checks.array("texture.tiles", tiles, (2,))
    checks.positive("texture.tiles", tiles)
    if not 0.0 <= contrast < 1.0:
        raise StudyError(f"`texture.contrast` must be at least 0 and below 1, got {contrast:g}.")


def painted(
    kind: Kind, mesh: TriangleMesh, settings: Mapping[str, Any], rng: np.random.Generator
) -> Mesh:
    """Return a body as it is drawn; of the kinds only the texture draws numbers.

    `mesh` has its centre of mass at the origin.
    """
    color, shading = np.array(settings["paint"]["color"]), settings["shading"]
    material = Material(
        shading["ambient"], shading["diffuse"], shading["specular"], shading["shininess"]
    )
    if kind is Kind.TEXTURE:
        uv, uv_faces = longitude_latitude(mesh)
        return Mesh(
            mesh.faces, material=material, smooth_normals=shading["smooth"],
            texture=tiled(color, settings["texture"], rng), uv=uv, uv_faces=uv_faces,
        )  # fmt: skip
    colors = np.broadcast_to(color, mesh.points.shape)
    if kind is Kind.COLOR:
        return Mesh(mesh.faces, vertex_colors=colors, material=Material(1.0, 0.0))
    return Mesh(
        mesh.faces, vertex_colors=colors, material=material, smooth_normals=shading["smooth"]
    )


def tiled(color: np.ndarray, table: Mapping[str, Any], rng: np.random.Generator) -> Texture:
    """Return a texture of tiles, each drawn about a colour, which is the mean of all.

    Before the mean is set, no channel is off the colour's by more than a part `contrast` of it.
    """
    rows, columns = table["tiles"]
    drawn = color * (1.0 + table["contrast"] * rng.uniform(-1.0, 1.0, (rows, columns, 3)))
    drawn += color - drawn.mean(axis=(0, 1))
    return Texture(drawn.repeat(TEXELS, axis=0).repeat(TEXELS, axis=1))


def longitude_latitude(mesh: TriangleMesh) -> tuple[np.ndarray, np.ndarray]:
    """Return uv of the corners of all faces, (3 n_faces, 2), and their rows, (n_faces, 3)."""
    x = mesh.points[mesh.faces]
    radius = np.maximum(np.linalg.norm(x, axis=-1), np.finfo(np.float64).tiny)
    u = np.arctan2(x[..., 0], x[..., 2]) / (2.0 * np.pi)
    v = 0.5 + np.arcsin(np.clip(x[..., 1] / radius, -1.0, 1.0)) / np.pi
    is_off = np.hypot(x[..., 0], x[..., 2]) > POLE * radius
    first = np.take_along_axis(u, np.argmax(is_off, axis=1)[:, None], axis=1)
    u -= np.rint(u - first)
    mean = np.where(is_off, u, 0.0).sum(axis=1) / np.maximum(is_off.sum(axis=1), 1)
    u = np.where(is_off, u, mean[:, None])
    return np.stack([u, v], axis=-1).reshape(-1, 2), np.arange(u.size).reshape(-1, 3)
