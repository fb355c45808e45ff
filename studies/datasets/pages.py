"""The report of a data set: pictures, a film, and how what was drawn is spread."""

import base64
import html
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from studies import run_folder
from studies.datasets.shards import EXAMPLE, INDEX, all_fields, read_index
from studies.datasets.spec import Spec, read_spec
from studies.errors import StudyError
from studies.figures import BLUE, INK, make_axes, png
from studies.media import write_png, write_video
from studies.report_parts import (
    counted,
    image,
    provenance,
    rows,
    run_facts,
    table,
    wide,
    write_page,
)
from studies.run_folder import RunFolder


SHEET, FILM = "contact-sheet.png", "preview.mp4"
SHOWN, ACROSS = 28, 7  # scenes on the contact sheet, and side by side
GAP = 2  # pixels between them
UNSEEN = 1e-3  # of the picture: less is out of sight
BINS = 20


def write_report(folder: RunFolder) -> tuple[Path, list[str]]:
    """Write contact sheet, film and report; return its path, and the outcome in a few lines.

    Raises
    ------
    StudyError
        If the data set is not whole.
    """
    spec = read_spec(folder)
    entries = read_index(folder)
    if len(entries) < len(spec.shards()) or not folder.has(run_folder.RESULT):
        raise StudyError(
            f"The data set {folder.path} is not whole. Go on with it: `{folder.how_to_go_on()}`."
        )
    paths = [folder.file(one.file) for one in entries]
    videos = _first_videos(paths)
    write_png(folder.file(SHEET), mosaic(videos[:, :1])[0])
    fps = spec.seen["time"]["fps"]
    write_video(folder.file(FILM), mosaic(videos), fps, crf=18, pad=True)
    columns = read_columns(paths)
    drawn = spread(spec, columns)
    folder.write_figures({"spread": drawn})
    facts = summary(spec, columns, sum(one.bytes for one in entries))
    body = "\n".join(_sections(folder, spec, facts, drawn))
    title = f"Data set: {spec.kind.summary}"
    path = write_page(folder, title, _verdicts(facts), body)
    told = [f"{key}: {value}" for key, value in facts.items()]
    return path, told


def _first_videos(paths: list[Path]) -> np.ndarray:
    """Return the first videos, (n, n_frames, height, width, 3) [0 to 1]."""
    found: list[np.ndarray] = []
    for path in paths:
        with h5py.File(path) as shard:
            found += list(_array(shard, "images")[: SHOWN - len(found)])
        if len(found) == SHOWN:
            break
    return np.stack(found)[..., :3] / 255.0


def mosaic(videos: np.ndarray) -> np.ndarray:
    """Return videos side by side, row below row, as one, (n_frames, height, width, 3)."""
    count, n_frames, height, width, channels = videos.shape
    across = min(ACROSS, count)
    down, high, broad = -(-count // across), height + GAP, width + GAP
    whole = np.ones((n_frames, down * high - GAP, across * broad - GAP, channels))
    for k, video in enumerate(videos):
        top, left = k // across * high, k % across * broad
        whole[:, top : top + height, left : left + width] = video
    return whole


def read_columns(paths: list[Path]) -> dict[str, np.ndarray]:
    """Return the drawn parameters and the quality of all scenes, by name."""
    columns: dict[str, list[np.ndarray]] = {}
    for path in paths:
        with h5py.File(path) as shard:
            for group in ("parameters", "quality"):
                for key in shard[group]:  # pyright: ignore[reportGeneralTypeIssues]
                    name = f"{group}/{key}"
                    columns.setdefault(name, []).append(_array(shard, name)[:])
            columns.setdefault("split", []).append(_array(shard, "split")[:])
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _array(shard: h5py.File, name: str) -> Any:
    return shard[name]


def summary(spec: Spec, columns: dict[str, np.ndarray], size: int) -> dict[str, str]:
    """Return what there is and how good it is, in words by name."""
    steps, times = np.unique(columns["quality/steps"], return_counts=True)
    seen = columns["quality/coverage"] > UNSEEN
    gain = columns["quality/energy_gain"]
    rises = gain > spec.seen["time"]["tolerance"]
    test = int((columns["split"] == b"test").sum())
    facts = {
        "scenes": f"{spec.count}: {spec.count - test} train, {test} test",
        "size": f"{size / 1e6:.1f} MB in {counted(len(spec.shards()), 'shard')}",
        "out of sight": f"{100.0 * (1.0 - seen.mean()):.1f} % of all frames, "
        f"{counted(int((~seen.any(axis=1)).sum()), 'whole video')}",
        "time steps a frame": ", ".join(f"{a} in {b}" for a, b in zip(steps, times, strict=True)),
        "diverged": counted(int((columns["quality/diverged"] >= 0).sum()), "scene"),
    }
    if np.isfinite(gain).any():
        largest = f"at most {np.nanmax(gain):.1e} of it where nothing pushes"
        facts["energy rises"] = f"{largest}; above the tolerance in {counted(rises.sum(), 'scene')}"
    return facts


def spread(spec: Spec, columns: dict[str, np.ndarray]) -> bytes:
    """Draw how the drawn numbers are spread, and how much of a frame is covered."""
    fields = all_fields(spec)
    shown = {
        name: column[np.isfinite(column)]
        for name, column in columns.items()
        if name.startswith("parameters/") and column.ndim == 1
    }
    shown["quality/coverage"] = columns["quality/coverage"].ravel()
    across = min(4, len(shown))
    down = -(-len(shown) // across)
    figure, axes = make_axes(down, across, (2.4 * across, 2.1 * down))
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    for ax, (name, column) in zip(axes, shown.items(), strict=False):
        ax.hist(column, BINS, color=BLUE)
        unit = fields[name].unit
        label = name.split("/")[1].replace("_", " ")
        unit = "" if unit == "-" else f" [{unit}]"
        ax.set_xlabel(label + unit, fontsize=9, color=INK)  # a title touches the ticks above
        ax.tick_params(labelsize=7)
    figure.get_layout_engine().set(h_pad=0.08)
    return png(figure)


def _verdicts(facts: dict[str, str]) -> list[tuple[bool | None, str]]:
    found: list[tuple[bool | None, str]] = [(None, facts["scenes"]), (None, facts["size"])]
    found.append((facts["diverged"].startswith("0 "), f"{facts['diverged']} diverged"))
    return found


def _sections(folder: RunFolder, spec: Spec, facts: dict[str, str], drawn: bytes) -> list[str]:
    """Return the sections of the report."""
    manifest = folder.read_json(run_folder.MANIFEST)
    result = folder.read_json(run_folder.RESULT)
    film = base64.b64encode(folder.file(FILM).read_bytes()).decode()
    first = counted(min(SHOWN, spec.count), "scene")
    made = f"{result['seconds']:.1f} s for {counted(result['made'], 'scene')}, the last time"
    setup = {"time": made, **run_facts(manifest), "command": manifest["command"]}
    setup["files"] = f"shard-*.h5, {INDEX} with their checksums, {SHEET}, {FILM}"
    lines = [
        [html.escape(cell) for cell in (key, field.unit, field.text)]
        for key, field in all_fields(spec).items()
    ]
    return [
        f"""<section>
<h2>The first {first}</h2>
<video src="data:video/mp4;base64,{film}" controls loop muted autoplay playsinline></video>
<p>In the order of their numbers, row by row.</p>
{_img(folder)}
<p>Their first frames.</p>
</section>""",
        f"<section>\n<h2>What there is</h2>\n{rows(facts)}\n</section>",
        f"<section>\n<h2>How it is spread</h2>\n{wide(drawn, 'histograms')}\n</section>",
        f"""<section>
<h2>To read it</h2>
<pre>{html.escape(EXAMPLE)}</pre>
<details><summary>All arrays</summary>
<div class="scroll">{table(("name", "unit", "what it is"), lines)}</div></details>
</section>""",
        f"<section>\n<h2>Set-up</h2>\n{rows(setup)}\n</section>",
        provenance(folder, manifest),
    ]


def _img(folder: RunFolder) -> str:
    data = folder.file(SHEET).read_bytes()
    return f'<img src="{image(data)}" alt="first frames">'
