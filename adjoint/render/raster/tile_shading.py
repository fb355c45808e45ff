"""Adjoint of `render/raster/tile_shading.py`: colours of the fragments of a tile, undone in blocks.

What `pixel_color_vjp` does at one fragment is done here stage by stage for a block of them,
last stage first, in loops without a branch, several fragments per instruction. What a block
adds to a slot, a light or a material are sums of products of rows, w_k adj_c, which `row_sums`
adds up (`tile_rows.py`).

A light L and a coefficient k are factors of the same g in L k g: both take their adjoints from
one sum over the fragments, of g times the adjoint.

Tests: `tests/render/raster/test_tile_adjoints.py`, `tests/render/test_soft_raster.py`.
"""

import numpy as np

from adjoint.render.faces.face_setup import COLORS, NORMALS, PIXEL_SLOT, TOWARDS, add_row
from adjoint.render.raster.fragments import flat_vjp_body
from adjoint.render.raster.pixel_shading import face_light_vjp, weighted_vjp
from adjoint.render.raster.tile_curved import curved_block_vjp
from adjoint.render.raster.tile_rows import (
    ADJ_E,
    ADJ_N,
    ADJ_RGB,
    ADJ_S,
    ADJ_W,
    EYE,
    EYE_LENGTHS,
    PART,
    SHARED,
    STEP,
    SUMS,
    add_shared,
    add_sums,
    adjoint_block,
    found3,
    only,
    power_slopes_vector,
    replay_weights,
    rows3,
    sum_shade,
    weights_block_vjp,
)
from adjoint.render.raster.tile_textured import draped_block_vjp, texture_block_vjp
from adjoint.render.shaders.harmonics import harmonic_normal_vjp
from adjoint.render.shaders.normals import unit_vjp
from adjoint.render.shaders.shading import mirrored_cosine_vjp
from adjsim.algebra.vec3 import add, axpy, dot
from adjsim.jit.backend import device_fn, lit, specialise
from adjsim.jit.row_sums import outer, row_sums
from render.faces.face_setup import load3, load_corners
from render.raster.light_reach import CURVED, SHINY, reached_light
from render.raster.pixel_shading import corner_albedo, corner_normals, corner_rows, weighted
from render.raster.tile_curved import has_one_color, is_lit_alone
from render.raster.tile_rows import (
    COLORS as SHADE,
    LENGTHS,
    NORMALS as UNITS,
    ROW,
    SHADED,
    WEIGHTS,
    get3,
    put3,
    times,
    whole,
)
from render.raster.tile_shading import is_plain, light_block
from render.raster.tile_textured import is_draped
from render.shaders.harmonics import N_HARMONICS, harmonics
from render.shaders.normals import unit_or_zero
from render.shaders.shading import mirrored_cosine
from render.textures import is_textured


OF_NORMAL, OF_EYE, OF_COLOR = rows3(PART)
OF_POWER = OF_COLOR + STEP

sum_color = row_sums(*((pair,) for pair in zip(rows3(SHADE), rows3(ADJ_RGB), strict=True)))
sum_one_normal = row_sums(*outer(WEIGHTS, ADJ_N, STEP))
sum_lambert = row_sums(
    *(((OF_NORMAL, at),) for at in rows3(UNITS)), *(((OF_COLOR, at),) for at in rows3(ADJ_S))
)
sum_mirror = row_sums(
    *(((OF_NORMAL, n), (OF_EYE, e)) for n, e in zip(rows3(UNITS), rows3(EYE), strict=True)),
    *(((OF_COLOR, at),) for at in rows3(ADJ_RGB)),
    ((OF_POWER,),),
)
sum_sky = row_sums(
    *(((int(PART) + i * STEP, at),) for i in range(N_HARMONICS) for at in rows3(ADJ_S))
)


@device_fn
def clear_rows(at, n, block):
    """Write 0 to three rows."""
    zero = lit(0.0, block[0])
    for k in range(np.uint64(0), np.uint64(whole(n))):
        put3(block, k + at, (zero, zero, zero))


UNIT, LENGTH, ADJ_UNIT = UNITS, LENGTHS, ADJ_N  # bound by `specialise`


def _unit_block_vjp(n, corners, block):
    """Undo u = sum w_k c_k, normalised: adjoints of the weights, and of the sum, to be shared."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj_m = unit_vjp(get3(block, k + UNIT), block[k + LENGTH], get3(block, k + ADJ_UNIT))
        put3(block, k + ADJ_W, add(get3(block, k + ADJ_W), weighted_vjp(corners, adj_m)))
        put3(block, k + SHARED, adj_m)


# Two functions: where rows lie at places that are arguments, a loop asks first if they overlap.
normals_block_vjp = device_fn(_unit_block_vjp)
eyes_block_vjp = device_fn(
    specialise(_unit_block_vjp, "eyes_block_vjp", UNIT=EYE, LENGTH=EYE_LENGTHS, ADJ_UNIT=ADJ_E)
)


@device_fn
def polish_block_vjp(f, n, faces, scene, adj_scene, row, pair, slots, block):
    """Undo highlights: adjoints of normals and of weights; adds to those of lights, materials."""
    zero = lit(0.0, block[0])
    towards = corner_rows(f, scene.faces, faces.towards)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        e, c = unit_or_zero(weighted(get3(block, k + WEIGHTS), towards))  # (4) replayed
        put3(block, k + EYE, e)
        put3(block, k + ADJ_E, (zero, zero, zero))
        block[k + EYE_LENGTHS] = c

    # (5) rgb = ... + L k max(0, c)^p,  c = r.e
    o = scene.owner[f]
    specular, p = load3(scene.specular, o), scene.shininess[o, 0]
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            normal, e = get3(block, k + UNITS), get3(block, k + EYE)
            h, slope_c, slope_p = power_slopes_vector(mirrored_cosine(normal, e, l), p)
            adj_h = dot(times(light, specular), get3(block, k + ADJ_RGB))
            adj_c = slope_c * adj_h
            adj_n, adj_e, adj_a = mirrored_cosine_vjp(normal, e, l, adj_c)
            put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
            put3(block, k + ADJ_E, add(get3(block, k + ADJ_E), adj_e))
            put3(block, k + PART, (adj_a, -adj_c, h))
            block[k + PART + np.uint64(3) * ROW] = slope_p * adj_h
        sum_mirror(block, np.uint64(whole(n)), SUMS)
        add_row(adj_scene.directions, i, found3(0, block))
        mirrored = found3(3, block)
        add_row(adj_scene.lights, i, times(specular, mirrored))
        add_row(adj_scene.specular, row, times(light, mirrored))
        adj_scene.shininess[row, 0] += block[SUMS + np.uint64(6)]

    # (4) e = sum w_k v_k, normalised
    eyes_block_vjp(n, towards, block)
    add_shared(n, pair, TOWARDS, slots, block)


@device_fn
def paint_block_vjp(f, n, is_shiny, scene, pair, slots, block):
    """Undo s C of colours of corners, or of one colour, whose adjoint its first corner gets."""
    albedo = corner_albedo(f, scene)
    if not scene.smooth[f]:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            put3(block, k + ADJ_S, times(albedo[0], get3(block, k + ADJ_RGB)))  # (3)
        sum_color(block, np.uint64(whole(n)), SUMS)
        add_sums(3, pair, COLORS, slots, block)
        return
    for k in range(np.uint64(0), np.uint64(whole(n))):
        C = weighted(get3(block, k + WEIGHTS), albedo)  # (2) replayed
        adj_rgb = get3(block, k + ADJ_RGB)
        put3(block, k + ADJ_S, times(C, adj_rgb))  # (3)
        adj_C = times(get3(block, k + SHADE), adj_rgb)
        put3(block, k + SHARED, adj_C)
        adj_w = weighted_vjp(albedo, adj_C)  # (2)
        put3(block, k + ADJ_W, add(only(is_shiny, get3(block, k + ADJ_W)), adj_w))
    add_shared(n, pair, COLORS, slots, block)


@device_fn
def harmonic_block_vjp(n, scene, adj_scene, block):
    """Undo the shade of spherical harmonics: adjoints of normals and of the coefficients."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        normal, adj_s = get3(block, k + UNITS), get3(block, k + ADJ_S)
        Y = harmonics(normal)
        put3(block, k + PART, (Y[0], Y[1], Y[2]))
        put3(block, k + PART + np.uint64(3) * ROW, (Y[3], Y[4], Y[5]))
        put3(block, k + PART + np.uint64(6) * ROW, (Y[6], Y[7], Y[8]))
        adj_n = harmonic_normal_vjp(normal, scene.harmonics, adj_s)
        put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
    sum_sky(block, np.uint64(whole(n)), SUMS)
    for i in range(N_HARMONICS):
        add_row(adj_scene.harmonics, i, found3(3 * i, block))


@device_fn
def lambert_block_vjp(f, n, scene, adj_scene, row, block):
    """Undo the shade of lights: adjoints of normals; adds to those of lights and materials."""
    diffuse = load3(scene.diffuse, scene.owner[f])
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            zero, c = lit(0.0, l[0]), dot(get3(block, k + UNITS), l)

            # s = ... + L k max(0, c),  c = n.l
            adj_g = dot(times(light, diffuse), get3(block, k + ADJ_S))
            adj_c = adj_g if c > zero else zero
            put3(block, k + ADJ_N, axpy(adj_c, l, get3(block, k + ADJ_N)))
            block[k + PART], block[k + PART + ROW + ROW] = adj_c, max(c, zero)
        sum_lambert(block, np.uint64(whole(n)), SUMS)
        add_row(adj_scene.directions, i, found3(0, block))
        lit_up = found3(3, block)
        add_row(adj_scene.lights, i, times(diffuse, lit_up))
        add_row(adj_scene.diffuse, row, times(light, lit_up))


@device_fn
def color_block_vjp(f, n, light, faces, scene, adj_scene, row, texels, pair, slots, block):
    """Undo the colours of a block; return the sum of the adjoints of its shade.

    Writes the adjoints of its weights; adds to its slot, and to the adjoints of lights and, in
    `row`, of materials in `adj_scene`. `texels` are places, records, and the first of these.
    """
    places, records, first = texels
    is_curved, is_shiny = faces.reach[f, CURVED], faces.reach[f, SHINY]
    light_block(f, n, light, faces, scene, block)  # (1) replayed
    if is_curved or is_shiny:
        clear_rows(ADJ_N, n, block)
    if is_shiny or has_one_color(f, scene):
        clear_rows(ADJ_W, n, block)
    if is_shiny:
        polish_block_vjp(f, n, faces, scene, adj_scene, row, pair, slots, block)  # (5), (4)
    if is_textured(f, scene):
        texture_block_vjp(  # (3), (2)
            f, n, is_shiny, scene, places, records, first, pair, slots, block
        )
    else:
        paint_block_vjp(f, n, is_shiny, scene, pair, slots, block)  # (3), (2)
    if is_curved:
        # (1) n = sum w_k n_k, normalised,  s = shade(n)
        if scene.harmonics.shape[0] > 0:
            harmonic_block_vjp(n, scene, adj_scene, block)
        else:
            lambert_block_vjp(f, n, scene, adj_scene, row, block)
        normals_block_vjp(n, corner_normals(f, faces.shaded), block)
        add_shared(n, pair, NORMALS, slots, block)
    elif is_shiny:  # on a face with one normal, which gets its adjoint in three parts
        sum_one_normal(block, np.uint64(whole(n)), SUMS)
        add_sums(9, pair, NORMALS, slots, block)
    sum_shade(block, np.uint64(whole(n)), SUMS)
    return found3(0, block)


@device_fn
def plain_vjp(f, s, scene, pair, slots):
    """Undo the one colour s C of a face, whose adjoint is in its slot; return adj_s."""
    adj_rgb = (slots[pair, COLORS], slots[pair, COLORS + 1], slots[pair, COLORS + 2])
    adj_C = times(s, adj_rgb)
    slots[pair, COLORS], slots[pair, COLORS + 1], slots[pair, COLORS + 2] = adj_C
    return times(load3(scene.face_colors, f), adj_rgb)


@device_fn
def pixels_vjp_tile(
    k, f, scene, faces, fragments, adj, pair, slots, adj_scene, row, records, first
):
    """As `pixels_vjp_body`, but for what flows through depths."""
    light = reached_light(f, faces, scene)
    zero, block = lit(0.0, slots[pair, 0]), fragments.shade
    for c in range(np.uint64(9), np.uint64(PIXEL_SLOT)):
        slots[np.uint64(pair), c] = zero
    adj_s, last = (zero, zero, zero), fragments.pair[k + 1]
    if is_plain(f, faces, scene):
        flat_vjp_body(k, fragments, adj, pair, slots)
        adj_s = plain_vjp(f, light[1], scene, pair, slots)
    else:
        corners = load_corners(f, faces.corners)
        for start in range(fragments.pair[k], last, SHADED):
            n = min(SHADED, last - start)
            adjoint_block(start, n, fragments, adj, block)
            if is_draped(f, faces, scene):
                adj_s_block = draped_block_vjp(
                    start, n, f, light[1], corners, scene, fragments, records, first, pair, slots
                )
                adj_s = add(adj_s, adj_s_block)
                continue
            replay_weights(start, n, corners, fragments, block)
            if is_lit_alone(f, faces, scene):
                adj_s_block = curved_block_vjp(
                    f, n, corners, faces, scene, adj_scene, row, pair, slots, block
                )
            else:
                texels = (fragments.spare, records, first + start)
                adj_s_block = color_block_vjp(
                    f, n, light, faces, scene, adj_scene, row, texels, pair, slots, block
                )
                weights_block_vjp(n, corners, pair, slots, block)
            adj_s = add(adj_s, adj_s_block)
    if scene.rounded[f]:
        if scene.harmonics.shape[0] == 0:
            add_row(adj_scene.ambient, row, adj_s)
    else:
        face_light_vjp(f, light, scene, adj_s, adj_scene, row, slots, pair)
