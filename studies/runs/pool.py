"""Independent items of work: here, on this machine's cores, or on a Dask cluster.

    with open_pool(scheduler) as pool:
        for item, result in pool(function, items): ...

`function` is pure and, like items and results, can be pickled. Each result comes as soon as it is
there, in any order: what is written then, a command that is killed later keeps. The bits do not
depend on where an item is run: a worker must have the same code, libraries and kind of processor,
and linear algebra takes one thread everywhere. An item whose worker dies is run again.

Whoever can reach a Dask scheduler can run code on its workers.
"""

import os
import re
import shutil
import signal
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from adjsim.jit import backend
from studies.runs.blas import VARIABLES, one_blas_thread
from studies.runs.errors import StudyError
from studies.runs.manifest import differences, environment, flattened, listed


Item = TypeVar("Item")
Result = TypeVar("Result")

SERIAL = "serial"  # for `--scheduler`: one item after the other, in this process
START_SECONDS = 3.0  # about what local workers take to start: until then work goes on here
AHEAD = 1  # items that wait for each worker, so that it has a next one when it ends one
RETRIES = 3  # of an item whose local worker died
POLL_SECONDS = 1.0
CONNECT_SECONDS = 10.0  # until a scheduler has answered
WORKER_SECONDS = 60.0  # until there is a worker, at first or once all have gone
MOST_WORKERS = 512


def run_item(function: Callable[[Item], Result], item: Item) -> Result:
    """Run an item with one thread of linear algebra, as every worker does."""
    with one_blas_thread():
        return function(item)


class Pool:
    """Runs items here, one after the other; its subclasses run them elsewhere."""

    @property
    def width(self) -> int:
        """How many items run at once."""
        return 1

    def is_apart(self, count: int) -> bool:
        """Whether so many items may be run elsewhere, not all of them here."""
        del count
        return False

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yield every item with its result, in the order in which they end.

        What the function raises is raised here. An item that ends too many workers is an error
        after all others.
        """
        for item in items:
            yield item, run_item(function, item)


HERE = Pool()


class _Elsewhere(Pool, ABC):
    """Runs items on workers, which may die."""

    retries = 0  # of an item whose worker died, beside those of the executor itself
    way_out = ""  # where memory is short

    @abstractmethod
    def _executor(self, count: int) -> AbstractContextManager[tuple[Executor, type[Exception]]]:
        """Give the executor of so many items, and what it raises where a worker died."""

    def _ended(self, running: Iterable[Future]) -> Iterable[Future]:
        """Wait for an item to end; return those that have."""
        return wait(running, POLL_SECONDS, FIRST_COMPLETED).done

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yield every item with its result, as `Pool` does."""
        lost = yield from self._run(function, items)
        again = []
        for item in lost:  # those that were at the same worker or beside it are blamed too
            again += yield from self._run(function, [item])
        if again:
            raise StudyError(
                f"{len(again)} of the items of work ended too many workers, the first: "
                f"{str(again[0])[:200]}. Maybe memory is short: {self.way_out}. The others are "
                "kept, and `--resume` tries again."
            )

    def _run(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[tuple[Item, Result], None, list[Item]]:
        """Yield items with their results; return those whose workers died too often."""
        left, lost = deque((item, 0) for item in items), []
        while left:
            running: dict[Future, tuple[Item, int]] = {}
            is_broken = False
            with self._executor(len(left)) as (executor, died):
                try:
                    while running or (left and not is_broken):
                        while left and not is_broken and len(running) < (1 + AHEAD) * self.width:
                            job = left.popleft()
                            try:
                                future = executor.submit(
                                    _on_worker, environment(), function, job[0]
                                )
                            except died:  # between two results
                                left.appendleft(job)
                                is_broken = True
                            else:
                                running[future] = job
                        for future in self._ended(running):
                            item, deaths = running.pop(future)
                            try:
                                result = future.result()
                            except died:
                                is_broken = True
                                if deaths < self.retries:
                                    left.append((item, deaths + 1))
                                else:
                                    lost.append(item)
                                continue
                            yield item, result
                finally:
                    for future in running:
                        future.cancel()
        return lost


@dataclass(frozen=True)
class LocalPool(_Elsewhere):
    """Runs items in up to `count` processes of this machine, where that pays.

    The first ones run here: as long as they compile kernels, which processes then find in the
    cache, and until what is left takes longer than processes take to start.
    """

    count: int
    retries = RETRIES
    way_out = f"`--scheduler {SERIAL}` runs all in one process"

    @property
    def width(self) -> int:
        """How many processes there are at most."""
        return self.count

    def is_apart(self, count: int) -> bool:
        """Whether two processes would have something to do."""
        return self.width > 1 and count > 2

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yield every item with its result, as `Pool` does."""
        left = deque(items)
        least, is_cold = float("inf"), True  # seconds of an item, of those that ran here
        while left and (
            is_cold or not self.is_apart(len(left)) or least * len(left) < START_SECONDS
        ):
            before, began = _compiled_files() if is_cold else 0, time.monotonic()
            item = left.popleft()
            yield item, run_item(function, item)
            least = min(least, time.monotonic() - began)
            is_cold = is_cold and _compiled_files() > before
        yield from super().__call__(function, left)

    @contextmanager
    def _executor(self, count: int) -> Iterator[tuple[Executor, type[Exception]]]:
        count = min(self.width, count)
        with local_executor(count, max(1, self.width // count)) as executor:
            yield executor, BrokenProcessPool


@dataclass(frozen=True, eq=False)
class DaskPool(_Elsewhere):
    """Runs items on the workers of a Dask scheduler."""

    client: Any  # distributed.Client
    address: str
    way_out = "take fewer or larger workers"

    @property
    def width(self) -> int:
        """How many workers there are now, at least 1."""
        return max(1, len(self.client.nthreads()))

    def is_apart(self, count: int) -> bool:
        """Yes: whoever names a scheduler wants its workers."""
        del count
        return True

    @contextmanager
    def _executor(self, count: int) -> Iterator[tuple[Executor, type[Exception]]]:
        """Give the workers; where the block fails since the scheduler is gone, say so."""
        from distributed import CancelledError as Gone, KilledWorker
        from distributed.comm.core import CommClosedError

        del count
        try:
            yield self.client.get_executor(pure=False), KilledWorker
        except (CancelledError, Gone, CommClosedError, TimeoutError) as error:
            raise StudyError(
                f"The scheduler {self.address} is gone. What has come is kept: `--resume`."
            ) from error

    def _ended(self, running: Iterable[Future]) -> Iterable[Future]:
        """Wait for an item to end, as long as there are workers; return those that have."""
        seen = time.monotonic()
        while not (done := super()._ended(running)):
            if self.client.status != "running":
                raise CancelledError
            if self.client.nthreads():
                seen = time.monotonic()
            if time.monotonic() - seen > WORKER_SECONDS:
                raise StudyError(
                    f"No worker has been at {self.address} for {WORKER_SECONDS:.0f} s. "
                    f"{_how_to_start(self.address)}, then go on with `--resume`."
                )
        return done


def _on_worker(expected: dict[str, Any], function: Callable[[Item], Result], item: Item) -> Result:
    """Run an item on a worker, which may have come only now."""
    require_alike(f"process {os.getpid()}", expected, environment())
    return run_item(function, item)


def require_alike(worker: str, expected: dict[str, Any], actual: dict[str, Any]) -> None:
    """Raise if the code, a library or the processor of a worker is not that of the command."""
    if actual != expected:
        what = listed(differences(flattened(expected), flattened(actual)))
        raise StudyError(
            f"The worker {worker} is not like this command, and its numbers might differ: {what}. "
            "Give both the same and start it again; for processors of two kinds set "
            "NUMBA_CPU_NAME and OPENBLAS_CORETYPE to the same everywhere. What has come is kept: "
            "`--resume`."
        )


@contextmanager
def open_pool(scheduler: str | None, *, device: str = "cpu") -> Iterator[Pool]:
    """Give the pool that `--scheduler` names; None: this machine's cores, or its one GPU."""
    if scheduler is None or scheduler == SERIAL:
        cores = backend.thread_count(None, large=True)
        yield HERE if scheduler or device == "cuda" or cores == 1 else LocalPool(cores)
    elif count := _local_count(scheduler):
        yield LocalPool(count)
    else:
        with _dask_pool(scheduler) as pool:
            yield pool


def _local_count(address: str) -> int | None:
    """Return N of `local:N`, None for the address of a scheduler."""
    if re.fullmatch(r"(tcp|tls|ucx|ws|wss)://[^\s/]+:\d{1,5}", address):
        return None
    match = re.fullmatch(r"local:([1-9]\d{0,8})", address)
    if not match:
        raise StudyError(
            f"`--scheduler` must be the address of a Dask scheduler, tcp://HOST:PORT, local:N for "
            f"N processes on this machine, or {SERIAL}, got {address[:80]!r}."
        )
    most = min(MOST_WORKERS, 4 * (os.cpu_count() or 1))
    if int(match[1]) > most:
        raise StudyError(
            f"`--scheduler local:N` must have N from 1 to {most}, four for each core of this "
            f"machine, got {match[1]}."
        )
    return int(match[1])


@contextmanager
def local_executor(count: int, threads: int) -> Iterator[Executor]:
    """Give an executor of so many processes, each with so many threads for kernels.

    They end when the block ends, or when this process ends, however that happens.
    """
    from loky import ProcessPoolExecutor

    env = {"NUMBA_NUM_THREADS": str(threads), **dict.fromkeys(VARIABLES, "1")}
    with tempfile.TemporaryDirectory(prefix="adjsim-", ignore_cleanup_errors=True) as scratch:
        executor = ProcessPoolExecutor(
            count, timeout=None, initializer=_begin_worker, initargs=(os.getpid(), scratch), env=env
        )
        try:
            yield executor
        finally:
            executor.shutdown(wait=True, kill_workers=True)


def _begin_worker(parent: int, scratch: str) -> None:
    """Prepare a local worker: it leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with, args=(parent, scratch), daemon=True).start()


def _end_with(parent: int, scratch: str) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)


def _compiled_files() -> int:
    """Return how many kernels are in the cache."""
    return sum(1 for _ in backend.CACHE_DIR.rglob("*.nbc"))


@contextmanager
def _dask_pool(address: str) -> Iterator[DaskPool]:
    """Give the pool of a scheduler, once a worker is there and all are like this command."""
    from adjsim.extras import how_to_install

    try:
        import distributed
    except ImportError as error:
        raise StudyError(
            f"`--scheduler` needs the package distributed: {how_to_install('dask')}."
        ) from error
    with _quiet():
        try:
            # By default, xarray would ask the scheduler for locks on what this process writes.
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise StudyError(
                f"No scheduler answers at {address} within {CONNECT_SECONDS:.0f} s. Start one with "
                f"`dask scheduler`, or leave `--scheduler` out to use the cores of this machine."
            ) from error
        with client:
            check_workers(client, address)
            yield DaskPool(client, address)


def check_workers(client: Any, address: str) -> None:
    """Wait for a worker, and raise if one is not like this command."""
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise StudyError(
            f"No worker came to {address} within {WORKER_SECONDS:.0f} s. {_how_to_start(address)}."
        ) from error
    for name, threads in client.nthreads().items():
        if threads != 1:
            raise StudyError(
                f"The worker {name} runs {threads} items of work at a time, but kernels take "
                "threads of their own. Start it with `--nthreads 1`."
            )
    for name, reply in client.run(environment, on_error="return").items():
        if isinstance(reply, Exception):  # Dask makes its own of what cannot be imported
            raise StudyError(
                f"The worker {name} cannot run adjsim, or runs another version: {reply}. Install "
                "the same there, or start it with the clone's folder in PYTHONPATH."
            )
        require_alike(name, environment(), reply)


def _how_to_start(address: str) -> str:
    return f"Start one with `dask worker {address} --nthreads 1`, where adjsim is installed"


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Dask log nothing: one message says what is wrong."""
    import logging

    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
