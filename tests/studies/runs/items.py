"""Items of work for tests of pools; workers import them."""

import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  with libraries of its own
from threadpoolctl import threadpool_info

from adjsim.jit import backend
from studies.runs import pool


def blas_thread_counts():
    return [
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "opencv" not in library["filepath"]  # of another test
    ]


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


def summed(x):
    """A sum whose last digits depend on its order."""
    numbers = np.random.default_rng(x).standard_normal(4096)
    return float(numbers @ np.sin(numbers)), numbers.sum().hex()


def summed_by(x):
    return summed(x), slow_pid(x)


def surroundings(x):
    with tempfile.NamedTemporaryFile() as file:
        place = str(Path(file.name).parent)
    return backend.thread_count(None, large=True), blas_thread_counts(), place


def sleepy(x):
    """Come at once five times, then not within the hour."""
    time.sleep(0.2 if x < 5 else 3600.0)
    return os.getpid()


@dataclass(frozen=True)
class DieOnce:
    """Ends the first worker that runs it, in the middle of its first item."""

    function: Callable
    flag: str
    parent: int

    def __call__(self, item):
        if os.getpid() != self.parent and not os.path.exists(self.flag):
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.function(item)


@dataclass
class Killing:
    """Two processes of this machine, one of which is killed."""

    flag: Path
    width: int = 2

    def is_apart(self, count):
        return True

    def __call__(self, function, items):
        dying = DieOnce(function, str(self.flag), os.getpid())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pool, "START_SECONDS", 0.0)
            yield from pool.LocalPool(2)(dying, items)
        assert self.flag.exists()


class Elsewhere:
    """Runs every item in this process, and lets all go through pickle as if it were another."""

    width = 2

    def is_apart(self, count):
        return True

    def __call__(self, function, items):
        for item in items:
            run, item_copy = pickle.loads(pickle.dumps((function, item)))
            yield item, pickle.loads(pickle.dumps(run(item_copy)))
