"""Sums over the fragments of a block, whose numbers lie in rows; CPU only.

A row is summed in LANES lanes, which are added in pairs, and several rows together one
fragment after the other: both keep as many sums apart as an instruction waits for. The order
rests on the number of fragments alone.

Tests: `tests/render/test_tile_adjoints.py`.
"""

import numpy as np

from adjoint.render.pixel_shading import add_corners, no_corners
from adjsim.backend import device_fn, lit
from render.tile_shading import LANES, ROW, get3, whole


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
def row_dots(row, rows, n, block):
    """Sums over n fragments of the products of the numbers of a row and those of three others."""
    zero = lit(0.0, block[0])
    s0, s1, s2 = zero, zero, zero
    for k in range(np.uint64(0), np.uint64(n)):
        w, v = block[row + k], get3(block, rows + k)
        s0 += w * v[0]
        s1 += w * v[1]
        s2 += w * v[2]
    return s0, s1, s2


@device_fn
def add_sums(rows, n, i, total, block):
    """Add the sums of three rows of n fragments to row i of an array."""
    for c in range(3):
        total[i, c] += row_sum(rows + np.uint64(c) * ROW, whole(n), block)


@device_fn
def add_outer(weights, rows, n, at, pair, slots, block):
    """Add the sums of w_k v over n fragments to the places from at + 3 k on of a slot."""
    zero = lit(0.0, block[0])
    sums = no_corners(zero)
    for k in range(np.uint64(0), np.uint64(n)):
        sums = add_corners(sums, get3(block, weights + k), get3(block, rows + k))
    for k in range(3):
        for c in range(3):
            slots[pair, at + 3 * k + c] += sums[k][c]


@device_fn
def only(is_there, value):
    """Three numbers, or 0 beyond the last fragment."""
    zero = lit(0.0, value[0])
    return (
        value[0] if is_there else zero,
        value[1] if is_there else zero,
        value[2] if is_there else zero,
    )
