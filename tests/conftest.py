"""What every test shares: a seeded generator, a Hypothesis profile that repeats itself."""

import gc
import os


# As the command does before it loads NumPy: with more threads, sums have other bits.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

from adjsim.jit import kernel_cache


pytest.register_assert_rewrite("adjoint.verify.contract")

# The same examples in every run, and no deadline: the first call of a kernel compiles it.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


def pytest_collection_finish():
    """Have the collector of garbage pass over what was imported, and look less often.

    Compilers make millions of objects, most of them without cycles: looking at all that is there
    again and again takes a twelfth of the time.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def every_kernel_has_a_key():
    """All kernels can be kept on disk, but those of tests that put another list in its place."""
    yield
    assert not [text for text in kernel_cache._warned if "no hash" in text]


@pytest.fixture
def rng():
    """A generator with the same seed in every test."""
    return np.random.default_rng(20210503)
