"""The gallery as a page: one self-contained HTML file."""

import base64
import html
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from studies import media


TEMPLATE = Path(__file__).resolve().parents[1] / "assets" / "gallery.html"


def write_page(path: Path, exhibits: Iterable[Any], absent: Mapping[str, str]) -> Path:
    """Write the page of exhibits, and say who does not draw; return its path, resolved."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    page = template.substitute(body=body(exhibits, absent))
    part = path.with_name(path.name + ".part")
    part.write_text(page, encoding="utf-8")
    part.replace(path)
    return path.resolve()


def body(exhibits: Iterable[Any], absent: Mapping[str, str]) -> str:
    """Return the HTML of exhibits, group by group."""
    groups: dict[str, list[str]] = {}
    for shown in exhibits:
        groups.setdefault(shown.entry.group, []).append(_section(shown))
    parts = [
        f'<p class="absent">{html.escape(name)} does not draw here: {html.escape(problem)}</p>'
        for name, problem in absent.items()
    ]
    for name, sections in groups.items():
        parts.append(f"<h2>{html.escape(name)}</h2>")
        parts += sections
    return "\n".join(parts)


def _section(shown: Any) -> str:
    """Return the HTML of one exhibit."""
    from studies.gallery.making import GAIN, difference, numbers

    pictures, differences = [_figure(shown.ours, "adjsim")], []
    for name, picture in shown.theirs.items():
        pictures.append(_figure(picture.image, name))
        said = f"adjsim &minus; {name}, {GAIN:g} times: {html.escape(numbers(picture))}"
        differences.append(_figure(difference(shown.ours, picture.image), said))
    if len(differences) > 1:  # each below its picture
        differences.insert(0, "<div></div>")
    columns = max(3, len(pictures))
    remark = f" {shown.entry.remark}" if shown.theirs else ""
    return (
        f'<section class="exhibit"><h3>{html.escape(shown.entry.name)}</h3>'
        f"<p>{html.escape(shown.entry.text + remark)}</p>"
        f'<div class="pictures" style="--columns: {columns}">'
        f"{''.join(pictures + differences)}</div></section>"
    )


def _figure(image: np.ndarray, caption: str) -> str:
    return f'<figure><img src="{_source(image)}" alt=""><figcaption>{caption}</figcaption></figure>'


def _source(image: np.ndarray) -> str:
    """Return an image as the address of a PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(media.as_uint8(image)).save(buffer, format="png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
