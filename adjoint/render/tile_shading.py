"""Adjoint of `render/tile_shading.py`: colours of the fragments of a tile, undone in blocks.

What `pixel_color_vjp` does at one fragment is done here stage by stage for a block of them,
last stage first; the loops over adjoints of weights, normals and colours have no branch, so
that they work several fragments per instruction. What a block adds to a slot, a light or a
material is summed by `sum_rows`, eight rows at a time. Beyond the last fragment of a block the
weights are 1, 0, 0 and the adjoints of the colours 0: nothing there adds to anything.

A light L and a coefficient k are factors of the same g in L k g: both take their adjoints from
one sum over the fragments, of g times the adjoint.

Tests: `tests/render/test_tile_adjoints.py`, `tests/render/test_soft_raster.py`.
"""

import numpy as np

from adjoint.render.barycentrics import place_vjp
from adjoint.render.face_setup import COLORS, NORMALS, PIXEL_SLOT, TOWARDS, add_row
from adjoint.render.harmonics import harmonic_normal_vjp
from adjoint.render.normals import unit_vjp
from adjoint.render.pixel_shading import face_light_vjp, weighted_vjp
from adjoint.render.shading import lambert_vjp, mirror_vjp
from adjoint.render.textures import between_vjp
from adjsim.backend import device_fn, lit
from adjsim.lanes import sum_rows
from adjsim.vec3 import add, dot, scale
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
from render.textures import between_texels, cell_places, corner_uv, is_textured, load_image
from render.tile_shading import (
    CELLS,
    COLORS as SHADE,
    FRACTIONS,
    GROUP,
    LENGTHS,
    NORMALS as UNITS,
    ROW,
    SCRATCH,
    SHADED,
    TEXELS,
    WEIGHTS,
    find_cells,
    four_texels,
    get2,
    get3,
    light_block,
    load_texels,
    log_vector,
    put3,
    times,
    weigh_block,
    whole,
)


def row(n: int) -> np.uint64:
    """Return where row n of the scratch is, after those of the forward."""
    return np.uint64(SCRATCH) + np.uint64(n) * ROW


ALBEDO, EYE, EYE_LENGTHS, ADJ_RGB = row(0), row(3), row(6), row(7)
ADJ_N, ADJ_E, ADJ_W, ADJ_S = row(10), row(13), row(16), row(19)
PART, PART3, PART6 = row(22), row(25), row(28)  # what a light adds, with ADJ_S before it
SLOTS = row(30)  # what each fragment adds to the slot of its pair, in the order of the slot
SUMS = row(70)  # of as many rows
SCRATCH_VJP = int(row(71))


def slot_rows(at: int) -> np.uint64:
    """Return where the rows begin of what goes to the place `at` of a slot."""
    return SLOTS + np.uint64(at) * ROW


PAINT, PAINT1, PAINT2 = slot_rows(COLORS), slot_rows(COLORS + 3), slot_rows(COLORS + 6)
AT_NORMALS, AT_TOWARDS = slot_rows(NORMALS), slot_rows(TOWARDS)


@device_fn
def adjoint_block(first, n, fragments, adj, block):
    """Adjoints of the colours of the fragments first..first+n-1, and what lies beyond them."""
    zero = lit(0.0, block[0])
    for k in range(np.uint64(0), np.uint64(n)):
        i = np.uint64(fragments.pixel[np.uint64(first) + k])
        s = adj.w[np.uint64(first) + k]
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
def put_outer(block, at, w, v):
    """Write the nine numbers w_k v_c of a fragment, those of corner k from row 3 k on."""
    step = np.uint64(3) * ROW
    put3(block, at, scale(w[0], v))
    put3(block, at + step, scale(w[1], v))
    put3(block, at + step + step, scale(w[2], v))


@device_fn
def only(is_there, value):
    """Three numbers, or 0 beyond the last fragment."""
    zero = lit(0.0, value[0])
    return (
        value[0] if is_there else zero,
        value[1] if is_there else zero,
        value[2] if is_there else zero,
    )


@device_fn
def place_block_vjp(first, n, corners, fragments, adj, block):
    """Pull the adjoints of depths and weights back to the rows of the corners."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        q = np.uint64(first) + k
        p, is_there = (fragments.p_x[q], fragments.p_y[q]), k < np.uint64(n)
        a0, a1, a2, z = place_vjp(p, corners, adj.z[q], get3(block, k + ADJ_W))
        put3(block, k + SLOTS, only(is_there, (a0[0], a0[1], a1[0])))
        put3(block, k + SLOTS + np.uint64(3) * ROW, only(is_there, (a1[1], a2[0], a2[1])))
        put3(block, k + SLOTS + np.uint64(6) * ROW, only(is_there, z))


@device_fn
def add_slot(n, size, pair, slots, block):
    """Add the sums of the rows of n fragments to the first `size` numbers of a slot."""
    for c in range(np.uint64(0), np.uint64(size), GROUP):
        sum_rows(block, SLOTS + c * ROW, ROW, np.uint64(whole(n)), SUMS + c)
    for c in range(np.uint64(0), np.uint64(size)):
        slots[np.uint64(pair), c] += block[SUMS + c]


@device_fn
def corners_block_vjp(n, rows, corners, terms, block):
    """Undo sums of w_k c_k: adjoints of the weights, and rows w_k adj of the c_k."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj = get3(block, k + rows)
        put3(block, k + ADJ_W, add(get3(block, k + ADJ_W), weighted_vjp(corners, adj)))
        put_outer(block, k + terms, get3(block, k + WEIGHTS), adj)


@device_fn
def unit_block_vjp(n, units, lengths, adj, corners, terms, block):
    """Undo u = sum w_k c_k, normalised: adjoints of the weights, and rows of the c_k."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj_m = unit_vjp(get3(block, k + units), block[k + lengths], get3(block, k + adj))
        put3(block, k + ADJ_W, add(get3(block, k + ADJ_W), weighted_vjp(corners, adj_m)))
        put_outer(block, k + terms, get3(block, k + WEIGHTS), adj_m)


@device_fn
def found3(c, block):
    """Three of the sums that were found, from sum c on."""
    at = SUMS + np.uint64(c)
    return block[at], block[at + np.uint64(1)], block[at + np.uint64(2)]


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
def polish_block_vjp(f, n, faces, scene, own, row, block):
    """Undo highlights: adjoints of normals and of weights; adds to those of lights, materials."""
    zero = lit(0.0, block[0])
    towards = corner_rows(f, scene.faces, faces.towards)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        e, c = unit_or_zero(weighted(get3(block, k + WEIGHTS), towards))  # (4) replayed
        put3(block, k + EYE, e)
        put3(block, k + ADJ_E, (zero, zero, zero))
        block[k + EYE_LENGTHS] = c

    # (5) rgb = ... + highlight(n, e)
    o = scene.owner[f]
    specular, p = load3(scene.specular, o), scene.shininess[o, 0]
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            normal, e, adj = get3(block, k + UNITS), get3(block, k + EYE), get3(block, k + ADJ_RGB)
            slopes = power_slopes_vector(mirrored_cosine(normal, e, l), p)
            adj_n, adj_e, adj_l, _, _, adj_p = mirror_vjp(
                normal, e, l, light, specular, slopes, adj
            )
            put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
            put3(block, k + ADJ_E, add(get3(block, k + ADJ_E), adj_e))
            put3(block, k + PART, adj_l)
            put3(block, k + PART3, scale(slopes[0], adj))
            block[k + PART6] = adj_p
        sum_rows(block, PART, ROW, np.uint64(whole(n)), SUMS)
        add_row(own.directions, i, found3(0, block))
        mirrored = found3(3, block)
        add_row(own.lights, i, times(specular, mirrored))
        add_row(own.specular, row, times(light, mirrored))
        own.shininess[row, 0] += block[SUMS + np.uint64(6)]

    # (4) e = sum w_k v_k, normalised
    unit_block_vjp(n, EYE, EYE_LENGTHS, ADJ_E, towards, AT_TOWARDS, block)


@device_fn
def albedo_block(f, n, scene, block):
    """Colours C of a block, before any light; those of texels beyond it are those of the first."""
    if is_textured(f, scene):
        find_cells(f, n, scene, block)
        load_texels(f, n, scene, block)
        for k in range(np.uint64(n), np.uint64(whole(n))):
            for c in range(12):
                block[k + TEXELS + np.uint64(c) * ROW] = block[TEXELS + np.uint64(c) * ROW]
        for k in range(np.uint64(0), np.uint64(whole(n))):
            a, b = get2(block, k + FRACTIONS)
            put3(block, k + ALBEDO, between_texels(a, b, four_texels(k, block)))
        return
    albedo = corner_albedo(f, scene)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        put3(block, k + ALBEDO, weighted(get3(block, k + WEIGHTS), albedo))


@device_fn
def record_texels(f, n, scene, records, first, block):
    """Write the records of the n fragments of a block, from the first on."""
    image = load_image(f, scene)
    for k in range(np.uint64(0), np.uint64(n)):
        q = np.uint64(first) + k
        at = cell_places(get2(block, k + CELLS), image)
        for c in range(4):
            records.at[q, c] = at[c]
        records.part[q, 0], records.part[q, 1] = get2(block, k + FRACTIONS)
        adj_C = get3(block, k + PAINT)
        records.part[q, 2], records.part[q, 3], records.part[q, 4] = adj_C


@device_fn
def paint_block_vjp(f, n, scene, records, first, block):
    """Undo C: adjoints of weights, of the colours of corners or their uv, records of texels.

    A face of one colour leaves it to its first corner.
    """
    if not is_textured(f, scene):
        if scene.smooth[f]:
            corners_block_vjp(n, PAINT, corner_albedo(f, scene), PAINT, block)
        else:
            clear_rows(PAINT1, n, block)
            clear_rows(PAINT2, n, block)
        return
    record_texels(f, n, scene, records, first, block)
    corners, image = corner_uv(f, scene), load_image(f, scene)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        a, b = get2(block, k + FRACTIONS)
        adj_w, adj_uv = between_vjp(
            a, b, four_texels(k, block), corners, image, get3(block, k + PAINT)
        )
        put3(block, k + ADJ_W, add(get3(block, k + ADJ_W), adj_w))
        put_outer(block, k + PAINT, get3(block, k + WEIGHTS), adj_uv)


@device_fn
def harmonic_block_vjp(n, scene, own, block):
    """Undo the shade of spherical harmonics: adjoints of normals and of the coefficients."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        normal, adj_s = get3(block, k + UNITS), get3(block, k + ADJ_S)
        Y = harmonics(normal)
        put3(block, k + AT_NORMALS, (Y[0], Y[1], Y[2]))
        put3(block, k + AT_NORMALS + np.uint64(3) * ROW, (Y[3], Y[4], Y[5]))
        put3(block, k + AT_NORMALS + np.uint64(6) * ROW, (Y[6], Y[7], Y[8]))
        adj_n = harmonic_normal_vjp(normal, scene.harmonics, adj_s)
        put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
    for i in range(np.uint64(0), np.uint64(N_HARMONICS)):
        for k in range(np.uint64(0), np.uint64(whole(n))):
            put3(block, k + PART, scale(block[k + AT_NORMALS + i * ROW], get3(block, k + ADJ_S)))
        sum_rows(block, PART, ROW, np.uint64(whole(n)), SUMS)
        add_row(own.harmonics, i, found3(0, block))


@device_fn
def lambert_block_vjp(f, n, scene, own, row, block):
    """Undo the shade of lights: adjoints of normals; adds to those of lights and materials."""
    diffuse = load3(scene.diffuse, scene.owner[f])
    for i in range(scene.directions.shape[0]):
        l, light = load3(scene.directions, i), load3(scene.lights, i)
        for k in range(np.uint64(0), np.uint64(whole(n))):
            normal, adj_s = get3(block, k + UNITS), get3(block, k + ADJ_S)
            adj_n, adj_l, _, _ = lambert_vjp(normal, l, light, diffuse, adj_s)
            put3(block, k + ADJ_N, add(get3(block, k + ADJ_N), adj_n))
            put3(block, k + PART, adj_l)
            put3(block, k + PART3, scale(max(dot(normal, l), lit(0.0, l[0])), adj_s))
        sum_rows(block, PART, ROW, np.uint64(whole(n)), SUMS)
        add_row(own.directions, i, found3(0, block))
        lit_up = found3(3, block)
        add_row(own.lights, i, times(diffuse, lit_up))
        add_row(own.diffuse, row, times(light, lit_up))


@device_fn
def light_block_vjp(f, n, faces, scene, own, row, block):
    """Undo normals and shade; a face with one normal gets the adjoints of its normal alone."""
    normals = corner_normals(f, faces.shaded)
    if not scene.rounded[f]:
        for k in range(np.uint64(0), np.uint64(whole(n))):
            w, adj_n = get3(block, k + WEIGHTS), get3(block, k + ADJ_N)
            put_outer(block, k + AT_NORMALS, w, adj_n)
        return

    # (2) s = shade(n)
    if scene.harmonics.shape[0] > 0:
        harmonic_block_vjp(n, scene, own, block)
    else:
        lambert_block_vjp(f, n, scene, own, row, block)

    # (1) n = sum w_k n_k, normalised
    unit_block_vjp(n, UNITS, LENGTHS, ADJ_N, normals, AT_NORMALS, block)


@device_fn
def color_block_vjp(f, n, light, faces, scene, own, row, records, first, block):
    """Undo the colours of a block; return the sum of the adjoints of its shade.

    Writes the adjoints of its weights and the rows of its slot; adds to the adjoints of lights
    and, in `row`, of materials in `own`.
    """
    light_block(f, n, light, faces, scene, block)  # (1) replayed
    albedo_block(f, n, scene, block)  # (2) replayed
    clear_rows(ADJ_N, n, block)
    clear_rows(ADJ_W, n, block)
    if is_glossy(f, scene):
        polish_block_vjp(f, n, faces, scene, own, row, block)  # (5), (4)

    # (3) rgb = s C
    for k in range(np.uint64(0), np.uint64(whole(n))):
        adj_rgb = get3(block, k + ADJ_RGB)
        put3(block, k + ADJ_S, times(get3(block, k + ALBEDO), adj_rgb))
        put3(block, k + PAINT, times(get3(block, k + SHADE), adj_rgb))
    paint_block_vjp(f, n, scene, records, first, block)  # (2)
    if scene.rounded[f] or is_glossy(f, scene):
        light_block_vjp(f, n, faces, scene, own, row, block)  # (1)
    sum_rows(block, ADJ_S, ROW, np.uint64(whole(n)), SUMS)
    return found3(0, block)


@device_fn
def pixels_vjp_tile(k, f, scene, faces, fragments, adj, pair, slots, own, row, records, first):
    """As `pixels_vjp_body`."""
    corners, light = load_corners(f, faces.corners), face_light(f, faces, scene)
    zero, block = lit(0.0, slots[pair, 0]), fragments.shade
    for c in range(np.uint64(9), np.uint64(PIXEL_SLOT)):
        slots[np.uint64(pair), c] = zero
    size = NORMALS
    if is_glossy(f, scene):
        size = PIXEL_SLOT
    elif scene.rounded[f]:
        size = TOWARDS
    adj_s, last = (zero, zero, zero), fragments.pair[k + 1]
    for start in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - start)
        weigh_block(start, n, corners, fragments, block)
        adjoint_block(start, n, fragments, adj, block)
        adj_s_block = color_block_vjp(
            f, n, light, faces, scene, own, row, records, first + start, block
        )
        adj_s = add(adj_s, adj_s_block)
        place_block_vjp(start, n, corners, fragments, adj, block)
        add_slot(n, size, pair, slots, block)
    if scene.rounded[f]:
        if scene.harmonics.shape[0] == 0:
            add_row(own.ambient, row, adj_s)
    else:
        face_light_vjp(f, light, scene, adj_s, own, row, slots, pair)
