"""Schedulers and workers of tests, started as their commands start them."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest


@contextmanager
def dask_commands():
    """Give what starts schedulers and workers as commands do; all end with the block."""
    started = []

    def start(command, *args, **more):
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{command}", "--no-dashboard", *args],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **{"env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, **more},
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            ended(process)


@pytest.fixture
def dask():
    """Starts schedulers and workers; none outlives its test."""
    with dask_commands() as start:
        yield start


def ended(process):
    process.terminate()
    try:
        process.wait(20.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def scheduler(tmp_path, dask):
    """A scheduler of its own: process and address."""
    return start_scheduler(dask, tmp_path)


def start_scheduler(dask, folder):
    """Start a scheduler; return its process and address."""
    place = folder / "address.json"
    process = dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", place)
    end = time.monotonic() + 60.0
    while not (place.exists() and place.read_text().rstrip().endswith("}")):  # made, then written
        assert time.monotonic() < end
        time.sleep(0.1)
    return process, json.loads(place.read_text())["address"]
