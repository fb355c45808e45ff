"""Reading the vectors of a tile's nodes: rows of (n_nodes, 3) turned to rows of lanes; CPU only.

A node's three numbers lie side by side, those of a tile's lanes do as well, so the way from one
to the other is a transpose. Loops that copy number by number are left as such by the compiler,
which cannot tell what the indices reach, and then cost more than a force. Written here are the
instructions for eight lanes at a time: the first two numbers of a node in one load, and the
transpose in registers. Beside it: adding to a row, and asking for one ahead of its use.

Tests: `tests/jit/test_row_gathers.py`.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from adjsim.jit.backend import JIT_DISABLED


TILE = 16  # lanes of a tile
LANES = 8  # of them in a register
CONTRACT = ("contract",)  # a product and a sum in one instruction


@cache
def make_gather(n: int, *, relative: bool) -> Callable[..., None]:
    """Return a function of (scratch, nodes, o, base, field) for kernels that gathers one tile.

    Row a of the tile's nodes begins at nodes[o + a TILE], and component c of its vectors, a row
    of `field`, (n_nodes, 3), is written to scratch[base + (3 a + c) TILE] and on. If `relative`,
    row a is written as row a + 1 minus the first row.
    """
    if JIT_DISABLED:
        return partial(_gather_slowly, n, relative)

    def gather(context, scratch, nodes, o, base, field):

        def codegen(context, builder, signature, args):
            return _gather(n, relative, context, builder, signature.args, args)

        arguments = scratch, nodes, types.uint64, types.uint64, field
        return types.none(*arguments), codegen

    return intrinsic(gather)


def _gather(n, relative, context, builder, kinds, args):
    """Write the code of one tile's gather."""
    word = ir.IntType(64)
    _, _, o, base, _ = args
    scratch, nodes, field = (
        context.make_array(kinds[k])(context, builder, args[k]).data for k in (0, 1, 4)
    )
    size = context.get_abi_sizeof(context.get_value_type(kinds[0].dtype))
    with cgutils.for_range_slice(builder, word(0), word(TILE), word(LANES)) as (q, _):

        def place(array, start, row):
            return builder.gep(array, [builder.add(builder.add(start, q), word(row * TILE))])

        def read(row):
            return _vectors(builder, field, place(nodes, o, row), size)

        first = read(0) if relative and n else None
        for row in range(n):
            vectors = read(row + 1) if first else read(row)
            for c, value in enumerate(vectors):
                out = builder.fsub(value, first[c]) if first else value
                p = place(scratch, base, 3 * row + c)
                builder.store(out, builder.bitcast(p, out.type.as_pointer()), align=size)
    return context.get_dummy_value()


def _vectors(builder, field, at, size):
    """Return three registers: the components of the rows of `field` named from `at` on."""
    number, word = field.type.pointee, ir.IntType(64)
    pairs, last = [], ir.Constant(ir.VectorType(number, LANES), ir.Undefined)
    for lane in range(LANES):
        i = builder.zext(builder.load(builder.gep(at, [word(lane)])), word)
        row = builder.gep(field, [builder.mul(i, word(3))])
        two = builder.bitcast(row, ir.VectorType(number, 2).as_pointer())
        pairs.append(builder.load(two, align=size))
        z = builder.load(builder.gep(row, [word(2)]), align=size)
        last = builder.insert_element(last, z, ir.IntType(32)(lane))
    while len(pairs) > 1:
        pairs = [
            _shuffle(builder, a, b, range(2 * a.type.count))
            for a, b in zip(pairs[::2], pairs[1::2], strict=True)
        ]
    both = pairs[0]
    x, y = (_shuffle(builder, both, both, range(c, 2 * LANES, 2)) for c in range(2))
    return x, y, last


@cache
def make_row_gather(step: int, sets: int) -> Callable[..., None]:
    """Return a function of (field, places, n, rows, at) for kernels that gathers vectors.

    Component c of row places[i step + k] of `field`, (m, 3), is written to
    rows[at + (3 i + c) step + k] for each set i, and each k from 0 to n - 1, in eights.
    """
    if JIT_DISABLED:
        return partial(_gather_rows_slowly, step, sets)

    def gather(context, field, places, n, rows, at):

        def codegen(context, builder, signature, args):
            return _gather_rows(step, sets, context, builder, signature.args, args)

        return types.none(field, places, types.uint64, rows, types.uint64), codegen

    return intrinsic(gather)


def _gather_rows(step, sets, context, builder, kinds, args):
    """Write the code of a gather into rows."""
    word = ir.IntType(64)
    _, _, n, _, at = args
    field, places, rows = (
        context.make_array(kinds[k])(context, builder, args[k]).data for k in (0, 1, 3)
    )
    size = context.get_abi_sizeof(context.get_value_type(kinds[0].dtype))

    def place(array, k, row):
        return builder.gep(array, [builder.add(k, word(row * step))])

    with cgutils.for_range_slice(builder, word(0), n, word(LANES)) as (k, _):
        begin = builder.add(at, k)
        for i in range(sets):
            for c, value in enumerate(_vectors(builder, field, place(places, k, i), size)):
                p = place(rows, begin, 3 * i + c)
                builder.store(value, builder.bitcast(p, value.type.as_pointer()), align=size)
    return context.get_dummy_value()


def _gather_rows_slowly(
    step: int, sets: int, field: Any, places: Any, n: Any, rows: Any, at: Any
) -> None:
    """As `make_row_gather` says, in Python without compiler."""
    n, at = int(n), int(at)
    for i in range(sets):
        for c in range(3):
            rows[at + (3 * i + c) * step :][:n] = field[places[i * step :][:n], c]


def _add_scaled(context, field, i, s, v):
    """Add s v to row i of `field`, (n, 3), two numbers in one instruction; i is unsigned."""

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, args[0]).data
        x, y, z = cgutils.unpack_tuple(builder, args[3], 3)
        row = builder.gep(data, [builder.mul(args[1], ir.IntType(64)(3))])
        size = context.get_abi_sizeof(x.type)
        pair, empty = ir.VectorType(x.type, 2), ir.Constant(ir.VectorType(x.type, 2), ir.Undefined)

        def both(a, b):
            first = builder.insert_element(empty, a, ir.IntType(32)(0))
            return builder.insert_element(first, b, ir.IntType(32)(1))

        two, last = builder.bitcast(row, pair.as_pointer()), builder.gep(row, [ir.IntType(64)(2)])
        for place, scale, value in ((two, both(args[2], args[2]), both(x, y)), (last, args[2], z)):
            product = builder.fmul(scale, value, flags=CONTRACT)
            total = builder.fadd(product, builder.load(place, align=size), flags=CONTRACT)
            builder.store(total, place, align=size)
        return context.get_dummy_value()

    return types.none(field, types.uint64, field.dtype, types.UniTuple(field.dtype, 3)), codegen


def _add_scaled_slowly(field: Any, i: Any, s: Any, v: Any) -> None:
    """Add s v to row i of `field`, in Python without compiler."""
    for c in range(3):
        field[int(i), c] += s * v[c]


add_scaled: Callable[..., None] = _add_scaled_slowly if JIT_DISABLED else intrinsic(_add_scaled)


def _shuffle(builder, a, b, lanes):
    """Return the named lanes of two registers, one after the other."""
    which = list(lanes)
    return builder.shuffle_vector(
        a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(which)), which)
    )


def _gather_slowly(n: int, relative: bool, scratch: Any, nodes: Any, o: Any, base: Any, field: Any):
    """As `make_gather` says, in Python without compiler."""
    rows = n + relative
    o, base = int(o), int(base)
    vectors = field[nodes[o : o + rows * TILE].reshape(rows, TILE)]
    out = vectors[1:] - vectors[0] if relative else vectors
    scratch[base : base + 3 * n * TILE] = np.moveaxis(out, 2, 1).ravel()


def _prefetch(context, rows, i):
    """Ask for the cache line where `rows[i]` begins, ahead of its use; i is unsigned."""

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, args[0])
        index = [args[1], *[context.get_constant(types.uint64, 0)] * (kind.ndim - 1)]
        place = cgutils.get_item_pointer(context, builder, kind, array, index)
        address, number = builder.bitcast(place, cgutils.voidptr_t), ir.IntType(32)
        ask = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], ask)
        builder.call(prefetch, [address, number(0), number(3), number(1)])  # read, keep, data
        return context.get_dummy_value()

    return types.none(rows, types.uint64), codegen


def _no_prefetch(rows, i):
    """Ask for nothing: Python without compiler."""


prefetch: Callable[..., None] = _no_prefetch if JIT_DISABLED else intrinsic(_prefetch)
