"""Measured numbers of README and manual: data files, pages that show them, and a run that compares.

    python -m benchmarks.publish            # render the pages from docs/data/*.json and the forces
    python -m benchmarks.publish --again    # measure a sample again, and say what moved

A benchmark with the option `--data docs/data` writes what it measured as NAME.json there: the
command, the commit and the date, the machine, and the values by name. A value is a text, or a table
of texts whose first row is its header. A page shows them between two comments:

    <!-- data films.table -->
    ...
    <!-- end -->

or in a line, but not at its beginning: <!-- data real-apple.answer -->1.055 m<!-- end -->.

The parameters of forces, joints and contacts, and the list of these classes in the reference, are
rendered from what the classes declare.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from studies.runs import manifest


ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data"
PAGES = (
    ROOT / "README.md",
    *(
        page
        for folder in ("docs", "docs/reference", "docs/scene_files")
        for page in sorted((ROOT / folder).glob("*.md"))
    ),
)
SHOWN = re.compile(r"<!-- data ([\w-]+)\.([\w-]+) -->(.*?)<!-- end -->", re.DOTALL)
NAMES = "<!-- further forces -->\n"  # where docs/names.md gets the table of a force that it lacks
CLASSES = ".. further forces\n"  # where a page of docs/reference gets its class
ROW = re.compile(r"\| `(\w+)` \| (.*) \| [^|]* \| [^|]* \| ([^|]*) \|")
SUPERSCRIPT = str.maketrans("23-", "²³–")
NUMBER = re.compile(r"-?\d[\d ]*\.?\d*(?:e[+-]?\d+)?")
NOT_COMPARED = ("error", "evaluations")  # columns: that follow from others, or vary
# What is measured again: the data file, the commands, and by how much numbers may move, as a part
# of the largest number of their cell. FOLDER is an empty folder; they leave NAME.json in it.
AGAIN = {
    "films": (
        (
            "-m benchmarks.films make --out FOLDER --only pendulum,beam-clamped,rigid-throw",
            "-m benchmarks.films table FOLDER --data FOLDER --options=--no-certificate",
        ),
        0.02,
    ),
    "scenes": (("-m benchmarks.scenes identify --data FOLDER",), 0.02),
}
COMMIT = manifest.git_commit()  # of the sources that are loaded, not of those there at the end
Table = Sequence[Sequence[str]]


def record(folder: Path, name: str, values: Mapping[str, Any], command: str) -> Path:
    """Write what a command measured into a data file of a folder; return the file."""
    path = folder / f"{name}.json"
    written = {
        "command": command,
        "commit": COMMIT,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": manifest.machine(),
        "values": dict(values),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return the values of a data file."""
    return json.loads((folder / f"{name}.json").read_text("utf-8"))["values"]


def rendered(text: str, folder: Path = DATA) -> str:
    """Return the text of a page with the values of the data files, and with all forces."""

    def shown(match: re.Match[str]) -> str:
        name, key, _ = match.groups()
        value = read(folder, name)[key]
        body = value if isinstance(value, str) else f"\n{in_markdown(value)}\n"
        return f"<!-- data {name}.{key} -->{body}<!-- end -->"

    return SHOWN.sub(shown, with_forces(text))


def with_forces(text: str) -> str:
    """Return a page with the parameters, or the class, of each of the package's forces."""
    from adjoint.forces.registry import forces

    for kind in forces() if NAMES in text else ():
        title = f"### `{kind.__name__}`\n\n"
        if title not in text:
            text = text.replace(NAMES, f"{title}\n{NAMES}")
        before, _, after = text.partition(title)
        written = re.match(r"(\|.*\n)*", after)
        assert written is not None
        text = f"{before}{title}{parameter_table(kind, written[0])}\n{after[written.end() :]}"
    for kind in forces() if CLASSES in text else ():
        entry, module = f".. autoclass:: {kind.__name__}\n", f"py:module:: {kind.__module__}\n"
        if entry not in text:
            module = module.replace("module", "currentmodule") if module in text else module
            text = text.replace(CLASSES, f".. {module}{entry}\n{CLASSES}")
    return text


def parameter_table(kind: type, written: str = "") -> str:
    """Return the table of a force's parameters, in Markdown.

    What the table has `written` so far for the symbol of a parameter stays, and with which other
    one it is transformed.
    """
    rows = [["name", "symbol", "unit", "shape", "default transform"]]
    cells = {name: (symbol, transform) for name, symbol, transform in ROW.findall(written)}
    for parameter in kind.PARAMETERS:
        symbol, transform = cells.get(parameter.name, (f"${parameter.symbol}$", ""))
        if not transform.startswith("pair"):
            transform = "log" if parameter.positive else "none"
        unit = re.sub(
            r"(?<=[a-z])[23]|^-$", lambda sign: sign[0].translate(SUPERSCRIPT), parameter.unit
        )
        shape = re.sub(r"\([^)]*\)", r"`\g<0>`", parameter.shape)
        rows.append([f"`{parameter.name}`", symbol, unit, shape, transform])
    return in_markdown(rows)


def in_markdown(table: Table) -> str:
    """Return a table, whose first row is the header, in Markdown."""
    head, *rows = ("| " + " | ".join(row) + " |" for row in table)
    return "\n".join([head, "|" + " --- |" * len(table[0]), *rows])


def moved(before: Table, now: Table, tolerance: float) -> Iterator[str]:
    """Yield what differs by more than a tolerance in the rows that two tables have in common."""
    head, *rows = before
    old = {tuple(row[:2]): row for row in rows}
    for row in now[1:]:
        if tuple(row[:2]) not in old:
            yield f"{' '.join(row[:2])} is new"
            continue
        for column, was, is_ in zip(head, old[tuple(row[:2])], row, strict=True):
            if column not in NOT_COMPARED and not agree(was, is_, tolerance):
                yield f"{' '.join(row[:2])}, {column}: {was} is now {is_}"


def agree(before: str, now: str, tolerance: float) -> bool:
    """Return whether two texts are the same, and their numbers within a part of the largest."""
    if NUMBER.sub("#", before) != NUMBER.sub("#", now):
        return False
    was, is_ = ([float(n.replace(" ", "")) for n in NUMBER.findall(t)] for t in (before, now))
    most = tolerance * max(map(abs, was), default=0.0)
    return all(abs(a - b) <= most for a, b in zip(was, is_, strict=True))


def main(
    *,
    again: Annotated[
        bool, typer.Option("--again", help="Measure a sample again, and say what moved.")
    ] = False,
) -> None:
    """Render the measured numbers of all pages, or compare a sample of them with what is now."""
    if not again:
        for page in PAGES:
            text = page.read_text("utf-8")
            if (new := rendered(text)) != text:
                page.write_text(new, "utf-8")
                typer.echo(f"{page.relative_to(ROOT)} rendered")
        return
    lines = []
    for name, (commands, tolerance) in AGAIN.items():
        with tempfile.TemporaryDirectory() as folder:
            for command in commands:
                words = shlex.split(command.replace("FOLDER", folder))
                subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
            now, before = read(Path(folder), name), read(DATA, name)
        lines += [f"{name}: {change}" for change in moved(before["table"], now["table"], tolerance)]
    typer.echo("\n".join(lines) or "what was measured again agrees with the data files")
    raise typer.Exit(1 if lines else 0)


if __name__ == "__main__":
    typer.run(main)
