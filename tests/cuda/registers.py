"""Registers of kernels of tetrahedra on a floor: `python -m tests.cuda.registers [--data FOLDER]`.

For an H100 or H200, without one: what the compiler and the linker of `numba.cuda` say. The fewer
registers a thread takes, the more threads a multiprocessor holds, which hides latency.
"""

import argparse
import gc
from pathlib import Path

from numba import cuda, types
from numba.cuda import dispatcher
from rich.console import Console
from rich.table import Table

from adjoint.engine.cuda_timeloop import twin_kernel
from adjoint.forces.neo_hookean import ELASTIC_TWIN
from adjoint.forces.registry import twin_of
from adjsim.engine.cuda_timeloop import advance_kernel
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.jit.cuda_launch import BLOCK
from benchmarks.publish import record
from tests.cuda.compile_ptx import Device, physics_arguments, targets, with_sums
from tests.cuda.machine_code import linked


CAPABILITY, ALL_REGISTERS, WARP, UNIT = "90", 65536, 32, 8
LIMITS = 168, 128  # registers, with which 3 and 4 blocks fit
HEAD = (
    "kernel",
    "numbers",
    "registers",
    f"blocks of {BLOCK}",
    *(f"spilled at {n}" for n in LIMITS),
)


def kernels():
    """Name, kernel and function from a real type to its argument, of forward and reverse."""
    floor = HalfSpaceContact()
    twins = ELASTIC_TWIN, twin_of(floor).twin_kind(floor)
    kinds = tuple(twin.kind for twin in twins)
    for in_blocks, team in ((False, "on the grid"), (True, "in blocks")):
        how = {"in_blocks": in_blocks, "with_bodies": False}
        forward, reverse, _ = physics_arguments(in_blocks=in_blocks)
        yield f"forward {team}", advance_kernel(kinds, **how), forward
        if not in_blocks:
            kernel = advance_kernel(kinds, **how, own_nodes=True)
            argument = lambda real, forward=forward: with_sums(real, forward(real))  # noqa: E731
            yield f"forward {team}, patches with their nodes", kernel, argument
        yield f"reverse {team}", twin_kernel("reverse", twins, with_rest=False, **how), reverse


def rows():
    """Yield what each kernel takes, in either precision; spills in bytes."""
    for name, kernel, argument in kernels():
        for real in (types.float64, types.float32):
            with targets([CAPABILITY]) as texts:
                cuda.compile_ptx(kernel, (argument(real),), cc=divmod(int(CAPABILITY), 10))
            n = linked(texts[CAPABILITY], CAPABILITY)["registers"]
            blocks = ALL_REGISTERS // (-(-n // UNIT) * UNIT * BLOCK)
            spills = [linked(texts[CAPABILITY], CAPABILITY, most)["spilled"] for most in LIMITS]
            yield [name, str(real), str(n), str(blocks), *(f"{n} B" for n in spills)]


def main() -> None:
    """Print the table, and write it to a data file."""
    gc.disable()  # this process lives as long as its garbage
    dispatcher.get_current_device = Device
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    folder, table = parser.parse_args().data, Table(*HEAD)
    all_rows = list(rows())
    for row in all_rows:
        table.add_row(*row)
    Console(width=110).print(table)
    if folder:
        values = {"table": [HEAD, *all_rows]}
        record(folder, "gpu-registers", values, "python -m tests.cuda.registers --data docs/data")


if __name__ == "__main__":
    main()
