"""What `adjsim verify` prints: the live coverage table."""

import json
import math
import os
import sys

from rich.console import Console
from rich.table import Table

from adjoint.verify.coverage import Cell, Coverage, verify


def verify_command(name: str | None, *, as_json: bool) -> bool:
    """Check every gradient of a system, or of all; return whether all passed."""
    console = Console(stderr=True)
    with console.status("checking ...") as status:
        done = 0

        def show(cell: Cell) -> None:
            nonlocal done
            done += 1
            status.update(f"{done} checked, last {cell.system} {cell.parameter}")

        coverage = verify(name, on_cell=show, processes=os.cpu_count() or 1)
    if as_json:
        print(json.dumps(coverage.to_dict(), indent=2, allow_nan=False))
    else:
        print_table(coverage)
    return coverage.passed


def print_table(coverage: Coverage) -> None:
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
