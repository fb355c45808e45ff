"""Kernels of a first run are compiled by two processes."""

import os

import pytest

from adjsim.jit import backend
from studies.cli import warming


class Started:
    """Stands in for a process, and notes how it was started and ended."""

    def __init__(self, command, **options):
        self.command, self.ended = command, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def terminate(self):
        self.ended = True


@pytest.fixture
def started(monkeypatch):
    processes = []

    def start(command, **options):
        processes.append(Started(command, **options))
        return processes[-1]

    monkeypatch.setattr(warming.subprocess, "Popen", start)
    return processes


def test_another_process_compiles_during_a_block_and_ends_with_it(started, monkeypatch):
    monkeypatch.setattr(backend, "PRIVATE", object())
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    with warming.compiling_beside("beam", ["dtype=float64"]):
        assert not started[0].ended
    assert started[0].ended
    assert started[0].command[-2:] == ["beam", "dtype=float64"]


def test_cores_are_counted_where_there_is_no_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert warming._cores() == 3


@pytest.mark.parametrize("why", ["one core", "no shared cache"])
def test_alone_where_another_process_is_of_no_use(started, monkeypatch, why):
    monkeypatch.setattr(backend, "PRIVATE", None if why == "no shared cache" else object())
    cores = {0} if why == "one core" else {0, 1}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores)
    with warming.compiling_beside("beam", []):
        assert not started
