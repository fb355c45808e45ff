"""Free parameters as tests declare them."""

import numpy as np

from studies.problem.parameters import FreeParameter, Log


def block(path, transform, start, bounds=None):
    low = 0.0 if isinstance(transform, Log) else -np.inf
    known = (bounds or {}).get(path, (low, np.inf))
    return FreeParameter(path, np.asarray(start, np.float64), known, transform)


def positive_block(path, start, bounds=None):
    return block(path, Log(), start, bounds)
