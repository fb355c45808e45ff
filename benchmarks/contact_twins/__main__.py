"""`python -m benchmarks.contact_twins make | table`: see the package."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import tomlkit
import typer

from benchmarks.contact_twins.twins import LAWS, twins
from benchmarks.films import table as tables
from benchmarks.films.table import Row


app = typer.Typer(add_completion=False, help="Make twins with contact, and judge the judgement.")
SCENE = "scene.toml"
OFF, BEYOND = 0.01, 2.0  # of an answer that is found: error, and distance by the interval's width
ROUNDING = 1e-6  # an error that matters to nobody


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="Every twin gets a folder in this one.")] = Path(
        "runs/twins"
    ),
) -> None:
    """Write the scene files."""
    for twin in twins():
        folder = out / twin.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCENE).write_text(tomlkit.dumps(twin.scene))
        truth = {twin.path: twin.truth}
        known = {"parameters": truth, "start": {twin.path: twin.start}, "law": twin.law}
        (folder / "truth.json").write_text(json.dumps(known))


@app.command()
def table(
    folder: Annotated[Path, typer.Argument(help="Where `make` put the twins.")],
    *,
    only: Annotated[str, typer.Option(help="Part of the names of those to fit.")] = "",
    options: Annotated[str, typer.Option(help="More words for `adjsim run`.")] = "",
) -> None:
    """Fit the twins that have no result with `adjsim run`, and compare with the truth."""
    rows: list[Row] = []
    for twin in sorted(path.parent for path in folder.glob("*/truth.json")):
        if only not in twin.name:
            continue
        if not (tables.run_folder(twin, SCENE) / "result.json").exists():
            seconds = tables.run(twin, SCENE, *options.split())
            typer.echo(f"{twin.name} {seconds:.0f} s", err=True)
        rows += tables.rows_of(twin, SCENE)
    lines = ["| twin | start | truth | answer | error | beyond its interval | verdict |"]
    lines += ["|" + " --- |" * 7, *map(_line, rows), "", *_summary(rows)]
    (folder / "table.md").write_text("\n".join(lines) + "\n")
    typer.echo("\n".join(lines))


def _beyond(row: Row) -> float:
    """Return how far the truth is from the interval, by its width; 0 inside."""
    if len(row.interval) != len(row.truth) or row.error <= ROUNDING:
        return 0.0
    low, high = row.interval.T
    outside = np.maximum(np.maximum(low - row.truth, row.truth - high), 0.0)
    return float((outside / np.maximum(high - low, 1e-300)).max())


def _line(row: Row) -> str:
    vectors = row.start, row.truth, row.estimate
    numbers = (" ".join(f"{n:.4g}" for n in vector) for vector in vectors)
    cells = [row.film, *numbers, f"{100 * row.error:.2g} %", f"{_beyond(row):.2g}", row.verdict]
    return "| " + " | ".join(cells) + " |"


def _summary(rows: Sequence[Row]) -> list[str]:
    lines = []
    for law in LAWS:
        of_law = [row for row in rows if row.law == law]
        answered = [row for row in of_law if row.verdict == "found"]
        off = [row.film for row in answered if not row.error <= OFF]
        beyond = [row.film for row in answered if _beyond(row) > BEYOND]
        right = sum(row.verdict != "found" and row.error <= OFF for row in of_law)
        lines += [
            f"{law}: {len(answered)} of {len(of_law)} are *found*; {right} others are within 1 %.",
            f"*found* and more than 1 % off: {', '.join(off) or 'none'}.",
            f"*found* and far outside their intervals: {', '.join(beyond) or 'none'}.",
        ]
    return lines


if __name__ == "__main__":
    app()
