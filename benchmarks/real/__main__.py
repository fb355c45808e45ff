"""`python -m benchmarks.real FOLDER [PART]`: see the package."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.publish import record
from benchmarks.real import apple, beam, cube


app = typer.Typer(add_completion=False)
PARTS = {"cube": cube, "beam": beam, "apple": apple}


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Where the measurements are.")],
    parts: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(PARTS)}.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the fits into this PNG.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Write real-PART.json into this folder.")
    ] = None,
) -> None:
    """Print what is found in real measurements, beside what others found."""
    unknown = [name for name in parts or () if name not in PARTS]
    if unknown:
        raise typer.BadParameter(f"`{unknown[0]}` is none of {', '.join(PARTS)}.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * len(parts or PARTS), 3.6), layout="constrained")
    panels = figure.subplots(1, len(parts or PARTS), squeeze=False)[0]
    tables: dict[str, list[list[str]]] = {}
    for name, axes in zip(parts or PARTS, panels, strict=True):
        experiment = PARTS[name]
        if not (folder / experiment.FILE).is_file():
            typer.echo(f"{name}: skipped, {folder} has no {experiment.FILE}. {experiment.SOURCE}")
            continue
        typer.echo(f"{name}: {experiment.SOURCE}")
        for line in experiment.table(folder / experiment.FILE, axes):
            typer.echo(line)
            if line.startswith("|") and not line.startswith(("| ---", "|---")):
                cells = [cell.strip() for cell in line[1:-1].split("|")]
                tables.setdefault(name, []).append(cells)
        if data is not None:
            command = f"python -m benchmarks.real FOLDER {name}"
            i, j = experiment.ANSWER
            values = {"table": tables[name], "answer": tables[name][i][j]}
            record(data, f"real-{name}", values, command)
    if picture is not None:
        figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    app()
