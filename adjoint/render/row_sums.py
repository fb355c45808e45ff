"""Sums over the fragments of a block, whose numbers lie in rows; CPU only.

A row is summed in LANES lanes, which are added in pairs: that keeps as many sums apart as an
instruction works on. The order rests on the number of fragments alone.

Tests: `tests/render/test_tile_adjoints.py`.
"""

import numpy as np

from adjsim.backend import device_fn, lit
from adjsim.vec3 import scale
from render.tile_shading import LANES, ROW, get3, put3, whole


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
def row_sum3(rows, n, block):
    """Sums of three rows of n fragments."""
    return (
        row_sum(rows, whole(n), block),
        row_sum(rows + ROW, whole(n), block),
        row_sum(rows + ROW + ROW, whole(n), block),
    )


@device_fn
def add_sums(rows, n, i, total, block):
    """Add the sums of three rows of n fragments to row i of an array."""
    for c in range(3):
        total[i, c] += row_sum(rows + np.uint64(c) * ROW, whole(n), block)


@device_fn
def write_outer(weights, rows, n, terms, block):
    """Write w_k v of n fragments, v in three rows, to nine rows from `terms` on."""
    step = np.uint64(3) * ROW
    for k in range(np.uint64(0), np.uint64(whole(n))):
        w, v = get3(block, weights + k), get3(block, rows + k)
        put3(block, terms + k, scale(w[0], v))
        put3(block, terms + step + k, scale(w[1], v))
        put3(block, terms + step + step + k, scale(w[2], v))


@device_fn
def add_terms(terms, n, at, pair, slots, block):
    """Add the sums of nine rows of n fragments to the places from `at` on of a slot."""
    for c in range(9):
        slots[pair, at + c] += row_sum(terms + np.uint64(c) * ROW, whole(n), block)


@device_fn
def only(is_there, value):
    """Three numbers, or 0 beyond the last fragment."""
    zero = lit(0.0, value[0])
    return (
        value[0] if is_there else zero,
        value[1] if is_there else zero,
        value[2] if is_there else zero,
    )
