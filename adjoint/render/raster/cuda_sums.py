"""Sums on a GPU whose order depends on nothing but how many terms there are.

Tests: `tests/cuda`.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from adjoint.render.textures import TexelRecords, texel_weight
from adjsim.algebra.vec3 import axpy
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import kept_on_device, on_device


CHUNK = 64  # terms that one thread sums at least, where there are more


# Columns of the heads of tables: number of the first sum, width, where rows, edges and sums begin.
FIRST, WIDTH, ROWS, EDGES, TARGET = range(5)


class Table(NamedTuple):
    """Rows of numbers in a block, and where the sums of runs of them go."""

    rows: int  # where they begin
    width: int
    ends: Any  # whole numbers; run r has rows ends[r] to ends[r + 1] - 1
    target: int  # row r has the sums of run r


class Stage(NamedTuple):
    """Tables as a kernel takes them."""

    heads: np.ndarray  # (n_tables + 1, 5) int64
    edges: np.ndarray  # of the runs of all tables


@device_fn
def sum_thread(i, args):
    """Sum one column of a run of rows of one of the tables, first to last."""
    block, (heads, edges) = args
    t = 0
    while i >= heads[t + 1, FIRST]:
        t += 1
    width = heads[t, WIDTH]
    run, c = (i - heads[t, FIRST]) // width, (i - heads[t, FIRST]) % width
    begin, end = edges[heads[t, EDGES] + run], edges[heads[t, EDGES] + run + 1]
    total = lit(0.0, block[0])
    for k in range(begin, end):
        total += block[heads[t, ROWS] + k * width + c]
    block[heads[t, TARGET] + run * width + c] = total


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


@lru_cache(maxsize=16)
def plan_sums(tables: tuple[Table, ...], end: int) -> tuple[tuple[Stage, ...], int]:
    """Return the stages in which the tables of a block are summed, and the size that it needs.

    What the first stage hands to the second lies behind `end`.
    """
    planned: tuple[list[Table], list[Table]] = [], []
    for table in tables:
        first, *second = stages(table.ends)
        for runs in second:
            planned[1].append(Table(end, table.width, runs, table.target))
        planned[0].append(table._replace(ends=first, target=end if second else table.target))
        end += table.width * (len(first) - 1) if second else 0
    return tuple(_stage(stage_tables) for stage_tables in planned if stage_tables), end


def _stage(tables: Sequence[Table]) -> Stage:
    counts = [(table.width * (len(table.ends) - 1), len(table.ends)) for table in tables]
    starts = np.concatenate([[(0, 0)], np.cumsum(counts, axis=0)])
    heads = np.zeros((len(tables) + 1, 5), np.int64)
    heads[:, FIRST], heads[:, EDGES] = starts.T
    for head, table in zip(heads, tables, strict=False):
        head[WIDTH], head[ROWS], head[TARGET] = table.width, table.rows, table.target
    return Stage(heads, np.concatenate([table.ends for table in tables]))


def sum_tables(block: Any, planned: Sequence[Stage]) -> None:
    """Sum the runs of all tables of a block, with a launch for each stage."""
    there = on_device(block)
    for stage, kept in zip(planned, kept_on_device(tuple(planned)), strict=True):
        launch(sum_thread, int(stage.heads[-1, FIRST]), (there, kept))


@device_fn
def texel_thread(t, args):
    """Add what the records hold for texel t, in their order."""
    records, keys, start, texels = args
    total = (texels[t, 0], texels[t, 1], texels[t, 2])
    for m in range(start[t], start[t + 1]):
        which = keys[m] % keys.shape[0]
        c, k = which // records.at.shape[1], which % records.at.shape[1]
        adj_C = (records.values[2, k], records.values[3, k], records.values[4, k])
        weight = texel_weight(c, records.values[0, k], records.values[1, k])
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
