"""Pieces of work for tests of their distribution; workers import them."""

import os
import signal
import time

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
