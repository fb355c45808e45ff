"""The function that finds the fragments of a tile: compiled once, called by all loops over tiles.

There are eight such loops, and it is larger than any of them: with a copy in each, a third of
the time of LLVM went into it. A loop calls it through a table, and every loop gets the same bits.

Tests: `tests/render/raster/test_fragments.py`.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

import numba
import numpy as np

from adjsim.jit.backend import cpu_kernel
from adjsim.jit.calls import function_table, make_call
from render.faces.face_setup import Faces
from render.raster.fragments import TileGrid, Tiles, gather_tile
from render.raster.packing import Job
from render.raster.tile_scratch import TileSize, empty_fragments


types: Any = numba.types
GATHER = 0  # in the table
_signatures: dict[np.dtype, Any] = {}  # a loop is compiled when its table is there
call_gather = make_call(_signatures.values())
_kernels: dict[np.dtype, Callable] = {}
_lock = Lock()  # frames are set up by several threads
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def gather_kernel(job: Job, faces: Faces, tiles: Tiles, grid: TileGrid) -> Callable:
    """Return the compiled `gather_tile`; its types follow from that of the vertices."""
    dtype = job.x.dtype
    if dtype not in _kernels:
        with _lock:
            if dtype not in _kernels:
                room = empty_fragments(TileSize(0, 0, grid.shift, dtype))
                args = (0, grid, job.scene, faces, tiles, job.settings, room)
                signature = numba.void(*(numba.typeof(arg) for arg in args))
                _signatures.update(in_each_precision(signature))
                _kernels[dtype] = cpu_kernel(gather_tile, [_signatures[dtype]])
    return _kernels[dtype]


def in_each_precision(signature: Any) -> dict[np.dtype, Any]:
    """Return a signature of arrays and tuples for both kinds of real numbers.

    A call that knows both, whichever is needed first, is the same code in every process.
    """
    reals = {dtype: numba.from_dtype(dtype) for dtype in map(np.dtype, (np.float64, np.float32))}
    return {
        dtype: numba.void(*(_with_reals(kind, real) for kind in signature.args))
        for dtype, real in reals.items()
    }


def _with_reals(kind: Any, real: Any) -> Any:
    match kind:
        case types.Float():
            return real
        case types.Array():
            return kind.copy(dtype=_with_reals(kind.dtype, real))
        case types.BaseTuple():
            inner = tuple(_with_reals(each, real) for each in kind)
            return types.BaseTuple.from_types(inner, getattr(kind, "instance_class", None))
    return kind


def gather_table(job: Job, faces: Faces, tiles: Tiles, grid: TileGrid) -> Any:
    """Return the table whose `GATHER` is the function that finds the fragments of a tile."""
    return function_table([gather_kernel(job, faces, tiles, grid)])
