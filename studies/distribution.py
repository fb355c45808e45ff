"""Work in pieces: one after the other here, or spread over the workers of a Dask cluster.

    for piece, result in spread(function, pieces): ...

`function` is pure and, like pieces and results, can be pickled. `Local` runs it here, `Cluster`
on Dask workers, `studies.processes` on this machine's cores, with the same bits: a worker must
have the client's sources and libraries, and runs one piece at a time, as kernels take threads of
their own; linear algebra has one, here and there. Pieces come back in the order in which they
end, each as soon as it has: what is written then, a client that dies later keeps.
A piece whose worker dies is run again by another, up to the scheduler's limit
(`distributed.scheduler.allowed-failures`).

Whoever can reach a scheduler can run code on its workers: Dask asks nobody who they are.
"""

import hashlib
import logging
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Protocol, TypeVar

from llvmlite.binding import get_host_cpu_name

from adjsim import backend
from adjsim.extras import how_to_install
from studies.blas import blas_threads
from studies.errors import StudyError
from studies.interrupts import ignore_interrupts, noted_interrupts
from studies.manifest import version
from studies.report_parts import counted


Piece = TypeVar("Piece")
Result = TypeVar("Result")
Facts = dict[str, Any]

CONNECT_SECONDS = 10.0  # until a scheduler has answered
WORKER_SECONDS = 60.0  # until there is a worker, at first or once all have gone
POLL_SECONDS = 2.0
AHEAD = 2  # pieces that wait at each worker, so that it has a next one when it ends one
LIBRARIES = ("numba", "llvmlite", "numpy", "scipy", "distributed")  # that bits or pickles depend on
PROCESSOR, THREADS = "processor", "Dask threads"
SERIAL = "serial"  # for `--scheduler`: one piece after the other, in this process


class Spread(Protocol):
    """Runs a function over pieces of work."""

    @property
    def width(self) -> int:
        """How many pieces run at once."""
        ...

    def is_apart(self, count: int) -> bool:
        """Whether so many pieces would be run elsewhere, not one after the other here."""
        ...

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Result]]:
        """Yield every piece with its result; a cluster does so as they end."""
        ...


@dataclass(frozen=True)
class Local:
    """Runs pieces here, in their order."""

    width: int = 1

    def is_apart(self, count: int) -> bool:
        """No: all are run here."""
        del count
        return False

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Result]]:
        """Yield every piece with its result, one after the other."""
        for piece in pieces:
            yield piece, alone(function, piece)


HERE = Local()


def in_series() -> AbstractContextManager[Spread]:
    """Give what runs all here."""
    return nullcontext(HERE)


@dataclass(frozen=True, eq=False)
class Cluster:
    """Runs pieces on the workers of a Dask scheduler.

    Attributes
    ----------
    client : distributed.Client
    address : str
        As it was asked for.
    interrupted : Event
        Set by a Ctrl-C, whose exception may be lost.
    """

    client: Any
    address: str
    interrupted: Event = field(default_factory=Event)

    @property
    def width(self) -> int:
        """How many workers there are now, at least 1."""
        return max(1, len(self.client.nthreads()))

    def is_apart(self, count: int) -> bool:
        """Yes: whoever names a scheduler wants its workers."""
        del count
        return True

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Result]]:
        """Yield every piece with its result, in the order in which they end.

        Raises
        ------
        StudyError
            If the scheduler or all workers are gone, or, after all other pieces, if a piece
            was the end of too many workers. What the function raises is raised here.
        """
        run = partial(on_worker, sources_and_versions(), function)
        killed: list[Piece] = []
        yield from self._spread(run, pieces, killed, AHEAD)
        again: list[Piece] = []
        for piece in killed:  # alone, since those that waited at the same worker are blamed too
            yield from self._spread(run, [piece], again)
        if again:
            raise StudyError(
                f"{counted(len(again), 'piece')} of work ended too many workers, the first: "
                f"{again[0]}. Maybe memory is short: take fewer or larger workers. The others are "
                "kept, and `--resume` tries again."
            )

    def _spread(
        self, run: Callable, pieces: Iterable[Piece], killed: list[Piece], ahead: int = 0
    ) -> Iterator[tuple[Piece, Any]]:
        """Yield pieces with their results; those whose workers died too often are put apart."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        left, running = iter(pieces), {}
        try:
            while self._submit(run, left, running, ahead):
                for future in self._done(running):
                    piece = running.pop(future)
                    try:
                        result = future.result()
                    except KilledWorker:
                        killed.append(piece)
                        continue
                    yield piece, result
        except (CancelledError, OSError) as error:
            is_dask = isinstance(error, CancelledError | CommClosedError)
            if not is_dask and self.client.status == "running":
                raise  # of the function
            raise StudyError(
                f"The scheduler {self.address} is gone. What has come is kept: `--resume`."
            ) from error
        finally:
            for future in running:
                future.release()

    def _submit(
        self, run: Callable, left: Iterator[Any], running: dict[Any, Any], ahead: int
    ) -> bool:
        """Hand out pieces until every worker has some; return whether any are running."""
        if self.interrupted.is_set():
            raise KeyboardInterrupt
        room = (1 + ahead) * self.width - len(running)
        for _, piece in zip(range(room), left, strict=False):
            running[self.client.submit(run, piece, pure=False)] = piece
        return bool(running)

    def _done(self, running: Iterable[Any]) -> list[Any]:
        """Wait for a piece to end; return those that have.

        Raises
        ------
        StudyError
            If there was no worker for `WORKER_SECONDS`.
        """
        from distributed import wait

        seen = time.monotonic()
        while True:
            try:
                ended: Any = wait([*running], POLL_SECONDS, return_when="FIRST_COMPLETED")
                return list(ended.done)
            except TimeoutError:
                if self.client.nthreads():
                    seen = time.monotonic()
            if time.monotonic() - seen > WORKER_SECONDS:
                raise StudyError(
                    f"No worker has been at {self.address} for {WORKER_SECONDS:.0f} s. "
                    f"{how_to_start(self.address)}, then go on with `--resume`."
                )


def alone(function: Callable[[Piece], Result], piece: Piece) -> Result:
    """Run a piece with the bits that it has on every machine."""
    with blas_threads(1):
        return function(piece)


def on_worker(expected: Facts, function: Callable[[Piece], Result], piece: Piece) -> Result:
    """Run a piece on a worker that is like the client; a worker may have come only now."""
    from distributed import get_worker

    worker = get_worker()
    require_alike(worker.address, expected, facts(worker))
    return alone(function, piece)


def sources_hash() -> str:
    """Return 16 hex digits of the sources of studies, and of the kernels' that were loaded."""
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256(backend.CACHE_DIR.name.encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


SOURCES = sources_hash()  # when they were loaded, not when a worker is asked


def sources_and_versions() -> Facts:
    """Return what the bits of a result depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    compiled = "as Python" if backend.JIT_DISABLED else "compiled"
    own = {"sources of adjsim": SOURCES, "kernels": compiled, PROCESSOR: get_host_cpu_name()}
    return {**own, "python": python, **{name: version(name) for name in LIBRARIES}}


def facts(dask_worker: Any) -> Facts:
    """Return what a worker is like."""
    return {**sources_and_versions(), THREADS: dask_worker.state.nthreads}


def require_alike(name: str, expected: Facts, found: Facts) -> None:
    """Complain of a worker whose results might differ.

    Raises
    ------
    StudyError
        If it has other sources or libraries, or runs more than one piece at a time.
    """
    if found[THREADS] != 1:
        raise StudyError(
            f"The worker {name} runs {found[THREADS]} pieces of work at a time, but kernels take "
            "threads of their own. Start it with `--nthreads 1`."
        )
    for key, value in expected.items():
        if key != PROCESSOR and found[key] != value:
            raise StudyError(
                f"The worker {name} has other {key} than this machine, {found[key]} and not "
                f"{value}: its results might differ. Give both the same and start it again."
            )


@contextmanager
def connected(
    address: str | None, here: Callable[[], AbstractContextManager[Spread]] = in_series
) -> Iterator[Spread]:
    """Give what spreads work as `--scheduler` says; None: as `here` does.

    Raises
    ------
    StudyError
        If the address reads wrong, `distributed` is missing, no scheduler or worker answers in
        time, or a worker is not like the client.
    """
    if address in (None, SERIAL):
        with (here if address is None else in_series)() as spread:
            yield spread
        return
    count = parse(address)
    try:
        import distributed
    except ImportError as error:
        raise StudyError(
            f"`--scheduler` needs the package distributed: {how_to_install('dask')}."
        ) from error
    with (
        _quiet(),
        _client(distributed, address, count) as client,
        noted_interrupts() as interrupted,
    ):
        cluster = Cluster(client, address, interrupted)
        greet(cluster)
        yield cluster


def parse(address: str) -> int | None:
    """Return N of `local:N`, None for the address of a scheduler."""
    if match := re.fullmatch(r"local:([1-9]\d*)", address):
        return int(match[1])
    if re.fullmatch(r"(tcp|tls|ucx|ws|wss)://[^\s/]+:\d+", address):
        return None
    raise StudyError(
        f"`--scheduler` must be the address of a Dask scheduler, tcp://HOST:PORT, local:N for N "
        f"processes on this machine, or {SERIAL}, got {address!r}."
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Dask log nothing: what goes wrong is told by us."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _client(distributed: Any, address: str, count: int | None) -> Iterator[Any]:
    """Give a client of a scheduler, or of a cluster that is started and ended here."""
    if count is not None:
        threads = max(1, backend.thread_count(None, large=True) // count)
        with (
            distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, silence_logs=logging.CRITICAL,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                env={"NUMBA_NUM_THREADS": str(threads)},
            ) as cluster,
            distributed.Client(cluster) as client,
        ):  # fmt: skip
            client.register_worker_callbacks(ignore_interrupts)
            yield client
        return
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError) as error:
        raise StudyError(
            f"No scheduler answers at {address} within {CONNECT_SECONDS:.0f} s. Start one with "
            "`dask scheduler`, or take `--scheduler local:N` for processes on this machine."
        ) from error
    with client:
        yield client


def how_to_start(address: str) -> str:
    """Return how a worker is started, in words."""
    return f"Start one with `dask worker {address} --nthreads 1`, where adjsim is installed"


def greet(cluster: Cluster) -> None:
    """Wait for a worker, and see that all there are like the client.

    Raises
    ------
    StudyError
        If none comes in time, or one differs.
    """
    client, address = cluster.client, cluster.address
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise StudyError(
            f"No worker came to {address} within {WORKER_SECONDS:.0f} s. {how_to_start(address)}."
        ) from error
    expected = sources_and_versions()
    for name, found in client.run(facts, on_error="return").items():
        if isinstance(found, Exception):  # Dask makes its own of what cannot be imported
            raise StudyError(
                f"The worker {name} cannot run adjsim: {found}. Install the clone there, or start "
                "it with the clone's folder in PYTHONPATH."
            )
        require_alike(name, expected, found)
        if found[PROCESSOR] != expected[PROCESSOR]:
            print(
                f"warning: the worker {name} has another processor ({found[PROCESSOR]}) than this "
                f"machine ({expected[PROCESSOR]}): last digits may differ",
                file=sys.stderr,
                flush=True,
            )
