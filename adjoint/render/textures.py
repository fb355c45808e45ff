"""Tangent and adjoint of `render/textures.py`: read the two files side by side.

The adjoint of a texel is a sum over all pixels that see it. Every fragment writes which four
texels it saw, its fractions and the adjoint of its colour; these are added up afterwards in
the order of the fragments, so the sums do not depend on threads.

Frozen: which texels are looked up. At the centre of a texel the slope is that towards the next.
"""

from typing import Any, NamedTuple

import numpy as np

from adjsim.algebra.vec3 import axpy, dot, sub
from adjsim.jit.backend import cpu_kernel, device_fn, lit, shared_fn
from adjsim.jit.row_gathers import add_scaled
from render.textures import (
    blend_texels,
    corner_uv,
    four_texels_at,
    load_image,
    texel_places,
    weighted_uv,
)


UV = 9  # place in a slot: of the coordinates of three corners, each in that of its colour


class TexelRecords(NamedTuple):
    """What fragments add to the adjoints of texels, a column each."""

    at: Any  # (4, n) int32, the texels; -1 in the first where there is no record
    values: Any  # (5, n) fractions f and g, adjoint of the colour
    total: Any  # (n_texels, 3) what is added to at once, or (0, 3) where records are kept


def record_bytes(dtype: np.dtype) -> int:
    """Return the size of a record [bytes]."""
    return 4 * np.dtype(np.int32).itemsize + 5 * dtype.itemsize


def empty_records(xp: Any, n: int, dtype: Any) -> TexelRecords:
    """Return room for n records; xp is NumPy, or CuPy for a GPU."""
    at, values = xp.empty((4, n), np.int32), xp.empty((5, n), dtype)
    return TexelRecords(at, values, xp.empty((0, 3), dtype))


@device_fn
def slopes_between(f, g, four):
    """Slopes of `between_texels` in f and in g."""
    across, below = sub(four[1], four[0]), sub(four[3], four[2])
    slope_f = axpy(g, sub(below, across), across)
    slope_g = sub(axpy(f, below, four[2]), axpy(f, across, four[0]))
    return slope_f, slope_g


@device_fn
def texture_color_jvp(f, w, tan_w, scene, tan_scene):
    """Colour of the texture of face f at a pixel, then its tangent."""
    corners, image = corner_uv(f, scene), load_image(f, scene)
    uv = weighted_uv(w, corners)
    of_weights, of_corners = weighted_uv(tan_w, corners), weighted_uv(w, corner_uv(f, tan_scene))
    tan_u, tan_v = of_weights[0] + of_corners[0], of_weights[1] + of_corners[1]  # (1)
    at, a, b = texel_places(uv, image)
    tan_a = type(a)(image[2]) * tan_u  # (2)
    tan_b = -type(b)(image[1]) * tan_v
    slope_a, slope_b = slopes_between(a, b, four_texels_at(at, scene.texels))
    tan = blend_texels(at, a, b, tan_scene.texels)  # (3)
    tan = axpy(tan_a, slope_a, axpy(tan_b, slope_b, tan))
    return blend_texels(at, a, b, scene.texels), tan


@device_fn
def texture_color_vjp(f, w, scene, adj_C, records, k):
    """Pull back through `texture_color`: adj_w, and (adj_u, adj_v, 0), of which corner c gets w_c.

    Writes record k for the adjoints of texels.
    """
    corners, image = corner_uv(f, scene), load_image(f, scene)
    uv = weighted_uv(w, corners)  # (1) replayed
    at, a, b = texel_places(uv, image)  # (2) replayed

    # (3) C = blend of four texels
    for c in range(4):
        records.at[c, k] = at[c]
    records.values[0, k], records.values[1, k] = a, b
    records.values[2, k], records.values[3, k], records.values[4, k] = adj_C
    return between_vjp(a, b, four_texels_at(at, scene.texels), corners, image, adj_C)


@device_fn
def between_vjp(a, b, four, corners, image, adj_C):
    """Undo a lookup between four texels, all but what these get: adj_w, and (adj_u, adj_v, 0)."""
    # (3) C = blend of four texels
    slope_a, slope_b = slopes_between(a, b, four)
    adj_a, adj_b = dot(slope_a, adj_C), dot(slope_b, adj_C)

    # (2) a = u W - 1/2 - j, b = (1 - v) H - 1/2 - i
    adj_u = type(a)(image[2]) * adj_a
    adj_v = -type(b)(image[1]) * adj_b

    # (1) uv = sum w_k uv_k
    adj_w = (
        corners[0][0] * adj_u + corners[0][1] * adj_v,
        corners[1][0] * adj_u + corners[1][1] * adj_v,
        corners[2][0] * adj_u + corners[2][1] * adj_v,
    )
    return adj_w, (adj_u, adj_v, lit(0.0, adj_u))


@device_fn
def texel_weight(c, f, g):
    """Weight of texel c of four between them: what its adjoint gets of adj_C."""
    unity = lit(1.0, f)
    across, down = f if c % 2 == 1 else unity - f, g if c >= 2 else unity - g
    return down * across


def _add_texels(at, step, fragments, first, stride, n, adj_texels):
    """Add what n fragments hold to the adjoints of the texels, in their order.

    Row c of `at` begins at c step, and row c of `fragments` at first + c stride.
    """
    row_1, row_2, row_3 = np.uint64(step), np.uint64(2 * step), np.uint64(3 * step)
    stride = np.uint64(stride)
    for k in range(np.uint64(0), np.uint64(n)):
        if at[k] >= 0:
            q = np.uint64(first) + k
            f, g, q = fragments[q], fragments[q + stride], q + stride + stride
            adj_C = (fragments[q], fragments[q + stride], fragments[q + stride + stride])
            places = (at[k], at[k + row_1], at[k + row_2], at[k + row_3])
            for c in range(4):
                add_scaled(adj_texels, np.uint64(places[c]), texel_weight(c, f, g), adj_C)


add_texels = shared_fn(_add_texels)  # one signature, one copy: the same bits everywhere


def _add_tiles(at, values, place, count, adj_texels):
    """Add what the records of every tile hold, from place[tile] on, to the adjoints of texels."""
    stride = np.uint64(at.shape[0] // 4)
    for tile in range(count.shape[0]):
        first = np.uint64(place[tile])
        add_texels(at[first:], stride, values, first, stride, count[tile], adj_texels)


add_tiles = cpu_kernel(_add_tiles)


def add_records(
    records: TexelRecords, place: np.ndarray, count: np.ndarray, adj_texels: np.ndarray
) -> None:
    """Add the records of tiles, count[tile] from place[tile] on, to the adjoints of texels."""
    add_tiles(records.at.ravel(), records.values.ravel(), place, count, adj_texels)


def _add_uv(uv_faces, adj_faces, adj_uv):
    """Add what faces hold to the adjoints of uv (n_uv, 2), in their order; 0 if not drawn."""
    for f in range(uv_faces.shape[0]):
        if uv_faces[f, 0] >= 0:
            for k in range(3):
                for c in range(2):
                    adj_uv[uv_faces[f, k], c] += adj_faces[f, UV + 3 * k + c]


add_uv = cpu_kernel(_add_uv)
