"""What `adjsim verify` prints: the live coverage table."""

import json
import math
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import resource_tracker

from rich.console import Console
from rich.table import Table

from adjoint.verify.coverage import Cell, Coverage, select, verify


TOLD_EVERY = 25  # parameters, where stderr is no terminal


def verify_command(name: str | None, *, as_json: bool) -> bool:
    """Check every gradient of a system, or of all; return whether all passed."""
    console = Console(stderr=True)
    systems, processes = len(select(name)), os.cpu_count() or 1
    with console.status(f"{systems} system{'s' if systems > 1 else ''}") as status:
        done = 0

        def show(cell: Cell) -> None:
            nonlocal done
            done += 1
            line = f"{done} checked, last {cell.system} {cell.parameter}"
            status.update(line)
            if not console.is_terminal and done % TOLD_EVERY == 0:
                print(line, file=sys.stderr, flush=True)

        if min(systems, processes) == 1:
            coverage = verify(name, on_cell=show)
        else:
            coverage = _interruptible(lambda: verify(name, on_cell=show, processes=processes))
    if as_json:
        print(json.dumps(coverage.to_dict(), indent=2, allow_nan=False))
    else:
        _print_table(coverage)
    return coverage.passed


def _interruptible(check: Callable[[], Coverage]) -> Coverage:
    """Return what a check in processes finds; where Ctrl-C or SIGTERM ends it, end them at once.

    A pool left to itself first finishes all that it was given. The processes are started by a
    thread that holds SIGINT back, which they inherit: on Ctrl-C they print no tracebacks.
    """
    coverage: Future[Coverage] = Future()

    def work() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            coverage.set_result(check())
        except BaseException as error:  # raised by `result`
            coverage.set_exception(error)

    resource_tracker.ensure_running()  # started by the first process, it would let SIGINT through
    worker = threading.Thread(target=work, daemon=True)
    try:
        worker.start()
        return coverage.result()
    except KeyboardInterrupt:
        while worker.is_alive():  # a process may be about to start
            for process in multiprocessing.active_children():
                process.kill()
            worker.join(0.1)
        raise


def _print_table(coverage: Coverage) -> None:
    """Print system by parameter, with what was measured and the verdict."""
    table = Table("system", "parameter", box=None, pad_edge=False)
    for column in ("slope", "dot test", "one step", "vjp error", "kink"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for cell in coverage.cells:
        verdict = "zero, as it must be" if cell.is_inert else "pass"
        numbers = (cell.dot, cell.dot_kernel, cell.vjp_error, cell.kink)
        table.add_row(
            cell.system,
            cell.parameter,
            "linear" if cell.slope == math.inf else _cell(cell.slope, ".3f"),
            *("smooth" if x == math.inf else _cell(x, ".1e") for x in numbers),
            verdict if cell.passed else f"FAIL: {cell.reason}",
        )
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False).print(table)
    failed = sum(not cell.passed for cell in coverage.cells)
    print(f"{len(coverage.cells)} checked, {failed} failed")
    for name, event in coverage.events.items():
        print(f"{name}: {event}")
    for name in coverage.missing:
        print(f"not covered: {name}")


def _cell(x: float, form: str) -> str:
    return "-" if math.isnan(x) else f"{x:{form}}"
