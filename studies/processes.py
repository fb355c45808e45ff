"""Work in pieces over processes on this machine's cores: what runs do that are told nothing else.

    with on_this_machine() as spread:
        for piece, result in spread(function, pieces): ...

The first pieces run here: one of each `family`, if pieces have such an attribute, as long as
these compile kernels, which processes then find in the cache; and what comes within the time that
processes take to start. They are started where each has enough left to do, and their number is
such that each has. A piece whose process dies is run again, `RETRIES` times beside others and as
often alone. Bits are those of the series.

Processes hold one end of a pipe, whose other end is here alone. Where it is closed, by us or by
the end of this process, however that came, they end at once, whatever they do.
"""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe, get_context, resource_tracker
from threading import Event
from typing import Any

from adjsim import backend
from studies.distribution import (
    HERE,
    SERIAL,
    SOURCES,
    Piece,
    Result,
    Spread,
    alone,
)
from studies.errors import StudyError
from studies.interrupts import ignore_interrupts, noted_interrupts
from studies.report_parts import counted


START_SECONDS = 3.0  # about what processes take to start: until then work goes on here
PIECES_EACH = 4  # with less left to do for each, processes do not pay
AHEAD = 1  # pieces that wait for each process, so that it has a next one when it ends one
RETRIES = 3  # of a piece whose process died, and of processes that die as they start
POLL_SECONDS = 1.0
WAY_OUT = f"`--scheduler {SERIAL}` runs all in one process"


@dataclass(frozen=True, eq=False)
class Processes:
    """Runs pieces in processes of this machine, where it pays.

    Attributes
    ----------
    width : int
        How many processes there are at most: cores.
    interrupted : Event
        Set by a Ctrl-C, whose exception may be lost.
    lifelines : list
        Of processes: our ends of their pipes.
    """

    width: int
    interrupted: Event = field(default_factory=Event)
    lifelines: list[Any] = field(default_factory=list)

    def is_apart(self, count: int) -> bool:
        """Whether so many pieces give more than one process enough to do."""
        return self._processes(count) > 1

    def _processes(self, count: int) -> int:
        return min(self.width, count // PIECES_EACH)

    def __call__(
        self, function: Callable[[Piece], Result], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Result]]:
        """Yield every piece with its result, in the order in which they end.

        Raises
        ------
        StudyError
            If processes do not start, or, after all other pieces, if a piece was the end of too
            many. What the function raises is raised here.
        """
        asked = list(pieces)
        first, others = firsts(asked) if self.is_apart(len(asked)) else ([], asked)
        left, began, is_cold = deque([*first, *others]), time.monotonic(), bool(first)
        while left and (
            is_cold or time.monotonic() - began < START_SECONDS or not self.is_apart(len(left))
        ):
            before = compiled_files() if is_cold else 0
            piece = left.popleft()
            yield piece, alone(function, piece)
            is_cold = is_cold and len(left) > len(others) and compiled_files() > before
        if left:
            yield from self._over_processes(partial(alone, function), left)

    def _over_processes(
        self, run: Callable[[Piece], Result], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Result]]:
        """Run pieces in processes; those that ended too many once more, each in one alone."""
        left = deque((piece, 0) for piece in pieces)
        killed = yield from self._run(run, left, self._processes(len(left)))
        again = []
        for piece in killed:  # those that ran beside it are blamed too
            again += yield from self._run(run, deque([(piece, 0)]), 1)
        if again:
            raise StudyError(
                f"{counted(len(again), 'piece')} of work ended too many processes, the first: "
                f"{again[0]}. Maybe memory is short: {WAY_OUT}. The others are kept, and "
                "`--resume` tries again."
            )

    def _run(
        self, run: Callable[[Piece], Result], left: deque[tuple[Piece, int]], count: int
    ) -> Generator[tuple[Piece, Result], None, list[Piece]]:
        """Yield pieces with their results; return those whose processes died too often.

        `left` counts beside each piece how often that was. One death ends all processes, and new
        ones are started.
        """
        killed, running, failures = [], {}, 0
        threads = max(1, self.width // count)
        while left:
            with self._pool(count, threads) as submit:
                failures = 0 if have_started(submit, count) else failures + 1
                if failures > RETRIES:
                    raise StudyError(f"Processes end as they start here: {WAY_OUT}.")
                most = 0 if failures else (1 + AHEAD) * count
                while self._hand_out(partial(submit, run), left, running, most):
                    for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                        piece, deaths = running.pop(future)
                        if not isinstance(future.exception(), BrokenProcessPool):
                            yield piece, future.result()
                        elif deaths < RETRIES:
                            left.append((piece, deaths + 1))
                        else:
                            killed.append(piece)
        return killed

    def _hand_out(
        self, submit: Callable, left: deque[Any], running: dict[Future, Any], most: int
    ) -> bool:
        """Hand out pieces until so many are; return whether any are running."""
        if self.interrupted.is_set():
            raise KeyboardInterrupt
        try:
            while left and len(running) < most:
                running[submit(left[0][0])] = left[0]
                left.popleft()
        except BrokenProcessPool:
            pass  # what was running is told so too
        return bool(running)

    @contextmanager
    def _pool(self, count: int, threads: int) -> Iterator[Callable[..., Future]]:
        """Give what hands a call to one of so many processes, each with its threads for kernels."""
        reader, writer = Pipe(duplex=False)
        self.lifelines.append(writer)
        with tempfile.TemporaryDirectory(prefix="adjsim-") as scratch:
            pool = ProcessPoolExecutor(count, get_context("spawn"), begin, (reader, scratch))

            def submit(function: Callable, *args: Any) -> Future:
                with _environment_of_processes(threads):
                    return pool.submit(function, *args)

            try:
                yield submit
                pool.shutdown()
            finally:
                writer.close()
                pool.shutdown(cancel_futures=True)
                reader.close()


@contextmanager
def on_this_machine() -> Iterator[Spread]:
    """Give what spreads pieces over the cores that this process may use; with one, in series."""
    width = backend.thread_count(None, large=True)
    if width == 1:
        yield HERE
        return
    with noted_interrupts() as interrupted:
        spread = Processes(width, interrupted)
        try:
            yield spread
        finally:
            for line in spread.lifelines:  # of a generator that an exception holds on to
                line.close()


def firsts(pieces: Iterable[Piece]) -> tuple[list[Piece], list[Piece]]:
    """Return the first piece of each family, and all others."""
    first: dict[Any, Piece] = {}
    others = []
    for piece in pieces:
        family = getattr(piece, "family", None)
        if family in first:
            others.append(piece)
        else:
            first[family] = piece
    return list(first.values()), others


def compiled_files() -> int:
    """Return how many kernels are in the cache."""
    return sum(1 for _ in backend.CACHE_DIR.rglob("*.nbc"))


@contextmanager
def _environment_of_processes(threads: int) -> Iterator[None]:
    """Let processes that start within the block be born with so many threads, deaf to Ctrl-C.

    A terminal sends that to all processes of a command, and it is for this one to answer.
    """
    own = {"NUMBA_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in own}
    resource_tracker.ensure_running()  # it would lift the block
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def have_started(submit: Callable[..., Future], count: int) -> bool:
    """Start so many processes; return whether the first that answers lives.

    Raises
    ------
    StudyError
        If it loads other sources than this process has.
    """
    try:
        answers = [submit(own_sources) for _ in range(count)]
        found = answers[0].result()
    except BrokenProcessPool:
        return False
    if found != SOURCES:
        raise StudyError(
            "The sources of adjsim have changed since this command began, and the processes that "
            "it starts would load them. What has come is kept: go on with `--resume`."
        )
    return True


def own_sources() -> str:
    """Return a hash of the sources that this process has loaded."""
    return SOURCES


def begin(lifeline: Any, scratch: str) -> None:
    """Prepare a process for pieces: it ends with its lifeline, and writes into `scratch`."""
    ignore_interrupts()
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with, args=(lifeline, scratch), daemon=True).start()


def _end_with(lifeline: Any, scratch: str) -> None:
    """Wait until the other end is closed; remove what is here, and end this process."""
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)
