"""What is seen: meshes with colours and materials, and the lights on them.

A scene does not hold positions: `rasterize` gets the vertices of every object, so that
one scene is drawn at many instants.

Tests: `tests/render/test_scene.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from adjsim import checks
from render.harmonics import N_HARMONICS


RESERVED_NAMES = ("camera", "rasterizer")


@dataclass(frozen=True, eq=False)
class Material:
    """How a surface answers light, one number or one per channel.

    Parameters
    ----------
    ambient : array_like
        Part of the colour k_a seen without any light, () or (3,) [-].
    diffuse : array_like
        Lambert coefficient k_d, () or (3,) [-].
    """

    ambient: Any = 0.4
    diffuse: Any = 0.6

    def __post_init__(self) -> None:
        for name in ("ambient", "diffuse"):
            given = getattr(self, name)
            shape = () if np.ndim(given) == 0 else (3,)
            _freeze(self, name, checks.array(f"material.{name}", given, shape))


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh: faces, one kind of colour, and a material.

    Parameters
    ----------
    faces : array_like
        Corner vertices of each face, (n_faces, 3) integers.
    face_colors : array_like, optional
        One colour per face, (n_faces, 3) RGB [-].
    vertex_colors : array_like, optional
        One colour per vertex, (n_vertices, 3) RGB [-], interpolated in perspective. With
        neither, the mesh is white.
    material : Material
    smooth_normals : bool
        Shade every pixel with the interpolated normals of the vertices, which are those of
        their faces weighted by area, in place of one normal for each face.

    Raises
    ------
    ValueError
        If both kinds of colour are given, a shape does not fit, or an index is negative.
    """

    faces: Any
    face_colors: Any = None
    vertex_colors: Any = None
    material: Material = field(default_factory=Material)
    smooth_normals: bool = False

    def __post_init__(self) -> None:
        faces = checks.array("faces", self.faces, ("n_faces", 3), dtype=np.int64)
        if not np.array_equal(faces, np.asarray(self.faces)):
            raise ValueError("`faces` must hold whole numbers: the indices of vertices.")
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
            _freeze(
                self, "face_colors", checks.array("face_colors", self.face_colors, shape, hint=hint)
            )
        if self.vertex_colors is not None:
            colors = checks.array("vertex_colors", self.vertex_colors, ("n_vertices", 3))
            _freeze(self, "vertex_colors", colors)
        checks.instance("material", self.material, Material)
        object.__setattr__(
            self, "smooth_normals", checks.flag("smooth_normals", self.smooth_normals)
        )


@dataclass(frozen=True, eq=False)
class DirectionalLight:
    """Light from far away.

    Parameters
    ----------
    direction : array_like
        Any vector m != 0 that points towards the light, (3,); l = m/|m|.
    color : array_like
        Its RGB, (3,) [-].
    """

    direction: Any
    color: Any = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        direction = checks.array("direction", self.direction, (3,))
        if not np.any(direction):
            raise ValueError(
                "`direction` must not be zero: it points from the surface towards the light."
            )
        _freeze(self, "direction", direction)
        _freeze(self, "color", checks.array("color", self.color, (3,)))


@dataclass(frozen=True, eq=False)
class SphericalHarmonics:
    """Light from everywhere, as spherical harmonics of order 2 of the normal.

    It shades every object in place of the coefficients of materials and of other lights:
    colour = (sum over k of c_k Y_k(n)) C, with Y as in `render/harmonics.py`.

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
    """Named meshes and named lights. Ties in depth go to the object named first.

    Parameters
    ----------
    objects : mapping of str to Mesh
    lights : mapping of str to DirectionalLight or SphericalHarmonics
        Any number of directional lights, or spherical harmonics alone.

    Raises
    ------
    ValueError
        If a name is used twice, is reserved ("camera", "rasterizer") or holds a dot, or
        spherical harmonics are not the only light.
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
        twice = sorted(set(self.objects) & set(self.lights))
        n_harmonics = sum(isinstance(m, SphericalHarmonics) for m in self.lights.values())
        if n_harmonics and len(self.lights) > 1:
            raise ValueError(
                "`lights` must hold spherical harmonics alone, which stand for all light at once, "
                f"got {', '.join(self.lights)}. Leave out the others."
            )
        if twice:
            raise ValueError(f"`lights` must not use the name of an object, got {twice[0]!r}.")


def _freeze(owner: Any, name: str, value: np.ndarray) -> None:
    """Set a field of a frozen dataclass to a read-only copy of the array."""
    value = value.copy()
    value.setflags(write=False)
    object.__setattr__(owner, name, value)
