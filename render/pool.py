"""Frames and tiles shared out among threads.

One frame or one run of tiles is worked by one thread from start to end, and none writes where
another reads, so what is drawn is equal to the bit on any number of them.

Tests: `tests/render/test_soft_raster.py`.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numba
import numpy as np

from render.packing import Job


SERIAL_PIXELS = 200 * 200  # fewer pixels than this, over all frames, are drawn by one thread
SHORTEST = 16  # a run of tiles is no shorter than an even share divided by this
TILE_WORK = 1 << 9  # of the pixels of a tile, counted in fragments


class Pool:
    """Runs the tiles of a frame, on threads if there is an executor."""

    def __init__(self, executor: ThreadPoolExecutor | None = None, threads: int = 1) -> None:
        self.executor, self.threads = executor, threads

    def over_tiles(
        self, capacity: np.ndarray, work: Callable[[Iterable[tuple[int, int]]], None]
    ) -> None:
        """Call work(runs) on every thread; the runs (first, last) make up all tiles together.

        A thread that is done with one run takes the next: tiles differ in how much they hold.
        """
        if self.executor is None:
            work([(0, len(capacity))])
            return
        runs = iter(runs_of(capacity, self.threads))  # shared: each run is taken once
        others = [self.executor.submit(work, runs) for _ in range(self.threads - 1)]
        work(runs)
        for other in others:
            other.result()


def runs_of(capacity: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Cut tiles that hold so much into runs (first, last): long ones first, then shorter ones.

    Each is half of an even share of what is left, so few are handed out, and the last to be
    done is short.
    """
    held = [0, *accumulate((capacity + TILE_WORK).tolist())]
    least, edges = held[-1] / (SHORTEST * threads), [0]
    while edges[-1] < len(capacity):
        size = max((held[-1] - held[edges[-1]]) / (2 * threads), least)
        edges.append(max(edges[-1] + 1, bisect_left(held, held[edges[-1]] + size)))
    edges[-1] = len(capacity)
    return list(pairwise(edges))


@cache
def shared_executor(threads: int) -> ThreadPoolExecutor:
    """Return the threads that draw, made once: to start them takes as long as a small image."""
    return ThreadPoolExecutor(threads, "adjsim-draw")


os.register_at_fork(after_in_child=shared_executor.cache_clear)  # a child has none of them


def for_each_frame(
    jobs: Sequence[Job], threads: int | None, work: Callable[[int, int, Pool], Any]
) -> list[Any]:
    """Return work(view, frame, pool) for every frame of every view, view by view."""
    return list(frame_by_frame(jobs, threads, work))


def frame_by_frame(
    jobs: Sequence[Job], threads: int | None, work: Callable[[int, int, Pool], Any]
) -> Iterator[Any]:
    """Yield work(view, frame, pool) for every frame of every view, view by view.

    Frames share the threads; where there is one alone, its tiles do.
    """
    frames = [(view, frame) for view in range(len(jobs)) for frame in range(len(jobs[0].x))]
    if threads is None:
        grid = jobs[0].grid
        n_pixels = len(frames) * len(grid.pixel_x) * len(grid.pixel_y)
        threads = 1 if n_pixels < SERIAL_PIXELS else numba.get_num_threads()
    elif threads < 1:
        raise ValueError(f"`threads` must be at least 1, got {threads}.")
    if threads == 1:
        yield from (work(view, frame, Pool()) for view, frame in frames)
        return
    executor = shared_executor(threads)
    if len(frames) == 1:
        yield work(0, 0, Pool(executor, threads))
        return
    yield from executor.map(lambda which: work(which[0], which[1], Pool()), frames)
