r"""Adjoint of `render/raster/tile_curved.py`: read the two files side by side.

What lights, materials and the colour C get is found from three sums over the fragments of each
light: of adj_rgb, of g adj_rgb and of h adj_rgb. The shade itself is not needed.

Tests: `tests/render/raster/test_tile_curved.py`, `tests/render/raster/test_tile_adjoints.py`.
"""

from typing import Any

import numpy as np

from adjoint.render.faces.face_setup import COLORS, NORMALS, TOWARDS, add_row
from adjoint.render.raster.pixel_shading import weighted_vjp
from adjoint.render.raster.tile_rows import (
    ADJ_E,
    ADJ_N,
    ADJ_RGB,
    EYE,
    EYE_LENGTHS,
    PART,
    STEP,
    SUMS,
    add_place_sums,
    add_sums,
    found3,
    only,
    power_slopes_vector,
    rows3,
    sum_place,
    weight_vjp,
)
from adjoint.render.shaders.normals import unit_vjp
from adjoint.render.shaders.shading import mirrored_cosine_vjp
from adjsim.algebra.vec3 import add, axpy, dot
from adjsim.jit.backend import device_fn, lit, specialise
from adjsim.jit.row_sums import outer, row_sums
from render.faces.face_setup import load3
from render.raster.light_reach import SHINY
from render.raster.pixel_shading import corner_normals, corner_rows, weighted
from render.raster.tile_rows import (
    LENGTHS,
    NORMALS as UNITS,
    ROW,
    WEIGHTS,
    get3,
    put2,
    put3,
    times,
    whole,
)
from render.shaders.normals import unit_mean, unit_or_zero
from render.shaders.shading import mirrored_cosine


OF_NORMAL, OF_EYE, OF_LAMBERT = rows3(PART)
OF_MIRROR, OF_POWER, _ = rows3(PART + np.uint64(3) * ROW)

sum_normals = row_sums(*outer(WEIGHTS, ADJ_N, STEP))
sum_eyes = row_sums(*outer(WEIGHTS, ADJ_E, STEP))
sum_rgb = row_sums(*(((at,),) for at in rows3(ADJ_RGB)))
sum_dull = row_sums(
    *(((OF_NORMAL, at),) for at in rows3(UNITS)), *(((OF_LAMBERT, at),) for at in rows3(ADJ_RGB))
)
sum_shiny = row_sums(
    *(((OF_NORMAL, n), (OF_EYE, e)) for n, e in zip(rows3(UNITS), rows3(EYE), strict=True)),
    *(((OF_LAMBERT, at),) for at in rows3(ADJ_RGB)),
    *(((OF_MIRROR, at),) for at in rows3(ADJ_RGB)),
    ((OF_POWER,),),
)
IS_SHINY: Any = None  # bound by `specialise`


def _replay_units(f, n, faces, scene, block):
    """Unit normals and vectors to the eye, and 1 over the lengths that they had."""
    normals, towards = corner_normals(f, faces.shaded), corner_rows(f, scene.faces, faces.towards)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        w = get3(block, k + WEIGHTS)
        normal, c = unit_mean(weighted(w, normals))  # (1)
        put3(block, k + UNITS, normal)
        block[k + LENGTHS] = c
        if IS_SHINY:
            e, c = unit_or_zero(weighted(w, towards))  # (2)
            put3(block, k + EYE, e)
            block[k + EYE_LENGTHS] = c


def _cosines_vjp(n, l, scattered, mirrored, p, is_later, block):
    """Undo one light: adds to the adjoints of normals and of vectors to the eye, or writes them."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        normal, adj_rgb = get3(block, k + UNITS), get3(block, k + ADJ_RGB)
        zero, c = lit(0.0, p), dot(normal, l)

        # (4) rgb += scattered g,  (3) g = max(0, n.l)
        adj_g = dot(scattered, adj_rgb)
        adj_a = adj_g if c > zero else zero
        adj_n = axpy(adj_a, l, only(is_later, get3(block, k + ADJ_N)))
        if IS_SHINY:
            # (6) rgb += mirrored h,  (5) h = max(0, r.e)^p
            e = get3(block, k + EYE)
            h, slope_c, slope_p = power_slopes_vector(mirrored_cosine(normal, e, l), p)
            adj_h = dot(mirrored, adj_rgb)
            adj_c = slope_c * adj_h
            adj_n_h, adj_e, adj_a_h = mirrored_cosine_vjp(normal, e, l, adj_c)
            adj_n, adj_a = add(adj_n, adj_n_h), adj_a + adj_a_h
            put3(block, k + ADJ_E, add(only(is_later, get3(block, k + ADJ_E)), adj_e))
            block[k + PART + ROW] = -adj_c
            put2(block, k + PART + np.uint64(3) * ROW, (h, slope_p * adj_h))
        put3(block, k + ADJ_N, adj_n)
        block[k + PART], block[k + PART + np.uint64(2) * ROW] = adj_a, max(c, zero)


def _weights_vjp(f, n, corners, faces, scene, block):
    """Undo the unit vectors and the weights: what the corners get w_k of, and what weights do."""
    normals, towards = corner_normals(f, faces.shaded), corner_rows(f, scene.faces, faces.towards)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        # (1) n = sum w_k n_k, normalised
        adj_m = unit_vjp(get3(block, k + UNITS), block[k + LENGTHS], get3(block, k + ADJ_N))
        put3(block, k + ADJ_N, adj_m)
        adj_w = weighted_vjp(normals, adj_m)
        if IS_SHINY:
            # (2) e = sum w_k v_k, normalised
            adj_v = unit_vjp(get3(block, k + EYE), block[k + EYE_LENGTHS], get3(block, k + ADJ_E))
            put3(block, k + ADJ_E, adj_v)
            adj_w = add(adj_w, weighted_vjp(towards, adj_v))
        weight_vjp(k, corners, adj_w, block)


replay_units: Any = None  # bound by `specialise`
cosines_vjp: Any = None
weights_vjp: Any = None


def _curved_vjp(f, n, corners, faces, scene, adj_scene, row, pair, slots, block):
    """Undo the colours of a block; return the sum of the adjoints of its shade."""
    o, size = scene.owner[f], np.uint64(whole(n))
    C, specular, p = load3(scene.face_colors, f), load3(scene.specular, o), scene.shininess[o, 0]
    diffuse = load3(scene.diffuse, o)
    sum_rgb(block, size, SUMS)
    total = found3(0, block)
    adj_C = times(load3(scene.ambient, o), total)
    replay_units(f, n, faces, scene, block)
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        scattered = times(light, times(diffuse, C))
        cosines_vjp(n, l, scattered, times(light, specular), p, i > 0, block)
        if IS_SHINY:
            sum_shiny(block, size, SUMS)
            mirrored = found3(6, block)
            add_row(adj_scene.lights, i, times(specular, mirrored))
            add_row(adj_scene.specular, row, times(light, mirrored))
            adj_scene.shininess[row, 0] += block[SUMS + np.uint64(9)]
        else:
            sum_dull(block, size, SUMS)
        add_row(adj_scene.directions, i, found3(0, block))
        lit_up = found3(3, block)
        adj_C = add(adj_C, times(times(light, diffuse), lit_up))
        add_row(adj_scene.lights, i, times(times(diffuse, C), lit_up))
        add_row(adj_scene.diffuse, row, times(times(light, C), lit_up))
    weights_vjp(f, n, corners, faces, scene, block)
    sum_normals(block, size, SUMS)
    add_sums(9, pair, NORMALS, slots, block)
    if IS_SHINY:
        sum_eyes(block, size, SUMS)
        add_sums(9, pair, TOWARDS, slots, block)
    sum_place(block, size, SUMS)
    add_place_sums(corners, pair, slots, block)
    for c in range(3):
        slots[pair, COLORS + c] += adj_C[c]
    return times(C, total)


def _for_faces(name, is_shiny):
    """Return the adjoint of a block of faces with a highlight, or of those without."""
    parts = {
        "replay_units": _replay_units,
        "cosines_vjp": _cosines_vjp,
        "weights_vjp": _weights_vjp,
    }
    bound = {
        template_name: device_fn(specialise(template, f"{template_name}_{name}", IS_SHINY=is_shiny))
        for template_name, template in parts.items()
    }
    return device_fn(specialise(_curved_vjp, f"curved_{name}_vjp", IS_SHINY=is_shiny, **bound))


dull_vjp, shiny_vjp = _for_faces("dull", False), _for_faces("shiny", True)


@device_fn
def curved_block_vjp(f, n, corners, faces, scene, adj_scene, row, pair, slots, block):
    """Undo the colours and weights of a block; return the sum of the adjoints of its shade.

    Adds to its slot, and to the adjoints of lights and, in `row`, of materials in `adj_scene`.
    """
    if faces.reach[f, SHINY]:
        return shiny_vjp(f, n, corners, faces, scene, adj_scene, row, pair, slots, block)
    return dull_vjp(f, n, corners, faces, scene, adj_scene, row, pair, slots, block)
