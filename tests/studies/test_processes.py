"""Work that is spread over this machine's cores: the same bits, kills, interrupts, orphans."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from studies import config, distribution, processes, running
from studies.blas import blas_thread_counts
from studies.distribution import HERE, connected
from studies.errors import StudyError
from studies.processes import Processes, firsts, on_this_machine
from studies.registry import RunOptions, find_study
from tests.studies.paper.tables.toy import TABLE1
from tests.studies.pieces import (
    deadly,
    refused,
    slow_pid,
    squared,
    summed,
    summed_by,
    surroundings,
)
from tests.studies.undrawn import undrawn


@pytest.fixture
def two(monkeypatch):
    """Two processes that are started after the first piece."""
    monkeypatch.setattr(processes, "START_SECONDS", 0.0)
    spread = Processes(2)
    yield spread
    assert all(line.closed for line in spread.lifelines)


def test_with_too_little_to_do_no_process_is_started():
    spread = Processes(2)
    assert [spread.is_apart(count) for count in (0, 7, 8)] == [False, False, True]
    assert not Processes(1).is_apart(1000)
    assert list(spread(squared, [3, 1, 2])) == [(3, 9), (1, 1), (2, 4)]
    assert set(dict(spread(slow_pid, range(7))).values()) == {os.getpid()}
    assert dict(spread(squared, range(1000))) == {k: k * k for k in range(1000)}  # is soon done
    assert spread.lifelines == []


def test_processes_are_so_many_that_each_has_enough_to_do():
    assert [Processes(16)._processes(count) for count in (8, 20, 64, 1000)] == [2, 5, 16, 16]


def test_over_processes_bits_are_those_of_the_series(two):
    pieces = range(12)
    ran = list(two(summed_by, pieces))
    assert two.lifelines
    assert {piece: sums for piece, (sums, _) in ran} == dict(HERE(summed, pieces))
    (first, (_, pid)), *others = ran
    assert (first, pid) == (0, os.getpid())
    assert len({pid for _, (_, pid) in others} - {os.getpid()}) == 2


def test_a_process_has_its_share_of_threads_and_a_folder_that_goes(two):
    before = dict(os.environ)
    of_kernels, of_sums, place = dict(two(surroundings, range(9)))[8]
    assert dict(os.environ) == before
    assert of_kernels == 1
    assert of_sums == [1] * len(blas_thread_counts())
    assert "adjsim-" in place
    assert not os.path.exists(place)


def test_an_error_of_a_piece_is_raised_here(two):
    with pytest.raises(ValueError, match="Two is refused"):
        list(two(refused, [0, *range(10)]))


def test_one_piece_of_each_family_is_first():
    pieces = [SimpleNamespace(family=name, k=k) for k in range(2) for name in "ab"]
    first, others = firsts(pieces)
    assert [(one.family, one.k) for one in first + others] == [
        ("a", 0), ("b", 0), ("a", 1), ("b", 1),
    ]  # fmt: skip
    assert firsts(range(3)) == ([0], [1, 2])


def test_first_pieces_run_here_as_long_as_they_compile(two, monkeypatch):
    pieces = [SimpleNamespace(family=k, k=k) for k in range(12)]
    compiled = iter([0, 1, 1, 2, 2, 2])  # before and after each: the third compiles nothing
    monkeypatch.setattr(processes, "compiled_files", lambda: next(compiled))
    ran = {piece.k: pid for piece, pid in two(slow_pid, pieces)}
    assert {k for k, pid in ran.items() if pid == os.getpid()} == {0, 1, 2}


def test_a_killed_process_costs_a_retry_and_nothing_else(two):
    found = {}
    for piece, pid in two(slow_pid, range(10)):
        if len(found) == 2:
            os.kill(pid, signal.SIGKILL)
        assert piece not in found
        found[piece] = pid
    assert set(found) == set(range(10))
    assert len(two.lifelines) == 2


@pytest.mark.slow
def test_a_piece_that_kills_its_processes_is_told_after_all_others(two, monkeypatch):
    monkeypatch.setattr(processes, "RETRIES", 1)
    found = []
    message = r"1 piece of work ended too many processes, the first: 1.*--scheduler serial"
    with pytest.raises(StudyError, match=message):
        found.extend(piece for piece, _ in two(deadly, range(9)))
    assert sorted(found) == [0, *range(2, 9)]


def test_processes_that_do_not_start_are_told(two, monkeypatch):
    monkeypatch.setattr(processes, "RETRIES", 0)
    monkeypatch.setattr(processes, "begin", deadly_begin)
    with pytest.raises(StudyError, match="Processes end as they start here: `--scheduler serial`"):
        list(two(squared, range(9)))


def deadly_begin(lifeline, place):
    os._exit(1)


def test_processes_with_other_sources_are_refused(two, monkeypatch):
    monkeypatch.setattr(processes, "SOURCES", "of another commit")
    with pytest.raises(StudyError, match="The sources of adjsim have changed since"):
        list(two(squared, range(9)))


def test_work_ends_at_a_noted_interrupt(two):
    found = two(slow_pid, range(20))
    next(found)
    next(found)
    two.interrupted.set()
    with pytest.raises(KeyboardInterrupt):
        list(found)


COMMAND = """
import signal
from studies import processes
from tests.studies.pieces import sleepy
if __name__ == "__main__":
    # As at a terminal: what a shell starts in the background ignores Ctrl-C, children included.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.START_SECONDS = 0.0
    processes.backend.thread_count = lambda *_, **__: 2
    with processes.on_this_machine() as spread:
        for piece, pid in spread(sleepy, range(9)):
            print(pid, flush=True)
"""


def has_ended(pid):
    """Whether there is no such process, or only its record."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_the_command_ends_its_processes_soon(number, tmp_path):
    """The fast pieces have come, and the others would take an hour."""
    program = tmp_path / "command.py"
    program.write_text(COMMAND)
    command = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )  # fmt: skip
    try:
        assert command.stdout is not None
        pids = [int(command.stdout.readline()) for _ in range(5)]
        assert pids[0] == command.pid
        workers = set(pids[1:])
        assert command.pid not in workers
        began = time.monotonic()
        if number == signal.SIGINT:
            os.killpg(command.pid, number)  # as a terminal does
        else:
            os.kill(command.pid, number)
        _, told = command.communicate(timeout=60.0)  # the pipes close with the last process
    finally:
        command.kill()
    assert time.monotonic() - began < 20.0
    assert command.returncode == -number
    assert told.count("Traceback") == (1 if number == signal.SIGINT else 0)
    while not all(map(has_ended, workers)):
        assert time.monotonic() - began < 20.0
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == [program]


def test_what_spreads_is_chosen_by_the_cores_and_the_option(monkeypatch):
    monkeypatch.setattr(processes.backend, "thread_count", lambda *_, **__: 1)
    with connected(None, on_this_machine) as spread:
        assert spread is HERE
    monkeypatch.setattr(processes.backend, "thread_count", lambda *_, **__: 3)
    with connected(None, on_this_machine) as spread:
        assert isinstance(spread, Processes)
        assert spread.width == 3
    for here in (on_this_machine, distribution.in_series):
        with connected("serial", here) as spread:
            assert spread is HERE


def test_a_run_is_spread_if_it_has_pieces_and_no_gpu():
    spread, table = Processes(2), find_study("table1")
    job = table.prepare(config.resolve("table1", TABLE1).values, RunOptions())
    assert running.over(job, RunOptions(), spread).spread is spread
    assert running.over(job, RunOptions(device="cuda"), spread) is job
    single = SimpleNamespace(run=None)
    assert running.over(single, RunOptions(), spread) is single


@pytest.mark.slow
def test_a_table_over_processes_has_the_same_records(two, tmp_path):
    told = []
    for name, spread in (("here", HERE), ("there", two)):
        folder, job = running.start("table1", TABLE1, tmp_path / name, {}, spread=spread)
        with undrawn():
            job.run(folder)
        told.append(folder.file("records.csv").read_bytes())
    assert told[0] == told[1]
    assert two.lifelines
