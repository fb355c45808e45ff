"""`python -m benchmarks.contact_gradients [PROBLEMS]`: see the package."""

import json
from dataclasses import asdict
from functools import partial
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
from benchmarks.contact_gradients.peers import peers_of
from benchmarks.contact_gradients.pictures import draw
from benchmarks.contact_gradients.problems import CUBIC, DAMPED, PROBLEMS, Problem, Values
from benchmarks.contact_gradients.two_bodies import TWO_BODIES, rate_at


FINER = (1, 5, 25)  # how many times shorter the steps of two bodies get
ALL = PROBLEMS | TWO_BODIES
LAW_RATE, LAW_STEPS = 400.0, (1e-4, 1e-5)  # of the comparison of the laws [1/s], [s]


def compare(
    problems: Annotated[
        list[str] | None, typer.Argument(help=f"{', '.join(ALL)}; default: all.")
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder of the picture and all the numbers.")] = Path(
        "contact_gradients"
    ),
    pictures: Annotated[bool, typer.Option(help="Draw errors over steps and rates.")] = True,
    peers: Annotated[bool, typer.Option(help="Run bodies that meet in other packages too.")] = True,
) -> None:
    """Measure errors of values and gradients of contact, and compare orders with the derived."""
    names = problems or [*ALL]
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise typer.BadParameter(f"`{unknown[0]}` is none of {', '.join(ALL)}.")
    console = Console(width=max(130, Console().width))
    chosen = [name for name in names if name in PROBLEMS]
    if chosen:
        show_orders(chosen, console, out, pictures=pictures)
    for name in names:
        if name in TWO_BODIES:
            console.print(two_body_table(TWO_BODIES[name], peers=peers))


def show_orders(chosen: list[str], console: Console, out: Path, *, pictures: bool) -> None:
    """Measure the orders of problems, print their table, and write numbers and picture."""
    out.mkdir(parents=True, exist_ok=True)
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
    line = fit(over, errors)
    return f"{errors[0]:.1e} to {errors[-1]:.1e}\n{line.slope:.2f} ± {line.width:.2f} ({derived})"


def law_table() -> Table:
    """Return the height after a bounce that halves the speed, and its slope, by each law."""
    table = Table(
        title=f"Height after a bounce that halves the speed, contact rate {LAW_RATE:g}/s, "
        "and its slope by the first height",
        title_justify="left",
    )
    for heading in ("energy is lost by", "step [s]", "value (limit)", "slope: limit",
                    f"over ± {100 * WIDE:g} %", f"gradient, {COPIES} starts"):  # fmt: skip
        table.add_column(heading)
    laws = {"dissipation": PROBLEMS["lossy"], "damping": DAMPED, "cubic law": CUBIC}
    for law, problem in laws.items():
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


def two_body_table(problem: Problem, *, peers: bool) -> Table:
    """Return value and gradient over steps, and those of peers at the first step."""
    p, slopes = problem.start, np.array([*problem.slopes(problem.start).values()])
    table = Table(title=f"{problem.title}: by {', '.join(p)}", title_justify="left")
    for heading in ("engine", "step [s]", "value", "gradient", "off the limit",
                    "off differences"):  # fmt: skip
        table.add_column(heading)
    table.add_row("in the limit", "", f"{problem.limit(p):.4f}", numbers_of(slopes))

    def ours(p: Values, rate: float, n: int) -> tuple[float, np.ndarray]:
        value, gradient = run(problem, [(p, rate)], n)
        return float(value[0]), gradient[0]

    engines = [("adjsim", ours, finer, 1e-7) for finer in FINER]
    if peers:
        engines += [
            (name, partial(solve, problem), 1, 2e-3 if "newton" in name else 1e-7)
            for name, solve in peers_of(problem).items()
        ]
    for name, solve, finer, h in engines:
        n = round(problem.end / problem.dt) * finer
        rate = rate_at(problem, problem.end / n)
        value, gradient = solve(p, rate, n)
        along = gradient / np.linalg.norm(gradient)
        up, down = (
            solve({q: p[q] + d * slope for q, slope in zip(p, along, strict=True)}, rate, n)[0]
            for d in (h, -h)
        )
        off = (up - down) / (2 * h) / (gradient @ along) - 1
        table.add_row(
            name,
            f"{problem.end / n:g}",
            f"{value:.4f}",
            numbers_of(gradient),
            f"{np.linalg.norm(gradient - slopes):.1e}",
            f"{abs(off):.1e}",
        )
    return table


def numbers_of(values: np.ndarray) -> str:
    """Return numbers in a row."""
    return " ".join(f"{each:.4f}" for each in values)


if __name__ == "__main__":
    typer.run(compare)
