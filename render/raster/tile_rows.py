"""Rows of numbers of a block of fragments, and what is done to them; CPU only.

A block keeps in one array a row for each number of its fragments: the loops over rows have no
branch, so that they work several fragments per instruction.

Adjoint: `adjoint/render/raster/tile_rows.py`. Tests: `tests/render/raster/test_tile_shading.py`.
"""

import numpy as np

from adjsim.jit.backend import device_fn, lit
from adjsim.jit.row_sums import LANES, vector_rows
from render.faces.coverage import LN2_HIGH, LN2_LOW, exp_minus, two_sums
from render.raster.barycentrics import barycentrics, corner_weights


SHADED = 112  # fragments that are shaded at a time
ROW = np.uint64(SHADED + LANES)  # of the scratch, a number for each fragment
WEIGHTS, NORMALS, COLORS = np.uint64(0) * ROW, np.uint64(3) * ROW, np.uint64(6) * ROW
LENGTHS, FRACTIONS = np.uint64(9) * ROW, np.uint64(12) * ROW
TEXELS, THREE_ROWS = np.uint64(14) * ROW, np.uint64(3) * ROW
PLACES = 4 * (SHADED + LANES)  # of the texels of a block
SCRATCH = 26 * (SHADED + LANES)
MANTISSA, ONE = np.int64((1 << 52) - 1), np.int64(1023 << 52)  # bits of a float64
# artanh(f) = f + f s q(s), s = f^2: coefficients of the even powers in q, then of the odd ones.
ARTANH = (
    (0.07308292712444311, 0.09091444727837474, 0.14285714313001635, 0.3333333333333335),
    (0.07665855309105386, 0.11111105565129939, 0.19999999999949722),
)


@device_fn
def whole(n):
    """The whole groups of LANES that hold n: loops run over them; what lies beyond is not used."""
    return (n + (LANES - 1)) // LANES * LANES


@device_fn
def get3(block, at):
    """Three numbers of a fragment, a row apart: rows lie in one array, so loops vectorise."""
    return block[at], block[at + ROW], block[at + ROW + ROW]


@device_fn
def put3(block, at, value):
    """Write three numbers of a fragment."""
    block[at], block[at + ROW], block[at + ROW + ROW] = value


@device_fn
def get2(block, at):
    """Two numbers of a fragment."""
    return block[at], block[at + ROW]


@device_fn
def put2(block, at, value):
    """Write two numbers of a fragment."""
    block[at], block[at + ROW] = value


@device_fn
def times(a, b):
    """Products of colours, per channel."""
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


@device_fn
def fragment_weights(q, corners, fragments):
    """Weights of the corners at fragment q."""
    a0, a1, a2, z = corners
    w, _ = corner_weights(barycentrics((fragments.p_x[q], fragments.p_y[q]), a0, a1, a2), z)
    return w


@device_fn
def weigh_block(first, n, corners, fragments, block):
    """Weights of the corners at the fragments first..first+n-1."""
    for k in range(np.uint64(0), np.uint64(whole(n))):
        w = fragment_weights(np.uint64(first) + k, corners, fragments)
        put3(block, k + WEIGHTS, w)


write_vectors = vector_rows(int(ROW))


@device_fn
def write_colors(first, n, fragments, block):
    """Write the colours of a block to its fragments first..first+n-1."""
    write_vectors(block, COLORS, np.uint64(n), fragments.rgb, np.uint64(first))


@device_fn
def log_vector(c):
    """log(c) for c > 0, not denormal, to two roundings, in operations that vectorise; CPU only.

    c = 2^k m with 1/sqrt(2) <= m <= sqrt(2), log(m) = 2 artanh(f), f = (m - 1)/(m + 1) (Cody &
    Waite, Software Manual for the Elementary Functions, 1980, ch. 5). The polynomial is fitted at
    Chebyshev nodes, to 5e-18; its even and odd powers are two sums that do not wait for each other.
    """
    bits = np.float64(c).view(np.int64)
    m = np.int64((bits & MANTISSA) | ONE).view(np.float64)
    is_large = m > 1.4142135623730951
    k = np.float64(np.int32((bits >> np.int64(52)) - np.int64(1023))) + (1.0 if is_large else 0.0)
    m = 0.5 * m if is_large else m
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    series = two_sums(s, ARTANH)
    return type(c)(k * LN2_HIGH + (k * LN2_LOW + (2.0 * f * s * series + 2.0 * f)))


@device_fn
def power_vector(c, p):
    """max(0, c)^p as `power` has it, but for a few roundings times p log(c); vectorises."""
    zero, tiny = lit(0.0, c), lit(1e-30, c)
    h = exp_minus(max(-p * log_vector(max(c, tiny)), zero))
    return h if c > tiny else zero
