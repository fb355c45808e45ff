"""Calls of compiled functions by number: a table of addresses instead of arguments.

A loop that takes functions as arguments is typed by them and unpacks them again in every
call, 0.2 ms each, and two models of other lengths are two loops. A table of addresses is an
array like any other: the loop is compiled once, and a call of it costs microseconds. The
functions are called, never inlined, so every loop gets the same bits from them. They must not
raise: no loop over elements does, and nobody looks.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from adjsim.jit.backend import JIT_DISABLED


NO_FUNCTION = 0  # in the place of one: not to be called


def function_table(kernels: Sequence[Callable | None]) -> Any:
    """Return the table of some compiled functions of one signature each; None: `NO_FUNCTION`.

    An array of addresses, (n_functions,) int64; without compilation, the functions themselves.
    They must live as long as the table.
    """
    if JIT_DISABLED:
        return tuple(NO_FUNCTION if kernel is None else kernel for kernel in kernels)
    addresses = [NO_FUNCTION if kernel is None else _address(kernel) for kernel in kernels]
    return np.array(addresses, np.int64)


@cache
def _address(kernel: Any) -> int:
    """Return where the one compiled version of a function lies: asking LLVM takes 0.1 ms."""
    (compiled,) = kernel.overloads.values()
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def make_call(signatures: Collection[Any]) -> Callable:
    """Return `call(table, k, args)` for compiled code: the k-th function of a table, called.

    `args` is a tuple, and its types choose among the signatures, those there are when the call
    is compiled; that the functions of the table have the chosen one is the caller's business.
    """
    if JIT_DISABLED:
        return _call_in_python

    @intrinsic
    def call(typing_context, table, k, args):
        arg_types = tuple(args.types) if isinstance(args, types.Tuple | types.UniTuple) else ()
        candidates = tuple(signatures)
        fitting = [s for s in candidates if _fits(typing_context, arg_types, s.args)]
        if len(fitting) != 1:
            raise TypingError(f"A function of {candidates} is called with {tuple(arg_types)}.")
        wanted, result = fitting[0].args, fitting[0].return_type

        def generate(context, builder, called, values):
            addresses = context.make_array(called.args[0])(context, builder, values[0])
            address = builder.load(builder.gep(addresses.data, [values[1]]))
            kind = context.call_conv.get_function_type(result, wanted)
            function = builder.inttoptr(address, kind.as_pointer())
            parts = [
                context.cast(builder, value, a, b)
                for value, a, b in zip(
                    cgutils.unpack_tuple(builder, values[2]), arg_types, wanted, strict=True
                )
            ]
            # A test of the status would be a branch, over which reference counts are kept.
            return context.call_conv.call_function(builder, function, result, wanted, parts)[1]

        return result(table, k, args), generate

    return call


def _fits(typing_context: Any, given: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether arguments can be passed on without a change of what they mean."""
    return len(given) == len(wanted) and all(
        typing_context.can_convert(a, b) is not None for a, b in zip(given, wanted, strict=True)
    )


def _call_in_python(table: tuple, k: int, args: tuple) -> Any:
    return table[k](*args)
