"""Colours of the fragments of a tile whose faces are shaded pixel by pixel.

What `pixel_color` does at one fragment is done here stage by stage for a block of them: the
loops over weights, normals, lights and colours have no branch, so that they work several
fragments per instruction. `render/raster/pixel_shading.py` has the same stages.

Adjoint: `adjoint/render/raster/tile_shading.py`. Tests: `tests/render/raster/test_tile_shading.py`.
"""

import numpy as np

from adjsim.algebra.vec3 import add, scale
from adjsim.jit.backend import device_fn, shared_fn
from render.faces.face_setup import load3, load_corners
from render.raster.light_reach import CURVED, SHINY, reached_light
from render.raster.pixel_shading import corner_albedo, corner_normals, corner_rows, weighted
from render.raster.tile_curved import has_one_color, is_lit_alone, light_curved
from render.raster.tile_rows import (
    COLORS,
    LENGTHS,
    NORMALS,
    SHADED,
    WEIGHTS,
    get3,
    power_vector,
    put3,
    times,
    weigh_block,
    whole,
    write_colors,
)
from render.raster.tile_textured import drape_block, is_draped, texture_block
from render.shaders.harmonics import harmonic_shade
from render.shaders.normals import unit_mean, unit_or_zero
from render.shaders.shading import lambert, mirrored_cosine
from render.textures import is_textured


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
            put3(block, k + COLORS, light[1])
        if faces.reach[f, SHINY]:
            for k in range(np.uint64(0), np.uint64(whole(n))):
                put3(block, k + NORMALS, light[0])
        return
    normals = corner_normals(f, faces.shaded)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        unit, c = unit_mean(weighted(get3(block, k + WEIGHTS), normals))
        put3(block, k + NORMALS, unit)
        block[k + LENGTHS] = c
    if scene.harmonics.shape[0] > 0:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            s = harmonic_shade(get3(block, k + NORMALS), scene.harmonics)
            put3(block, k + COLORS, s)
    else:
        light_lambert(f, n, scene, block)


@device_fn
def paint_block(f, n, scene, block):
    """Multiply the shade of a block by colours C of corners, or by one colour."""
    albedo = corner_albedo(f, scene)
    if not scene.smooth[f]:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            put3(block, k + COLORS, times(get3(block, k + COLORS), albedo[0]))
        return
    for k in range(np.uint64(0), np.uint64(whole(n))):
        C = weighted(get3(block, k + WEIGHTS), albedo)
        put3(block, k + COLORS, times(get3(block, k + COLORS), C))


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
    return has_one_color(f, scene) and not is_reached


@device_fn
def shade_face(f, first, last, faces, scene, fragments):
    """Colours of the fragments first..last-1, all of face f."""
    corners = load_corners(f, faces.corners)
    light, block = reached_light(f, faces, scene), fragments.shade
    if is_plain(f, faces, scene):
        rgb = times(light[1], load3(scene.face_colors, f))
        for q in range(np.uint64(first), np.uint64(last)):
            fragments.rgb[q, 0], fragments.rgb[q, 1], fragments.rgb[q, 2] = rgb
        return
    for start in range(first, last, SHADED):
        n = min(SHADED, last - start)
        if is_draped(f, faces, scene):
            drape_block(start, n, f, light[1], corners, scene, fragments, block)
        elif is_lit_alone(f, faces, scene):
            weigh_block(start, n, corners, fragments, block)
            light_curved(f, n, faces, scene, block)
        else:
            weigh_block(start, n, corners, fragments, block)
            light_block(f, n, light, faces, scene, block)
            if is_textured(f, scene):
                texture_block(f, n, scene, fragments.spare, block)
            else:
                paint_block(f, n, scene, block)
            if faces.reach[f, SHINY]:
                polish_block(f, n, faces, scene, block)
        write_colors(start, n, fragments, block)


def _shade_tile(tile, scene, faces, tiles, fragments):
    """Colours of the fragments of a tile whose faces are shaded pixel by pixel."""
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        f, k = np.uint64(tiles.faces[pair]), pair - tiles.start[tile]
        if scene.by_pixel[f]:
            shade_face(f, fragments.pair[k], fragments.pair[k + 1], faces, scene, fragments)


shade_tile = shared_fn(_shade_tile)
