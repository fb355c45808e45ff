"""Sums on a GPU whose order depends on nothing but how many terms there are.

Tests: `tests/cuda`.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from adjoint.render.textures import TexelRecords, texel_weight
from adjsim.engine.algebra.vec3 import axpy
from adjsim.engine.jit.backend import device_fn, launch, lit, on_device, to_host


CHUNK = 16  # parts that one thread sums at least


@device_fn
def sum_thread(i, args):
    """Sum one column of a run of rows, first to last."""
    parts, edges, sums = args
    run, c = i // parts.shape[1], i % parts.shape[1]
    total = lit(0.0, sums[run, c])
    for k in range(edges[run], edges[run + 1]):
        total += parts[k, c]
    sums[run, c] = total


def sum_runs(xp: Any, parts: Any, ends: Sequence[int]) -> Any:
    """Sum the rows ends[r] to ends[r + 1] - 1 of `parts` (n, m) for each r.

    In two stages, each of about as many terms as the root of the longest run; the order
    depends on `ends` alone.
    """
    longest = max((b - a for a, b in pairwise(ends)), default=0)
    size = max(CHUNK, isqrt(longest))
    edges, runs = [], [0]
    for a, b in pairwise(ends):
        edges += range(a, b, size)
        runs.append(len(edges))
    edges.append(ends[-1])
    for cuts in (edges, runs):
        sums = xp.zeros((len(cuts) - 1, parts.shape[1]), parts.dtype)
        args = on_device((parts, np.array(cuts, np.int64), sums))
        launch(sum_thread, sums.size, args)
        parts = sums
    return parts


def sum_faces(xp: Any, part: Any, ends: list[int]) -> np.ndarray:
    """Sum the parts of the faces ends[r] to ends[r + 1] - 1 for each r, a row each."""
    flat = part.reshape(part.shape[0], int(np.prod(part.shape[1:])))
    return to_host(sum_runs(xp, flat, ends))


@device_fn
def texel_thread(t, args):
    """Sum what the records hold for texel t, in their order."""
    records, keys, start, totals = args
    zero = lit(0.0, totals[0, 0])
    total = (zero, zero, zero)
    for m in range(start[t], start[t + 1]):
        which = keys[m] % keys.shape[0]
        c, k = which // records.at.shape[1], which % records.at.shape[1]
        adj_C = (records.part[2, k], records.part[3, k], records.part[4, k])
        weight = texel_weight(c, records.part[0, k], records.part[1, k])
        total = axpy(weight, adj_C, total)
    totals[t, 0], totals[t, 1], totals[t, 2] = total


def sum_texels(xp: Any, records: TexelRecords, n_texels: int) -> np.ndarray:
    """Sum the records texel by texel, (n_texels, 3): a sort by texel, then runs of the order."""
    n = records.at.size
    totals = xp.zeros((n_texels, 3), records.part.dtype)
    keys, start = xp.empty(n, np.int64), xp.zeros(n_texels + 1, np.int64)
    if n > 0:
        keys = xp.sort(records.at.ravel().astype(np.int64) * n + xp.arange(n))
        start = xp.searchsorted(keys, n * xp.arange(n_texels + 1))
    launch(texel_thread, n_texels, on_device((records, keys, start, totals)))
    return to_host(totals)
