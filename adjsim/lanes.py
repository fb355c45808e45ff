"""Sums of rows of numbers, eight rows in one go; CPU only.

Eight sums of a row each end in eight numbers in the lanes of a register. Added up row by row
these cost more than short rows themselves; added up together, two and two, what is left of
eight rows is one register with their eight sums. No compiler finds that from loops, so the
instructions are written here.

Tests: `tests/test_lanes.py`.
"""

from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic

from adjsim.backend import JIT_DISABLED


LANES = 8
# Which lanes of two registers, one after the other, are added to which: the first of each pair
# of tuples to the second. After three such steps each lane is the sum of a register.
PAIRS = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
FOURS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
EIGHTS = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def _sum_rows(context, rows, at, step, n, out):
    """Write the sums of rows[at + i step :][:n], i = 0..7, to rows[out + i]; n in eights."""
    from llvmlite import ir
    from numba.core import cgutils, types as kinds

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        data = context.make_array(kind)(context, builder, args[0]).data
        number, word = context.get_value_type(kind.dtype), ir.IntType(64)
        register, size = ir.VectorType(number, LANES), context.get_abi_sizeof(number)
        at, step, n, out = args[1:]

        def place(k):
            return builder.bitcast(builder.gep(data, [k]), register.as_pointer())

        def fold(a, b, lanes):
            first, second = (
                builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), q))
                for q in lanes
            )
            return builder.fadd(first, second)

        sums = [cgutils.alloca_once(builder, register) for _ in range(LANES)]
        for total in sums:
            builder.store(ir.Constant(register, [0.0] * LANES), total)
        with cgutils.for_range_slice(builder, word(0), n, word(LANES)) as (k, _):
            row = builder.add(at, k)
            for total in sums:
                part = builder.load(place(row), align=size)
                builder.store(builder.fadd(builder.load(total), part), total)
                row = builder.add(row, step)
        parts = [builder.load(total) for total in sums]
        for lanes in (PAIRS, FOURS, EIGHTS):
            parts = [fold(a, b, lanes) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        builder.store(parts[0], place(out), align=size)
        return context.get_dummy_value()

    whole = kinds.uint64
    return kinds.none(rows, whole, whole, whole, whole), codegen


def _sum_rows_slowly(rows, at, step, n, out):
    """As `_sum_rows`, in Python without compiler."""
    at, step, n, out = int(at), int(step), int(n), int(out)
    rows[out : out + LANES] = [rows[at + i * step :][:n].sum() for i in range(LANES)]


sum_rows: Callable[..., Any] = _sum_rows_slowly if JIT_DISABLED else intrinsic(_sum_rows)
