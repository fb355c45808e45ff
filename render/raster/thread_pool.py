"""Frames and tiles shared out among threads.

One frame or one tile is worked by one thread from start to end, and none writes where another
reads, so what is drawn is equal to the bit on any number of them.

Tests: `tests/render/test_soft_raster.py`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np

from adjsim import checks
from adjsim.jit.tile_queue import first_turn
from render.raster.packing import Job


SERIAL_PIXELS = 200 * 200  # fewer pixels than this, over all frames, are drawn by one thread


class Pool:
    """Runs the tiles of a frame, on threads if there is an executor."""

    def __init__(self, executor: ThreadPoolExecutor | None = None, threads: int = 1) -> None:
        self.executor, self.threads = executor, threads

    def over_tiles(self, work: Callable[[np.ndarray], None]) -> None:
        """Call work(turn) on every thread; there, `take_turn(turn)` hands out the tiles.

        A thread that is done with one tile takes the next: tiles differ in how much they hold.
        """
        turn = first_turn()
        if self.executor is None:
            work(turn)
            return
        others = [self.executor.submit(work, turn) for _ in range(self.threads - 1)]
        work(turn)
        for other in others:
            other.result()


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
    threads = checks.whole("threads", threads, 1)
    if threads == 1:
        yield from (work(view, frame, Pool()) for view, frame in frames)
        return
    executor = shared_executor(threads)
    if len(frames) == 1:
        yield work(0, 0, Pool(executor, threads))
        return
    yield from executor.map(lambda which: work(which[0], which[1], Pool()), frames)
