r"""Pictures on a surface: bilinear lookup of a texture at the coordinates u (right), v (up).

    x = u W - 1/2,  y = (1 - v) H - 1/2,   j = floor(x), f = x - j,  i = floor(y), g = y - i
    C = (1 - g) ((1 - f) T_ij + f T_ij+1) + g ((1 - f) T_i+1j + f T_i+1j+1)

The texel in row i and column j is centred at u = (j + 1/2)/W, v = 1 - (i + 1/2)/H; the indices
of texels repeat or are clamped. Where u or v passes the centre of a texel the slope jumps:
there it is the one of the floor, towards larger u and smaller v.

Adjoint: `adjoint/render/textures.py`. Tests: `tests/render/test_textures.py`.
Source: Heckbert, Survey of Texture Mapping, IEEE CG&A 6 (1986).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.algebra.vec3 import axpy, sub
from adjsim.jit.backend import device_fn, lit


class Wrap(StrEnum):
    """What lies beyond the border of a texture."""

    REPEAT = "repeat"  # the texture again
    CLAMP = "clamp"  # its outermost texels


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture that covers a mesh by the coordinates `uv` of its corners.

    Parameters
    ----------
    texels : array_like
        Colours C, (height, width, 3) RGB [-], the first row on top, at v = 1.
    wrap : Wrap or str
        `Wrap.REPEAT` or `Wrap.CLAMP`: where a texel lies that is beyond the border.

    Raises
    ------
    ValueError
        If `texels` is no picture, has no texel or is not finite, or `wrap` is neither.
    """

    texels: Any
    wrap: Wrap | str = Wrap.REPEAT

    def __post_init__(self) -> None:
        hint = "Drop an alpha channel, and divide 8-bit numbers by 255."
        texels = checks.colors("texels", self.texels, ("height", "width", 3), hint=hint).copy()
        if texels.size == 0:
            raise ValueError(f"`texels` must hold at least one texel, got shape {texels.shape}.")
        texels.setflags(write=False)
        object.__setattr__(self, "texels", texels)
        if self.wrap not in list(Wrap):
            raise ValueError(f"`wrap` must be repeat or clamp, got {self.wrap!r}.")
        object.__setattr__(self, "wrap", Wrap(self.wrap))


@device_fn
def is_textured(f, scene):
    """Whether face f has a texture."""
    return scene.uv_faces[f, 0] >= 0


@device_fn
def wrapped(k, n, clamp):
    """Index k of a row or column brought into 0 to n - 1."""
    if 0 <= k < n:
        return k
    if clamp:
        return min(max(k, 0), n - 1)
    return k % n


@device_fn
def texel_cell(uv, image):
    """Row and column of the upper left of the four texels around uv, and the fractions f and g.

    The indices are whole numbers of the type of uv, not yet wrapped.
    """
    half, unity = lit(0.5, uv[0]), lit(1.0, uv[0])
    x = uv[0] * type(unity)(image[2]) - half  # (1)
    y = (unity - uv[1]) * type(unity)(image[1]) - half  # (2)
    j, i = type(unity)(math.floor(x)), type(unity)(math.floor(y))
    return (i, j), (x - j, y - i)


@device_fn
def cell_places(cell, image):
    """Indices of the four texels of a cell, row by row."""
    start, height, width, clamp = image
    i, j = np.int64(cell[0]), np.int64(cell[1])
    if 0 <= i < height - 1 and 0 <= j < width - 1:  # nothing wraps: nearly everywhere
        first = start + width * i + j
        return first, first + 1, first + width, first + width + 1
    left, right = wrapped(j, width, clamp), wrapped(j + 1, width, clamp)
    upper = start + width * wrapped(i, height, clamp)
    lower = start + width * wrapped(i + 1, height, clamp)
    return upper + left, upper + right, lower + left, lower + right


@device_fn
def texel_places(uv, image):
    """Indices of the four texels around uv, row by row, and the fractions f and g."""
    cell, (f, g) = texel_cell(uv, image)
    return cell_places(cell, image), f, g


@device_fn
def load_image(f, scene):
    """Where the texels of the texture of face f start, its height, its width, and its wrap."""
    o = scene.owner[f]
    return scene.images[o, 0], scene.images[o, 1], scene.images[o, 2], scene.images[o, 3]


@device_fn
def texel(texels, k):
    """Texel k."""
    return (texels[k, 0], texels[k, 1], texels[k, 2])


@device_fn
def four_texels_at(at, texels):
    """Four texels."""
    return texel(texels, at[0]), texel(texels, at[1]), texel(texels, at[2]), texel(texels, at[3])


@device_fn
def between_texels(f, g, four):
    """Colour between four texels."""
    above = axpy(f, sub(four[1], four[0]), four[0])  # (1)
    below = axpy(f, sub(four[3], four[2]), four[2])  # (2)
    return axpy(g, sub(below, above), above)  # (3)


@device_fn
def blend_texels(at, f, g, texels):
    """Colour between the four texels `at`."""
    return between_texels(f, g, four_texels_at(at, texels))


@device_fn
def corner_uv(f, scene):
    """Coordinates of the corners of face f."""
    i, j, k = scene.uv_faces[f, 0], scene.uv_faces[f, 1], scene.uv_faces[f, 2]
    return (
        (scene.uv[i, 0], scene.uv[i, 1]),
        (scene.uv[j, 0], scene.uv[j, 1]),
        (scene.uv[k, 0], scene.uv[k, 1]),
    )


@device_fn
def weighted_uv(w, corners):
    """Sum of w_k uv_k over three corners."""
    a, b, c = corners
    return (w[0] * a[0] + w[1] * b[0] + w[2] * c[0], w[0] * a[1] + w[1] * b[1] + w[2] * c[1])


@device_fn
def texture_color(f, w, scene):
    """Colour of the texture of face f where its corners have the weights w."""
    uv = weighted_uv(w, corner_uv(f, scene))  # (1)
    at, a, b = texel_places(uv, load_image(f, scene))  # (2)
    return blend_texels(at, a, b, scene.texels)  # (3)
