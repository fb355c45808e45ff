"""How many threads the linear algebra of NumPy and SciPy takes.

Their libraries cut long sums into a part for each of their threads. So the last digits of a fit
hang on the cores of the machine, or on OPENBLAS_NUM_THREADS, which `dask worker` sets to 1. A
piece of work that takes one thread has the same sums everywhere.

Apple's Accelerate cannot be told: its own variable, VECLIB_MAXIMUM_THREADS, says how many.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  loads SciPy's own library beside NumPy's
from threadpoolctl import ThreadpoolController


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """Let linear algebra take so many threads inside the block."""
    return _controller().limit(limits=count, user_api="blas")


def blas_thread_counts() -> list[int]:
    """Return how many threads each library takes now."""
    return [one["num_threads"] for one in _controller().select(user_api="blas").info()]


@cache
def _controller() -> ThreadpoolController:
    """Return what controls the libraries that are loaded: to look for them takes milliseconds."""
    return ThreadpoolController()
