"""Sums over rows of numbers, and over products of rows, and vectors from rows; CPU only.

A sum over a row ends in eight numbers in the lanes of a register. Added up sum by sum these
cost more than short rows themselves; added up together, two and two, what is left of eight
sums is one register with all of them. And the products w_k a_c of three rows with three need
six rows to be read and none to be written. No compiler finds either from loops that keep to the
order of a sum, so the instructions are written here.

Tests: `tests/jit/test_row_sums.py`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from adjsim.jit.backend import JIT_DISABLED


LANES = 8
CONTRACT = ("contract",)  # a product and a sum in one instruction
# Which lanes of two registers, one after the other, are added to which: the first of each pair
# of tuples to the second. After three such steps each lane is the sum of a register.
PAIRS = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
FOURS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
EIGHTS = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)

Term = tuple[int, ...]  # where the row begins that is added, or the two whose product is
Sum = tuple[Term, ...]


def fold(builder: Any, parts: list[Any]) -> Any:
    """Return one register with the sums of the lanes of each of eight."""
    for lanes in (PAIRS, FOURS, EIGHTS):
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), which) for which in lanes]
        parts = [
            builder.fadd(*(builder.shuffle_vector(a, b, mask) for mask in masks))
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def _add_terms(sums, context, builder, kind, args):
    """Write the code of `row_sums` for rows of this kind."""
    rows, n, out = args
    data = context.make_array(kind)(context, builder, rows).data
    number, word = context.get_value_type(kind.dtype), ir.IntType(64)
    register, size = ir.VectorType(number, LANES), context.get_abi_sizeof(number)
    zero = ir.Constant(register, [0.0] * LANES)

    def place(k):
        return builder.bitcast(builder.gep(data, [k]), register.as_pointer())

    totals = [cgutils.alloca_once_value(builder, zero) for _ in sums]
    with cgutils.for_range_slice(builder, word(0), n, word(LANES)) as (k, _):
        starts = sorted({at for terms in sums for term in terms for at in term})
        read = {at: builder.load(place(builder.add(k, word(at))), align=size) for at in starts}
        for total, terms in zip(totals, sums, strict=True):
            value = builder.load(total)
            for at, *other in terms:
                product = read[at]
                if other:
                    product = builder.fmul(product, read[other[0]], flags=CONTRACT)
                value = builder.fadd(product, value, flags=CONTRACT)
            builder.store(value, total)
    parts = [builder.load(total) for total in totals]
    parts += [zero] * (-len(parts) % LANES)
    for first in range(0, len(parts), LANES):
        at = place(builder.add(out, word(first)))
        builder.store(fold(builder, parts[first : first + LANES]), at, align=size)
    return context.get_dummy_value()


def _sum_slowly(sums, rows, n, out):
    """As `row_sums`, in Python without compiler."""
    n, out = int(n), int(out)
    rows[out : out - (-len(sums) // LANES) * LANES] = 0.0
    for i, terms in enumerate(sums):
        for term in terms:
            rows[out + i] += np.prod([rows[at : at + n] for at in term], axis=0).sum()


def row_sums(*sums: Sum) -> Callable[..., Any]:
    """Return a function of (rows, n, out) for kernels that writes sums to rows[out:].

    Each sum is over n numbers, in eights, of the terms given: of a row, or of the product of
    two rows, by the places in `rows`, (size,), where they begin. As many zeros follow as make
    up eight.
    """
    if JIT_DISABLED:
        return partial(_sum_slowly, sums)

    def add_up(context, rows, n, out):

        def codegen(context, builder, signature, args):
            return _add_terms(sums, context, builder, signature.args[0], args)

        return types.none(rows, types.uint64, types.uint64), codegen

    return intrinsic(add_up)


def outer(a: Any, b: Any, step: int, n: int = 3) -> tuple[Sum, ...]:
    """Return the 3 n sums of products of three rows from a on with n from b on, a step apart."""
    return tuple(((int(a + i * step), int(b + j * step)),) for i in range(3) for j in range(n))


def _write_vectors(step, context, builder, kinds, args):
    """Write the code of `vector_rows` for arrays of these kinds."""
    rows, at, n, out, first = args
    source, target = (
        context.make_array(kind)(context, builder, array).data
        for kind, array in ((kinds[0], rows), (kinds[3], out))
    )
    number, word = context.get_value_type(kinds[0].dtype), ir.IntType(64)
    register, size = ir.VectorType(number, LANES), context.get_abi_sizeof(number)

    def chosen(a, b, lanes):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
        return builder.shuffle_vector(a, b, mask)

    numbers = ir.Constant(ir.VectorType(word, 3 * LANES), list(range(3 * LANES)))
    with cgutils.for_range_slice(builder, word(0), n, word(LANES)) as (k, _):
        places = [
            builder.gep(source, [builder.add(builder.add(at, k), word(c * step))]) for c in range(3)
        ]
        x, y, z = (
            builder.load(builder.bitcast(p, register.as_pointer()), align=size) for p in places
        )
        two, last = chosen(x, y, list(range(2 * LANES))), chosen(z, z, list(range(2 * LANES)))
        vectors = chosen(two, last, [LANES * c + i for i in range(LANES) for c in range(3)])
        left = builder.mul(builder.sub(n, k), word(3))
        first_left = builder.insert_element(ir.Constant(numbers.type, ir.Undefined), left, word(0))
        every_left = chosen(first_left, first_left, [0] * (3 * LANES))
        is_there = builder.icmp_unsigned("<", numbers, every_left)
        begin = builder.gep(target, [builder.mul(builder.add(first, k), word(3))])
        place = builder.bitcast(begin, vectors.type.as_pointer())
        before = builder.load(place, align=size)
        builder.store(builder.select(is_there, vectors, before), place, align=size)
    return context.get_dummy_value()


def _write_vectors_slowly(step, rows, at, n, out, first):
    """As `vector_rows`, in Python without compiler."""
    at, n, first = int(at), int(n), int(first)
    out[first : first + n] = np.stack([rows[at + c * step :][:n] for c in range(3)], axis=1)


def vector_rows(step: int) -> Callable[..., None]:
    """Return a function of (rows, at, n, out, first) for kernels that writes vectors side by side.

    Row first + k of `out`, (m, 3), are the numbers k of three rows, the first of which begins at
    rows[at] and each other a step later; k goes from 0 to n - 1.
    Rows are read in eights, and `out` too: it must reach to the end of the last.
    """
    if JIT_DISABLED:
        return partial(_write_vectors_slowly, step)

    def write(context, rows, at, n, out, first):

        def codegen(context, builder, signature, args):
            return _write_vectors(step, context, builder, signature.args, args)

        word = types.uint64
        return types.none(rows, word, word, out, word), codegen

    return intrinsic(write)
