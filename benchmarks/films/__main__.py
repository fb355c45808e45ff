"""`python -m benchmarks.films make | vary | wrong | pull | table`: see the package."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.films import hulls, shape_cover, table as tables, views
from benchmarks.films.films import FILMS, Film, variations
from benchmarks.films.making import make as make_film
from benchmarks.films.pulling import make_pulled
from benchmarks.films.small import CASES, HEADER, make_case
from benchmarks.films.wrong import make_wrong
from benchmarks.publish import in_markdown, record


app = typer.Typer(
    add_completion=False, help="Make test films, and compare what is fitted to them with the truth."
)
Only = Annotated[str, typer.Option(help="Names of films, with commas between them; default: all.")]
Data = Annotated[
    Path | None, typer.Option(help="Write what is measured into a data file in this folder.")
]
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


@app.command(name="views")
def from_views(
    bodies: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(views.BODIES)}.")] = None,
    *,
    out: Out = Path("runs/views"),
    data: Data = None,
) -> None:
    """Film a body that falls from many views and from three, and compare its hulls with it."""
    rows: list[tuple[str, ...]] = [hulls.HEADER]
    for name in _filmed(bodies, out):
        rows += [hulls.hull_row(out / name, name, count) for count in views.COUNTS]
    typer.echo(in_markdown(rows))
    if data is not None:
        every = "".join(f" {name}" for name in bodies or ())
        cells = [row[:-1] for row in rows]  # seconds vary
        record(data, "views", {"hulls": cells}, f"python -m benchmarks.films views{every}")


Counts = Annotated[list[int] | None, typer.Option("--count", help="Of views.")]


@app.command(name="fit-views")
def fit_views(
    bodies: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(views.BODIES)}.")] = None,
    *,
    count: Counts = None,
    out: Out = Path("runs/views"),
    data: Data = None,
) -> None:
    """Fit E and nu of a body without a mesh, and its shape beside them."""
    _of_views("fit-views", (hulls.FITS, hulls.fit_rows), bodies, count, out=out, data=data)


@app.command(name="shape-cover")
def cover_of_shapes(
    bodies: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(views.BODIES)}.")] = None,
    *,
    count: Counts = None,
    out: Out = Path("runs/views"),
    data: Data = None,
) -> None:
    """Ask whether intervals hold what the error of a surface from views does to E and nu."""
    rows_of = shape_cover.HEADER, shape_cover.cover_rows
    _of_views("shape-cover", rows_of, bodies, count, out=out, data=data)


def _of_views(
    command: str,
    rows_of: tuple[tuple[str, ...], Callable[[Path, str, int], list[tuple[str, ...]]]],
    bodies: Sequence[str] | None,
    count: Sequence[int] | None,
    *,
    out: Path,
    data: Path | None,
) -> None:
    """Print a table of bodies in films of so many views, and record it."""
    counts = count or views.COUNTS
    if not set(counts) <= set(views.COUNTS):
        raise typer.BadParameter(f"--count must be of {views.COUNTS}, got {counts}")
    header, make_rows = rows_of
    rows = [header]
    for name in _filmed(bodies, out):
        for n in counts:
            rows += make_rows(out / name, name, n)
    typer.echo(in_markdown(rows))
    if data is not None:
        options = [*(bodies or ()), *(f"--count {n}" for n in count or ())]
        as_typed = " ".join(("python -m benchmarks.films", command, *options))
        name = "-".join((command, *map(str, count or ())))
        record(data, name, {"table": rows}, as_typed)


def _filmed(bodies: Sequence[str] | None, out: Path) -> list[str]:
    """Return the bodies, of which there are films then."""
    unknown = [name for name in bodies or () if name not in views.BODIES]
    if unknown:
        bodies_here = ", ".join(views.BODIES)
        raise typer.BadParameter(f"there is no body {unknown[0]!r}, only {bodies_here}")
    for name in bodies or views.BODIES:
        if not (out / name / "truth.json").exists():
            views.make(name, out / name)
    return list(bodies or views.BODIES)


@app.command()
def pull(out: Out = Path("runs/pulled")) -> None:
    """Pull a bar in a testing machine; write what it measured, and a scene file."""
    make_pulled(out / "pulled-bar")


@app.command()
def small(
    cases: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(CASES)}.")] = None,
    *,
    out: Out = Path("runs/small"),
    data: Data = None,
    options: Annotated[str, typer.Option(help="More words for `adjsim run`.")] = "",
) -> None:
    """Make films with a small thing wrong, fit them, and compare with the truth; by default all."""
    unknown = [name for name in cases or () if name not in CASES]
    if unknown:
        raise typer.BadParameter(f"there is no case {unknown[0]!r}, only {', '.join(CASES)}")
    rows: list[tuple[str, ...]] = [HEADER]
    for name in cases or CASES:
        folder = make_case(name, out)
        tables.run(folder, "scene.toml", "--no-certificate", *options.split())
        for row in tables.rows_of(folder, "scene.toml"):
            _, path, _, truth, _, answer, error, verdict, _, covers, _ = row.cells()
            wrong = CASES[name].wrong
            rows.append((name, wrong, path, answer, truth, error, covers, verdict))
        typer.echo(f"{name}: {rows[-1][-1]}", err=True)
    typer.echo(in_markdown(rows))
    if data is not None:
        every = "" if not cases else " " + " ".join(cases)
        record(data, "small", {"table": rows}, f"python -m benchmarks.films small{every}")


@app.command()
def table(
    folder: Annotated[Path, typer.Argument(help="Where `make` or `vary` put the films.")],
    *,
    only: Only = "",
    scene: Annotated[
        str, typer.Option(help="scene.toml; or positions.toml, the fit to exact positions.")
    ] = "scene.toml",
    data: Data = None,
    name: Annotated[str, typer.Option(help="Name of the data file.")] = "films",
    options: Annotated[str, typer.Option(help="More words for `adjsim run`.")] = "",
) -> None:
    """Fit the films that have no result with `adjsim run`, and compare with the truth."""
    rows = []
    for truth in sorted(folder.glob("*/truth.json")):
        film = truth.parent
        if (only and film.name not in only.split(",")) or not (film / scene).exists():
            continue
        if not (tables.run_folder(film, scene) / "result.json").exists():
            seconds = tables.run(film, scene, *options.split())
            typer.echo(f"{film.name} {seconds:.0f} s", err=True)
        rows += tables.rows_of(film, scene)
    text = tables.table(rows)
    (folder / f"table-{Path(scene).stem}.md").write_text(text + "\n")
    typer.echo(text)
    if data is not None:
        cells = [tables.HEADER[:-1], *(row.cells()[:-1] for row in rows)]  # seconds vary
        values = {"table": cells, **tables.summary(rows)}
        words = f' --options "{options}"' * bool(options)
        record(data, name, values, f"python -m benchmarks.films table {folder}{words}")


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
