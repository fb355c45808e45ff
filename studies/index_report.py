"""One page about many runs: the verdict and the result of each, with a link to its own report.

A run that is not finished, or cannot be read, has the reason in place of a result. The page is one
self-contained file; its links are relative to it.
"""

import html
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from studies.errors import StudyError
from studies.report import parameters_table
from studies.report_parts import chip_row, counted, page, rows, run_facts, table, wide
from studies.run_folder import FIGURES, MANIFEST, REPORT, RESULT, STUDY, SUMMARY, RunFolder


INDEX = "index.html"
MARK = '<meta name="generator" content="adjsim report">'
GALLERY = "What the renderer draws"  # the title of a gallery's page, which is an index.html too
# Figures of a run that are shown, the first two that it has.
FIRST_FIGURES = ("strip", "pictures", "coarse", "landscape", "curves", "errors", "spread")
SHOWN = 2
Rebuild = Callable[[RunFolder], Path]


@dataclass(frozen=True)
class Entry:
    """What the index says of a run.

    Attributes
    ----------
    path : pathlib.Path
        Its folder.
    page : pathlib.Path, optional
        Its own report.
    title : str
        Without a report that of the command that made it, or the name of its folder.
    chips : list
        Pairs of a kind (good, bad, plain) and a text.
    result : dict
        What it wrote as its result; empty if it has none.
    facts : dict
        How and where it was made, by name.
    problem : str
        Why it has no report; empty if it has.
    """

    path: Path
    page: Path | None
    title: str
    chips: list[list[str]] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Return folders of runs: those that are given, and those in the folders that are given.

    Raises
    ------
    StudyError
        If there is none in one of them.
    """
    found: list[Path] = []
    for path in paths:
        own = [path]
        if not is_run(path) and path.is_dir():
            own = [one for one in sorted(path.iterdir()) if one.is_dir() and is_run(one)]
        if not own or not path.exists():
            raise StudyError(
                f"{path} is not a run folder, and has none in it: name one, or several."
            )
        found += [one.resolve() for one in own]
    return list(dict.fromkeys(found))


def is_run(path: Path) -> bool:
    """Whether a folder holds something of a run, or a gallery."""
    return any((path / name).is_file() for name in (MANIFEST, STUDY, REPORT)) or _is_gallery(path)


def _is_gallery(path: Path) -> bool:
    file = path / INDEX
    return file.is_file() and GALLERY in _head(file)


def _head(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return stream.read(4000)


def write_index(runs: Sequence[Path], out: Path | None, rebuild: Rebuild) -> Path:
    """Write the index of runs; return its path.

    Parameters
    ----------
    runs : sequence of pathlib.Path
        Their folders.
    out : pathlib.Path, optional
        The page; by default `index.html` in the folder that all runs have in common.
    rebuild : callable
        Writes the report of a run that has none.

    Raises
    ------
    StudyError
        If the page would take the place of another file.
    """
    common = Path(os.path.commonpath([run.parent for run in runs]))
    path = (common / INDEX if out is None else out).resolve()
    if path.is_dir():
        path /= INDEX
    if path.exists() and MARK not in _head(path):
        raise StudyError(
            f"{path} is not an index of `adjsim report`. Name another file by `--out`."
        )
    entries = [read_entry(run, rebuild) for run in runs]
    unfinished = sum(bool(entry.problem) for entry in entries)
    verdicts: list[tuple[bool | None, str]] = [(None, counted(len(entries), "run"))]
    if unfinished:
        verdicts.append((False, f"{unfinished} without a report"))
    anchors = [f"run-{k + 1}" for k in range(len(entries))]
    body = [_overview(entries, anchors)]
    body += [_section(one, name, path) for one, name in zip(entries, anchors, strict=True)]
    text = page("Runs", verdicts, "\n\n".join(body)).replace("<title>", f"{MARK}\n<title>", 1)
    RunFolder(path.parent).write_text(path.name, text)
    return path


def read_entry(run: Path, rebuild: Rebuild) -> Entry:
    """Return what there is to say of a run, whatever is wrong with it."""
    if _is_gallery(run):
        return Entry(run, run / INDEX, GALLERY)
    facts = _facts(run)
    try:
        folder = RunFolder.open(run)
        if not (folder.has(REPORT) and folder.has(SUMMARY)):
            rebuild(folder)
        summary = folder.read_json(SUMMARY)
        result = folder.read_json(RESULT) if folder.has(RESULT) else {}
        return Entry(run, run / REPORT, summary["title"], summary["chips"], result, facts)
    except (StudyError, FileNotFoundError) as error:
        problem = str(error)
    except Exception as error:
        problem = f"It cannot be read: {type(error).__name__}: {error}"
    chips = [["bad", "not finished, or not readable"]]
    return Entry(run, None, facts.get("run of", run.name), chips, {}, facts, problem)


def _facts(run: Path) -> dict[str, str]:
    """Return what the manifest of a run says, as far as it can be read."""
    try:
        manifest, made_by = RunFolder(run).read_json(MANIFEST), RunFolder(run).command()
        return {
            "run of": made_by.removeprefix("run "),
            "command": manifest["command"],
            **run_facts(manifest),
        }
    except (ValueError, LookupError, TypeError, OSError):
        return {}


def _overview(entries: Sequence[Entry], anchors: Sequence[str]) -> str:
    """Return the section that lists all runs."""
    lines = []
    for entry, anchor in zip(entries, anchors, strict=True):
        name = f'<a href="#{anchor}">{html.escape(entry.title)}</a>'
        seed = re.search(r"seed -?\d+", entry.facts.get("precision", ""))
        about = ", ".join([entry.path.name, *([seed[0]] if seed else [])])
        lines.append([f"{name}<br><small>{html.escape(about)}</small>", chip_row(entry.chips)])
    return f'<section>\n<div class="runs">{table(["run", "outcome"], lines)}</div>\n</section>'


def _section(entry: Entry, anchor: str, path: Path) -> str:
    """Return the section of a run."""
    parts = [f'<h2 id="{anchor}">{html.escape(entry.title)}</h2>', chip_row(entry.chips)]
    if entry.problem:
        parts.append(f"<p>{html.escape(entry.problem)}</p>")
    if verdict := entry.result.get("verdict"):
        parts.append(f"<p>{html.escape(verdict['reason'])}</p>")
        parts.append(f'<div class="scroll">{parameters_table(entry.result["parameters"])}</div>')
    if entry.page is not None:
        address = quote(Path(os.path.relpath(entry.page, path.parent)).as_posix())
        parts.append(f'<p><a href="{address}">The whole report</a></p>')
    parts += [wide(figure.read_bytes(), figure.stem) for figure in _figures(entry.path)]
    if entry.facts:
        parts.append(f"<details><summary>Set-up</summary>\n{rows(entry.facts)}</details>")
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _figures(run: Path) -> list[Path]:
    """Return the figures of a run that are shown."""
    files = [run / FIGURES / f"{name}.png" for name in FIRST_FIGURES]
    return [file for file in files if file.is_file()][:SHOWN]
