"""`python -m benchmarks.iris FOLDER`: see the package."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.iris.fitting import ANSWER, fit_film
from benchmarks.iris.folder import TEMPLATES, Film, find_films, read_templates
from benchmarks.iris.table import FAILED, summary, table
from benchmarks.publish import in_markdown, record
from studies.optimizers.problem import NOT_FINITE
from studies.runs.errors import StudyError


KEY = "made_of.txt"  # beside an answer: what it was made of


def report(
    folder: Annotated[Path, typer.Argument(help="Films in the layout of IRIS, or single ones.")],
    *,
    only: Annotated[str, typer.Option(help="Parts of the films' names, commas between.")] = "",
    out: Annotated[Path, typer.Option(help="Scenes, tracks and answers.")] = Path("runs/iris"),
    templates: Annotated[Path, typer.Option(help="A changed copy of the templates.")] = TEMPLATES,
    data: Annotated[Path | None, typer.Option(help="Write NAME.json into this folder.")] = None,
    name: Annotated[str, typer.Option(help="Name of the data file.")] = "iris",
) -> None:
    """Fit every film that has no answer yet, and print what is found beside what others found.

    A film that fails is named and does not stop the others; the next run tries it again.
    """
    try:
        scenes = read_templates(templates)
        films = [
            film
            for film in find_films(folder, scenes)
            if not only or any(word in film.name for word in only.split(","))
        ]
    except StudyError as error:
        raise typer.BadParameter(str(error)) from error
    console, fitted = Console(stderr=True), []
    for k, film in enumerate(films):
        answer, note = _answer(film, scenes[film.kind], out / film.name)
        fitted.append((film, answer))
        console.print(f"[{k + 1}/{len(films)}] {film.name}: {note}", markup=False, highlight=False)
    rows = table(fitted)
    typer.echo(in_markdown(rows))
    counts = summary(fitted)
    typer.echo(
        f"\nfound: {counts['found']}; more than 20 % off among these: {counts['wrong']}; median "
        f"error: {counts['median'] or 'no truth'}; truth in the interval: {counts['covered']}."
    )
    if data is not None:
        words = f" --only {only}" * bool(only) + f" --name {name}" * (name != "iris")
        values = {"table": rows, **counts}
        record(data, name, values, f"python -m benchmarks.iris FOLDER{words}")


def _answer(
    film: Film, template: Mapping[str, Any], out: Path
) -> tuple[Mapping[str, Any], str]:  # fmt: skip
    """Return the answer of a film, that of `out` if nothing has changed, and what to say of it."""
    stat = film.path.stat()
    parts = [template, dict(film.measured), film.path.name, stat.st_size, int(stat.st_mtime)]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if (out / ANSWER).exists() and (out / KEY).read_text("utf-8") == key:
        answer = json.loads((out / ANSWER).read_text("utf-8"))
        return answer, f"{answer['verdict']}, as before"
    out.mkdir(parents=True, exist_ok=True)
    (out / ANSWER).unlink(missing_ok=True)
    (out / KEY).write_text(key, "utf-8")
    try:
        answer = fit_film(film, template, out)
    except (StudyError, *NOT_FINITE) as error:
        numbers = {name: {"verdict": FAILED} for name in template["iris"]["numbers"]}
        return {"verdict": FAILED, "numbers": numbers}, f"{FAILED}: {error}"
    return answer, str(answer["verdict"])


if __name__ == "__main__":
    typer.run(report)
