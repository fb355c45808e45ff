r"""Tangent and adjoint of `render/raster/fragments.py`: read the two files side by side.

Every face walks its own fragments of a tile, in the order in which the forward found
them, and sums the adjoints of its corners and colours, and of what its pixels are shaded
with at the corners: 18 or 36 numbers, in the slot of the pair (tile, face). The colour of a
fragment has the adjoint w adj_rgb of its pixel.

Frozen: which fragments there are.
"""

from adjoint.render.faces.coverage import signed_square_distance_jvp, signed_square_distance_vjp
from adjoint.render.faces.face_setup import (
    COLORS,
    CORNERS,
    DEPTHS,
    NORMALS,
    PIXEL_SLOT,
    SLOT,
    TOWARDS,
)
from adjoint.render.raster.barycentrics import add2, place_jvp, place_vjp
from adjoint.render.raster.pixel_shading import (
    add_corners,
    face_light_vjp,
    no_corners,
    pixel_color_jvp,
    pixel_color_vjp,
    write_corners,
)
from adjoint.render.seamless import seamless_logit_jvp, seamless_logit_vjp
from adjsim.algebra.vec3 import add, dot
from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.face_setup import load_corners
from render.raster.barycentrics import fragment_place
from render.raster.fragments import blend_corners, corner_color, fragment_logit
from render.raster.pixel_shading import face_light


@device_fn
def fragment_logit_jvp(p, corners, tan_corners, sigma, tan_sigma):
    """Tangent of the logit y = delta d^2/sigma."""
    a0, a1, a2, _ = corners
    tan_a0, tan_a1, tan_a2, _ = tan_corners
    tan_d = signed_square_distance_jvp(p, a0, a1, a2, tan_a0, tan_a1, tan_a2)
    return (tan_d - fragment_logit(p, a0, a1, a2, sigma) * tan_sigma) / sigma


@device_fn
def fragment_logit_vjp(p, corners, sigma, y, adj_y):
    """Pull adj_y back through `fragment_logit`: adj_a0, adj_a1, adj_a2, adj_sigma."""
    a0, a1, a2, _ = corners
    adj_d = adj_y * (lit(1.0, sigma) / sigma)
    adj_a0, adj_a1, adj_a2 = signed_square_distance_vjp(p, a0, a1, a2, adj_d)
    return adj_a0, adj_a1, adj_a2, -y * adj_d


@device_fn
def pair_jvp_body(k, f, scene, tan_scene, faces, tan_faces, numbers, fragments, tangents):
    """Pair k of the tile, face f: write the tangents of its fragments.

    `numbers` are sigma and its tangent.
    """
    sigma, tan_sigma = numbers
    corners = load_corners(f, faces.corners)
    tan_corners = load_corners(f, tan_faces.corners)
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        p = (fragments.p_x[q], fragments.p_y[q])
        if faces.soft.shape[0] > 0:
            tangents.y[q] = seamless_logit_jvp(p, f, faces, tan_corners, sigma, tan_sigma)
        else:
            tangents.y[q] = fragment_logit_jvp(p, corners, tan_corners, sigma, tan_sigma)
        tangents.z[q], tan_w = place_jvp(p, corners, tan_corners)
        tan_rgb = corner_color(f, 0, tan_faces.shaded)
        if scene.by_pixel[f]:
            _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
            tan_rgb = pixel_color_jvp(f, w, tan_w, faces, tan_faces, scene, tan_scene)
        elif scene.smooth[f]:
            _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
            c1, tan_c1 = corner_color(f, 1, faces.shaded), corner_color(f, 1, tan_faces.shaded)
            c2, tan_c2 = corner_color(f, 2, faces.shaded), corner_color(f, 2, tan_faces.shaded)
            tan_rgb = add(
                blend_corners(tan_w, corner_color(f, 0, faces.shaded), c1, c2),
                blend_corners(w, tan_rgb, tan_c1, tan_c2),
            )
        tangents.rgb[q, 0], tangents.rgb[q, 1], tangents.rgb[q, 2] = tan_rgb


@device_fn
def color_weights_vjp(f, w, shaded, adj_rgb, pair, slots):
    """Undo rgb = sum w_k c_k: add to the slots of the colours, return adj_w."""
    for k in range(3):
        for c in range(3):
            slots[pair, COLORS + 3 * k + c] += w[k] * adj_rgb[c]
    return (
        dot(corner_color(f, 0, shaded), adj_rgb),
        dot(corner_color(f, 1, shaded), adj_rgb),
        dot(corner_color(f, 2, shaded), adj_rgb),
    )


@device_fn
def place_slots_vjp(p, corners, adj_z, adj_w, pair, slots):
    """Pull the adjoints of depth and weights back, and add them to the slots."""
    adj_a0, adj_a1, adj_a2, adj_depths = place_vjp(p, corners, adj_z, adj_w)
    add_place(slots, pair, (adj_a0, adj_a1, adj_a2), adj_depths)


@device_fn
def add_place(slots, pair, adj_a, adj_depths):
    """Add the adjoints of the three corners on the screen and of their depths to a slot."""
    for k in range(3):
        slots[pair, CORNERS + 2 * k] += adj_a[k][0]
        slots[pair, CORNERS + 2 * k + 1] += adj_a[k][1]
        slots[pair, DEPTHS + k] += adj_depths[k]


@device_fn
def smooth_vjp_body(k, f, faces, fragments, adj, pair, slots):
    """Pair k, face f with vertex colours: what flows through depth and weights."""
    corners = load_corners(f, faces.corners)
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        i = fragments.pixel[q]
        p = (fragments.p_x[q], fragments.p_y[q])
        _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
        s = adj.w[q]
        adj_rgb = (s * adj.rgba[i, 0], s * adj.rgba[i, 1], s * adj.rgba[i, 2])
        adj_w = color_weights_vjp(f, w, faces.shaded, adj_rgb, pair, slots)
        place_slots_vjp(p, corners, adj.z[q], adj_w, pair, slots)


@device_fn
def pixels_vjp_body(
    k, f, scene, faces, fragments, adj, pair, slots, adj_scene, row, records, first
):
    """Pair k, face f shaded pixel by pixel: what flows through all that shades, and weights.

    Adds to its slot, and to the adjoints of lights and, in `row`, of materials in `adj_scene`;
    writes the records of its fragments, from the first of the tile on.
    """
    zero = lit(0.0, slots[pair, 0])
    corners, light = load_corners(f, faces.corners), face_light(f, faces, scene)
    colors, normals, towards = no_corners(zero), no_corners(zero), no_corners(zero)
    adj_s, depths = (zero, zero, zero), (zero, zero, zero)
    sum0, sum1, sum2 = (zero, zero), (zero, zero), (zero, zero)
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        i = fragments.pixel[q]
        p = (fragments.p_x[q], fragments.p_y[q])
        _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
        s = adj.w[q]
        adj_rgb = (s * adj.rgba[i, 0], s * adj.rgba[i, 1], s * adj.rgba[i, 2])
        adj_w, adj_s_q, shared = pixel_color_vjp(
            f, w, light, faces, scene, adj_rgb, adj_scene, row, records, first + q
        )
        adj_s = add(adj_s, adj_s_q)
        colors = add_corners(colors, w, shared[0])
        normals = add_corners(normals, w, shared[1])
        towards = add_corners(towards, w, shared[2])
        adj_a0, adj_a1, adj_a2, adj_depths = place_vjp(p, corners, adj.z[q], adj_w)
        sum0, sum1, sum2 = add2(sum0, adj_a0), add2(sum1, adj_a1), add2(sum2, adj_a2)
        depths = add(depths, (adj_depths[0], adj_depths[1], adj_depths[2]))
    add_place(slots, pair, (sum0, sum1, sum2), depths)
    write_corners(slots, pair, COLORS, colors)
    write_corners(slots, pair, NORMALS, normals)
    write_corners(slots, pair, TOWARDS, towards)
    face_light_vjp(f, light, scene, adj_s, adj_scene, row, slots, pair)


@device_fn
def depths_vjp_body(k, f, faces, fragments, adj, pair, slots):
    """Pair k, face f: what flows through its depths."""
    corners = load_corners(f, faces.corners)
    zero = lit(0.0, slots[pair, 0])
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        p = (fragments.p_x[q], fragments.p_y[q])
        place_slots_vjp(p, corners, adj.z[q], (zero, zero, zero), pair, slots)


@device_fn
def flat_vjp_body(k, fragments, adj, pair, slots):
    """Pair k, a face with one colour: what flows through it."""
    zero = lit(0.0, slots[pair, 0])
    r, g, b = zero, zero, zero
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        i = fragments.pixel[q]
        r += adj.w[q] * adj.rgba[i, 0]
        g += adj.w[q] * adj.rgba[i, 1]
        b += adj.w[q] * adj.rgba[i, 2]
    slots[pair, COLORS] += r
    slots[pair, COLORS + 1] += g
    slots[pair, COLORS + 2] += b


@device_fn
def coverage_vjp_body(k, f, faces, settings, fragments, adj, pair, slots):
    """Pair k, face f: what flows through its coverage, of any kind; return adj_sigma.

    Fragments without adjoint are passed over: in seamless coverage and in DIBR most are so.
    """
    corners, zero = load_corners(f, faces.corners), lit(0.0, settings.sigma)
    adj_sigma = zero
    for c in range(CORNERS, DEPTHS):
        slots[pair, c] = zero
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        if adj.y[q] != zero:
            p, y = (fragments.p_x[q], fragments.p_y[q]), fragments.y[q]
            if faces.soft.shape[0] > 0:
                adj_a = seamless_logit_vjp(p, f, faces, settings.sigma, y, adj.y[q])
            else:
                adj_a = fragment_logit_vjp(p, corners, settings.sigma, y, adj.y[q])
            for c in range(2):
                slots[pair, c] += adj_a[0][c]
                slots[pair, 2 + c] += adj_a[1][c]
                slots[pair, 4 + c] += adj_a[2][c]
            adj_sigma += adj_a[3]
    return adj_sigma


@device_fn
def pair_vjp_body(k, f, scene, faces, settings, fragments, adj, pair, slots):
    """Pair k of the tile, face f: fill its slot, but for what pixels add; return adj_sigma."""
    for c in range(DEPTHS, SLOT):
        slots[pair, c] = lit(0.0, settings.sigma)
    adj_sigma = coverage_vjp_body(k, f, faces, settings, fragments, adj, pair, slots)
    if scene.by_pixel[f]:
        return adj_sigma
    if scene.smooth[f]:
        smooth_vjp_body(k, f, faces, fragments, adj, pair, slots)
    else:
        flat_vjp_body(k, fragments, adj, pair, slots)
        if settings.is_deep:
            depths_vjp_body(k, f, faces, fragments, adj, pair, slots)
    return adj_sigma


def _sum_pairs(pair_faces, slots, adj_faces):
    """Sum the slots of every face over its tiles, in the order of the tiles."""
    for pair in range(pair_faces.shape[0]):
        for c in range(SLOT):
            adj_faces[pair_faces[pair], c] += slots[pair, c]


def _sum_pixel_pairs(pair_faces, by_pixel, slots, adj_faces):
    """Sum the rest of the slots of every face that is shaded pixel by pixel."""
    for pair in range(pair_faces.shape[0]):
        if by_pixel[pair_faces[pair]]:
            for c in range(SLOT, PIXEL_SLOT):
                adj_faces[pair_faces[pair], c] += slots[pair, c]


sum_pairs = cpu_kernel(_sum_pairs)
sum_pixel_pairs = cpu_kernel(_sum_pixel_pairs)
