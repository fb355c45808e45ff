"""Pieces of HTML that the sections of a report are made of."""

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from studies import run_folder
from studies.reports.content import Report, Verdict, to_json
from studies.run_folder import RunFolder


PAGE = Path(__file__).resolve().parent / "assets" / "page.html"
CELL = re.compile(r"<td>.*?</td>", re.DOTALL)
POWER = re.compile(r"(?<![\w.])\d[\d.]*e-\d+")  # browsers break it behind its minus
KINDS = {True: "good", False: "bad", None: "plain"}


def write_page(
    folder: RunFolder, title: str, chips: Sequence[tuple[bool | None, str]], body: str
) -> Path:
    """Write the page of a run, and its title and chips for an index of runs; return its path."""
    (ok, first), *others = [*chips, (None, "done")][: max(len(chips), 1)]
    tone = {True: "good", False: "bad", None: "plain"}[ok]
    report = Report(title, Verdict(first, tone), chips=tuple(text for _, text in others))
    folder.write_json(run_folder.SUMMARY, to_json(report))
    folder.write_text(run_folder.REPORT, page(title, chips, body))
    return folder.file(run_folder.REPORT)


def page(title: str, verdicts: Sequence[tuple[bool | None, str]], body: str) -> str:
    """Return a whole page: a heading, verdicts in a row (good, bad, or neither), sections."""
    chips = chip_row([(KINDS[ok], text) for ok, text in verdicts])
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        title=html.escape(title), chips=chips, body=CELL.sub(_with_whole_numbers, body)
    )


def chip_row(chips: Iterable[Sequence[str]]) -> str:
    """Return chips in a row; each has a kind (good, bad, plain) and a text."""
    spans = (f'<span class="chip {kind}">{html.escape(text)}</span>' for kind, text in chips)
    return f'<div class="chips">{"".join(spans)}</div>'


def _with_whole_numbers(cell: re.Match[str]) -> str:
    """Return a cell of a table whose numbers do not break."""
    return POWER.sub(r'<span class="number">\g<0></span>', cell[0])


def breakable(path: str) -> str:
    """Return the name of a parameter, which may break between its words where room is short."""
    return re.sub(r"([._/])(?=\w)", r"\1<wbr>", html.escape(path))


def image(data: bytes) -> str:
    """Return a PNG as the address of an image."""
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def largest_difference(value: float) -> str:
    """Return what the largest difference of pictures is; they are kept in 32 bits."""
    return f"at most {value:.1e}" if value else "none in the 32 bits that pictures are kept in"


def wide(data: bytes, alt: str) -> str:
    """Return an image as wide as the page; on a narrow one it scrolls."""
    return (
        f'<div class="scroll"><img class="wide" src="{image(data)}" alt="{html.escape(alt)}"></div>'
    )


def gallery(images: Mapping[str, bytes]) -> str:
    """Return images side by side, as many as fit."""
    tags = (
        f'<img src="{image(data)}" alt="{name.replace("_", " ")}">' for name, data in images.items()
    )
    return f'<div class="pair">{"".join(tags)}</div>'


def looks(folder: RunFolder) -> str:
    """Return further pictures that the study has drawn, each with its caption."""
    if not folder.has(run_folder.LOOKS):
        return ""
    parts = []
    for look in folder.read_json(run_folder.LOOKS)["looks"]:
        data = folder.file(f"{run_folder.FIGURES}/{look['name']}.png").read_bytes()
        parts.append(
            f"<section>\n<h2>{html.escape(look['title'])}</h2>\n{wide(data, look['title'])}\n"
            f"<p>{html.escape(look['caption'])}</p>\n</section>"
        )
    return "\n".join(parts)


def counted(count: int, what: str) -> str:
    """Return a number and what it counts: "1 frame", "2 frames"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


FACES_SWAP = "faces swap their depth order"  # why a pixel of a mesh may jump


def rows(values: Mapping[str, str]) -> str:
    """Return a table of names and values."""
    lines = "".join(
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(str(value))}</td></tr>"
        for key, value in values.items()
    )
    return f'<table class="facts">{lines}</table>'


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a table of cells that are HTML already."""
    rows = [("th", head), *(("td", line) for line in lines)]
    cells = ("".join(f"<{tag}>{cell}</{tag}>" for cell in line) for tag, line in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def run_facts(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return how and where a run was made."""
    machine, resumed = manifest["machine"], len(manifest["resumed"])
    again = f", resumed {counted(resumed, 'time')}" if resumed else ""
    return {
        "precision": f"{manifest['dtype']} on {manifest['device']}, seed {manifest['seed']}",
        "started": f"{manifest['started']}{again}",
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['system']}",
        "commit": manifest["commit"] or "not in a git repository",
    }


def provenance(folder: RunFolder, manifest: Mapping[str, Any]) -> str:
    """Return the sections that end a report: the study file, and the versions."""
    study = html.escape(folder.read_study())
    versions = rows({k: v or "not installed" for k, v in manifest["versions"].items()})
    return f"""<section>
<details><summary>Study file</summary>
<pre>{study}</pre></details>
</section>

<section>
<details><summary>Versions</summary>
{versions}</details>
</section>"""
