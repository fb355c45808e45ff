"""Ctrl-C that is not lost while others' objects come to their end.

Python raises KeyboardInterrupt wherever it is, and drops it in a finalizer: Dask's futures have
one, and so has every piece of work that came back. So the signal is noted as well.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_interrupts() -> Iterator[threading.Event]:
    """Give an event that a Ctrl-C sets, beside the KeyboardInterrupt that it raises.

    Where the signal is handled otherwise, or this is not the main thread, all stays as it was.
    """
    asked = threading.Event()
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        asked.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes of a command, to the first of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
