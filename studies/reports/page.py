"""Pages from reports: one self-contained HTML file each, rendered by Jinja2."""

import base64
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from studies.reports.content import Report, to_json
from studies.runs import folder as run_folder
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder


MARK = '<meta name="generator" content="adjsim report">'
TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml", ".mp4": "video/mp4"}
PATH = re.compile(r"([._/])(?=\w)")  # where the name of a parameter may break
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_][\w-]*(?:[./_][\w\[\]-]+)+")


@cache
def environment() -> Environment:
    """Return the templates, which escape every text."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    made.globals["mark"] = Markup(MARK)
    return made


def breakable(text: str) -> Markup:
    """Return a text in which long names may break between words; what is in backticks is code."""
    code = Markup("<code>{}</code>")
    parts = [
        code.format(_with_breaks(chunk)) if k % 2 else _with_breaks(chunk)
        for k, chunk in enumerate(CODE.split(text))
    ]
    return Markup("").join(parts)


def _with_breaks(text: str) -> Markup:
    parts, end = [], 0
    for name in NAME.finditer(text):
        pieces = PATH.sub("\\1\0", name[0]).split("\0")
        inner = Markup("<wbr>").join(map(escape, pieces))
        parts += [escape(text[end : name.start()]), inner]
        end = name.end()
    return Markup("").join([*parts, escape(text[end:])])


def embedded(folder: RunFolder, name: str) -> str:
    """Return a file of a run as the address of a picture or a film; JSON as it is."""
    path = folder.file(name)
    if not path.is_file():
        raise StudyError(f"{path} is missing. Run it again, or restore the file.")
    if path.suffix == ".json":
        return Markup(path.read_text(encoding="utf-8").replace("<", "\\u003c"))
    return f"data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def render(template: str, **values: Any) -> str:
    """Return a page by the name of its template."""
    return environment().get_template(f"{template}.html.j2").render(**values)


def write_report(folder: RunFolder, report: Report) -> Path:
    """Write `report.json` and the page `report.html`; return the page's path."""
    folder.write_json(run_folder.REPORT_DATA, to_json(report))
    text = render("report", report=report, embed=partial(embedded, folder))
    folder.write_text(run_folder.REPORT, text)
    return folder.file(run_folder.REPORT)
