"""Textured meshes from OBJ files, with their MTL material and its picture.

    Ka, Kd, Ks, Ns  ->  ambient, diffuse, specular, shininess of the `Material`
    map_Kd          ->  the `Texture`; vt of each corner  ->  `uv` and `uv_faces`
    -clamp          ->  its `Wrap`; no other option of map_Kd is taken

VTK reads the mesh and Pillow the picture. Of the material file, which is lines of a word and its
numbers, the words above are read and others are left; of the mesh file, once more, which
materials its faces use, since VTK's numbers and names of materials do not agree in order. The
light of a material file is not ours: `illum` is left too, and a texture is multiplied by Kd, as
there, and by Ka.

Tests: `tests/render/test_textured_files.py`.
Source: Wavefront, Advanced Visualizer Manual, app. B1 and B5 (1995).
"""

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adjsim import checks
from adjsim.extras import optional
from adjsim.meshes.cells import merged_points, used_points
from adjsim.meshes.files import find_mesh, read_data
from render.picture_files import open_picture
from render.scene import Material, Mesh
from render.textures import Texture, Wrap


NUMBERS = {"Ka": "ambient", "Kd": "diffuse", "Ks": "specular", "Ns": "shininess"}
PICTURE = "map_Kd"
CLAMP = {"on": Wrap.CLAMP, "off": Wrap.REPEAT}
UNUSED = (
    "has texture coordinates (vt), but no picture (map_Kd of its material): they are left out. "
    "Give `texture` to use them."
)
MOST_TEXELS = 4096 * 4096
EIGHT_BIT = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr")


def read_textured(
    path: str | os.PathLike, *, scale: float = 1.0, texture: Texture | None = None
) -> tuple[np.ndarray, Mesh]:
    """Read a surface with its material and texture.

    Parameters
    ----------
    path : path-like
        The .obj file. The files that it names lie beside it, or where it says from there.
    scale : float
        Factor on the positions, to get metres.
    texture : Texture, optional
        In place of the picture that the material names, if it names one.

    Returns
    -------
    vertices : numpy.ndarray
        (n_vertices, 3) [m]; those at one position are one, whatever their texture coordinates.
    mesh : Mesh
        Its `uv` are by corner, through `uv_faces`. With neither picture nor `texture` it is white,
        and has no texture coordinates, of which a warning tells. The rest of it is for
        `dataclasses.replace`.

    Raises
    ------
    FileNotFoundError
        If the file, its material file or its picture is not there.
    ValueError
        If one of them cannot be read, a face names what is not there, a number is none
        or not finite, more than one material is used or it is not defined, the picture has options
        other than -clamp, or there is a picture and no texture coordinates.
    TypeError
        If `path` is no path, or `texture` no `Texture`.
    """
    if texture is not None:
        checks.instance("texture", texture, Texture)
    checks.positive("scale", checks.number("scale", scale))
    path = find_mesh(path)
    surface = read_data(path)
    if not getattr(surface, "n_cells", 0) or not hasattr(surface, "regular_faces"):
        raise ValueError(f"`mesh`: {path} cannot be read as a surface: no faces were found in it.")
    surface = surface.triangulate()
    faces = np.asarray(surface.regular_faces, np.int64)
    points = _finite(path, "positions of vertices (v)", surface.points)
    vertices, corners = merged_points(points * scale, faces)
    has_area = ~(corners == np.roll(corners, 1, axis=1)).any(axis=1)
    vertices, corners = used_points(vertices, corners[has_area])
    words = _words(path)
    values, library = _material(path, words)
    material = Material(**_coefficients(path, values))
    texture = _picture(library, values) if texture is None else texture
    if texture is None:
        if words.has_uv:
            warnings.warn(f"`mesh`: {path.name} {UNUSED}", stacklevel=2)
        return vertices, Mesh(corners, material=material)
    uv, uv_faces = _coordinates(path, words, surface, faces)
    uv, uv_faces = used_points(uv, uv_faces[has_area])
    return vertices, Mesh(corners, material=material, texture=texture, uv=uv, uv_faces=uv_faces)


def read_texture(path: str | os.PathLike, *, wrap: Wrap | str = Wrap.REPEAT) -> Texture:
    """Read a picture, PNG, JPEG, GIF, BMP, TIFF or WebP, as a texture.

    Parameters
    ----------
    path : path-like
        Its 8-bit numbers are divided by 255, and 16-bit ones of a grey picture by 65535; those
        of colours Pillow reads as 8-bit. An alpha channel is dropped.
    wrap : Wrap or str
        What lies beyond its border.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no picture, or of numbers whose largest is not known.
    TypeError
        If `path` is no path.
    """
    Image = optional("PIL.Image")
    path = Path(checks.instance("path", path, (str, os.PathLike)))
    if not path.is_file():
        is_folder = f", but a folder {path}: name a picture in it" if path.is_dir() else f" {path}"
        raise FileNotFoundError(f"`texture`: there is no file{is_folder}.")
    try:
        with open_picture(path) as picture:
            if picture.width * picture.height > MOST_TEXELS:
                raise ValueError(
                    f"it has {picture.width} x {picture.height} pixels, more than "
                    f"{MOST_TEXELS / 1e6:.0f} million. Scale it down"
                )
            mode = picture.mode
            is_deep = mode.startswith("I;16") or (mode == "I" and picture.format == "PNG")
            if not is_deep and mode not in EIGHT_BIT:
                raise ValueError(f"its numbers are of the kind {mode}, not of 8 or 16 bits")
            if is_deep:
                gray = np.asarray(picture, np.float64) / 65535.0
                texels = np.repeat(gray[..., None], 3, axis=2)
            else:
                texels = np.asarray(picture.convert("RGB"), np.float64) / 255.0
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"`texture`: {path} cannot be read as a picture: {error}. Save it as .png or .jpg."
        ) from error
    return Texture(texels, wrap)


def _finite(path: Path, what: str, rows: Any) -> np.ndarray:
    """Return rows of numbers of a mesh file as float64, if all are finite."""
    rows = np.asarray(rows, np.float64)
    damaged = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if damaged.size:
        raise ValueError(
            f"`mesh`: the {what} of {path.name} must be finite, got {rows[damaged[0]].tolist()} "
            f"at {damaged[0]}, counted from 0. Export it again."
        )
    return rows


class _Words(NamedTuple):
    """What is read of the lines of a mesh file."""

    libraries: list[str]  # what follows each `mtllib`: a material file, or several
    materials: list[str]  # of its faces, "" for none
    has_uv: bool  # whether every corner has texture coordinates


def _coordinates(
    path: Path, words: _Words, surface: Any, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the texture coordinates of a surface, and which of them its corners have."""
    if not words.has_uv:
        raise ValueError(
            f"`mesh`: {path.name} has a picture, but corners without texture coordinates (vt). "
            f"Unwrap it in the program that made it, or remove {PICTURE}."
        )
    uv = _finite(path, "texture coordinates (vt)", surface.active_texture_coordinates)
    return merged_points(uv, faces)


def _words(path: Path) -> _Words:
    libraries, current, used, has_uv = [], "", [], True
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word, *rest = line.split("#")[0].split() or [""]
        if word == "mtllib":
            libraries.append(" ".join(rest))
        elif word == "usemtl":
            current = " ".join(rest)
        elif word == "f":
            used += [] if current in used else [current]
            has_uv = has_uv and all(corner.split("/")[1:2] not in ([], [""]) for corner in rest)
    return _Words(libraries, used, has_uv)


def _material(path: Path, words: _Words) -> tuple[dict[str, list[str]], Path]:
    """Return the words of the one material in use, and the file that has them."""
    used = words.materials
    if not any(used):
        return {}, path
    if len(used) > 1:
        names = ", ".join(name or "none" for name in used)
        raise ValueError(
            f"`mesh`: {path.name} must use one material, got {names}. Split it into an object "
            "for each."
        )
    libraries = _libraries(path, words)
    if not libraries:
        raise ValueError(
            f"`mesh`: {path.name} uses the material {used[0]!r}, but names no file that defines it "
            "(mtllib). Name one, or remove usemtl."
        )
    for library in libraries:
        values = _section(library, used[0])
        if values is not None:
            return values, library
    raise ValueError(
        f"`mesh`: {', '.join(map(str, libraries))} must define the material {used[0]!r}."
    )


def _libraries(path: Path, words: _Words) -> list[Path]:
    """Return the material files in their order: a name may hold blanks, or be several."""
    libraries = []
    for names in words.libraries:
        whole = path.parent / names
        several = [path.parent / name for name in names.split()]
        files = (
            several if not whole.is_file() and any(file.is_file() for file in several) else [whole]
        )
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(
                    f"`mesh`: {path.name} names the materials {file}: no such file."
                )
        libraries += files
    return libraries


def _picture(library: Path, values: dict[str, list[str]]) -> Texture | None:
    """Return the texture that a material names, if any."""
    if PICTURE not in values:
        return None
    said, wrap = values[PICTURE], Wrap.REPEAT
    while said and said[0].startswith("-"):
        option, value = said[0], said[1] if len(said) > 1 else ""
        if option != "-clamp" or value not in CLAMP:
            raise ValueError(
                f"`mesh`: {PICTURE} in {library} must have no option but -clamp on or off, got "
                f"{option} in {' '.join(said)!r}. Apply it to the picture, or to the texture "
                "coordinates."
            )
        wrap, said = CLAMP[value], said[2:]
    if not said:
        raise ValueError(
            f"`mesh`: {PICTURE} in {library} must name a picture, got none. Name one, or remove it."
        )
    picture = library.parent / " ".join(said).replace("\\", "/")
    if not picture.is_file():
        why = "it is a folder" if picture.is_dir() else "no such file"
        raise FileNotFoundError(f"`mesh`: {library} names the picture {picture}: {why}.")
    return read_texture(picture, wrap=wrap)


def _section(library: Path, name: str) -> dict[str, list[str]] | None:
    """Return the words that define one material; None if nothing does."""
    definition: dict[str, list[str]] | None = None
    is_inside = False
    for line in library.read_text(encoding="utf-8", errors="replace").splitlines():
        word, *rest = line.split("#")[0].split() or [""]
        if word == "newmtl":
            is_inside = " ".join(rest) == name
            definition = {} if is_inside else definition
        elif is_inside and definition is not None and word:
            definition[word] = rest
    return definition


def _coefficients(path: Path, values: dict[str, list[str]]) -> dict[str, Any]:
    """Return the arguments of the material."""
    coefficients: dict[str, Any] = {}
    for word, name in NUMBERS.items():
        if word not in values:
            continue
        wanted = 1 if word == "Ns" else 3
        try:
            numbers = [float(text) for text in values[word]]
        except ValueError:
            numbers = []
        if len(numbers) != wanted:
            raise ValueError(
                f"`mesh`: {word} of the material of {path.name} must be {wanted} number(s), got "
                f"{' '.join(values[word])!r}."
            )
        coefficients[name] = numbers if wanted == 3 else numbers[0]
    if not any(coefficients.get("specular", [])):  # matt: Ns says nothing then, and is often 0
        coefficients.pop("specular", None)
        coefficients.pop("shininess", None)
    return coefficients
