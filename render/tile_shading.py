"""Colours of the fragments of a tile whose faces are shaded pixel by pixel.

What `pixel_color` does at one fragment is done here stage by stage for a block of them: the
loops over weights, normals, lights and colours have no branch, so that they work several
fragments per instruction. The stages are those of `render/pixel_shading.py`.

Tests: `tests/render/test_tile_shading.py`.
"""

import numpy as np

from adjsim.backend import cpu_kernel, device_fn, lit
from adjsim.lanes import LANES
from adjsim.vec3 import add, scale
from render.barycentrics import barycentrics, corner_weights
from render.coverage import LN2_HIGH, LN2_LOW, exp_minus
from render.face_setup import load3, load_corners
from render.harmonics import harmonic_shade
from render.normals import unit_or_zero
from render.pixel_shading import (
    corner_albedo,
    corner_normals,
    corner_rows,
    face_light,
    weighted,
)
from render.reach import CURVED, SHINY
from render.shading import lambert, mirrored_cosine
from render.textures import (
    between_texels,
    cell_places,
    corner_uv,
    four_texels_at,
    is_textured,
    load_image,
    texel_cell,
    weighted_uv,
)


SHADED = 112  # fragments that are shaded at a time
GROUP = np.uint64(LANES)  # loops run over whole groups: what lies beyond is not used
ROW = np.uint64(SHADED + LANES)  # of the scratch, a number for each fragment
WEIGHTS, NORMALS, COLORS = np.uint64(0) * ROW, np.uint64(3) * ROW, np.uint64(6) * ROW
LENGTHS, CELLS, FRACTIONS = np.uint64(9) * ROW, np.uint64(10) * ROW, np.uint64(12) * ROW
TEXELS = np.uint64(14) * ROW
SCRATCH = 26 * (SHADED + LANES)
MANTISSA, ONE = np.int64((1 << 52) - 1), np.int64(1023 << 52)  # bits of a float64
ARTANH = tuple(1.0 / k for k in range(21, 0, -2))


@device_fn
def whole(n):
    """The whole groups of LANES that hold n."""
    return (n + (LANES - 1)) // LANES * LANES


@device_fn
def get3(block, at):
    """Three numbers of a fragment, a row apart: rows lie in one array, so loops vectorise."""
    return block[at], block[at + ROW], block[at + ROW + ROW]


@device_fn
def put3(block, at, value):
    """Write three numbers of a fragment."""
    block[at], block[at + ROW], block[at + ROW + ROW] = value


@device_fn
def get2(block, at):
    """Two numbers of a fragment."""
    return block[at], block[at + ROW]


@device_fn
def put2(block, at, value):
    """Write two numbers of a fragment."""
    block[at], block[at + ROW] = value


@device_fn
def times(a, b):
    """Products of colours, per channel."""
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


@device_fn
def weigh_block(first, n, corners, fragments, block):
    """Weights of the corners at the fragments first..first+n-1."""
    a0, a1, a2, z = corners
    for k in range(np.uint64(0), np.uint64(whole(n))):
        q = np.uint64(first) + k
        b = barycentrics((fragments.p_x[q], fragments.p_y[q]), a0, a1, a2)
        w, _ = corner_weights(b, z)
        put3(block, k + WEIGHTS, w)


@device_fn
def light_lambert(f, n, scene, block):
    """Shade of the fragments of a block, from their normals."""
    o = scene.owner[f]
    ambient, diffuse = load3(scene.ambient, o), load3(scene.diffuse, o)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        put3(block, k + COLORS, ambient)
    for i in range(scene.directions.shape[0]):
        l, color = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            s = lambert(get3(block, k + NORMALS), l, color, diffuse)
            put3(block, k + COLORS, add(get3(block, k + COLORS), s))


@device_fn
def light_block(f, n, light, faces, scene, block):
    """Normals, 1 over the lengths that they had, and shade of the fragments of a block."""
    if not faces.reach[f, CURVED]:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            put3(block, k + NORMALS, light[0])
            put3(block, k + COLORS, light[1])
        return
    normals = corner_normals(f, faces.shaded)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        unit, c = unit_or_zero(weighted(get3(block, k + WEIGHTS), normals))
        put3(block, k + NORMALS, unit)
        block[k + LENGTHS] = c
    if scene.harmonics.shape[0] > 0:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            s = harmonic_shade(get3(block, k + NORMALS), scene.harmonics)
            put3(block, k + COLORS, s)
    else:
        light_lambert(f, n, scene, block)


@device_fn
def find_cells(f, n, scene, block):
    """Rows and columns of the upper left of four texels, and the fractions, as numbers."""
    corners, image = corner_uv(f, scene), load_image(f, scene)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        cell, fractions = texel_cell(weighted_uv(get3(block, k + WEIGHTS), corners), image)
        put2(block, k + CELLS, cell)
        put2(block, k + FRACTIONS, fractions)


@device_fn
def put_texels(k, at, scene, block):
    """Write the four texels `at` around fragment k of a block."""
    step = np.uint64(3) * ROW
    four = four_texels_at(
        (np.uint64(at[0]), np.uint64(at[1]), np.uint64(at[2]), np.uint64(at[3])), scene.texels
    )
    put3(block, k + TEXELS, four[0])
    put3(block, k + TEXELS + step, four[1])
    put3(block, k + TEXELS + step + step, four[2])
    put3(block, k + TEXELS + step + step + step, four[3])


@device_fn
def load_texels(f, n, scene, block):
    """The four texels around each of n fragments: the one loop that does not vectorise."""
    image = load_image(f, scene)
    for k in range(np.uint64(0), np.uint64(n)):
        put_texels(k, cell_places(get2(block, k + CELLS), image), scene, block)


@device_fn
def four_texels(k, block):
    """The four texels around fragment k of a block."""
    at, step = k + TEXELS, np.uint64(3) * ROW
    return (
        get3(block, at),
        get3(block, at + step),
        get3(block, at + step + step),
        get3(block, at + step + step + step),
    )


@device_fn
def paint_block(f, n, scene, block):
    """Multiply the shade of a block by its colours C."""
    if is_textured(f, scene):
        find_cells(f, n, scene, block)
        load_texels(f, n, scene, block)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            a, b = get2(block, k + FRACTIONS)
            C = between_texels(a, b, four_texels(k, block))
            put3(block, k + COLORS, times(get3(block, k + COLORS), C))
        return
    albedo = corner_albedo(f, scene)
    if not scene.smooth[f]:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            put3(block, k + COLORS, times(get3(block, k + COLORS), albedo[0]))
        return
    for k in range(np.uint64(0), np.uint64(whole(n))):
        C = weighted(get3(block, k + WEIGHTS), albedo)
        put3(block, k + COLORS, times(get3(block, k + COLORS), C))


@device_fn
def log_vector(c):
    """log(c) for c > 0, not denormal, to two roundings, in operations that vectorise; CPU only.

    c = 2^k m with 1/sqrt(2) <= m <= sqrt(2), log(m) = 2 artanh(f), f = (m - 1)/(m + 1): the rest
    of the series is below 3e-18 (Cody & Waite, Software Manual for the Elementary Functions,
    1980, ch. 5).
    """
    bits = np.float64(c).view(np.int64)
    m = np.int64((bits & MANTISSA) | ONE).view(np.float64)
    is_large = m > 1.4142135623730951
    k = np.float64(np.int32((bits >> np.int64(52)) - np.int64(1023))) + (1.0 if is_large else 0.0)
    m = 0.5 * m if is_large else m
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    series = ARTANH[0]
    for a in ARTANH[1:]:
        series = series * s + a
    return type(c)(k * LN2_HIGH + (k * LN2_LOW + 2.0 * f * series))


@device_fn
def power_vector(c, p):
    """max(0, c)^p as `power` has it, but for a few roundings times p log(c); vectorises."""
    zero, tiny = lit(0.0, c), lit(1e-30, c)
    h = exp_minus(max(-p * log_vector(max(c, tiny)), zero))
    return h if c > tiny else zero


@device_fn
def polish_block(f, n, faces, scene, block):
    """Add the highlights of all lights to a block. Its weights become vectors to the eye."""
    towards = corner_rows(f, scene.faces, faces.towards)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        e, _ = unit_or_zero(weighted(get3(block, k + WEIGHTS), towards))
        put3(block, k + WEIGHTS, e)
    o = scene.owner[f]
    specular, p = load3(scene.specular, o), scene.shininess[o, 0]
    for i in range(scene.directions.shape[0]):
        l, color = load3(scene.directions, i), load3(scene.lights, i)
        light = times(color, specular)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            c = mirrored_cosine(get3(block, k + NORMALS), get3(block, k + WEIGHTS), l)
            h = scale(power_vector(c, p), light)
            put3(block, k + COLORS, add(get3(block, k + COLORS), h))


@device_fn
def is_plain(f, faces, scene):
    """Whether a face has one colour after all, for what light reaches of it."""
    is_reached = faces.reach[f, CURVED] or faces.reach[f, SHINY]
    return not (is_reached or scene.smooth[f] or is_textured(f, scene))


@device_fn
def shade_face(f, first, last, faces, scene, fragments):
    """Colours of the fragments first..last-1, all of face f."""
    corners = load_corners(f, faces.corners)
    light, block = face_light(f, faces.reach[f, CURVED], faces, scene), fragments.shade
    if is_plain(f, faces, scene):
        rgb = times(light[1], load3(scene.face_colors, f))
        for q in range(np.uint64(first), np.uint64(last)):
            fragments.rgb[q, 0], fragments.rgb[q, 1], fragments.rgb[q, 2] = rgb
        return
    for start in range(first, last, SHADED):
        n = min(SHADED, last - start)
        weigh_block(start, n, corners, fragments, block)
        light_block(f, n, light, faces, scene, block)
        paint_block(f, n, scene, block)
        if faces.reach[f, SHINY]:
            polish_block(f, n, faces, scene, block)
        for k in range(np.uint64(0), np.uint64(n)):
            q = np.uint64(start) + k
            rgb = get3(block, k + COLORS)
            fragments.rgb[q, 0], fragments.rgb[q, 1], fragments.rgb[q, 2] = rgb


def _shade_tile(tile, scene, faces, tiles, fragments):
    """Colours of the fragments of a tile whose faces are shaded pixel by pixel."""
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        f, k = np.uint64(tiles.faces[pair]), pair - tiles.start[tile]
        if scene.by_pixel[f]:
            shade_face(f, fragments.pair[k], fragments.pair[k + 1], faces, scene, fragments)


shade_tile = cpu_kernel(_shade_tile)
