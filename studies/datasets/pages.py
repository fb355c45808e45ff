"""The report of a data set: films, a table of scenes, and histograms of what was drawn."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from studies.datasets.samples import fields_of
from studies.datasets.shards import INDEX, example, read_index
from studies.datasets.spec import Spec, read_spec, split
from studies.reports.content import (
    Code,
    Facts,
    Headline,
    Item,
    Links,
    Media,
    Report,
    Table,
    charts,
    section,
)
from studies.reports.figures import BLUE, INK, make_axes, svg
from studies.reports.numbers import count, number
from studies.reports.page import write_report as write_page
from studies.reports.scene_run import provenance
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, RESULT, RunFolder
from studies.runs.media import as_uint8, write_jpeg, write_video


SHEET, FILM, SPREAD = "contact-sheet.jpg", "preview.mp4", "figures/spread.svg"
SHOWN, ACROSS = 28, 7  # scenes on the contact sheet and in the table, and side by side
GAP = 2  # pixels between them
UNSEEN = 1e-3  # of the picture: less is out of sight
BINS = 20
FPS = 15.0  # of the preview


def write_report(folder: RunFolder) -> tuple[Path, list[str]]:
    """Write contact sheet, film and report; return its path, and the outcome in a few lines."""
    spec, entries = read_spec(folder), read_index(folder)
    if len(entries) < len(spec.shards()) or not folder.has(RESULT):
        raise StudyError(
            f"The data set {folder.path} is not whole. Go on with it: `{folder.how_to_go_on()}`."
        )
    videos, columns = _read_shards([folder.file(entry.file) for entry in entries], spec.film)
    write_jpeg(folder.file(SHEET), as_uint8(_mosaic(videos[:, :1])[0]))
    write_video(folder.file(FILM), _mosaic(videos), FPS, crf=18, pad=True)
    folder.write_text(SPREAD, _spread(spec, columns))
    facts = _summary(spec, columns, sum(entry.bytes for entry in entries))
    report = _report(folder, spec, facts, _table(spec, columns, len(videos)))
    return write_page(folder, report), [f"{key}: {value}" for key, value in facts.items()]


def _read_shards(paths: list[Path], film: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the first videos, (n, n_frames, height, width, 3) [0 to 1], and columns by name.

    The columns have drawn parameters, coverage and problem of all scenes.
    """
    videos: list[np.ndarray] = []
    columns: dict[str, list[np.ndarray]] = {}
    for path in paths:
        with h5py.File(path) as file:
            shard: Any = file
            videos += list(shard[f"images/{film}"][: SHOWN - len(videos)])
            groups = [name for name in ("parameters", "coverage") if name in shard]
            names = [f"{group}/{key}" for group in groups for key in shard[group]]
            for name in ("problem", *names):
                columns.setdefault(name, []).append(shard[name][:])
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    return np.stack(videos)[..., :3] / 255.0, joined


def _mosaic(videos: np.ndarray) -> np.ndarray:
    """Return videos side by side, row below row, as one, (n_frames, height, width, 3)."""
    n, n_frames, height, width, channels = videos.shape
    across = min(ACROSS, n)
    down, high, broad = -(-n // across), height + GAP, width + GAP
    whole = np.ones((n_frames, down * high - GAP, across * broad - GAP, channels))
    for k, video in enumerate(videos):
        top, left = k // across * high, k % across * broad
        whole[:, top : top + height, left : left + width] = video
    return whole


def _summary(spec: Spec, columns: dict[str, np.ndarray], size: int) -> dict[str, str]:
    """Return what there is and how good it is, in words by name."""
    seen = columns[f"coverage/{spec.film}"] > UNSEEN
    test = sum(split(k) == "test" for k in range(spec.count))
    failed = sorted(set(columns["problem"].tolist()) - {b""})
    facts = {
        "scenes": f"{spec.count}: {spec.count - test} train, {test} test",
        "size": f"{size / 1e6:.1f} MB in {count(len(spec.shards()), 'shard')}",
        "out of sight": f"{100.0 * (1.0 - seen.mean()):.1f} % of all frames, "
        f"{count(int((~seen.any(axis=1)).sum()), 'whole film')}",
        "not simulated": count(int((columns["problem"] != b"").sum()), "scene"),
    }
    return facts | ({"first reason": failed[0].decode()} if failed else {})


def _spread(spec: Spec, columns: dict[str, np.ndarray]) -> str:
    """Draw how the drawn numbers are spread, and how much of a frame is covered."""
    fields = fields_of(spec)
    shown = {name: columns[name] for name in fields if columns[name].ndim == 1}
    shown |= {name: columns[name].ravel() for name in columns if name.startswith("coverage/")}
    across = min(3, len(shown))
    down = -(-len(shown) // across)
    figure, axes = make_axes(down, across, (2.3 * across, 2.1 * down))
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    for ax, (name, column) in zip(axes, shown.items(), strict=False):
        ax.hist(column, BINS, color=BLUE)
        unit = fields[name].unit if name in fields else "-"
        label = name.partition("/")[2] if name in fields else name.replace("/", " of ")
        unit = "" if unit in ("-", "") else f" [{unit}]"
        ax.set_xlabel(label + unit, fontsize=9, color=INK)  # a title touches the ticks above
        ax.tick_params(labelsize=8)
        ax.locator_params(axis="x", nbins=4)
    figure.get_layout_engine().set(h_pad=0.08)
    return svg(figure)


def _table(spec: Spec, columns: dict[str, np.ndarray], shown: int) -> Table:
    fields = fields_of(spec)
    names = [name for name in fields if columns[name].ndim == 1]
    head = [f"{name.partition('/')[2]}\n{fields[name].unit}" for name in names]
    rows = [(str(k), split(k), *(number(columns[name][k]) for name in names)) for k in range(shown)]
    return Table(("scene", "set", *head), tuple(rows))


def _report(folder: RunFolder, spec: Spec, facts: dict[str, str], table: Table) -> Report:
    manifest, result = folder.read_json(MANIFEST), folder.read_json(RESULT)
    failed = not facts["not simulated"].startswith("0 ")
    duration = f"{result['seconds']:.1f} s for {count(result['made'], 'scene')}"
    item = Item(FILM, "films of the first scenes", poster=SHEET, wide=True)
    n_rows = len(table.rows)
    sections = [
        section(
            f"The first {count(n_rows, 'scene')}", Media((item,), f"0 to {n_rows - 1}, by rows.")
        ),
        section("Contents", Facts({**facts, "time": duration})),
        section("What was drawn", table),
        section("Distribution of all scenes", charts({"histograms": SPREAD})),
        section("To read it", Code(example(spec))),
        section("Files", Links({INDEX: "the shards with their checksums"})),
        provenance(folder, manifest),
    ]
    return Report(
        title=f"Data set {spec.name}",
        verdict=Headline(
            f"{facts['not simulated']} not simulated" if failed else "complete",
            "bad" if failed else "good",
            facts.get("first reason", ""),
        ),
        facts={"run": folder.path.name, "scene": spec.name, "answer": facts["scenes"]},
        sections=tuple(page_section for page_section in sections if page_section is not None),
        chips=(facts["scenes"], facts["size"]),
        thumbnail=SHEET,
    )
