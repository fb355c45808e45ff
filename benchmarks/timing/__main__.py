"""`python -m benchmarks.timing [PARTS]`: see the package."""

import json
import os
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from numba import get_num_threads
from rich.console import Console

from adjsim.jit.devices import Device, check_device
from benchmarks.peers.racing import peer_laps
from benchmarks.publish import record
from benchmarks.timing.clock import run_rounds
from benchmarks.timing.laps import PARTS, Sizes
from benchmarks.timing.table import contact_table, growth_lines, rate_lines, show, tets_table
from studies.runs.manifest import machine


PEERS = "peers"


def time_loops(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help=f"{', '.join(PARTS)}, {PEERS}, or all; default: all but {PEERS}."),
    ] = None,
    *,
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is timed.")] = 15,
    threads: Annotated[str, typer.Option(help="Numbers of threads, with commas.")] = "1,2",
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    device: Annotated[str, typer.Option(help="cpu, or cuda: a GPU beside the CPU.")] = "cpu",
    small: Annotated[bool, typer.Option(help="Sizes that take no time.")] = False,
    out: Annotated[Path, typer.Option(help="File of all the numbers.")] = Path("timing.json"),
    data: Annotated[
        Path | None, typer.Option(help="Write contact-cost.json and timing.json there.")
    ] = None,
) -> None:
    """Time forward and reverse, side by side in the same rounds."""
    chosen = [*PARTS, PEERS] if parts == ["all"] else parts or [*PARTS]
    unknown = [name for name in chosen if name not in (*PARTS, PEERS)]
    if unknown:
        raise typer.BadParameter(f"`{unknown[0]}` is none of {', '.join((*PARTS, PEERS))}.")
    counts = [n for n in map(int, threads.split(",")) if n <= get_num_threads()] or [1]
    sizes = Sizes(threads=counts, dtype=dtype)
    if check_device(device) is Device.CUDA:
        sizes = sizes.for_gpu()
    sizes = sizes.small() if small else sizes
    ours = [name for name in chosen if name != PEERS]
    console = Console(width=max(110, Console().width))
    before = os.getloadavg()[0]
    laps = list(chain.from_iterable(PARTS[name](sizes) for name in ours))
    notes = []
    if PEERS in chosen:
        more, notes = peer_laps(sizes)
        laps += more
    run_rounds(laps, rounds, typer.echo)
    rows = [lap.result() for lap in laps]
    show(rows, console)
    typer.echo("\n".join([*rate_lines(rows), *growth_lines(rows), *notes]))
    result = {"machine": machine(), "load": before, "rounds": rounds, "laps": rows, "notes": notes}
    if data is not None:
        tables = {"contact": ("contact-cost", contact_table), "tets": ("timing", tets_table)}
        for timed in tables.keys() & set(chosen):
            name, table = tables[timed]
            command = f"python -m benchmarks.timing {timed} --rounds {rounds} --data docs/data"
            record(data, name, {"table": table([r for r in rows if r["part"] == timed])}, command)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1))
    typer.echo(out.resolve())


if __name__ == "__main__":
    typer.run(time_loops)
