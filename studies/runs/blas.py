"""Linear algebra in one thread: its libraries cut long sums into a part for each thread.

So the last digits of a search would depend on the number of cores. `adjsim` sets the variables
before the libraries are loaded (`studies/cli`); workers and programs in Python limit them here.
Apple's Accelerate cannot be limited so, only by VECLIB_MAXIMUM_THREADS before it is loaded.
"""

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any


VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def limit_before_loading() -> None:
    """Let the libraries that this process and its children will load take one thread."""
    os.environ.update(dict.fromkeys(VARIABLES, "1"))


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let the libraries that are loaded take one thread inside the block."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """Return what controls the libraries that are loaded: to look for them takes milliseconds."""
    import scipy.linalg  # noqa: F401  loads SciPy's own library beside NumPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
