"""Draws the gallery, measures what VTK draws differently, and puts both on a page."""

import base64
import html
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Template

import numpy as np

from benchmarks.gallery.shots import Entry, Size, draw_by_vtk
from studies.reports.view import drawing_problem
from studies.runs import media


ROUNDING = 1.5 / 255  # difference of two pictures of 8 bits that counts as none
GAIN = 4.0  # of the pictures of differences, about grey


@dataclass(frozen=True, eq=False)
class Exhibit:
    """An entry drawn by us, RGB (height, width, 3), and by VTK, None where it has no such mode."""

    entry: Entry
    ours: np.ndarray
    theirs: np.ndarray | None = None

    @property
    def largest(self) -> np.ndarray:
        """Largest difference of the channels of a pixel, (height, width) [-]."""
        assert self.theirs is not None
        return abs(self.ours.clip(0.0, 1.0) - self.theirs).max(axis=-1)

    @property
    def differing(self) -> float:
        """Share of the pixels that differ by more than rounding to 8 bits."""
        return float((self.largest > ROUNDING).mean())

    def pictures(self) -> dict[str, np.ndarray]:
        """Return what is shown, by caption."""
        pictures = {"adjsim": self.ours}
        if self.theirs is not None:
            share = f"{100 * self.differing:.2f} % of pixels differ"
            pictures["VTK"] = self.theirs
            pictures[f"adjsim &minus; VTK, {GAIN:g} times: {share}"] = 0.5 + GAIN * (
                self.ours.clip(0.0, 1.0) - self.theirs
            )
        return pictures


def draw_all(entries: Iterable[Entry], size: Size) -> list[Exhibit]:
    """Return every entry drawn, by VTK too where it finds OpenGL."""
    has_vtk = drawing_problem(on_screen=False) is None
    exhibits = []
    for entry in entries:
        shot = entry.make(size)
        exhibits.append(Exhibit(entry, shot.draw(), draw_by_vtk(shot) if has_vtk else None))
    return exhibits


def body(exhibits: Iterable[Exhibit]) -> str:
    """Return the HTML of exhibits, group by group."""
    groups: dict[str, list[str]] = {}
    for shown in exhibits:
        figures = "".join(
            f'<figure><img src="{_source(image)}" alt="">'
            f"<figcaption>{caption}</figcaption></figure>"
            for caption, image in shown.pictures().items()
        )
        groups.setdefault(shown.entry.group, []).append(
            f'<section class="exhibit"><h3>{html.escape(shown.entry.name)}</h3>'
            f"<p>{html.escape(shown.entry.text)}</p>"
            f'<div class="pictures" style="--columns: 3">{figures}</div></section>'
        )
    return "\n".join(f"<h2>{name}</h2>\n" + "\n".join(parts) for name, parts in groups.items())


def _source(image: np.ndarray) -> str:
    """Return an image as the address of a PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(media.as_uint8(image)).save(buffer, format="png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def write_gallery(out: Path, exhibits: list[Exhibit]) -> Path:
    """Write PNG files and `index.html` into a folder; return the path of the page."""
    out.mkdir(parents=True, exist_ok=True)
    for shown in exhibits:
        names = (shown.entry.name, f"{shown.entry.name}-vtk", f"{shown.entry.name}-difference")
        for name, image in zip(names, shown.pictures().values(), strict=False):
            media.write_png(out / f"{name}.png", image)
    template = Template(Path(__file__).with_name("gallery.html").read_text(encoding="utf-8"))
    page = out / "index.html"
    page.write_text(template.substitute(body=body(exhibits)), encoding="utf-8")
    return page.resolve()
