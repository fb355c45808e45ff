"""`python -m benchmarks.films make | vary | table`."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.films.films import FILMS
from benchmarks.films.making import make as make_film


app = typer.Typer(add_completion=False, help=__doc__)


@app.callback()
def films() -> None:
    """Make test films, and compare what is fitted to them with the truth."""


@app.command()
def make(
    only: Annotated[str, typer.Option(help="Names of films, with commas.")] = "",
    out: Annotated[Path, typer.Option(help="Folder; each film gets one of its own in it.")] = Path(
        "runs/films"
    ),
) -> None:
    """Simulate, draw and compress the films, and write their scene files."""
    names = only.split(",") if only else [film.name for film in FILMS]
    for film in FILMS:
        if film.name in names:
            seconds = make_film(film, out / film.name)
            typer.echo(f"{film.name:16s} {seconds:6.1f} s")


if __name__ == "__main__":
    app()
