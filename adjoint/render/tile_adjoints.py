"""The adjoints of the fragments of a tile in blocks that work several per instruction; CPU only.

What `fragments.py` undoes one fragment after the other is done here for a block of them: a
loop without a branch writes what each fragment adds in rows, one for each number of the slot,
and each row is added up. A row is summed in LANES lanes, which are added in pairs: an order
that its length alone decides.

Tests: `tests/render/test_tile_adjoints.py`.
"""

import numpy as np

from adjoint.render.fragments import colors_vjp_body, coverage_vjp_body, fragment_logit_vjp
from adjsim.backend import device_fn, lit
from render.blending import NEAREST
from render.face_setup import load_corners
from render.tile_shading import LANES, ROW, SHADED, put3, whole


GROUP = np.uint64(LANES)


@device_fn
def row_sum(at, n, block):
    """Sum of the n numbers of a row that begins at a place of the block; n is whole."""
    zero = lit(0.0, block[0])
    s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
    for k in range(at, at + np.uint64(n), GROUP):
        s0 += block[k]
        s1 += block[k + np.uint64(1)]
        s2 += block[k + np.uint64(2)]
        s3 += block[k + np.uint64(3)]
        s4 += block[k + np.uint64(4)]
        s5 += block[k + np.uint64(5)]
        s6 += block[k + np.uint64(6)]
        s7 += block[k + np.uint64(7)]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


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
def logit_rows(first, n, corners, sigma, fragments, adj, block):
    """What the logits of the fragments first..first+n-1 add to three corners and to sigma."""
    zero = lit(0.0, sigma)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        q = np.uint64(first) + k
        p, is_there = (fragments.p_x[q], fragments.p_y[q]), k < np.uint64(n)
        adj_a0, adj_a1, adj_a2, adj_sigma = fragment_logit_vjp(
            p, corners, sigma, fragments.y[q], adj.y[q]
        )
        put3(block, k, only(is_there, (adj_a0[0], adj_a0[1], adj_a1[0])))
        put3(block, k + np.uint64(3) * ROW, only(is_there, (adj_a1[1], adj_a2[0], adj_a2[1])))
        block[k + np.uint64(6) * ROW] = adj_sigma if is_there else zero


@device_fn
def coverage_vjp_tile(k, f, faces, settings, fragments, adj, pair, slots):
    """As `coverage_vjp_body`, of the coverage of Over and Softmax."""
    corners, block = load_corners(f, faces.corners), fragments.shade
    adj_sigma = lit(0.0, settings.sigma)
    for c in range(6):
        slots[pair, c] = lit(0.0, settings.sigma)
    last = fragments.pair[k + 1]
    for first in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - first)
        logit_rows(first, n, corners, settings.sigma, fragments, adj, block)
        for c in range(6):
            slots[pair, c] += row_sum(np.uint64(c) * ROW, whole(n), block)
        adj_sigma += row_sum(np.uint64(6) * ROW, whole(n), block)
    return adj_sigma


@device_fn
def pair_vjp_tile(k, f, grid, scene, faces, settings, fragments, adj, pair, slots):
    """As `pair_vjp_body`."""
    if faces.soft.shape[0] > 0 or settings.blend == NEAREST:
        adj_sigma = coverage_vjp_body(k, f, faces, settings, fragments, adj, pair, slots)
    else:
        adj_sigma = coverage_vjp_tile(k, f, faces, settings, fragments, adj, pair, slots)
    colors_vjp_body(k, f, grid, scene, faces, settings, fragments, adj, pair, slots)
    return adj_sigma
