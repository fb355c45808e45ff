r"""Tiles, slots and node sums: the one loop around every element function.

    gather  ->  element function  ->  the element's own slots  ->  per-node sum

Elements are packed in tiles of `TILE` lanes, structure of arrays within a tile: row k of
lane q of tile t of a block with n rows lies at (t n + k) TILE + q. All forces of a model
share flat arrays; a row of `table` says where each force's blocks begin. Lanes that pad
the last tile repeat its last element and no node sum reads them.

Every lane writes the slots that only it owns, and each node adds up its slots in a fixed
order (force, element, local node). No atomics: results are equal to the bit on any
number of threads. The adjoint of the sum is a read, so adjoint/ shares this assembly: a `Loop`
says what an element function is given and where its results go, and makes both the loop over
tiles here and the lanes on a GPU.

The layout is what LLVM vectorises: flat arrays, unsigned indices (a signed one costs a
wrap-around test), and the compute loop apart from the gather, whose instructions are written
in `adjsim/jit/row_gathers.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np

from adjsim.algebra.vec3 import add, neg
from adjsim.jit.backend import cpu_kernel, device_fn, specialise
from adjsim.jit.calls import make_call
from adjsim.jit.row_gathers import TILE, make_gather
from adjsim.tiles.element_kind import ElementKind


U_TILE = np.uint64(TILE)
U1, U2, U3 = np.uint64(1), np.uint64(2), np.uint64(3)
DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
LONG = 8  # rows that one function after the other reads: compilers do not go deeper without end
# Columns of `table`, one row per force and group of worlds.
N_TILES, NODES, CONSTS, PARAMS, SERIES, SERIES_STRIDE, SLOTS = range(7)
# Columns of a run of tiles, a share of the work: of which force, of which row of `table`.
FORCE, ROW, TILE_LO, TILE_HI = range(4)


@device_fn
def read_0(a, o):
    """Return no rows."""
    return ()


@cache
def make_read_rows(n: int) -> Callable:
    """Return the reader of n rows of one lane, as a flat tuple."""
    if n == 0:
        return read_0
    if n > LONG:
        first, rest = make_read_rows(LONG), make_read_rows(n - LONG)
        behind = np.uint64(LONG * TILE)

        @device_fn
        def read_long(a, o):
            return (*first(a, o), *rest(a, o + behind))

        return read_long
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
def make_add_rows(n: int, start: int = 0) -> Callable:
    """Return the accumulator of n numbers, from number `start` on, into n rows of one lane."""
    if n == 0:
        return write_0
    if n > LONG:
        first, rest = make_add_rows(LONG, start), make_add_rows(n - LONG, start + LONG)
        behind = np.uint64(LONG * TILE)

        @device_fn
        def add_long(a, o, values):
            first(a, o, values)
            rest(a, o + behind, values)

        return add_long
    head, k = make_add_rows(n - 1, start), start + n - 1
    last = np.uint64((n - 1) * TILE)

    @device_fn
    def add_rows(a, o, values):
        head(a, o, values)
        a[o + last] += values[k]

    return add_rows


@cache
def make_add_vectors(n: int) -> Callable:
    """Return the accumulator of n vectors into 3 n rows of one lane."""
    add_rows, flat = make_add_rows(3 * n), make_flat(n)

    @device_fn
    def add_vectors(a, o, vectors):
        add_rows(a, o, flat(vectors))

    return add_vectors


@cache
def make_flat(n: int) -> Callable:
    """Return the function from n vectors to 3 n numbers."""
    if n == 1:
        return flat_1
    head, last = make_flat(n - 1), n - 1

    @device_fn
    def flat(vectors):
        return (*head(vectors), *vectors[last])

    return flat


@device_fn
def flat_1(vectors):
    """Return the components of the first vector."""
    return vectors[0]


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


@dataclass(frozen=True)
class Loop:
    """A loop over elements: what its element function is given, in order, and what is written.

    A letter is a layout, not a quantity: forces and cotangents of positions are X as well. X and
    V are a vector for each node of the element, of `fields`, (n_nodes, 3) each; V is of no vectors
    where velocities are not used. C, P and S are the element's own numbers, of `rows`, laid out
    like `consts`, `params` and `series`. Fields, rows and `out` are in the order of the letters.
    Of what is written X and V are the element's own slots. What is marked + is added to what is
    there.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def count(self, letters: str) -> int:
        """Return how many of these letters are read."""
        return sum(letter in letters for letter in self.reads)


# x, v, consts, params, series: f
FORCE_LOOP = Loop("force", reads=("X", "V", "C", "P", "S"), writes=("X",))
# ... and tan_x, tan_v, tan_params, tan_series: tan_f
JVP_LOOP = Loop("jvp", reads=(*FORCE_LOOP.reads, "X", "V", "P", "S"), writes=("X",))
# ... and tan_consts: what the rest shape adds to tan_f
REST_JVP_LOOP = Loop("jvp_consts", reads=(*FORCE_LOOP.reads, "C"), writes=("+X",))


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


@device_fn
def places_of(offsets, tile, lane, counts):
    """Return where the rows of one lane begin, in the order of `PLACE`, its nodes first."""
    n, n_consts, n_params, n_series = counts
    t = tile * U_TILE
    slots = offsets[4] + t * U3 * n + lane
    return (
        offsets[0] + t * n + lane,
        offsets[1] + t * n_consts + lane,
        offsets[2] + t * n_params + lane,
        offsets[3] + t * n_series + lane,
        slots,
        slots,
    )


PLACE = {"C": 1, "P": 2, "S": 3, "X": 4, "V": 5}  # in the tuple of `places_of`


def row_counts(kind: ElementKind) -> tuple[np.uint64, ...]:
    """Return the counts that `places_of` reads."""
    counts = (kind.n_nodes, kind.n_consts, kind.n_params, kind.n_series)
    return tuple(np.uint64(count) for count in counts)


def n_rows(kind: ElementKind, letter: str) -> int:
    """Return how many vectors or numbers of an element a letter of a `Loop` stands for."""
    counts = {"X": kind.n_vectors, "V": kind.n_velocities}
    counts |= {"C": kind.n_consts, "P": kind.n_params, "S": kind.n_series}
    return counts[letter]


def make_element(
    loop: Loop,
    kind: ElementKind,
    element: Callable,
    make_reader: Callable,
    read_rest: Callable | None = None,
):
    """Return the function of (source, lane, at, fields, rows, out) that does one element.

    `source` is the scratch of a tile on the CPU, the numbers of nodes on a GPU; `at` is from
    `places_of`. `make_reader(kind, letter, k)` makes the reader, of (source, lane, at, fields), of
    what the k-th field says of the element's nodes. `read_rest` reads its constants so, if given.
    """
    read, n_fields, n_arrays = read_nothing, 0, 0
    for letter in loop.reads:
        if letter in "XV":
            read = _with_vectors(read, make_reader(kind, letter, n_fields))
            n_fields += 1
        elif letter == "C" and n_arrays == 0 and read_rest:
            read, n_arrays = _with_vectors(read, read_rest), 1
        else:
            reader = make_read_rows(n_rows(kind, letter))
            read = _with_rows(read, reader, PLACE[letter], n_arrays)
            n_arrays += 1
    write = write_nothing
    for k, (*mark, letter) in enumerate(loop.writes):
        n, adds = n_rows(kind, letter), mark == ["+"]
        if letter in "XV":
            writer = make_write_nodes(kind, n, make_add_vectors if adds else make_write_vectors)
        else:
            writer = make_add_rows(n)
        write = _then_write(write, writer, PLACE[letter], k)
    one_result = len(loop.writes) == 1

    @device_fn
    def whole(source, lane, at, fields, rows, out):
        write(out, at, element(*read(source, lane, at, fields, rows)))

    @device_fn
    def single(source, lane, at, fields, rows, out):
        write(out, at, (element(*read(source, lane, at, fields, rows)),))

    return single if one_result else whole


@device_fn
def read_nothing(source, lane, at, fields, rows):
    """Give an element function nothing."""
    return ()


def _with_vectors(head: Callable, reader: Callable) -> Callable:
    @device_fn
    def read(source, lane, at, fields, rows):
        return (*head(source, lane, at, fields, rows), reader(source, lane, at, fields))

    return read


def _with_rows(head: Callable, reader: Callable, place: int, k: int) -> Callable:
    @device_fn
    def read(source, lane, at, fields, rows):
        return (*head(source, lane, at, fields, rows), reader(rows[k], at[place]))

    return read


@device_fn
def write_nothing(out, at, results):
    """Write nothing."""


def _then_write(head: Callable, writer: Callable, place: int, k: int) -> Callable:
    @device_fn
    def write(out, at, results):
        head(out, at, results)
        writer(out[k], at[place], results[k])

    return write


# The globals in capitals that `element_tiles` reads are bound by `specialise`, once per kind.
GATHER = DO_ELEMENT = read_nothing
COUNTS = (U1, U1, U1, U1)


def element_tiles(lo, hi, row, step, table, nodes, fields, rows, out, scratch):
    """Do the elements of tiles lo to hi of the force in `row` of the table."""
    # Not in the loop, where LLVM would read them again, since what a lane writes may overlap them.
    offsets = block_offsets(table, row, step)
    for tile in range(lo, hi):
        t = np.uint64(tile)
        GATHER(scratch, nodes, places_of(offsets, t, np.uint64(0), COUNTS)[0], fields)
        for q in range(TILE):
            lane = np.uint64(q)
            DO_ELEMENT(scratch, lane, places_of(offsets, t, lane, COUNTS), fields, rows, out)


def make_gather_all(loop: Loop, kind: ElementKind) -> Callable:
    """Return the function of (scratch, nodes, o, fields) that gathers all vectors of a tile."""
    gather, field = gather_nothing, 0
    for letter in loop.reads:
        if letter in "XV":
            gather_field = make_gather(n_rows(kind, letter), relative=kind.relative)
            gather = _then_gather(gather, gather_field, _base(loop, kind, field), field)
            field += 1
    return gather


def _base(loop: Loop, kind: ElementKind, field: int) -> np.uint64:
    """Return where the vectors from a field begin in the scratch of a tile."""
    letters = [letter for letter in loop.reads if letter in "XV"][:field]
    return np.uint64(3 * TILE * sum(n_rows(kind, letter) for letter in letters))


@device_fn
def gather_nothing(scratch, nodes, o, fields):
    """Gather nothing."""


def _then_gather(head: Callable, gather_field: Callable, base: np.uint64, field: int) -> Callable:
    @device_fn
    def gather(scratch, nodes, o, fields):
        head(scratch, nodes, o, fields)
        gather_field(scratch, nodes, o, base, fields[field])

    return gather


def tile_signature(loop: Loop, dtype: np.dtype) -> Any:
    """Return the signature of `element_tiles` for a loop."""
    real, i = numba.from_dtype(dtype), numba.int64
    groups = (
        numba.types.UniTuple(real[:, ::1], loop.count("XV")),
        numba.types.UniTuple(real[::1], loop.count("CPS")),
        numba.types.UniTuple(real[::1], len(loop.writes)),
    )
    return numba.void(i, i, i, i, i[:, ::1], numba.uint32[::1], *groups, real[::1])


@cache
def tile_kernel(loop: Loop, kind: ElementKind, element: Callable, dtype: np.dtype) -> Callable:
    """Return the compiled `element_tiles` of a loop over one kind of element."""

    def from_scratch(kind: ElementKind, letter: str, field: int) -> Callable:
        reader, base = make_read_vectors(n_rows(kind, letter)), _base(loop, kind, field)

        @device_fn
        def read(source, lane, at, fields):
            return reader(source, lane + base)

        return read

    compiled = specialise(
        element_tiles,
        f"{loop.name}_tiles_{kind.name}_{dtype.name}",
        DO_ELEMENT=make_element(loop, kind, element, from_scratch),
        GATHER=make_gather_all(loop, kind),
        COUNTS=row_counts(kind),
    )
    return cpu_kernel(compiled, [tile_signature(loop, dtype)])


def call_of(loop: Loop) -> Callable:
    """Return the call of a loop's tile functions, for tables of them."""
    return make_call([tile_signature(loop, dtype) for dtype in DTYPES])
