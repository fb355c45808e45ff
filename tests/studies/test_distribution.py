"""Work that is spread over real processes, some of which are really killed."""

import os
import signal
import sys
import time

import pytest

from studies import distribution
from studies.blas import blas_thread_counts, blas_threads
from studies.distribution import (
    PROCESSOR,
    THREADS,
    Cluster,
    Local,
    connected,
    greet,
    parse,
    require_alike,
)
from studies.errors import StudyError
from studies.interrupts import noted_interrupts
from tests.studies.dask_commands import dask, ended, scheduler
from tests.studies.pieces import counted_threads, deadly, not_found, refused, slow_pid, squared


pytest.importorskip("distributed")
__all__ = ["dask", "scheduler"]  # fixtures


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process."""
    with connected("local:2") as spread:
        yield spread


@pytest.fixture
def brittle():
    """Two workers of a scheduler that allows a piece no failure."""
    from dask import config

    allowed = {"distributed.scheduler.allowed-failures": 0}
    with config.set(allowed), connected("local:2") as spread:
        yield spread


@pytest.fixture
def in_a_hurry(monkeypatch):
    """Wait for seconds only."""
    monkeypatch.setattr(distribution, "CONNECT_SECONDS", 2.0)
    monkeypatch.setattr(distribution, "WORKER_SECONDS", 2.0)
    monkeypatch.setattr(distribution, "POLL_SECONDS", 0.5)


def test_without_a_scheduler_pieces_run_here_in_their_order():
    with connected(None) as spread:
        assert spread == Local()
        assert list(spread(squared, [3, 1, 2])) == [(3, 9), (1, 1), (2, 4)]
        assert next(spread(slow_pid, [1])) == (1, os.getpid())


def test_a_piece_has_one_thread_of_linear_algebra_here_and_there(cluster):
    own = blas_thread_counts()
    with blas_threads(3):
        for spread in (Local(), cluster):
            assert dict(spread(counted_threads, [0])) == {0: [1] * len(own)}
        assert blas_thread_counts() == [3] * len(own)
    assert blas_thread_counts() == own


def test_every_piece_comes_back_with_its_result(cluster):
    assert cluster.width == 2
    assert dict(cluster(squared, range(20))) == {k: k * k for k in range(20)}
    assert list(cluster(squared, [])) == []
    assert os.getpid() not in dict(cluster(slow_pid, range(2))).values()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [(refused, ValueError, "Two is refused"), (not_found, FileNotFoundError, "is not there")],
)
def test_an_error_of_a_piece_is_raised_here(cluster, function, error, message):
    with pytest.raises(error, match=message):
        dict(cluster(function, range(4)))
    assert dict(cluster(squared, [3])) == {3: 9}


def test_a_killed_worker_costs_a_retry_and_nothing_else(cluster):
    found = {}
    for piece, pid in cluster(slow_pid, range(8)):
        if not found:
            os.kill(pid, signal.SIGKILL)
        found[piece] = pid
    assert set(found) == set(range(8))


@pytest.mark.slow
def test_a_piece_that_kills_its_workers_is_told_after_all_others(brittle):
    found = []
    message = r"1 piece of work ended too many workers, the first: 1"
    with pytest.raises(StudyError, match=message):
        found.extend(piece for piece, _ in brittle(deadly, range(4)))
    assert sorted(found) == [0, 2, 3]


def test_nobody_answers(in_a_hurry):
    with (
        pytest.raises(StudyError, match=r"No scheduler answers at tcp://127.0.0.1:1 within 2 s"),
        connected("tcp://127.0.0.1:1"),
    ):
        pass


def test_no_worker_comes(scheduler, in_a_hurry):
    with (
        pytest.raises(StudyError, match=r"No worker came .* 2 s. Start one with `dask worker tcp:"),
        connected(scheduler[1]),
    ):
        pass


@pytest.mark.slow
def test_workers_that_differ_are_refused(scheduler, dask, monkeypatch):
    address = scheduler[1]
    wide = dask("worker", address, "--nthreads", "2", "--no-nanny")
    with pytest.raises(StudyError, match="runs 2 pieces of work at a time"), connected(address):
        pass
    ended(wide)
    dask("worker", address, "--nthreads", "1", "--no-nanny")
    monkeypatch.setattr(distribution, "SOURCES", "of another commit")
    with pytest.raises(StudyError, match="has other sources of adjsim"), connected(address):
        pass


class Bare:
    """A client of a worker where adjsim is not installed."""

    def wait_for_workers(self, count, timeout):
        pass

    def run(self, function, on_error):
        return {"w": Exception("ModuleNotFoundError(\"No module named 'studies'\")")}


def test_a_worker_without_adjsim_is_refused():
    with pytest.raises(StudyError, match="The worker w cannot run adjsim: ModuleNotFound"):
        greet(Cluster(Bare(), "tcp://host:1"))


@pytest.mark.slow
def test_workers_or_a_scheduler_that_leave_are_told(scheduler, dask, monkeypatch):
    process, address = scheduler
    patience = distribution.WORKER_SECONDS
    for leaves, message in (("worker", "No worker has been at"), ("scheduler", "is gone")):
        worker = dask("worker", address, "--nthreads", "1", "--no-nanny")
        monkeypatch.setattr(distribution, "WORKER_SECONDS", patience)
        with connected(address) as spread:
            monkeypatch.setattr(distribution, "WORKER_SECONDS", 2.0)
            running = spread(slow_pid, range(100))
            next(running)
            if leaves == "worker":
                worker.terminate()
            else:
                process.kill()
            with pytest.raises(StudyError, match=message):
                list(running)
        ended(worker)


def test_what_differs_is_named():
    own = {"sources of adjsim": "a", "numpy": "2.0", PROCESSOR: "here"}
    require_alike("w", own, {**own, THREADS: 1, PROCESSOR: "there"})
    with pytest.raises(StudyError, match=r"The worker w has other numpy .* 2.1 and not 2.0"):
        require_alike("w", own, {**own, THREADS: 1, "numpy": "2.1"})
    with pytest.raises(StudyError, match="other sources of adjsim than this machine, b and not a"):
        require_alike("w", own, {**own, THREADS: 1, "sources of adjsim": "b"})


def test_an_address_is_read():
    assert parse("local:3") == 3
    assert parse("tcp://10.0.0.1:8786") is None
    for wrong in ("local", "local:0", "tcp://host", "host:8786", ""):
        with pytest.raises(StudyError, match="`--scheduler` must be the address of a Dask"):
            parse(wrong)


def test_without_dask_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(
            StudyError, match=r"needs the package distributed: pip install -e '.\[dask\]'"
        ),
        connected("local:2"),
    ):
        pass


def test_an_interrupt_is_noted_even_where_python_drops_it():
    class Ending:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)  # until it has come

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    dropped = []
    hook, sys.unraisablehook = sys.unraisablehook, dropped.append
    try:
        with noted_interrupts() as asked:
            assert not asked.is_set()
            Ending()
            assert asked.is_set()
        assert dropped[0].exc_type is KeyboardInterrupt
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with noted_interrupts(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, before)


def test_where_a_signal_is_ignored_it_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noted_interrupts() as asked:
            os.kill(os.getpid(), signal.SIGINT)
        assert not asked.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_work_ends_at_a_noted_interrupt(cluster):
    interrupted = Cluster(cluster.client, cluster.address)
    found = interrupted(squared, range(20))
    next(found)
    interrupted.interrupted.set()
    with pytest.raises(KeyboardInterrupt):
        list(found)
