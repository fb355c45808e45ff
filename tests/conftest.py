"""What every test shares: a seeded generator, a Hypothesis profile that repeats itself."""

import numpy as np
import pytest
from hypothesis import settings


# The same examples in every run, and no deadline: the first call of a kernel compiles it.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture
def rng():
    """A generator with the same seed in every test."""
    return np.random.default_rng(20210503)
