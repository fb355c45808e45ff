"""`python -m benchmarks.films make | vary | wrong | table`: see the package."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.films import table as tables
from benchmarks.films.films import FILMS, Film, variations
from benchmarks.films.making import make as make_film
from benchmarks.films.wrong import make_wrong


app = typer.Typer(
    add_completion=False, help="Make test films, and compare what is fitted to them with the truth."
)
Only = Annotated[str, typer.Option(help="Names of films, with commas between them; default: all.")]
Out = Annotated[Path, typer.Option(help="Every film gets a folder of its own in this one.")]


@app.command()
def make(only: Only = "", out: Out = Path("runs/films")) -> None:
    """Simulate, draw and compress the films, and write their scene files."""
    _make(FILMS, only, out)


@app.command()
def vary(only: Only = "", out: Out = Path("runs/varied-films")) -> None:
    """Do the same with 50 variations of three films."""
    _make(variations(), only, out)


@app.command()
def wrong(
    folder: Annotated[Path, typer.Argument(help="Where `make` put the films.")],
    out: Out = Path("runs/wrong-films"),
) -> None:
    """Copy some films, and declare scale, frame rate or camera wrongly."""
    for name in make_wrong(folder, out):
        typer.echo(name)


@app.command()
def table(
    folder: Annotated[Path, typer.Argument(help="Where `make` or `vary` put the films.")],
    *,
    only: Only = "",
    scene: Annotated[
        str, typer.Option(help="scene.toml; or positions.toml, the fit to exact positions.")
    ] = "scene.toml",
    options: Annotated[str, typer.Option(help="More words for `adjsim run`.")] = "",
) -> None:
    """Fit the films that have no result with `adjsim run`, and compare with the truth."""
    rows = []
    for truth in sorted(folder.glob("*/truth.json")):
        own = truth.parent
        if (only and own.name not in only.split(",")) or not (own / scene).exists():
            continue
        if not (tables.run_folder(own, scene) / "result.json").exists():
            seconds = tables.run(own, scene, *options.split())
            typer.echo(f"{own.name} {seconds:.0f} s", err=True)
        rows += tables.rows_of(own, scene)
    text = tables.table(rows)
    (folder / f"table-{Path(scene).stem}.md").write_text(text + "\n")
    typer.echo(text)


def _make(films: Sequence[Film], only: str, out: Path) -> None:
    names = {film.name: film for film in films}
    chosen = only.split(",") if only else [*names]
    missing = [name for name in chosen if name not in names]
    if missing:
        raise typer.BadParameter(f"there is no film {missing[0]!r}, only {', '.join(names)}")
    for name in chosen:
        typer.echo(f"{name:16s} {make_film(names[name], out / name):6.1f} s")


if __name__ == "__main__":
    app()
