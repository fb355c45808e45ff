"""The function that undoes the shading of a tile: twin of `render/raster/tile_calls.py`.

It takes three times as long to compile as the loops that call it, and only scenes with faces
that are shaded pixel by pixel need it: for others it is not compiled.

Tests: `tests/render/raster/test_tile_adjoints.py`.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

import numba
import numpy as np

from adjoint.render.raster.pixel_shading import own_parts
from adjoint.render.raster.tile_adjoints import empty_scratch
from adjoint.render.raster.tile_shading import pixels_vjp_tile
from adjsim.jit.backend import cpu_kernel
from adjsim.jit.calls import function_table, make_call
from render.raster.frames import Frame
from render.raster.packing import Job
from render.raster.tile_calls import in_each_precision
from render.raster.tile_scratch import TileSize


UNSHADE = 0  # in the table
_signatures: dict[np.dtype, Any] = {}
call_unshade = make_call(_signatures.values())
_kernels: dict[np.dtype, Callable] = {}
_lock = Lock()  # frames are undone by several threads
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)


def shade_tile_vjp(tile, scene, faces, tiles, fragments, adj, slots):
    """Undo the colours of the fragments of a tile whose faces are shaded pixel by pixel."""
    records, first = slots.records, slots.place[tile]
    adj_scene = own_parts(tile, slots.parts)
    if records.at.shape[1] > 0:
        slots.written[tile] = fragments.pair[tiles.start[tile + 1] - tiles.start[tile]]
        records.at[0, first : first + slots.written[tile]] = -1
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        f, k = np.uint64(tiles.faces[pair]), pair - tiles.start[tile]
        if scene.by_pixel[f]:
            row = np.uint64(scene.owner[f])
            pixels_vjp_tile(
                k, f, scene, faces, fragments, adj, pair, slots.pairs, adj_scene, row, records,
                first,
            )  # fmt: skip


def unshade_table(job: Job, ready: Frame, slots: Any) -> Any:
    """Return the table whose `UNSHADE` is `shade_tile_vjp`, if a face is shaded pixel by pixel.

    The types of `slots`, those of this table included, follow from that of the vertices.
    """
    dtype, is_needed = job.x.dtype, len(ready.faces.towards) > 0
    if dtype not in (_kernels if is_needed else _signatures):
        with _lock:
            if dtype not in _signatures:
                fragments, adj = empty_scratch(TileSize(0, 0, ready.grid.shift, dtype))
                args = (0, job.scene, ready.faces, ready.tiles, fragments, adj, slots)
                signature = numba.void(*(numba.typeof(arg) for arg in args))
                _signatures.update(in_each_precision(signature))
            if is_needed and dtype not in _kernels:
                _kernels[dtype] = cpu_kernel(shade_tile_vjp, [_signatures[dtype]])
    return function_table([_kernels[dtype] if is_needed else None])
