"""How a body looks: a declared look and a surface become a mesh that can be drawn.

One colour is put into the material, ambient = k_a C and diffuse = k_d C with white vertices, so
that colour and light are parameters of the material alone.
"""

from pathlib import Path
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.scene import Material, Mesh
from render.textured_files import read_texture, read_textured
from render.textures import Texture
from render.unwrapping import box_uv
from studies.runs.errors import StudyError
from studies.scene.declared import Look
from studies.scene.mesh_source import Source, tried


BY_PLACE = "place"  # in place of an array: every place of the mesh in its own colour


def material_of(look: Look) -> Material:
    """Return the material, with a flat colour in it; (3,) coefficients."""
    has_own_colors = _has_texture(look) or look.vertex_colors is not None
    color = np.ones(3) if has_own_colors else np.asarray(look.color)
    specular = None if look.specular is None else np.full(3, look.specular)
    return Material(look.ambient * color, look.diffuse * color, specular, look.shininess)


def drawn_mesh(key: str, look: Look, surface: TriangleMesh, source: Source) -> Mesh:
    """Return how a surface is drawn.

    `source` has texture coordinates and colours: the vertices of the surface are its points, or of
    tetrahedra those on the outside.
    """
    more: dict[str, Any] = {"material": material_of(look), "smooth_normals": look.smooth}
    if _has_texture(look):
        if look.vertex_colors is not None:
            raise StudyError(f"`{key}` must have `texture` or `vertex_colors`, got both.")
        uv, uv_faces = _texture_coordinates(key, look, surface, source)
        more |= {"texture": _texture(key, look), "uv": uv, "uv_faces": uv_faces}
    elif look.vertex_colors is not None:
        name = look.vertex_colors
        more["vertex_colors"] = _vertex_colors(key, name, source, surface.points)
        if name in source.corners:
            colors = _as_colors(key, name, source.corners[name].reshape(3 * len(surface.faces), -1))
            at = np.column_stack([surface.faces.ravel(), colors])  # alike at a point is one row
            rows, of_corners = np.unique(at, axis=0, return_inverse=True)
            more["vertex_colors"] = rows[:, 1:]
            more["color_faces"] = of_corners.reshape(surface.faces.shape)
    return Mesh(surface.faces, **more)


def _has_texture(look: Look) -> bool:
    return look.texture is not None or look.texels is not None


def _texture(key: str, look: Look) -> Texture:
    """Return the texture of a look: a picture, of so many texels, or as many in one colour."""
    if look.texture is None:
        assert look.texels is not None
        return Texture(np.tile(np.array(look.color), (*look.texels, 1)))
    texture = tried(f"{key}.texture", lambda: read_texture(str(look.texture)))
    if look.texels is None:
        return texture
    return Texture(averaged(texture.texels, *look.texels), texture.wrap)


def averaged(texels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a texture brought to another size: means over areas, (height, width, 3)."""
    rows, columns = _shares(len(texels), height), _shares(texels.shape[1], width)
    return np.clip(np.einsum("ai,ijc,bj->abc", rows, texels, columns, optimize=True), 0.0, 1.0)


def _shares(n: int, m: int) -> np.ndarray:
    """Return how much of each of n equal parts of a line is in each of m, (m, n); rows sum to 1."""
    ends, mine = np.arange(n + 1) / n, np.arange(m + 1) / m
    low = np.maximum(mine[:-1, None], ends[:-1])
    high = np.minimum(mine[1:, None], ends[1:])
    return m * np.maximum(high - low, 0.0)


def _vertex_colors(key: str, name: str, source: Source, points: np.ndarray) -> np.ndarray:
    """Return an array of the mesh file as colours, (n_vertices, 3) from 0 to 1."""
    if name == BY_PLACE:  # each tells where in the box it is
        low, high = points.min(axis=0), points.max(axis=0)
        return 0.15 + 0.7 * (points - low) / np.where(high > low, high - low, 1.0)
    if name not in source.points:
        raise StudyError(
            f"`{key}.vertex_colors` must name an array of the mesh's points, got {name!r}."
            f"{checks.known_names(name, source.points)}"
        )
    mesh, colors = source.mesh, _as_colors(key, name, source.points[name])
    return colors[mesh.surface().nodes] if isinstance(mesh, TetMesh) else colors


def _as_colors(key: str, name: str, given: np.ndarray) -> np.ndarray:
    """Return rows of an array of the mesh file as colours, (n, 3) from 0 to 1."""
    if given.ndim != 2 or given.shape[1] not in (3, 4):
        raise StudyError(
            f"`{key}.vertex_colors`: {name!r} must have three or four numbers for each point, got "
            f"shape {given.shape}."
        )
    colors = given[:, :3] / (255.0 if given.dtype == np.uint8 else 1.0)
    if not (np.isfinite(colors).all() and colors.min() >= 0.0 and colors.max() <= 1.0):
        raise StudyError(f"`{key}.vertex_colors`: {name!r} must be from 0 to 1, or bytes.")
    return colors


def _texture_coordinates(
    key: str, look: Look, surface: TriangleMesh, source: Source
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the corners of the faces lie on the texture: uv, and its row by corner."""
    file = source.file
    is_obj = file is not None and Path(file).suffix.lower() == ".obj"
    if file is not None and is_obj and look.texture is not None:
        _require_materials(key, file)
    if look.unwrap or (look.texture is None and not is_obj):
        return box_uv(surface.points, surface.faces)
    if file is None or not is_obj:
        raise StudyError(
            f"`{key}.texture` needs texture coordinates, but {file or 'a generated mesh'} is no "
            f".obj file that has them. Give one, or set `{key}.unwrap` = true."
        )
    texture = _texture(key, look)
    _, mesh = tried(f"{key}.texture", lambda: read_textured(file, texture=texture))
    uv_faces = mesh.faces if mesh.uv_faces is None else mesh.uv_faces
    if np.array_equal(mesh.faces, surface.faces):
        return mesh.uv, uv_faces
    if np.array_equal(mesh.faces[:, ::-1], surface.faces):
        return mesh.uv, uv_faces[:, ::-1]
    raise StudyError(
        f"`{key}.texture`: the faces of {file} with texture coordinates are not those of the mesh."
        f" Export it again, as triangles, or set `{key}.unwrap` = true."
    )


def _require_materials(key: str, file: str) -> None:
    path = Path(file)
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word, _, names = line.partition(" ")
        if word != "mtllib" or (path.parent / names.strip()).is_file():
            continue
        if not all((path.parent / name).is_file() for name in names.split()):
            raise StudyError(
                f"`{key}.texture` is given, but the materials that {file} names are missing: "
                f"{names.strip()}. Put the file beside it, or remove the line `mtllib`."
            )
