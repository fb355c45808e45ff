"""Pieces of work for tests of their distribution; workers import them."""

import os
import pickle
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from adjsim import backend
from studies.blas import blas_thread_counts


def squared(x):
    return x * x


def refused(x):
    if x == 2:
        raise ValueError("Two is refused.")
    return x


def not_found(x):
    raise FileNotFoundError(f"{x} is not there")


def slow_pid(x):
    time.sleep(0.3)
    return os.getpid()


def deadly(x):
    """End the worker, whoever it is, at 1."""
    if x == 1:
        time.sleep(0.5)  # a nanny that still starts a worker does not start another
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def counted_threads(x):
    return blas_thread_counts()


def threads_of_kernels(x):
    return backend.thread_count(None, large=True)


def scratch(x):
    with tempfile.NamedTemporaryFile() as file:
        return str(Path(file.name).parent)


def summed(x):
    """A sum whose last digits hang on its order."""
    numbers = np.random.default_rng(x).standard_normal(4096)
    return float(numbers @ np.sin(numbers)), numbers.sum().hex()


def summed_by(x):
    return summed(x), slow_pid(x)


def surroundings(x):
    return threads_of_kernels(x), counted_threads(x), scratch(x)


def sleepy(x):
    """Come at once five times, then not within the hour."""
    time.sleep(0.2 if x < 5 else 3600.0)
    return os.getpid()


class Elsewhere:
    """Runs every piece in this process, and lets all go through pickle as if it were another."""

    width = 2

    def is_apart(self, count):
        return True

    def __call__(self, function, pieces):
        for piece in pieces:
            run, own = pickle.loads(pickle.dumps((function, piece)))
            yield piece, pickle.loads(pickle.dumps(run(own)))
