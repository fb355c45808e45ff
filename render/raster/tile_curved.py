"""Colours of curved faces of one colour C in directional lights, in blocks; CPU only.

There a fragment needs two cosines of each light alone, g = max(0, n.l) and h = max(0, r.e)^p:

    rgb = k_a C + sum (L k_d C) g + (L k_s) h

and one loop works both. Other faces that are shaded pixel by pixel are in `tile_shading.py`.

Adjoint: `adjoint/render/raster/tile_curved.py`. Tests: `tests/render/raster/test_tile_curved.py`.
"""

from typing import Any

import numpy as np

from adjsim.algebra.vec3 import axpy, dot
from adjsim.jit.backend import device_fn, lit, specialise
from render.faces.face_setup import load3
from render.raster.light_reach import CURVED, SHINY
from render.raster.pixel_shading import corner_normals, corner_rows, weighted
from render.raster.tile_rows import COLORS, NORMALS, WEIGHTS, get3, power_vector, put3, times, whole
from render.shaders.normals import unit_mean, unit_or_zero
from render.shaders.shading import mirrored_cosine
from render.textures import is_textured


IS_SHINY: Any = None  # bound by `specialise`


@device_fn
def has_one_color(f, scene):
    """Whether a face has one colour before any light."""
    return not (scene.smooth[f] or is_textured(f, scene))


@device_fn
def is_lit_alone(f, faces, scene):
    """Whether a face is one of those that are worked here."""
    return faces.reach[f, CURVED] and has_one_color(f, scene) and scene.harmonics.shape[0] == 0


def _light_curved(f, n, faces, scene, block):
    """Colours of a block of a face from its weights, which become vectors to the eye."""
    o = scene.owner[f]
    C, specular, p = load3(scene.face_colors, f), load3(scene.specular, o), scene.shininess[o, 0]
    normals, towards = corner_normals(f, faces.shaded), corner_rows(f, scene.faces, faces.towards)
    of_dark, diffuse = times(load3(scene.ambient, o), C), times(load3(scene.diffuse, o), C)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        w = get3(block, k + WEIGHTS)
        normal, _ = unit_mean(weighted(w, normals))  # (1)
        put3(block, k + NORMALS, normal)
        put3(block, k + COLORS, of_dark)
        if IS_SHINY:
            e, _ = unit_or_zero(weighted(w, towards))  # (2)
            put3(block, k + WEIGHTS, e)
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        scattered, mirrored = times(light, diffuse), times(light, specular)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            normal, zero = get3(block, k + NORMALS), lit(0.0, p)
            g = max(dot(normal, l), zero)  # (3)
            rgb = axpy(g, scattered, get3(block, k + COLORS))  # (4)
            if IS_SHINY:
                h = power_vector(mirrored_cosine(normal, get3(block, k + WEIGHTS), l), p)  # (5)
                rgb = axpy(h, mirrored, rgb)  # (6)
            put3(block, k + COLORS, rgb)


light_dull = device_fn(specialise(_light_curved, "light_dull", IS_SHINY=False))
light_shiny = device_fn(specialise(_light_curved, "light_shiny", IS_SHINY=True))


@device_fn
def light_curved(f, n, faces, scene, block):
    """Colours of the fragments of a block, from their weights."""
    if faces.reach[f, SHINY]:
        light_shiny(f, n, faces, scene, block)
    else:
        light_dull(f, n, faces, scene, block)
