"""Sums on a GPU whose order depends on nothing but how many terms there are.

Tests: `tests/cuda`.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from adjoint.render.textures import TexelRecords, texel_weight
from adjsim.algebra.vec3 import axpy
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import kept_on_device, on_device


CHUNK = 64  # terms that one thread sums at least, where there are more


@device_fn
def sum_thread(i, args):
    """Sum one column of a run of rows, first to last."""
    parts, edges, sums = args
    run, c = i // parts.shape[1], i % parts.shape[1]
    total = lit(0.0, sums[run, c])
    for k in range(edges[run], edges[run + 1]):
        total += parts[k, c]
    sums[run, c] = total


def stages(ends: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Return where the runs of each stage end; long ones take two.

    Each stage has about as many terms as the root of the longest run; the order depends on
    `ends` alone.
    """
    longest = max((b - a for a, b in pairwise(ends)), default=0)
    if longest <= CHUNK:
        return (np.array(ends, np.int64),)
    size = max(CHUNK, isqrt(longest))
    edges, runs = [], [0]
    for a, b in pairwise(ends):
        edges += range(a, b, size)
        runs.append(len(edges))
    edges.append(ends[-1])
    return np.array(edges, np.int64), np.array(runs, np.int64)


def sum_tables(xp: Any, tables: Sequence[tuple[Any, Sequence[int], Any]]) -> None:
    """Sum runs of the rows of tables (n, m), from ends[r] to ends[r + 1] - 1, into row r of sums.

    The tables come as (table, ends, sums).
    """
    edges = kept_on_device(tuple(stages(ends) for _, ends, _ in tables))
    for (parts, _, sums), cuts in zip(tables, edges, strict=True):
        for of_stage in cuts:
            n = of_stage.shape[0] - 1
            total = sums if of_stage is cuts[-1] else xp.empty((n, parts.shape[1]), parts.dtype)
            launch(
                sum_thread, n * parts.shape[1], (*on_device((parts, of_stage)), on_device(total))
            )
            parts = total  # noqa: PLW2901


@device_fn
def texel_thread(t, args):
    """Add what the records hold for texel t, in their order."""
    records, keys, start, texels = args
    total = (texels[t, 0], texels[t, 1], texels[t, 2])
    for m in range(start[t], start[t + 1]):
        which = keys[m] % keys.shape[0]
        c, k = which // records.at.shape[1], which % records.at.shape[1]
        adj_C = (records.part[2, k], records.part[3, k], records.part[4, k])
        weight = texel_weight(c, records.part[0, k], records.part[1, k])
        total = axpy(weight, adj_C, total)
    texels[t, 0], texels[t, 1], texels[t, 2] = total


def add_texel_records(xp: Any, records: TexelRecords, texels: Any) -> None:
    """Add the records to the texels (n_texels, 3): a sort by texel, then runs of the order."""
    n, n_texels = records.at.size, texels.shape[0]
    keys, start = xp.empty(n, np.int64), xp.zeros(n_texels + 1, np.int64)
    if n > 0:
        keys = xp.sort(records.at.ravel().astype(np.int64) * n + xp.arange(n))
        start = xp.searchsorted(keys, n * xp.arange(n_texels + 1))
    launch(texel_thread, n_texels, on_device((records, keys, start, texels)))
