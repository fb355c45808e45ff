"""Textures on the fragments of a tile, in blocks; CPU only.

The colour C of a fragment lies between four texels, as in `render/textures.py`. A block of
fragments first finds the places of all its texels, then gathers them, several fragments per
instruction, and then weighs them. A textured face with one shade s needs no more: there its
fragments have the colours s C, in two loops. Another is shaded stage by stage in
`tile_shading.py`, and its shade is multiplied by C here.

Adjoint: `adjoint/render/raster/tile_textured.py`. Tests:
`tests/render/raster/test_tile_shading.py`.
"""

import numpy as np

from adjsim.jit.backend import device_fn
from adjsim.jit.row_gathers import make_row_gather
from render.raster.light_reach import CURVED, SHINY
from render.raster.tile_rows import (
    COLORS,
    FRACTIONS,
    ROW,
    TEXELS,
    THREE_ROWS,
    WEIGHTS,
    fragment_weights,
    get2,
    get3,
    put2,
    put3,
    times,
    whole,
)
from render.textures import (
    between_texels,
    corner_uv,
    is_textured,
    load_image,
    texel_cell,
    weighted_uv,
)


gather_texels = make_row_gather(int(ROW), 4)


@device_fn
def around(k, n, inverse):
    """Whole number k, of rows or columns, brought into 0 to n - 1 by whole turns; vectorises."""
    k -= n * np.floor(k * inverse)
    k = k + n if k < 0.0 else k
    return k - n if k >= n else k


@device_fn
def within(k, last):
    """The number k, or the nearest of 0 and `last`; 0 for what is no number."""
    k = k if k > 0.0 else 0.0
    return last if k > last else k


@device_fn
def two_places(k, n, clamp):
    """Whole number k, of rows or columns, and the next one, as `wrapped` has them; vectorises."""
    size = np.float64(n)
    last = size - 1.0
    first = k if clamp else around(k, size, 1.0 / size)
    second, beyond = first + 1.0, last if clamp else 0.0
    return within(first, last), beyond if second > last else within(second, last)


@device_fn
def find_texels(k, w, corners, image, places, block):
    """Write the fractions between the four texels around fragment k, and their places."""
    start, height, width, clamp = image
    cell, fractions = texel_cell(weighted_uv(w, corners), image)
    put2(block, k + FRACTIONS, fractions)
    upper, lower = two_places(np.float64(cell[0]), height, clamp)
    left, right = two_places(np.float64(cell[1]), width, clamp)
    first, step = np.float64(start), np.float64(width)  # all are exact in float64
    upper, lower = first + step * upper, first + step * lower
    places[k], places[k + ROW] = np.int32(upper + left), np.int32(upper + right)
    places[k + ROW + ROW], places[k + THREE_ROWS] = np.int32(lower + left), np.int32(lower + right)


@device_fn
def load_texels(f, n, scene, places, block):
    """The four texels around each of n fragments, the fractions between them and their places."""
    corners, image = corner_uv(f, scene), load_image(f, scene)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        find_texels(k, get3(block, k + WEIGHTS), corners, image, places, block)
    gather_texels(scene.texels, places, np.uint64(whole(n)), block, TEXELS)


@device_fn
def four_texels(k, block):
    """The four texels around fragment k of a block."""
    at, step = k + TEXELS, THREE_ROWS
    return (
        get3(block, at),
        get3(block, at + step),
        get3(block, at + step + step),
        get3(block, at + step + step + step),
    )


@device_fn
def texture_block(f, n, scene, places, block):
    """Multiply the shade of a block by the colours C of a texture."""
    load_texels(f, n, scene, places, block)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        a, b = get2(block, k + FRACTIONS)
        C = between_texels(a, b, four_texels(k, block))
        put3(block, k + COLORS, times(get3(block, k + COLORS), C))


@device_fn
def is_draped(f, faces, scene):
    """Whether a face has one shade, and a texture."""
    is_reached = faces.reach[f, CURVED] or faces.reach[f, SHINY]
    return is_textured(f, scene) and not is_reached


@device_fn
def drape_block(first, n, f, s, corners, scene, fragments, block):
    """Colours s C of the fragments first..first+n-1 of such a face."""
    uv, image, places = corner_uv(f, scene), load_image(f, scene), fragments.spare
    for k in range(np.uint64(0), np.uint64(whole(n))):
        w = fragment_weights(np.uint64(first) + k, corners, fragments)
        find_texels(k, w, uv, image, places, block)
    gather_texels(scene.texels, places, np.uint64(whole(n)), block, TEXELS)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        a, b = get2(block, k + FRACTIONS)
        put3(block, k + COLORS, times(s, between_texels(a, b, four_texels(k, block))))
