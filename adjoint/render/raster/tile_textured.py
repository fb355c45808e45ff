"""Adjoint of `render/raster/tile_textured.py`: textures on the fragments of a tile; CPU only.

A textured face with one shade s needs no more than two loops, one before its texels are
gathered and one after; another is undone stage by stage in `tile_shading.py`.

Tests: `tests/render/raster/test_tile_adjoints.py`.
"""

import numpy as np

from adjoint.render.faces.face_setup import COLORS
from adjoint.render.raster.tile_rows import (
    ADJ_RGB,
    ADJ_S,
    ADJ_W,
    SHARED,
    SUMS,
    add_place_sums,
    add_shared,
    found3,
    only,
    replay_weight,
    sum_place,
    sum_shade,
    weight_vjp,
)
from adjoint.render.textures import add_texels, between_vjp
from adjsim.algebra.vec3 import add
from adjsim.jit.backend import device_fn
from render.raster.tile_rows import (
    COLORS as SHADE,
    FRACTIONS,
    ROW,
    TEXELS,
    get2,
    get3,
    put3,
    times,
    whole,
)
from render.raster.tile_textured import find_texels, four_texels, gather_texels, load_texels
from render.textures import between_texels, corner_uv, load_image


@device_fn
def record_block(first, n, places, records, block):
    """Add what n fragments give to their texels, or keep it from record `first` on."""
    if records.total.shape[0] > 0:
        add_texels(places, ROW, block, FRACTIONS, ROW, n, records.total)
        return
    for c in range(4):
        for k in range(np.uint64(0), np.uint64(n)):
            records.at[c, np.uint64(first) + k] = places[np.uint64(c) * ROW + k]
    for c in range(5):
        for k in range(np.uint64(0), np.uint64(n)):
            records.values[c, np.uint64(first) + k] = block[FRACTIONS + np.uint64(c) * ROW + k]


@device_fn
def texel_vjp(k, s, corners, image, block):
    """Undo s C at fragment k: adjoints of s and uv, record of its texels; return adj_w."""
    a, b = get2(block, k + FRACTIONS)
    four, adj_rgb = four_texels(k, block), get3(block, k + ADJ_RGB)
    put3(block, k + ADJ_S, times(between_texels(a, b, four), adj_rgb))  # (3)
    adj_C = times(s, adj_rgb)
    adj_w, adj_uv = between_vjp(a, b, four, corners, image, adj_C)  # (2)
    put3(block, k + SHARED, adj_uv)
    put3(block, k + TEXELS, adj_C)  # beside the fractions
    return adj_w


@device_fn
def texture_block_vjp(f, n, is_shiny, scene, places, records, first, pair, slots, block):
    """Undo s C of a texture: adjoints of shades, weights and uv, records of texels."""
    load_texels(f, n, scene, places, block)  # (2) replayed
    uv, image = corner_uv(f, scene), load_image(f, scene)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj_w = texel_vjp(k, get3(block, k + SHADE), uv, image, block)
        put3(block, k + ADJ_W, add(only(is_shiny, get3(block, k + ADJ_W)), adj_w))
    record_block(first, n, places, records, block)
    add_shared(n, pair, COLORS, slots, block)


@device_fn
def draped_block_vjp(first, n, f, s, corners, scene, fragments, records, at, pair, slots):
    """Undo the colours s C of the fragments first..first+n-1, their weights and uv; return adj_s.

    The record of fragment q is at + q.
    """
    uv, image, size = corner_uv(f, scene), load_image(f, scene), np.uint64(whole(n))
    places, block = fragments.spare, fragments.shade
    for k in range(np.uint64(0), size):
        w = replay_weight(k, first, n, corners, fragments, block)
        find_texels(k, w, uv, image, places, block)
    gather_texels(scene.texels, places, size, block, TEXELS)
    for k in range(np.uint64(0), size):
        weight_vjp(k, corners, texel_vjp(k, s, uv, image, block), block)
    record_block(at + first, n, places, records, block)
    add_shared(n, pair, COLORS, slots, block)
    sum_place(block, size, SUMS)
    add_place_sums(corners, pair, slots, block)
    sum_shade(block, size, SUMS)
    return found3(0, block)
