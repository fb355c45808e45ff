"""Work in this process, in processes of this machine and of a cluster, some of which are killed."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from studies.runs import manifest, pool as pools
from studies.runs.errors import StudyError
from studies.runs.pool import HERE, DaskPool, LocalPool, open_pool, require_alike, run_item
from tests.studies.runs.dask_commands import dask, ended, scheduler
from tests.studies.runs.items import (
    blas_thread_counts,
    counted_threads,
    deadly,
    not_found,
    refused,
    slow_pid,
    squared,
    summed,
    summed_by,
    surroundings,
)


__all__ = ["dask", "scheduler"]  # fixtures


@pytest.fixture
def two(monkeypatch):
    """Two processes that are started after the first item."""
    monkeypatch.setattr(pools, "START_SECONDS", 0.0)
    return LocalPool(2)


@pytest.fixture
def another_commit(monkeypatch):
    """Make this process one of other code than its workers."""

    def change():
        monkeypatch.setattr(manifest, "CODE", "of another commit")
        manifest.environment.cache_clear()

    yield change
    monkeypatch.undo()
    manifest.environment.cache_clear()


@pytest.fixture
def in_a_hurry(monkeypatch):
    """Wait for seconds only."""
    monkeypatch.setattr(pools, "CONNECT_SECONDS", 2.0)
    monkeypatch.setattr(pools, "WORKER_SECONDS", 2.0)
    monkeypatch.setattr(pools, "POLL_SECONDS", 0.5)


def test_serially_items_run_here_in_their_order():
    assert list(HERE(squared, [3, 1, 2])) == [(3, 9), (1, 1), (2, 4)]
    assert next(HERE(slow_pid, [1])) == (1, os.getpid())
    assert not HERE.is_apart(1000)


def test_an_item_has_one_thread_of_linear_algebra(two):
    before = blas_thread_counts()
    assert before
    for pool in (HERE, two):
        assert dict(pool(counted_threads, range(4)))[3] == [1] * len(before)
    assert blas_thread_counts() == before


def test_with_too_little_to_do_no_process_is_started(monkeypatch):
    monkeypatch.setattr(pools, "local_executor", None)
    monkeypatch.setattr(pools, "START_SECONDS", 1e3)  # on a busy machine an item may take long
    assert [LocalPool(2).is_apart(count) for count in (0, 2, 3)] == [False, False, True]
    assert not LocalPool(1).is_apart(1000)
    assert dict(LocalPool(2)(squared, range(1000))) == {k: k * k for k in range(1000)}
    assert set(dict(LocalPool(1)(slow_pid, range(3))).values()) == {os.getpid()}


def test_over_processes_bits_are_those_of_the_series(two):
    ran = list(two(summed_by, range(12)))
    assert {item: sums for item, (sums, _) in ran} == dict(HERE(summed, range(12)))
    (first, (_, pid)), *others = ran
    assert (first, pid) == (0, os.getpid())
    assert len({pid for _, (_, pid) in others} - {os.getpid()}) == 2


def test_a_process_has_its_share_of_threads_and_a_folder_that_goes(two):
    before = dict(os.environ)
    of_kernels, of_sums, place = dict(two(surroundings, range(4)))[3]
    assert dict(os.environ) == before
    assert of_kernels == 1
    assert set(of_sums) == {1}
    assert "adjsim-" in place
    assert not os.path.exists(place)


def test_an_error_of_an_item_is_raised_here(two):
    with pytest.raises(ValueError, match="Two is refused"):
        list(two(refused, [0, *range(10)]))


def test_first_items_run_here_as_long_as_they_compile(two, monkeypatch):
    counts = iter([0, 1, 1, 2, 2, 2])  # before and after each: the third compiles nothing
    monkeypatch.setattr(pools, "_compiled_files", lambda: next(counts))
    ran = dict(two(slow_pid, range(6)))
    assert {k for k, pid in ran.items() if pid == os.getpid()} == {0, 1, 2}


@pytest.mark.parametrize("wait", [0.0, 1.5], ids=["while items run", "before the next is given"])
def test_a_killed_process_costs_a_retry_and_nothing_else(two, wait):
    pids = {}
    for item, pid in two(slow_pid, range(10)):
        if len(pids) == 2:
            os.kill(pid, signal.SIGKILL)
            time.sleep(wait)  # until the executor knows
        assert item not in pids
        pids[item] = pid
    assert set(pids) == set(range(10))


class _BreaksOnce(pools._Elsewhere):
    """A pool whose first executor is found broken when it is given its third item."""

    width, executors = 1, 0

    @contextmanager
    def _executor(self, count):
        self.executors += 1
        with ThreadPoolExecutor(count) as threads:
            given = iter(range(2 if self.executors == 1 else count))

            def submit(*call):
                if next(given, None) is None:
                    raise BrokenProcessPool("found between two results")
                return threads.submit(*call)

            yield SimpleNamespace(submit=submit), BrokenProcessPool


def test_a_pool_that_is_found_broken_between_two_results_is_made_again():
    pool = _BreaksOnce()
    assert sorted(pool(str, range(5))) == [(k, str(k)) for k in range(5)]
    assert pool.executors == 2


def test_an_item_that_kills_its_processes_is_named_after_all_others(two, monkeypatch):
    monkeypatch.setattr(pools, "RETRIES", 1)
    completed = []
    message = r"1 of the items of work ended too many workers, the first: 1\..*--scheduler serial"
    with pytest.raises(StudyError, match=message):
        completed.extend(item for item, _ in two(deadly, range(9)))
    assert sorted(completed) == [0, *range(2, 9)]


def test_a_worker_with_other_code_is_refused(two, another_commit):
    another_commit()
    with pytest.raises(StudyError, match=r"not like this command.* the code of adjsim has changed"):
        list(two(squared, range(9)))


def test_what_differs_is_named():
    expected = {"code": "a", "processor": "x", "versions": {"numpy": "2.0"}}
    require_alike("w", expected, {**expected})
    with pytest.raises(StudyError, match=r"worker w is not like .*: numpy was 2.0, is 2.1. Give"):
        require_alike("w", expected, {**expected, "versions": {"numpy": "2.1"}})
    with pytest.raises(StudyError, match=r"processor was x, is y.* NUMBA_CPU_NAME"):
        require_alike("w", expected, {**expected, "processor": "y"})


COMMAND = """
import signal
from studies.runs import pool
from tests.studies.runs.items import sleepy
if __name__ == "__main__":
    # As at a terminal: what a shell starts in the background ignores Ctrl-C, children included.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pool.START_SECONDS = 0.0
    for item, pid in pool.LocalPool(2)(sleepy, range(9)):
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
    """The fast items have come, and the others would take an hour."""
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
        _, err = command.communicate(timeout=60.0)  # the pipes close with the last process
    finally:
        command.kill()
    assert command.returncode == -number
    assert ("KeyboardInterrupt" in err) == (number == signal.SIGINT)
    while not all(map(has_ended, workers)):
        assert time.monotonic() - began < 30.0
        time.sleep(0.05)
    assert list(tmp_path.glob("adjsim-*")) == []


def test_what_runs_is_chosen_by_the_cores_the_device_and_the_option(monkeypatch):
    monkeypatch.setattr(pools.backend, "thread_count", lambda *_, **__: 1)
    with open_pool(None) as pool:
        assert pool is HERE
    monkeypatch.setattr(pools.backend, "thread_count", lambda *_, **__: 3)
    with open_pool(None) as pool:
        assert pool == LocalPool(3)
    with open_pool(None, device="cuda") as pool:  # there is one GPU
        assert pool is HERE
    with open_pool("serial") as pool:
        assert pool is HERE
    with open_pool("local:2") as pool:
        assert pool == LocalPool(2)


@pytest.mark.parametrize("wrong", ["local", "local:0", "tcp://host", "host:8786", "", "x" * 10**5])
def test_an_address_that_reads_wrong_is_refused(wrong):
    with pytest.raises(StudyError, match="`--scheduler` must be the address of a Dask") as error:
        open_pool(wrong).__enter__()
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("count", ["1000000", "9" * 9])
def test_too_many_workers_are_refused(count):
    with pytest.raises(StudyError, match=rf"`--scheduler local:N` must have N .*got {count}"):
        open_pool(f"local:{count}").__enter__()


def test_without_dask_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StudyError, match=r"needs the package distributed: pip install -e '.\[dask"):
        open_pool("tcp://127.0.0.1:1").__enter__()


def test_no_scheduler_answers(in_a_hurry):
    pytest.importorskip("distributed")
    with pytest.raises(StudyError, match=r"No scheduler answers at tcp://127.0.0.1:1 within 2 s"):
        open_pool("tcp://127.0.0.1:1").__enter__()


def test_no_worker_comes(scheduler, in_a_hurry):
    with pytest.raises(StudyError, match=r"No worker came .* 2 s. Start one with `dask worker tcp"):
        open_pool(scheduler[1]).__enter__()


@pytest.fixture
def cluster(scheduler, dask):
    """A scheduler with two workers, started by their commands, and its pool."""
    _, address = scheduler
    workers = [dask("worker", address, "--nthreads", "1") for _ in range(2)]
    with open_pool(address) as pool:
        assert isinstance(pool, DaskPool)
        pool.client.wait_for_workers(2)
        yield pool, workers


def test_on_a_cluster_items_come_back_and_a_killed_worker_costs_a_retry(cluster):
    pool, _ = cluster
    assert pool.width == 2
    assert dict(pool(squared, range(20))) == {k: k * k for k in range(20)}
    assert list(pool(squared, [])) == []
    assert {item: sums for item, (sums, _) in pool(summed_by, range(3))} == dict(
        HERE(summed, range(3))
    )
    assert set(dict(pool(counted_threads, [0]))[0]) == {1}
    for function, error, message in (
        (refused, ValueError, "Two is refused"),
        (not_found, FileNotFoundError, "is not there"),
    ):
        with pytest.raises(error, match=message):
            dict(pool(function, range(4)))
    pids = {}
    for item, pid in pool(slow_pid, range(8)):
        if not pids:
            os.kill(pid, signal.SIGKILL)
        pids[item] = pid
    assert set(pids) == set(range(8))
    assert os.getpid() not in pids.values()


def test_workers_that_differ_are_refused(scheduler, dask, another_commit):
    address = scheduler[1]
    wide = dask("worker", address, "--nthreads", "2", "--no-nanny")
    with pytest.raises(StudyError, match="runs 2 items of work at a time"):
        open_pool(address).__enter__()
    ended(wide)
    dask("worker", address, "--nthreads", "1", "--no-nanny")
    another_commit()
    with pytest.raises(StudyError, match="the code of adjsim has changed"):
        open_pool(address).__enter__()


class Bare:
    """A client of a worker where adjsim is not installed."""

    def wait_for_workers(self, count, timeout):
        pass

    def nthreads(self):
        return {"w": 1}

    def run(self, function, on_error):
        return {"w": Exception("ModuleNotFoundError(\"No module named 'studies'\")")}


def test_a_worker_without_adjsim_is_refused():
    with pytest.raises(StudyError, match=r"The worker w cannot run adjsim.*: ModuleNotFound"):
        pools.check_workers(Bare(), "tcp://host:1")


@pytest.mark.parametrize(
    ("leaves", "message"), [("worker", "No worker has been at"), ("scheduler", "is gone")]
)
def test_workers_or_a_scheduler_that_leave_are_named(scheduler, dask, monkeypatch, leaves, message):
    process, address = scheduler
    worker = dask("worker", address, "--nthreads", "1", "--no-nanny")
    with open_pool(address) as pool:
        monkeypatch.setattr(pools, "WORKER_SECONDS", 2.0)
        running = pool(slow_pid, range(100))
        next(running)
        if leaves == "worker":
            worker.terminate()
        else:
            process.kill()
        with pytest.raises(StudyError, match=message):
            list(running)


def test_run_item_is_what_every_worker_does():
    assert run_item(squared, 3) == 9
