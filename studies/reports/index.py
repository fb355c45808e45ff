"""One page that compares many runs, from their `report.json`: verdicts, answers, links to them.

Numbers that several runs share are columns of its table, and axes of its plot. A run that is not
finished, or cannot be read, has the reason in place of a verdict. The page is one self-contained
file; its links are relative to it.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from studies.reports.content import Headline, Report, read_report
from studies.reports.numbers import estimate, interval, number
from studies.reports.page import MARK, embedded, render
from studies.runs.contents import Manifest
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, REPORT, REPORT_DATA, STUDY, RunFolder


FORMATS = ("pdf", "png")  # of figures beside the page
INDEX = "index.html"
FIRST, LAST = ("answer", "loss", "time"), ("scene", "run", "started")  # columns
MOST_SHARED = 8  # numbers that are columns and axes, those first that most runs have
Rebuild = Callable[[RunFolder], Path]


class Entry(NamedTuple):
    """What the index says of a run."""

    report: Report  # of a run that cannot be read: why, as its verdict
    link: str = ""  # to its own page, if there is one
    picture: str = ""  # the address of its thumbnail
    differs: str = ""  # its path and its overrides, where another run has the same title


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
    entries = [_read_entry(run, path.parent, rebuild) for run in runs]
    titles = Counter(entry.report.title for entry in entries)
    entries = [
        entry._replace(differs=_path(run, path.parent) + _overrides(run))
        if titles[entry.report.title] > 1
        else entry
        for entry, run in zip(entries, runs, strict=True)
    ]
    counts = Counter(name for entry in entries for name in entry.report.numbers)
    answers = (name for name, n in counts.most_common() if n > 1 and name not in FIRST)
    shared = list(answers)[:MOST_SHARED]
    cells = [_cells(entry.report, shared) for entry in entries]
    present = {key for row in cells for key, text in row.items() if text}
    columns = [key for key in (*shared, *FIRST, *LAST) if key in present]
    said = {(entry.report.verdict.tone, entry.report.verdict.text) for entry in entries}
    verdicts = sorted(said, key=lambda verdict: (verdict[0] != "good", verdict))
    text = render(
        "index", title="Runs", runs=list(zip(entries, cells, strict=True)), columns=columns,
        verdicts=verdicts, data=_data(entries, [*shared, "loss", "time"]),
    )  # fmt: skip
    RunFolder(path.parent).write_text(path.name, text)
    return path


def _cells(report: Report, shared: Sequence[str]) -> dict[str, str]:
    """Return the cells of a run by column; the answer without what has columns of its own."""
    facts = dict(report.facts)
    lines = facts.get("answer", "").split("\n")
    facts["answer"] = "\n".join(x for x in lines if x.split(" = ")[0] not in shared)
    facts["started"] = facts.get("started", "")[:16].replace("T", " ")
    for name, compared in report.numbers.items():
        text, width = number(float(f"{compared.value:.3g}")), ""
        if compared.interval:
            row = {"estimate": compared.value, "interval": compared.interval}
            text, width = estimate(row), f"\n{interval(row).splitlines()[-1]}"
        facts[name] = f"{text}\xa0{compared.unit}".rstrip() + width
    return facts


def _data(entries: Sequence[Entry], names: Sequence[str]) -> str:
    """Return what the plot of the page draws, as JSON that is safe in a page."""
    runs = [
        {
            "name": entry.differs or entry.report.facts.get("run", entry.report.title),
            "verdict": entry.report.verdict.text,
            "tone": entry.report.verdict.tone,
            "numbers": {
                name: [compared.value, *(compared.interval or ()), compared.unit]
                for name, compared in entry.report.numbers.items()
                if name in names
            },
        }
        for entry in entries
    ]
    return json.dumps({"names": names, "runs": runs}, allow_nan=False).replace("<", "\\u003c")


def _read_entry(run: Path, base: Path, rebuild: Rebuild) -> Entry:
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
    return Entry(report, quote(_path(run / REPORT, base)), picture)


def _path(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path, base)).as_posix()


def _overrides(run: Path) -> str:
    """Return what a run was told beside its scene; "" where that cannot be read."""
    try:
        arguments = RunFolder(run).read_json(MANIFEST, Manifest).get("arguments", {})
    except StudyError:
        return ""
    return "".join(
        f", {text}" for key in ("over", "overrides") for text in arguments.get(key) or ()
    )
