"""What is seen: meshes with colours and materials, and the lights on them.

A scene does not hold positions: `rasterize` gets the vertices of every object, so that
one scene is drawn at many instants.

Tests: `tests/render/test_scene.py`.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from adjsim import checks
from render.shaders.harmonics import N_HARMONICS
from render.textures import Texture


BESIDE_LIGHT = 0.4  # ambient coefficient of a material that has none of its own
RESERVED_NAMES = ("camera", "rasterizer")


@dataclass(frozen=True, eq=False)
class Material:
    """How a surface answers light, one number or one per channel.

    Parameters
    ----------
    ambient : array_like, optional
        Part of the colour k_a seen without any light, () or (3,) [-]. None: 0.4, or 1 in a
        scene without lights, which shows colours as they are.
    diffuse : array_like
        Lambert coefficient k_d, () or (3,) [-].
    specular : array_like, optional
        Coefficient k_s of the highlight, () or (3,) [-]: a light of colour L in the unit
        direction l adds L k_s max(0, r.e)^p to a pixel, whatever the colour of the surface,
        r = 2 (n.l) n - l. The unit vector e points from the interpolated position to the eye;
        in an orthographic view, whose eye is far away, against the direction of view. Left
        out, the surface is matt; 0 is a highlight that is dark, but has a gradient.
    shininess : float
        Exponent p of the highlight, positive [-]; without `specular` it does nothing.

    Raises
    ------
    ValueError
        If a shape does not fit or `shininess` is not positive.

    Notes
    -----
    Source: Phong, Illumination for Computer Generated Pictures, CACM 18 (1975). A surface
    with a highlight is shaded pixel by pixel, with the normal of the face or smooth ones.
    """

    ambient: Any = None
    diffuse: Any = 0.6
    specular: Any = None
    shininess: Any = 32.0

    def __post_init__(self) -> None:
        for name in ("ambient", "diffuse", "specular"):
            given = getattr(self, name)
            if name != "diffuse" and given is None:
                continue
            shape = () if np.ndim(given) == 0 else (3,)
            _freeze(self, name, checks.array(f"material.{name}", given, shape))
        shininess = checks.array("material.shininess", self.shininess, ())
        hint = "The exponent of the highlight: 10 is dull, 100 is glossy."
        checks.positive("material.shininess", float(shininess), hint=hint)
        _freeze(self, "shininess", shininess)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return what of it is differentiated, by name."""
        names = ("ambient", "diffuse", "specular", "shininess")
        present = {name: getattr(self, name) for name in names if name != "shininess"}
        if self.specular is not None:
            present["shininess"] = self.shininess
        return {name: value for name, value in present.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh: faces, one kind of colour or a texture, and a material.

    Parameters
    ----------
    faces : array_like
        Corner vertices of each face, (n_faces, 3) integers.
    face_colors : array_like, optional
        One colour per face, (n_faces, 3) RGB [-].
    vertex_colors : array_like, optional
        One colour per vertex, or with `color_faces` those of corners, (n_vertices, 3) or
        (n_colors, 3) RGB [-], interpolated in perspective. With neither, and no texture, the
        mesh is white.
    color_faces : array_like, optional
        Rows of `vertex_colors` at the corners of each face, (n_faces, 3) integers, for colours
        that jump at an edge; by default `faces`.
    material : Material
    smooth_normals : bool
        Shade every pixel with the interpolated normals of the vertices, each a mean of
        its faces weighted by area, in place of one normal for each face.
    texture : Texture, optional
        A picture on the faces, in the place of colours.
    uv : array_like, optional
        Where vertices, or with `uv_faces` corners, lie on the texture, u to the right and v
        up, (n_vertices, 2) or (n_uv, 2) [-], interpolated in perspective.
    uv_faces : array_like, optional
        Rows of `uv` at the corners of each face, (n_faces, 3) integers; by default `faces`.

    Raises
    ------
    ValueError
        If more than one of colours and texture are given, texture or `uv` without the other,
        `color_faces` without `vertex_colors`, a shape does not fit, or an index is negative or
        too large.
    """

    faces: Any
    face_colors: Any = None
    vertex_colors: Any = None
    color_faces: Any = None
    material: Material = field(default_factory=Material)
    smooth_normals: bool = False
    texture: Texture | None = None
    uv: Any = None
    uv_faces: Any = None

    def __post_init__(self) -> None:
        hint = "Cut faces of more corners into triangles."
        with np.errstate(invalid="ignore"):  # of what is no whole number, which is refused below
            faces = checks.array("faces", self.faces, ("n_faces", 3), dtype=np.int64, hint=hint)
        given = np.asarray(self.faces)
        if not np.array_equal(faces, given):
            where = int(np.argwhere(faces != given)[0, 0])
            raise ValueError(
                "`faces` must hold whole numbers, the indices of vertices, got "
                f"{given[where].tolist()} in face {where}."
            )
        if faces.size and faces.min() < 0:
            where = int(np.argwhere(faces < 0)[0, 0])
            raise ValueError(
                f"`faces` must not be negative, got {faces[where].tolist()} in face {where}."
            )
        _freeze(self, "faces", faces)
        if self.face_colors is not None and self.vertex_colors is not None:
            raise ValueError("Give `face_colors` or `vertex_colors`, not both.")
        if self.face_colors is not None:
            shape = (len(faces), 3)
            hint = "One row of RGB for each face."
            colors = checks.colors("face_colors", self.face_colors, shape, hint=hint)
            _freeze(self, "face_colors", colors)
        if self.vertex_colors is not None:
            colors = checks.colors("vertex_colors", self.vertex_colors, ("n_vertices", 3))
            _freeze(self, "vertex_colors", colors)
        if self.color_faces is not None:
            if self.vertex_colors is None:
                raise ValueError("`color_faces` needs `vertex_colors`. Give them, or leave it out.")
            self._check_rows("color_faces", "vertex_colors")
        checks.instance("material", self.material, Material)
        object.__setattr__(
            self, "smooth_normals", checks.flag("smooth_normals", self.smooth_normals)
        )
        self._check_texture()

    def _check_texture(self) -> None:
        if self.texture is None:
            for name in ("uv", "uv_faces"):
                if getattr(self, name) is not None:
                    raise ValueError(f"`{name}` needs a `texture`. Give one, or leave it out.")
            return
        checks.instance("texture", self.texture, Texture)
        for name in ("face_colors", "vertex_colors"):
            if getattr(self, name) is not None:
                raise ValueError(f"Give `{name}` or `texture`, not both.")
        if self.uv is None:
            raise ValueError(
                "`texture` needs `uv`, where vertices (n_vertices, 2) or, with `uv_faces`, "
                "corners lie on it, got None. `render.unwrapping.box_uv` makes them."
            )
        hint = "A column for u and one for v."
        uv = checks.array("uv", self.uv, ("n_uv", 2), hint=hint)
        _freeze(self, "uv", uv)
        if self.uv_faces is not None:
            self._check_rows("uv_faces", "uv")

    def _check_rows(self, name: str, of: str) -> None:
        """Raise unless a field holds rows of another one for the corners of each face."""
        rows = checks.integers(name, getattr(self, name), (len(self.faces), 3))
        _freeze(self, name, rows)
        n = len(getattr(self, of))
        outside = (rows < 0) | (rows >= n)
        if outside.any():
            face = int(np.argwhere(outside)[0, 0])
            raise ValueError(
                f"`{name}` must index the {n} rows of `{of}`, got {rows[face].tolist()} in "
                f"face {face}."
            )


@dataclass(frozen=True, eq=False)
class DirectionalLight:
    """Light from far away.

    Parameters
    ----------
    direction : array_like
        Any vector m that points towards the light, (3,); l = m/|m|.
    color : array_like
        Its RGB, (3,) [-].

    Raises
    ------
    ValueError
        If a shape does not fit, or |m| is 0, or so small or large that its square is.
    """

    direction: Any
    color: Any = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        direction = checks.array("direction", self.direction, (3,))
        if not np.any(direction):
            raise ValueError(
                "`direction` must not be zero: it points from the surface towards the light."
            )
        checks.length("direction", direction, hint="Give a unit vector.")
        _freeze(self, "direction", direction)
        _freeze(self, "color", checks.array("color", self.color, (3,)))

    def unit_direction(self) -> np.ndarray:
        """Return l = m/|m|, (3,)."""
        return self.direction / np.linalg.norm(self.direction)


@dataclass(frozen=True, eq=False)
class SphericalHarmonics:
    """Light from everywhere, as spherical harmonics of order 2 of the normal.

    It shades every object in place of the coefficients of materials and of other lights:
    colour = (sum over k of c_k Y_k(n)) C, with Y as in `render/shaders/harmonics.py`.

    Parameters
    ----------
    coefficients : array_like
        c_k, one row of RGB for each of Y_0 to Y_8, (9, 3) [-].
    """

    coefficients: Any

    def __post_init__(self) -> None:
        shape = (N_HARMONICS, 3)
        hint = "One row of RGB for each harmonic up to order 2."
        given = checks.array("coefficients", self.coefficients, shape, hint=hint)
        _freeze(self, "coefficients", given)


Light = DirectionalLight | SphericalHarmonics


@dataclass(frozen=True, eq=False)
class Scene:
    """Named meshes and named lights. Exact ties in depth go to the object named first.

    Faces in one plane have no exact ties but at shared vertices: their depths differ by rounding.

    Parameters
    ----------
    objects : mapping of str to Mesh
    lights : mapping of str to DirectionalLight or SphericalHarmonics
        Any number of directional lights, or spherical harmonics alone. Without any, objects
        show their own colours, unless their material has an `ambient` coefficient.

    Raises
    ------
    ValueError
        If a name is used twice, is reserved ("camera", "rasterizer") or holds a dot, or
        spherical harmonics are not the only light, or an object under them has a highlight.
    """

    objects: Mapping[str, Mesh]
    lights: Mapping[str, Light] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds in (("objects", (Mesh,)), ("lights", get_args(Light))):
            example = f"{{'a': {kinds[0].__name__}(...)}}"
            members = checks.mapping(name, getattr(self, name), example)
            for key, member in members.items():
                checks.instance(f"{name}[{key!r}]", member, kinds)
                if not isinstance(key, str) or key in RESERVED_NAMES or "." in key or not key:
                    raise ValueError(
                        f"`{name}` must not use the name {key!r}: names hold no dot, and "
                        f"{', '.join(RESERVED_NAMES)} are taken."
                    )
            object.__setattr__(self, name, MappingProxyType(members))
        ambient = BESIDE_LIGHT if self.lights else 1.0
        seen = {key: _with_ambient(mesh, ambient) for key, mesh in self.objects.items()}
        object.__setattr__(self, "objects", MappingProxyType(seen))
        twice = sorted(set(self.objects) & set(self.lights))
        n_harmonics = sum(isinstance(m, SphericalHarmonics) for m in self.lights.values())
        if n_harmonics and len(self.lights) > 1:
            raise ValueError(
                "`lights` must hold spherical harmonics alone, which stand for all light at once, "
                f"got {', '.join(self.lights)}. Leave out the others."
            )
        glossy = [name for name, m in self.objects.items() if m.material.specular is not None]
        if n_harmonics and glossy:
            raise ValueError(
                "`material.specular` must be left out under spherical harmonics, which come from "
                f"everywhere and make no highlight, but {glossy[0]!r} has one. Use directional "
                "lights, or a material without `specular`."
            )
        if twice:
            raise ValueError(f"`lights` must not use the name of an object, got {twice[0]!r}.")


def _with_ambient(mesh: Mesh, ambient: float) -> Mesh:
    """Return a mesh whose material says how much of its colour is seen without light."""
    if mesh.material.ambient is not None:
        return mesh
    seen = copy.copy(mesh)  # the rest is checked
    object.__setattr__(seen, "material", replace(mesh.material, ambient=ambient))
    return seen


def _freeze(owner: Any, name: str, value: np.ndarray) -> None:
    """Set a field of a frozen dataclass to a read-only copy of the array."""
    value = value.copy()
    value.setflags(write=False)
    object.__setattr__(owner, name, value)
