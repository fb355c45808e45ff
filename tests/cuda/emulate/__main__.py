"""Run toy scenes on the CPU and on the emulated device: `python -m tests.cuda.emulate`.

Threads run in order, reversed and shuffled. What differs from the CPU or between the orders, races,
reads and writes of what is not theirs, and what was counted are printed; the exit status is 1 if
anything is wrong. Names of scenes choose some; `--json` is for tests. `count` prints instead what
makes a GPU fast or slow (`count.py`).
"""

import os
import sys


TYPED = "LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS"
if os.environ.get(TYPED) != "0":  # llvmlite reads it when it is imported
    os.environ[TYPED] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.cuda.emulate", *sys.argv[1:]])

import gc
import json
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.cuda import render_scenes, simulate
from tests.cuda.emulate import count, install  # noqa: F401
from tests.cuda.emulate.driver import DEVICE, ORDERS
from tests.cuda.processes import run
from tests.cuda.rounding import ROUNDED, tolerances


RUNS = {**simulate.RUNS, "batches": render_scenes.in_small_batches}
OF_STUDY = 1e-10  # of the largest number: residuals are 1e-5 of the pixels that they come from
COLUMNS = ("launches", "threads", "barriers", "block_barriers", "read", "written")
COLUMNS += ("sectors_read", "sectors_written", "shared")


def report_of(name: str) -> dict:
    """Return results, faults and counts of some scenes; counts are those of the first order."""
    what = RUNS[name]
    cpu, by_order = what("cpu"), {}
    if name == "study":
        allowed = {key: OF_STUDY * float(np.abs(value).max()) for key, value in cpu.items()}
    elif name in ROUNDED:  # by a process that compiles nothing
        allowed = run("tests.cuda.rounding", name, NUMBA_DISABLE_JIT="1")
    else:
        allowed = tolerances(what, np.float64)
    faults, counted = [], []
    for order in ORDERS:
        DEVICE.reset()
        DEVICE.order, start = order, time.process_time()
        by_order[order] = what("cuda")
        seconds = time.process_time() - start - DEVICE.seconds
        faults += [f"{order}: {fault}" for fault in (*DEVICE.faults, *map(repr, DEVICE.errors))]
        counted.append((dict(DEVICE.counts), {k: dict(v) for k, v in DEVICE.kernels.items()}))
    first, *others = by_order.values()
    results = {
        key: {
            **row,
            "allowed": allowed[key],
            "repeats": all(np.array_equal(first[key], other[key]) for other in others),
        }
        for key, row in simulate.compare(cpu, first).items()
    }
    return {
        "results": results,
        "faults": faults,
        "counts": counted[0][0],
        "host microseconds per launch": round(1e6 * seconds / DEVICE.counts["launches"]),
        "kernels": counted[0][1],
    }


def show(name: str, report: dict) -> bool:
    """Print a report; return whether all is well."""
    console, results = Console(width=150), report["results"]
    ratios = {key: row["difference"] / (row["allowed"] or 1.0) for key, row in results.items()}
    worst = max(ratios, key=ratios.__getitem__)
    changed = [key for key, row in results.items() if not (row["repeats"] and row["alike"])]
    table = Table(*("kernel", *(column.replace("_", " ") for column in COLUMNS)), title=name)
    for kernel, counts in report["kernels"].items():
        table.add_row(kernel, *(str(counts[column]) for column in COLUMNS))
    console.print(table)
    counts = {**report["counts"], **{k: v for k, v in report.items() if k.startswith("host")}}
    console.print(", ".join(f"{value} {key}" for key, value in counts.items()))
    off = f"at most {ratios[worst]:.0%} of what rounding may do ({worst})"
    console.print(f"{len(results)} results, {off} off the CPU")
    for text in (*report["faults"], *(f"{key} changed" for key in changed)):
        console.print(f"[red]{text}", highlight=False)
    return not (report["faults"] or changed) and ratios[worst] <= 1.0


def main() -> int:
    if sys.argv[1:2] == ["count"]:
        return count.main(sys.argv[2:])
    names = [name for name in sys.argv[1:] if name != "--json"]
    if unknown := sorted(set(names) - set(RUNS)):
        print(f"No such scenes: {', '.join(unknown)}. There are {', '.join(RUNS)}.")
        return 2
    if "--json" in sys.argv:
        gc.disable()  # the process lives as long as its garbage; looking at it takes a fifth
        json.dump(report_of(*names), sys.stdout)
        return 0
    shown = [show(name, report_of(name)) for name in names or RUNS]
    return 0 if all(shown) else 1


if __name__ == "__main__":
    sys.exit(main())
