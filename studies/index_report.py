"""One page about many runs: what each one's own report says first, with a link to it.

A run that is not finished, or cannot be read, is told as such with what is known of it. The page
is one self-contained file; its links are relative to it.
"""

import html
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from studies.errors import StudyError
from studies.report_parts import counted, page, rows, run_facts, table
from studies.report_reader import Medium, Said, Table, read_page
from studies.run_folder import MANIFEST, REPORT, RESULT, STUDY, RunFolder


INDEX = "index.html"
MARK = '<meta name="generator" content="adjsim report">'
GALLERY = "What the renderer draws"  # the title of a gallery's page, which is an index.html too
MOST_ROWS, MOST_TABLES = 12, 6
FILMS, PICTURES = 2, 2  # of a run
TOOK = ("search took", "took")  # in the set-up
Rebuild = Callable[[RunFolder], Path]


@dataclass(frozen=True)
class Entry:
    """A run as the index tells it.

    Attributes
    ----------
    path : pathlib.Path
        Its folder.
    page : pathlib.Path, optional
        Its own report.
    said : Said
    facts : dict
        Its set-up, by name.
    problem : str
        Why it has no report; empty if it has.
    """

    path: Path
    page: Path | None
    said: Said
    facts: dict[str, str]
    problem: str = ""

    @property
    def title(self) -> str:
        """Its title; without a report its study, or the name of its folder."""
        return self.said.title or self.facts.get("study", self.path.name)


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
    """Return what there is to tell of a run, whatever is wrong with it."""
    if _is_gallery(run):
        return Entry(run, run / INDEX, read_page((run / INDEX).read_text(encoding="utf-8")), {})
    said, report, problem = Said(), run / REPORT, ""
    try:
        folder = RunFolder.open(run)
        if not folder.has(REPORT):
            report = rebuild(folder)
        said = read_page(report.read_text(encoding="utf-8"))
    except (StudyError, FileNotFoundError) as error:
        problem = str(error)
    except Exception as error:
        problem = f"It cannot be read: {type(error).__name__}: {error}"
    facts = said.set_up() or _known(run)
    if not problem and "search took" not in facts:
        facts |= _seconds(run)
    return Entry(run, None if problem else report, said, facts, problem)


def _known(run: Path) -> dict[str, str]:
    """Return what the manifest of a run says, as far as it can be read."""
    try:
        manifest, made_by = RunFolder(run).read_json(MANIFEST), RunFolder(run).command()
        return {
            "study": made_by.removeprefix("run "),
            "command": manifest["command"],
            **run_facts(manifest),
        }
    except (ValueError, LookupError, TypeError, OSError):
        return {}


def _seconds(run: Path) -> dict[str, str]:
    """Return how long a run took, where its result says so."""
    try:
        return {"took": f"{RunFolder(run).read_json(RESULT)['seconds']:.1f} s"}
    except (ValueError, LookupError, TypeError, OSError):
        return {}


def _overview(entries: Sequence[Entry], anchors: Sequence[str]) -> str:
    """Return the section that lists all runs."""
    lines = []
    for entry, anchor in zip(entries, anchors, strict=True):
        name = f'<a href="#{anchor}">{html.escape(entry.title)}</a>'
        lines.append([f"{name}<br><small>{html.escape(_about(entry))}</small>", _chips(entry)])
    return f'<section>\n<div class="runs">{table(["run", "outcome"], lines)}</div>\n</section>'


def _about(entry: Entry) -> str:
    """Return the folder of a run, its seed, and how long it took, as far as they are known."""
    seed = re.search(r"seed -?\d+", entry.facts.get("precision", ""))
    took = [entry.facts[key] for key in TOOK if key in entry.facts]
    return ", ".join([entry.path.name, *([seed[0]] if seed else []), *took[:1]])


def _chips(entry: Entry) -> str:
    kinds = entry.said.verdicts if not entry.problem else [("bad", "not finished, or not readable")]
    chips = (f'<span class="chip {kind}">{html.escape(text)}</span>' for kind, text in kinds)
    return f'<div class="chips">{"".join(chips)}</div>'


def _section(entry: Entry, anchor: str, path: Path) -> str:
    """Return the section of a run."""
    parts = [f'<h2 id="{anchor}">{html.escape(entry.title)}</h2>', _chips(entry)]
    if entry.problem:
        parts.append(f"<p>{html.escape(entry.problem)}</p>")
    if entry.page is not None:
        address = quote(Path(os.path.relpath(entry.page, path.parent)).as_posix())
        parts.append(f'<p><a href="{address}">The whole report</a></p>')
    parts += [_table(one) for one in entry.said.results()[:MOST_TABLES]]
    parts.append(_media(entry.said))
    if entry.facts:
        parts.append(f"<details><summary>Set-up</summary>\n{rows(entry.facts)}</details>")
    return "<section>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def _table(own: Table) -> str:
    """Return a table of results, its first rows if they are many."""
    caption = f"<p><b>{html.escape(own.caption)}</b></p>\n" if own.caption else ""
    head = [] if own.is_facts else own.rows[:1]
    lines = own.rows[len(head) :]
    if own.is_facts:
        shown = rows({row[0]: row[1] for row in lines[:MOST_ROWS] if len(row) == 2})
    else:
        cells = [[html.escape(cell) for cell in line] for line in [*head, *lines[:MOST_ROWS]]]
        shown = table(cells[0], cells[1:]) if cells else ""
    more = len(lines) - MOST_ROWS
    tail = f"<p>{counted(more, 'more row')} in the report.</p>" if more > 0 else ""
    return f'{caption}<div class="scroll">{shown}</div>{tail}'


def _media(said: Said) -> str:
    """Return the first films and pictures of a report."""
    films = [one for one in said.media if one.is_film][:FILMS]
    pictures = [one for one in said.media if not one.is_film][:PICTURES]
    side_by_side = [_figure(one) for one in [*films, *pictures] if not one.is_wide]
    shown = [f'<div class="scroll">{_figure(one)}</div>' for one in pictures if one.is_wide]
    return "\n".join([*shown, f'<div class="pair">{"".join(side_by_side)}</div>'])


def _figure(own: Medium) -> str:
    what = html.escape(own.what)
    if own.is_film:
        shown = f'<video src="{own.address}" controls loop muted playsinline></video>'
    else:
        kind = ' class="wide"' if own.is_wide else ""
        shown = f'<img{kind} src="{own.address}" alt="{what}">'
    caption = f"<figcaption>{what}</figcaption>" if what else ""
    return f"<figure>{shown}{caption}</figure>"
