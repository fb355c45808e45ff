r"""Tiles, slots and node sums: the one loop around every element function.

    gather  ->  element function  ->  the element's own slots  ->  per-node sum

Elements are packed in tiles of `TILE` lanes, structure of arrays within a tile: row k of
lane q of tile t of a block with n rows lies at (t n + k) TILE + q. All forces of a model
share flat arrays; a row of `table` says where each force's blocks begin. Lanes that pad
the last tile repeat its last element and no node sum reads them.

Every lane writes the slots that only it owns, and each node adds up its slots in a fixed
order (force, element, local node). No atomics: results are equal to the bit on any
number of threads. The adjoint of the sum is a read, so adjoint/ shares this assembly.

The layout is what LLVM vectorises: flat arrays, unsigned indices (a signed one costs a
wrap-around test), and the compute loop apart from the gather, whose instructions are written
in `adjsim/gathering.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from adjsim.backend import cpu_kernel, device_fn, is_hashed, specialise
from adjsim.element import ElementKind
from adjsim.gathering import TILE, make_gather
from adjsim.vec3 import add, neg


U_TILE = np.uint64(TILE)
U1, U2, U3 = np.uint64(1), np.uint64(2), np.uint64(3)
DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
# Columns of `table`, one row per force and group of worlds.
N_TILES, NODES, CONSTS, PARAMS, SERIES, SERIES_STRIDE, SLOTS = range(7)


@device_fn
def read_0(a, o):
    """Return no rows."""
    return ()


@cache
def make_read_rows(n: int) -> Callable:
    """Return the reader of n rows of one lane, as a flat tuple."""
    if n == 0:
        return read_0
    head, last = make_read_rows(n - 1), np.uint64((n - 1) * TILE)

    @device_fn
    def read_rows(a, o):
        return (*head(a, o), a[o + last])

    return read_rows


@cache
def make_read_vectors(n: int) -> Callable:
    """Return the reader of 3 n rows of one lane, as a tuple of n vectors."""
    if n == 0:
        return read_0
    head, last = make_read_vectors(n - 1), np.uint64(3 * (n - 1) * TILE)

    @device_fn
    def read_vectors(a, o):
        p = o + last
        return (*head(a, o), (a[p], a[p + U_TILE], a[p + U2 * U_TILE]))

    return read_vectors


@device_fn
def write_0(a, o, value):
    """Write no rows."""


@cache
def make_write_vectors(n: int) -> Callable:
    """Return the writer of n vectors to 3 n rows of one lane."""
    if n == 0:
        return write_0
    head, k = make_write_vectors(n - 1), n - 1
    last = np.uint64(3 * k * TILE)

    @device_fn
    def write_vectors(a, o, vectors):
        head(a, o, vectors)
        p = o + last
        a[p] = vectors[k][0]
        a[p + U_TILE] = vectors[k][1]
        a[p + U2 * U_TILE] = vectors[k][2]

    return write_vectors


@cache
def make_add_rows(n: int) -> Callable:
    """Return the accumulator of n numbers into n rows of one lane."""
    if n == 0:
        return write_0
    head, k = make_add_rows(n - 1), n - 1
    last = np.uint64(k * TILE)

    @device_fn
    def add_rows(a, o, values):
        head(a, o, values)
        a[o + last] += values[k]

    return add_rows


@cache
def make_write_relative(n: int, make_write: Callable = make_write_vectors) -> Callable:
    """Return the writer of n vectors for nodes 1 to n and minus their sum for node 0."""
    rest = make_write(n)
    first, count = make_write(1), n

    @device_fn
    def write_relative(a, o, vectors):
        total = vectors[0]
        for k in range(1, count):
            total = add(total, vectors[k])
        first(a, o, (neg(total),))
        rest(a, o + U3 * U_TILE, vectors)

    return write_relative


def make_write_nodes(
    kind: ElementKind, n_vectors: int, make_write: Callable = make_write_vectors
) -> Callable:
    """Return the writer of a kind's slots from the vectors that its element returns."""
    if n_vectors == 0:
        return write_0
    return make_write_relative(n_vectors, make_write) if kind.relative else make_write(n_vectors)


@device_fn
def block_offsets(table, row, step):
    """Return where a force's blocks begin: nodes, consts, params, series of a step, slots."""
    return (
        np.uint64(table[row, NODES]),
        np.uint64(table[row, CONSTS]),
        np.uint64(table[row, PARAMS]),
        np.uint64(table[row, SERIES] + step * table[row, SERIES_STRIDE]),
        np.uint64(table[row, SLOTS]),
    )


# The globals in capitals that `force_tiles` reads are bound by `specialise`, once per kind.
ELEMENT = GATHER_X = GATHER_V = READ_X = READ_V = READ_C = READ_P = READ_S = WRITE_F = write_0
N = NX = NV = NC = NP = NS = U1


def force_tiles(
    lo, hi, row, step, table, nodes, consts, params, series, x, v, slots, scratch
):  # fmt: skip
    """Write the force slots of tiles lo to hi of the force in `row` of the table."""
    o_nodes, o_consts, o_params, o_series, o_slots = block_offsets(table, row, step)
    for tile in range(lo, hi):
        t = np.uint64(tile) * U_TILE
        GATHER_X(scratch, nodes, o_nodes + t * N, np.uint64(0), x)
        GATHER_V(scratch, nodes, o_nodes + t * N, U3 * NX * U_TILE, v)
        for q in range(TILE):
            u = np.uint64(q)
            f = ELEMENT(
                READ_X(scratch, u),
                READ_V(scratch, u + U3 * NX * U_TILE),
                READ_C(consts, o_consts + t * NC + u),
                READ_P(params, o_params + t * NP + u),
                READ_S(series, o_series + t * NS + u),
            )
            WRITE_F(slots, o_slots + t * U3 * N + u, f)


def layout_bindings(kind: ElementKind) -> dict[str, object]:
    """Return the names that every tile loop over this kind is bound to."""
    n_x, n_v = kind.n_vectors, kind.n_velocities
    counts = {
        "N": kind.n_nodes,
        "NX": n_x,
        "NV": n_v,
        "NC": kind.n_consts,
        "NP": kind.n_params,
        "NS": kind.n_series,
    }
    return {
        "GATHER_X": make_gather(n_x, relative=kind.relative),
        "GATHER_V": make_gather(n_v, relative=kind.relative),
        "READ_X": make_read_vectors(n_x),
        "READ_V": make_read_vectors(n_v),
        "READ_C": make_read_rows(kind.n_consts),
        "READ_P": make_read_rows(kind.n_params),
        "READ_S": make_read_rows(kind.n_series),
        **{name: np.uint64(count) for name, count in counts.items()},
    }


def tile_signature(dtype: np.dtype, layout: str) -> Any:
    """Return a tile function's signature: i int64, t table, n nodes, a flat, m (n, 3)."""
    real = numba.from_dtype(dtype)
    types = {
        "i": numba.int64,
        "t": numba.int64[:, ::1],
        "n": numba.uint32[::1],
        "a": real[::1],
        "m": real[:, ::1],
    }
    return numba.void(*(types[letter] for letter in layout))


FORCE_LAYOUT = "iiii" + "tn" + "aaa" + "mm" + "aa"


@cache
def force_kernel(kind: ElementKind, dtype: np.dtype) -> Callable:
    """Return the compiled `force_tiles` of one kind."""
    bindings = layout_bindings(kind)
    write = make_write_nodes(kind, kind.n_vectors)
    name = f"force_tiles_{kind.name}_{dtype.name}"
    loop = specialise(force_tiles, name, ELEMENT=kind.force, WRITE_F=write, **bindings)
    return cpu_kernel(loop, [tile_signature(dtype, FORCE_LAYOUT)], cached=is_hashed(kind.force))
