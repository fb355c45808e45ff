"""Tiles handed out to the threads that work them, one at a time, inside compiled code; CPU only.

The threads share one number, that of the next tile. Who takes a number adds 1 to it in the same
instruction, so each tile is taken once and no thread waits for another. What a tile gives does
not depend on who works it.

Tests: `tests/jit/test_tile_queue.py`.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from adjsim.jit.backend import JIT_DISABLED


def first_turn() -> np.ndarray:
    """Return the number that threads share: the first tile."""
    return np.zeros(1, np.int64)


def _take_turn(context, turn):
    """Return the number of the next tile, int64, and make it that of the one after."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.IntType(64)(1), "monotonic")

    return types.int64(turn), codegen


_taking = Lock()


def _take_turn_slowly(turn: np.ndarray) -> int:
    """Do the same in Python without compiler."""
    with _taking:
        turn[0] += 1
        return int(turn[0]) - 1


take_turn: Callable[..., Any] = _take_turn_slowly if JIT_DISABLED else intrinsic(_take_turn)
