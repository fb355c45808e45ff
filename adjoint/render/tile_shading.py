"""Adjoint of `render/tile_shading.py`: colours of the fragments of a tile, undone in blocks.

What `pixel_color_vjp` does at one fragment is done here stage by stage for a block of them,
last stage first; the loops over adjoints of weights, normals and colours have no branch, so
that they work several fragments per instruction. What a block adds to a slot, a light or a
material is summed in the order of `row_sum`. Beyond the last fragment of a block the weights
are 1, 0, 0 and the adjoints of the colours 0: nothing there adds to anything.

Tests: `tests/render/test_tile_adjoints.py`, `tests/render/test_soft_raster.py`.
"""

import numpy as np

from adjoint.render.barycentrics import place_vjp
from adjoint.render.face_setup import COLORS, NORMALS, PIXEL_SLOT, TOWARDS, add_row
from adjoint.render.harmonics import harmonic_normal_vjp
from adjoint.render.normals import unit_or_zero_vjp
from adjoint.render.pixel_shading import face_light_vjp, weighted_vjp
from adjoint.render.row_sums import add_outer, add_sums, only, row_dots, row_sum
from adjoint.render.shading import lambert_vjp, mirror_vjp
from adjoint.render.textures import texture_color_vjp
from adjsim.backend import device_fn, lit
from adjsim.vec3 import add
from render.coverage import exp_minus
from render.face_setup import load3, load_corners
from render.harmonics import N_HARMONICS, harmonics
from render.normals import unit_or_zero
from render.pixel_shading import (
    corner_albedo,
    corner_normals,
    corner_rows,
    face_light,
    is_glossy,
    weighted,
)
from render.shading import mirrored_cosine
from render.textures import is_textured, texture_color
from render.tile_shading import (
    COLORS as SHADE,
    NORMALS as UNITS,
    ROW,
    SHADED,
    WEIGHTS,
    get3,
    light_block,
    log_vector,
    put3,
    times,
    weigh_block,
    whole,
)


# Places of rows in the scratch, after the weights, unit normals and shades of the forward.
ALBEDO, EYE, ADJ_RGB = np.uint64(9) * ROW, np.uint64(12) * ROW, np.uint64(15) * ROW
ADJ_N, ADJ_E, ADJ_W = np.uint64(18) * ROW, np.uint64(21) * ROW, np.uint64(24) * ROW
PART = np.uint64(27) * ROW  # ten rows that a stage sums
PART3, PART6, PART9 = (
    PART + np.uint64(3) * ROW,
    PART + np.uint64(6) * ROW,
    PART + np.uint64(9) * ROW,
)
ADJ_S = EYE  # once the vectors to the eye are not needed
SCRATCH_VJP = 37 * int(ROW)


@device_fn
def adjoint_block(first, n, fragments, adj, block):
    """Adjoints of the colours of the fragments first..first+n-1, and what lies beyond them."""
    zero = lit(0.0, block[0])
    for k in range(np.uint64(0), np.uint64(n)):
        i, s = fragments.pixel[np.uint64(first) + k], adj.w[np.uint64(first) + k]
        put3(block, k + ADJ_RGB, (s * adj.rgba[i, 0], s * adj.rgba[i, 1], s * adj.rgba[i, 2]))
    for k in range(np.uint64(n), np.uint64(whole(n))):
        put3(block, k + ADJ_RGB, (zero, zero, zero))
        put3(block, k + WEIGHTS, (lit(1.0, zero), zero, zero))


@device_fn
def clear_rows(at, n, block):
    """Write 0 to three rows."""
    zero = lit(0.0, block[0])
    for k in range(np.uint64(0), np.uint64(whole(n))):
        put3(block, k + at, (zero, zero, zero))


@device_fn
def place_block_vjp(first, n, corners, fragments, adj, pair, slots, block):
    """Pull the adjoints of depths and weights back, and add them to the slot of the corners."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        q = np.uint64(first) + k
        p, is_there = (fragments.p_x[q], fragments.p_y[q]), k < np.uint64(n)
        a0, a1, a2, z = place_vjp(p, corners, adj.z[q], get3(block, k + ADJ_W))
        put3(block, k + PART, only(is_there, (a0[0], a0[1], a1[0])))
        put3(block, k + PART3, only(is_there, (a1[1], a2[0], a2[1])))
        put3(block, k + PART6, only(is_there, z))
    for c in range(9):
        slots[pair, c] += row_sum(PART + np.uint64(c) * ROW, whole(n), block)


@device_fn
def corners_block_vjp(n, rows, corners, at, pair, slots, block):
    """Undo sums of w_k c_k: adjoints of the weights, and from `at` of the slot on of the c_k."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj_w = weighted_vjp(corners, get3(block, k + rows))
        put3(block, k + ADJ_W, add(get3(block, k + ADJ_W), adj_w))
    add_outer(WEIGHTS, rows, n, at, pair, slots, block)


@device_fn
def power_slopes_vector(c, p):
    """As `power_slopes`, but for a few roundings times p log(c); vectorises."""
    zero, tiny = lit(0.0, c), lit(1e-30, c)
    positive = max(c, tiny)
    log_c = log_vector(positive)
    h = exp_minus(max(-p * log_c, zero))
    h = h if c > tiny else zero
    return h, p * h / positive, h * log_c


@device_fn
def polish_block_vjp(f, n, faces, scene, own, row, pair, slots, block):
    """Undo highlights: adjoints of normals and of weights; adds to those of lights, materials."""
    towards = corner_rows(f, scene.faces, faces.towards)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        e, _ = unit_or_zero(weighted(get3(block, k + WEIGHTS), towards))  # (4) replayed
        put3(block, k + EYE, e)
    clear_rows(ADJ_E, n, block)

    # (5) rgb = ... + highlight(n, e)
    o = scene.owner[f]
    specular, p = load3(scene.specular, o), scene.shininess[o, 0]
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            normal, e = get3(block, k + UNITS), get3(block, k + EYE)
            slopes = power_slopes_vector(mirrored_cosine(normal, e, l), p)
            adj_n, adj_e, adj_l, adj_light, adj_specular, adj_p = mirror_vjp(
                normal, e, l, light, specular, slopes, get3(block, k + ADJ_RGB)
            )
            put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
            put3(block, k + ADJ_E, add(get3(block, k + ADJ_E), adj_e))
            put3(block, k + PART, adj_l)
            put3(block, k + PART3, adj_light)
            put3(block, k + PART6, adj_specular)
            block[k + PART9] = adj_p
        add_sums(PART, n, i, own.directions, block)
        add_sums(PART3, n, i, own.lights, block)
        add_sums(PART6, n, row, own.specular, block)
        own.shininess[row, 0] += row_sum(PART9, whole(n), block)

    # (4) e = sum w_k v_k, normalised
    for k in range(np.uint64(0), np.uint64(whole(n))):
        m = weighted(get3(block, k + WEIGHTS), towards)
        put3(block, k + ADJ_E, unit_or_zero_vjp(m, get3(block, k + ADJ_E)))
    corners_block_vjp(n, ADJ_E, towards, TOWARDS, pair, slots, block)


@device_fn
def albedo_block(f, n, scene, block):
    """Colours C of a block, before any light."""
    if is_textured(f, scene):
        zero = lit(0.0, block[0])
        for k in range(np.uint64(0), np.uint64(n)):
            put3(block, k + ALBEDO, texture_color(f, get3(block, k + WEIGHTS), scene))
        for k in range(np.uint64(n), np.uint64(whole(n))):
            put3(block, k + ALBEDO, (zero, zero, zero))
        return
    albedo = corner_albedo(f, scene)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        put3(block, k + ALBEDO, weighted(get3(block, k + WEIGHTS), albedo))


@device_fn
def paint_block_vjp(f, n, scene, records, first, pair, slots, block):
    """Undo C: adjoints of weights, of the colours of corners or their uv, records of texels."""
    if not is_textured(f, scene):
        corners_block_vjp(n, PART, corner_albedo(f, scene), COLORS, pair, slots, block)
        return
    for k in range(np.uint64(0), np.uint64(n)):
        adj_w, adj_uv = texture_color_vjp(
            f, get3(block, k + WEIGHTS), scene, get3(block, k + PART), records,
            np.uint64(first) + k,
        )  # fmt: skip
        put3(block, k + ADJ_W, add(get3(block, k + ADJ_W), adj_w))
        put3(block, k + PART, adj_uv)
    add_outer(WEIGHTS, PART, n, COLORS, pair, slots, block)


@device_fn
def harmonic_block_vjp(n, scene, own, block):
    """Undo the shade of spherical harmonics: adjoints of normals and of the coefficients."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        normal, adj_s = get3(block, k + UNITS), get3(block, k + ADJ_S)
        Y = harmonics(normal)
        put3(block, k + PART, (Y[0], Y[1], Y[2]))
        put3(block, k + PART3, (Y[3], Y[4], Y[5]))
        put3(block, k + PART6, (Y[6], Y[7], Y[8]))
        adj_n = harmonic_normal_vjp(normal, scene.harmonics, adj_s)
        put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
    for i in range(N_HARMONICS):
        add_row(own.harmonics, i, row_dots(PART + np.uint64(i) * ROW, ADJ_S, n, block))


@device_fn
def lambert_block_vjp(f, n, scene, own, row, block):
    """Undo the shade of lights: adjoints of normals; adds to those of lights and materials."""
    o = scene.owner[f]
    diffuse = load3(scene.diffuse, o)
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            adj_n, adj_l, adj_light, adj_diffuse = lambert_vjp(
                get3(block, k + UNITS), l, light, diffuse, get3(block, k + ADJ_S)
            )
            put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
            put3(block, k + PART, adj_l)
            put3(block, k + PART3, adj_light)
            put3(block, k + PART6, adj_diffuse)
        add_sums(PART, n, i, own.directions, block)
        add_sums(PART3, n, i, own.lights, block)
        add_sums(PART6, n, row, own.diffuse, block)
    add_sums(ADJ_S, n, row, own.ambient, block)


@device_fn
def light_block_vjp(f, n, faces, scene, own, row, pair, slots, block):
    """Undo normals and shade; a face with one normal gets the adjoints of its normal alone."""
    if not scene.rounded[f]:
        add_outer(WEIGHTS, ADJ_N, n, NORMALS, pair, slots, block)
        return

    # (2) s = shade(n)
    if scene.harmonics.shape[0] > 0:
        harmonic_block_vjp(n, scene, own, block)
    else:
        lambert_block_vjp(f, n, scene, own, row, block)

    # (1) n = sum w_k n_k, normalised
    normals = corner_normals(f, faces.shaded)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        m = weighted(get3(block, k + WEIGHTS), normals)
        put3(block, k + ADJ_N, unit_or_zero_vjp(m, get3(block, k + ADJ_N)))
    corners_block_vjp(n, ADJ_N, normals, NORMALS, pair, slots, block)


@device_fn
def color_block_vjp(f, n, light, faces, scene, own, row, records, first, pair, slots, block):
    """Undo the colours of a block; return the sum of the adjoints of its shade.

    Writes the adjoints of its weights; adds to the slot of the pair, and to the adjoints of
    lights and, in `row`, of materials in `own`.
    """
    light_block(f, n, light, faces, scene, block)  # (1) replayed
    albedo_block(f, n, scene, block)  # (2) replayed
    clear_rows(ADJ_N, n, block)
    clear_rows(ADJ_W, n, block)
    if is_glossy(f, scene):
        polish_block_vjp(f, n, faces, scene, own, row, pair, slots, block)  # (5), (4)

    # (3) rgb = s C
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj_rgb = get3(block, k + ADJ_RGB)
        put3(block, k + ADJ_S, times(get3(block, k + ALBEDO), adj_rgb))
        put3(block, k + PART, times(get3(block, k + SHADE), adj_rgb))
    paint_block_vjp(f, n, scene, records, first, pair, slots, block)  # (2)
    light_block_vjp(f, n, faces, scene, own, row, pair, slots, block)  # (1)
    return (
        row_sum(ADJ_S, whole(n), block),
        row_sum(ADJ_S + ROW, whole(n), block),
        row_sum(ADJ_S + ROW + ROW, whole(n), block),
    )


@device_fn
def pixels_vjp_tile(k, f, scene, faces, fragments, adj, pair, slots, own, row, records, first):
    """As `pixels_vjp_body`."""
    corners, light = load_corners(f, faces.corners), face_light(f, faces, scene)
    zero, block = lit(0.0, slots[pair, 0]), fragments.shade
    for c in range(9, PIXEL_SLOT):
        slots[pair, c] = zero
    adj_s, last = (zero, zero, zero), fragments.pair[k + 1]
    for start in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - start)
        weigh_block(start, n, corners, fragments, block)
        adjoint_block(start, n, fragments, adj, block)
        adj_s_block = color_block_vjp(
            f, n, light, faces, scene, own, row, records, first + start, pair, slots, block
        )
        adj_s = add(adj_s, adj_s_block)
        place_block_vjp(start, n, corners, fragments, adj, pair, slots, block)
    face_light_vjp(f, light, scene, adj_s, own, row, slots, pair)
