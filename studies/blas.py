"""How many threads the linear algebra of NumPy and SciPy takes.

OpenBLAS, which their wheels carry, cuts long sums into a part for each of its threads. So the last
digits of a fit hang on the cores of the machine, or on OPENBLAS_NUM_THREADS, which `dask worker`
sets to 1. A piece of work that takes one thread has the same sums everywhere.

Another library, such as MKL or Accelerate, is left as it is: its own variables say how many.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from numpy.linalg import _umath_linalg  # pyright: ignore[reportAttributeAccessIssue]
from scipy.linalg import _fblas  # pyright: ignore[reportAttributeAccessIssue]


# NumPy and SciPy carry a library each; builds differ in how they name its functions.
NAMES = [
    f"{prefix}openblas_{{}}_num_threads{suffix}"
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
]
Control = tuple[Callable[[], int], Callable[[int], None]]


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let linear algebra take so many threads inside the block."""
    before = [(put, get()) for get, put in _controls()]
    for put, _ in before:
        put(count)
    try:
        yield
    finally:
        for put, own in before:
            put(own)


def blas_thread_counts() -> list[int]:
    """Return how many threads each OpenBLAS takes now."""
    return [get() for get, _ in _controls()]


@cache
def _controls() -> tuple[Control, ...]:
    """Return how to read and set the number of threads of each OpenBLAS."""
    found: dict[int, Control] = {}
    for module in (_umath_linalg, _fblas):
        library = ctypes.CDLL(module.__file__)  # a name is looked up in what it is linked with too
        for name in NAMES:
            try:
                get, put = (getattr(library, name.format(verb)) for verb in ("get", "set"))
            except AttributeError:
                continue
            get.restype, put.restype, put.argtypes = ctypes.c_int, None, [ctypes.c_int]
            found[ctypes.cast(put, ctypes.c_void_p).value or 0] = get, put
            break
    return tuple(found.values())
