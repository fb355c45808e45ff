"""Rows of numbers of a block of fragments, and what every shaded face does with them; CPU only.

A block keeps in one array a row for each number of its fragments: those of
`render/raster/tile_shading.py`, and behind them the rows named here. Beyond the last fragment of a
block weights and adjoints of colours are 0: nothing is added there.

A pixel acts on the corners through its weights, and what flows through these is undone here:

    w = W(b(p, a), z),   adj_a_k = -b_k adj_p,   adj_z_k = -p c_k sum w_k g_k

What flows through depths is undone in `tile_adjoints.py`.

Tests: `tests/render/raster/test_tile_adjoints.py`.
"""

import numpy as np

from adjoint.render.raster.barycentrics import corner_weights_vjp, pixel_vjp
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.row_sums import outer, row_sums
from render.faces.coverage import exp_minus
from render.raster.barycentrics import barycentrics, corner_weights, inverse_depths
from render.raster.tile_rows import ROW, SCRATCH, WEIGHTS, get3, log_vector, put2, put3, whole


def row(n: int) -> np.uint64:
    """Return where row n of the scratch is, after those of the forward."""
    return np.uint64(SCRATCH) + np.uint64(n) * ROW


COORDS, INVERSE = row(0), row(3)  # barycentric coordinates, not clipped, and 1/S
EYE, EYE_LENGTHS, ADJ_RGB = row(4), row(7), row(8)
ADJ_N, ADJ_E, ADJ_W, ADJ_S = row(11), row(14), row(17), row(20)
SHARED = row(23)  # what corner k gets w_k of: adjoints of a colour, of uv, or of a sum
ADJ_P = row(26)  # adjoint of the pixel, as if it moved
PART = row(28)  # of a light: factors of normals, vectors to the eye and colours; or harmonics
SUMS = row(37)
SCRATCH_VJP = int(row(38))
STEP = int(ROW)


def rows3(at: np.uint64) -> tuple[int, int, int]:
    """Return where three rows begin."""
    return int(at), int(at) + STEP, int(at) + 2 * STEP


sum_place = row_sums(
    *outer(COORDS, ADJ_P, STEP, 2),
    *((pair,) for pair in zip(rows3(WEIGHTS), rows3(ADJ_W), strict=True)),
)


sum_shared = row_sums(*outer(WEIGHTS, SHARED, STEP))
sum_shade = row_sums(*(((at,),) for at in rows3(ADJ_S)))


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
def replay_weight(k, first, n, corners, fragments, block):
    """Write and return the weights of the corners at fragment first + k; write what undoes them."""
    a0, a1, a2, z = corners
    q, is_there = np.uint64(first) + k, k < np.uint64(n)
    b = only(is_there, barycentrics((fragments.p_x[q], fragments.p_y[q]), a0, a1, a2))
    w, s = corner_weights(b, z)
    w = only(is_there, w)
    put3(block, k + COORDS, b)
    put3(block, k + WEIGHTS, w)
    block[k + INVERSE] = s
    return w


@device_fn
def replay_weights(first, n, corners, fragments, block):
    """Weights of the corners at the fragments first..first+n-1, and what undoes them."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        replay_weight(k, first, n, corners, fragments, block)


@device_fn
def adjoint_block(first, n, fragments, adj, block):
    """Adjoints of the colours of the fragments first..first+n-1, and what lies beyond them."""
    zero = lit(0.0, block[0])
    for k in range(np.uint64(0), np.uint64(whole(n))):
        q, is_there = np.uint64(first) + k, k < np.uint64(n)
        i, s = np.uint64(fragments.pixel[q] if is_there else 0), adj.w[q] if is_there else zero
        put3(block, k + ADJ_RGB, (s * adj.rgba[i, 0], s * adj.rgba[i, 1], s * adj.rgba[i, 2]))


@device_fn
def add_sums(n, pair, at, slots, block):
    """Add n sums that were found to the numbers of a slot from place `at` on."""
    for c in range(np.uint64(0), np.uint64(n)):
        slots[np.uint64(pair), np.uint64(at) + c] += block[SUMS + c]


@device_fn
def found3(c, block):
    """Three of the sums that were found, from sum c on."""
    at = SUMS + np.uint64(c)
    return block[at], block[at + np.uint64(1)], block[at + np.uint64(2)]


@device_fn
def add_shared(n, pair, at, slots, block):
    """Add the sums of w_k times what is shared to a slot, three numbers for each corner."""
    sum_shared(block, np.uint64(whole(n)), SUMS)
    add_sums(9, pair, at, slots, block)


@device_fn
def weight_vjp(k, corners, adj_w, block):
    """Pull the adjoints of the weights at fragment k back to the pixel and to the depths."""
    a0, a1, a2, z = corners
    b, w, s = get3(block, k + COORDS), get3(block, k + WEIGHTS), block[k + INVERSE]
    adj_b, g = corner_weights_vjp(b, w, s, z, adj_w)
    adj_p = pixel_vjp(a0, a1, a2, adj_b)
    put2(block, k + ADJ_P, (-s * adj_p[0], -s * adj_p[1]))
    put3(block, k + ADJ_W, g)


@device_fn
def weights_block_vjp(n, corners, pair, slots, block):
    """Pull the adjoints of weights back, and add what corners and their depths get to a slot."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        weight_vjp(k, corners, get3(block, k + ADJ_W), block)
    sum_place(block, np.uint64(whole(n)), SUMS)
    add_place_sums(corners, pair, slots, block)


@device_fn
def add_place_sums(corners, pair, slots, block):
    """Add what corners and their depths get to a slot, from the sums that were found."""
    z = corners[3]
    add_sums(6, pair, 0, slots, block)
    c, sums = inverse_depths(z), found3(6, block)
    for i in range(3):
        slots[pair, 6 + i] -= z[3] * c[i] * sums[i]


@device_fn
def power_slopes_vector(c, p):
    """As `power_slopes`, but for a few roundings times p log(c); vectorises."""
    zero, tiny = lit(0.0, c), lit(1e-30, c)
    positive = max(c, tiny)
    log_c = log_vector(positive)
    h = exp_minus(max(-p * log_c, zero))
    h = h if c > tiny else zero
    return h, p * h / positive, h * log_c
