"""`python -m benchmarks.contact_gradients [PROBLEMS]`: see the package."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.contact_gradients.measuring import (
    COPIES,
    WIDE,
    copies_of,
    derivative_error,
    fit,
    over_both,
    over_steps,
    run,
    steps_of,
    to_limit,
    wide_slope,
)
from benchmarks.contact_gradients.peers import PEERS, installed
from benchmarks.contact_gradients.pictures import draw
from benchmarks.contact_gradients.problems import DAMPED, PROBLEMS, Problem, Values


MOVED = 0.5213  # where the second ball starts [m]: no touch is as early as a step
RATE, COUNTS = 100.0, (500, 2000)  # of the comparison with peers [1/s]
LAW_RATE, LAW_STEPS = 400.0, (1e-4, 1e-5)  # of the comparison of both laws [1/s], [s]


def compare(
    problems: Annotated[
        list[str] | None, typer.Argument(help=f"{', '.join(PROBLEMS)}; default: all.")
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder of the picture and all the numbers.")] = Path(
        "contact_gradients"
    ),
    pictures: Annotated[bool, typer.Option(help="Draw errors over steps and rates.")] = True,
    peers: Annotated[bool, typer.Option(help="Run the two balls in other packages.")] = True,
) -> None:
    """Measure errors of values and gradients of contact, and compare orders with the derived."""
    chosen = problems or [*PROBLEMS]
    unknown = [name for name in chosen if name not in PROBLEMS]
    if unknown:
        raise typer.BadParameter(f"`{unknown[0]}` is none of {', '.join(PROBLEMS)}.")
    out.mkdir(parents=True, exist_ok=True)
    console = Console(width=max(130, Console().width))
    table = Table(
        title="Errors, with the order measured (derived)", title_justify="left", show_lines=True
    )
    for heading in ("problem", "value, over dt", "gradient, over dt", "value, to the limit",
                    "gradient, to the limit", "adjoint - differences"):  # fmt: skip
        table.add_column(heading)
    numbers, both = {}, {}
    for name in chosen:
        typer.echo(f"{name} ...")
        numbers[name] = row = measure(PROBLEMS[name])
        table.add_row(PROBLEMS[name].title, *row["cells"], f"{row['derivative_error']:.0e}")
        if pictures:
            both[name] = over_both(PROBLEMS[name])
    console.print(table)
    if pictures:
        draw(both, out / "errors.png")
        typer.echo((out / "errors.png").resolve())
    if "lossy" in chosen:
        console.print(law_table())
    if peers:
        console.print(peer_table())
    (out / "errors.json").write_text(json.dumps(numbers, indent=1, default=np.ndarray.tolist))
    typer.echo((out / "errors.json").resolve())


def measure(problem: Problem) -> dict:
    """Return errors over steps and to the limit, and the cells of the table."""
    o, steps, limit = problem.orders, over_steps(problem), to_limit(problem)
    return {
        "over_steps": asdict(steps),
        "to_limit": asdict(limit),
        "derivative_error": derivative_error(problem, problem.rate, problem.dt),
        "cells": [
            cell(errors.over, y, order)
            for errors, orders in ((steps, (o.value, o.gradient)), (limit, (-o.limit,) * 2))
            for y, order in zip((errors.value, errors.gradient), orders, strict=True)
        ],
    }


def cell(over: np.ndarray, errors: np.ndarray, derived: int) -> str:
    """Return the first and the last error, and the order."""
    found = fit(over, errors)
    return f"{errors[0]:.1e} to {errors[-1]:.1e}\n{found.slope:.2f} ± {found.width:.2f} ({derived})"


def law_table() -> Table:
    """Return the height after a bounce that halves the speed, and its slope, by both laws."""
    table = Table(
        title=f"Height after a bounce that halves the speed, contact rate {LAW_RATE:g}/s, "
        "and its slope by the first height",
        title_justify="left",
    )
    for heading in ("energy is lost by", "step [s]", "value (limit)", "slope: limit",
                    f"over ± {100 * WIDE:g} %", f"gradient, {COPIES} starts"):  # fmt: skip
        table.add_column(heading)
    for law, problem in (("dissipation", PROBLEMS["lossy"]), ("damping", DAMPED)):
        for dt in LAW_STEPS:
            copies = copies_of(problem, LAW_RATE, dt)
            values, gradients = run(problem, copies, steps_of(problem, dt))
            table.add_row(
                law,
                f"{dt:g}",
                f"{values.mean():.4f} ({problem.limit(problem.start):.4f})",
                f"{problem.slopes(problem.start)['height']:.3f}",
                f"{wide_slope(problem, LAW_RATE, dt, 'height'):.3f}",
                f"{gradients[:, 0].mean():.3f} ± {gradients[:, 0].std():.3f}",
            )
    return table


def peer_table() -> Table:
    """Return derivatives of the second ball's place in all engines: (1, 0, 1, 0) in the limit."""
    problem = PROBLEMS["balls"]
    p = problem.start | {"x2": MOVED}
    table = Table(
        title=f"Two balls, contact rate {RATE:g}/s; in the limit: 1.2 and (1, 0, 1, 0)",
        title_justify="left",
    )
    for heading in ("engine", "step [s]", "x2(T)", "by x1, x2, v1, v2", "its own differences"):
        table.add_column(heading)

    def ours(p: Values, rate: float, end: float, n: int) -> tuple[float, np.ndarray]:
        del end
        value, gradient = run(problem, [(p, rate)], n)
        return float(value[0]), gradient[0]

    for name, solve in {"adjsim": ours, **{name: PEERS[name] for name in installed()}}.items():
        h = 2e-3 if name == "newton" else 1e-6  # of float32, and of float64
        for n in COUNTS:
            value, gradient = solve(p, RATE, problem.end, n)
            moved = [solve(p | {q: p[q] + d}, RATE, problem.end, n)[0] for q in p for d in (h, -h)]
            differences = (np.array(moved[::2]) - moved[1::2]) / (2 * h)
            table.add_row(
                name,
                f"{problem.end / n:g}",
                f"{value:.4f}",
                *map(numbers_of, (gradient, differences)),
            )
    return table


def numbers_of(values: np.ndarray) -> str:
    """Return numbers in a row."""
    return "  ".join(f"{each:8.3f}" for each in values)


if __name__ == "__main__":
    typer.run(compare)
