"""Tables in the terminal, figures, and one self-contained page for a timing run."""

import base64
import html
from pathlib import Path
from typing import Any

from studies.figures import png
from studies.run_folder import FIGURES, MANIFEST, REPORT, RESULT, SUMMARY, RunFolder
from studies.timing_cells import Table, fastest, pick
from studies.timing_laps import BOTH, FORWARD
from studies.timing_tables import machine_line, sizes, tables, warnings


STEPS, IMAGES = f"{FIGURES}/steps_per_second.png", f"{FIGURES}/images.png"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; color: #222;
       padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0; }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; }
.wide { overflow-x: auto; } .note { color: #666; } img { max-width: 100%; }
.warning { background: #fff3d6; border-left: 4px solid #d08700; padding: .4rem .8rem; }
@media print { .wide { overflow: visible; } table { font-size: .75rem; } }
"""


def print_tables(result: dict[str, Any]) -> None:
    """Print machine, warnings and tables."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console()
    if not console.is_terminal:  # a log file: do not fold the columns
        console = Console(width=200)
    console.print(machine_line(result), highlight=False)
    for table in tables(result):
        shown = RichTable(title=table.title, caption=table.note, title_justify="left")
        for k, name in enumerate(table.header):
            shown.add_column(name, justify="left" if k == 0 else "right")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown, highlight=False)
        for line in table.conclusion:
            console.print(line, highlight=False)
    for warning in warnings(result):
        console.print(f"warning: {warning}", style="yellow", highlight=False)


def write_report(folder: RunFolder) -> Path:
    """Draw the figures and write the page; return its path."""
    result = folder.read_json(RESULT)
    _draw_steps(folder, result)
    if result["images"]:
        _draw_images(folder, result)
    manifest = folder.read_json(MANIFEST) if folder.has(MANIFEST) else {}
    parts = [f"<h1>{html.escape(result['title'])}</h1><p>{html.escape(machine_line(result))}</p>"]
    if manifest:
        about = f"{manifest['command']} · {manifest['started']} · commit {manifest['commit']}"
        parts.append(f'<p class="note">{html.escape(about)}</p>')
    parts += [f'<p class="warning">{html.escape(line)}</p>' for line in warnings(result)]
    parts.append(_image(folder, STEPS, "Steps per second against tetrahedra"))
    parts += [_html_table(table) for table in tables(result)]
    if result["images"]:
        parts.append(_image(folder, IMAGES, "Milliseconds of an image against its size"))
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{html.escape(result['title'])}</title><style>{STYLE}</style>{''.join(parts)}</html>"
    )
    folder.write_json(SUMMARY, {"title": result["title"], "chips": []})
    folder.write_text(REPORT, page)
    return folder.file(REPORT)


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    said = "<br>".join(html.escape(line) for line in table.conclusion)
    return (
        f"<h2>{html.escape(table.title)}</h2>"
        f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>{note}'
        f"{f'<p>{said}</p>' if said else ''}"
    )


def _image(folder: RunFolder, name: str, alt: str) -> str:
    data = base64.b64encode(folder.file(name).read_bytes()).decode()
    return f'<p><img alt="{html.escape(alt)}" src="data:image/png;base64,{data}"></p>'


def _draw_steps(folder: RunFolder, result: dict[str, Any]) -> None:
    """Steps per second against tetrahedra: ours, the paper's, other packages'."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    paper, viscous = result["paper"], result["tets"][0]["viscosity"]
    for axes, what, title, published in (
        (left, FORWARD, "forward", paper["forward"]),
        (right, BOTH, "forward + reverse", paper["backward"]),
    ):
        for dtype, style in (("float64", "-o"), ("float32", "--s")):
            points = [
                fastest(
                    pick(result["tets"], size=n, dtype=dtype, viscosity=viscous, **{"pass": what})
                )
                for n in sizes(result)
            ]
            known = [point for point in points if point is not None]
            if known:
                line = ([p["tets"] for p in known], [p["steps_per_s"] for p in known])
                axes.loglog(*line, style, color="#b3352b", label=f"adjsim, {dtype}", markersize=5)
        axes.loglog(
            [int(n) for n in published], list(published.values()), ":^", color="#777",
            label="gradSim, published" + ("" if what == FORWARD else " (backward)"),
        )  # fmt: skip
        others = [row for row in result["peers"] if "tets" in row]
        for k, name in enumerate(dict.fromkeys(row["name"] for row in others)):
            if rows := pick(others, name=name, **{"pass": what}):
                points = ([r["tets"] for r in rows], [r["steps_per_s"] for r in rows])
                label = f"{name}, float32"
                axes.loglog(*points, "-.d", color=f"C{k}", label=label, markersize=5)
        axes.set(title=title, xlabel="tetrahedra")
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.legend(fontsize=8)
    left.set_ylabel("steps per second")
    with folder.replacing(STEPS) as part:
        part.write_bytes(png(figure, dpi=130))


def _draw_images(folder: RunFolder, result: dict[str, Any]) -> None:
    """Milliseconds against the edge of the image, for each number of faces."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    blends = list(dict.fromkeys(row["blend"] for row in result["images"]))
    all_axes = figure.subplots(1, len(blends), sharey=True, squeeze=False)[0]
    faces = list(dict.fromkeys(row["faces"] for row in result["images"]))
    others = [row for row in result["peers"] if "pixels" in row]
    edges = sorted({row["pixels"] for row in [*result["images"], *others]})
    for axes, blend in zip(all_axes, blends, strict=True):
        for k, n_faces in enumerate(faces):
            for what, style in ((FORWARD, "--o"), (BOTH, "-s")):
                rows = pick(result["images"], blend=blend, faces=n_faces, **{"pass": what})
                best = [
                    fastest(pick(rows, pixels=p), "ms_min")
                    for p in dict.fromkeys(row["pixels"] for row in rows)
                ]
                known = [row for row in best if row is not None]
                points = ([r["pixels"] for r in known], [r["ms_min"] for r in known])
                label = f"{n_faces} faces, {what}"
                axes.loglog(*points, style, color=f"C{k}", label=label, markersize=4)
        axes.set(title=f"soft rasterizer, {blend}", xlabel="edge of the image [pixels]")
        axes.set_xticks(edges, [str(edge) for edge in edges])
        axes.set_xticks([], minor=True)
        axes.grid(visible=True, which="both", alpha=0.25)
    for k, name in enumerate(dict.fromkeys(row["name"] for row in others)):
        for what, mark in ((FORWARD, "x"), (BOTH, "D")):
            for row in pick(others, name=name, **{"pass": what}):
                all_axes[-1].plot(
                    row["pixels"], row["ms_min"], mark, color=f"C{len(faces) + k}",
                    label=f"{name}, {row['faces']} faces, {what}", markersize=5,
                )  # fmt: skip
    all_axes[0].set_ylabel("ms")
    all_axes[-1].legend(fontsize=7)
    with folder.replacing(IMAGES) as part:
        part.write_bytes(png(figure, dpi=130))
