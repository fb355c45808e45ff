"""One page about many runs, from their `report.json`: verdicts, answers, links to their pages.

A run that is not finished, or cannot be read, has the reason in place of a verdict. The page is one
self-contained file; its links are relative to it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from studies.reports.content import Headline, Report, read_report
from studies.reports.page import MARK, embedded, render
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, REPORT, REPORT_DATA, STUDY, RunFolder


FORMATS = ("pdf", "png")  # of figures beside the page
INDEX = "index.html"
FIRST, LAST = ("answer", "loss"), ("run", "started")  # columns
Rebuild = Callable[[RunFolder], Path]


class Entry(NamedTuple):
    """What the index says of a run."""

    report: Report  # of a run that cannot be read: why, as its verdict
    link: str = ""  # to its own page, if there is one
    picture: str = ""  # the address of its thumbnail


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Return folders of runs: those that are given, and those in the folders that are given."""
    runs: dict[Path, None] = {}
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else []
        folders = [path] if is_run(path) else list(filter(is_run, inside))
        if not folders:
            raise StudyError(
                f"{path} is not a run folder, and has none in it: name one, or several."
            )
        runs |= dict.fromkeys(folder.resolve() for folder in folders)
    return list(runs)


def is_run(path: Path) -> bool:
    """Whether a folder holds something of a run."""
    return any((path / name).is_file() for name in (MANIFEST, STUDY, REPORT_DATA))


def write_index(runs: Sequence[Path], out: Path | None, rebuild: Rebuild) -> Path:
    """Write the index of runs; return its path."""
    common = Path(os.path.commonpath([run.parent for run in runs]))
    path = (common / INDEX if out is None else out).resolve()
    if path.suffix != ".html":
        path /= INDEX
    if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace")[:4000]:
        raise StudyError(
            f"{path} is not an index of `adjsim report`. Name another file by `--out`."
        )
    entries = [read_entry(run, path.parent, rebuild) for run in runs]
    keys = list(dict.fromkeys(key for entry in entries for key in entry.report.facts))
    others = [key for key in keys if key not in (*FIRST, *LAST)]
    columns = [key for key in (*FIRST, *others, *LAST) if key in keys]
    said = {(entry.report.verdict.tone, entry.report.verdict.text) for entry in entries}
    verdicts = sorted(said, key=lambda verdict: (verdict[0] != "good", verdict))
    text = render("index", title="Runs", entries=entries, columns=columns, verdicts=verdicts)
    RunFolder(path.parent).write_text(path.name, text)
    return path


def read_entry(run: Path, base: Path, rebuild: Rebuild) -> Entry:
    """Return what there is to say of a run, whatever is wrong with it; links start at `base`."""
    try:
        folder = RunFolder.open(run)
        if not (folder.has(REPORT) and folder.has(REPORT_DATA)):
            rebuild(folder)
        report = read_report(folder)
        picture = embedded(folder, report.thumbnail) if report.thumbnail else ""
    except (StudyError, OSError, LookupError, TypeError, ValueError) as error:
        reason = str(error)
        if not isinstance(error, StudyError):
            reason = f"{run} cannot be read: {type(error).__name__}: {error}"
        return Entry(Report(run.name, Headline("no report", "bad", reason), {"run": run.name}))
    link = quote(Path(os.path.relpath(run / REPORT, base)).as_posix())
    return Entry(report, link, picture)
