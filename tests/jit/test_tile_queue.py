from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from adjsim.jit.backend import cpu_kernel
from adjsim.jit.tile_queue import first_turn, take_turn
from render.raster.thread_pool import Pool


def _take_all(turn, n, taken, mark):
    """Write `mark` to the place of each turn that is taken here; return how many these were."""
    count, k = 0, take_turn(turn)
    while k < n:
        taken[k] += mark
        count += 1
        k = take_turn(turn)
    return count


take_all = cpu_kernel(_take_all)


def test_one_thread_takes_the_turns_in_their_order():
    turn = first_turn()
    assert take_all(turn, 5, np.zeros(5, np.int64), 1) == 5
    assert turn[0] == 6
    assert take_all(turn, 5, np.zeros(5, np.int64), 1) == 0


def test_every_turn_is_taken_once_however_many_threads_ask():
    n, counts, marks = 200_000, [], iter((1, 1000, 1000_000))
    taken = np.zeros(n, np.int64)
    with ThreadPoolExecutor(2) as executor:
        Pool(executor, 3).over_tiles(
            lambda turn: counts.append(take_all(turn, n, taken, next(marks)))
        )
    assert set(np.unique(taken)) <= {1, 1000, 1000_000}
    assert len(counts) == 3
    assert sum(counts) == n


def test_what_a_thread_raises_is_raised_by_the_pool():
    def work(turn):
        raise ZeroDivisionError(f"at turn {turn[0]}")

    with ThreadPoolExecutor(1) as executor:
        for pool in (Pool(), Pool(executor, 2)):
            with pytest.raises(ZeroDivisionError, match="at turn 0"):
                pool.over_tiles(work)
