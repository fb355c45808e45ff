"""The report of `appearance`: curves side by side, what the videos show, and why they differ."""

import html
from pathlib import Path
from typing import Any

import numpy as np

from studies import certificate_report, run_folder
from studies.certificate import verdict_of
from studies.instances_report import failed_table
from studies.paper.appearance import figures
from studies.paper.appearance.results import held, searches
from studies.report_parts import (
    FACES_SWAP,
    counted,
    provenance,
    rows,
    run_facts,
    table,
    wide,
    write_page,
)
from studies.run_folder import RunFolder


SHOWN = 2  # instants


def write_report(folder: RunFolder) -> Path:
    """Draw the figures and write `report.html`; return its path.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    result, certified, manifest = folder.finished()
    frames = folder.read_npz(run_folder.FRAMES)
    curves = {f"convergence_{name}": _curves(result, name) for name in result["methods"]}
    drawn = {"felt": _felt(frames), "landscape": _landscape(result), **curves}
    points, taylor = {}, {}
    for kind, one in certified["kinds"].items():
        points[kind] = certificate_report.named_points(_last_status(result, kind), one)
        images = certificate_report.drawn(points[kind], one)
        taylor[kind] = {f"{name}_{kind}": data for name, data in images.items()}
    for images in (drawn, *taylor.values()):
        folder.write_figures(images)
    body = [
        _table_section(result),
        _curves_section(result, curves),
        _seen_section(result, drawn["felt"]),
        _why_section(result, drawn["landscape"]),
        *(
            certificate_report.section(
                points[kind], taylor[kind], FACES_SWAP, schedule=one.get("schedule"), of=kind
            )
            for kind, one in certified["kinds"].items()
        ),
        f"<section>\n<h2>Set-up</h2>\n{rows(_facts(result, manifest))}\n</section>",
        provenance(folder, manifest),
    ]
    failed = result.get("failed", [])
    count = result["instances"] + len(failed)
    verdicts = [
        certificate_report.verdict(verdict_of(certified)),
        (None, counted(count, "instance") + (f", {len(failed)} failed" if failed else "")),
        (None, f"{result['evaluations']} evaluations each"),
    ]
    return write_page(folder, result["title"], verdicts, "\n\n".join(body))


def _table_section(result: dict[str, Any]) -> str:
    bars = [one["error"] for one in result["table"][0]["reached"]]
    head = ["method", "drawn with", *(f"to {bar:.0e}" for bar in bars), "error at the end", "worst"]
    lines = []
    for row in result["table"]:
        reached = [_reached(one, result["instances"]) for one in row["reached"]]
        ends = [f"{row['median_error']:.1e}", f"{row['worst_error']:.1e}"]
        lines.append([row["method"], f"<b>{html.escape(row['kind'])}</b>", *reached, *ends])
    failed = result.get("failed", [])
    apart = failed_table(failed, result["instances"] + len(failed))
    return f"""<section>
<h2>How fast the mass is found</h2>
{apart}<div class="scroll">{table(head, lines)}</div>
<p>Evaluations until the relative error of the mass stays below a bar, and that error after
{result["evaluations"]} evaluations: medians over {result["instances"]} bodies. Body, impulse, start
and settings of a method are the same in a row of kinds; target and fit are drawn alike.</p>
</section>"""


def _reached(one: dict[str, Any], count: int) -> str:
    few = "" if one["count"] == count else f" ({one['count']} of {count})"
    return f"{'not reached' if one['median'] is None else one['median']}{few}"


def _curves_section(result: dict[str, Any], curves: dict[str, bytes]) -> str:
    parts = [
        f"<p><b>{html.escape(name)}</b></p>\n{wide(data, f'errors over evaluations, {name}')}"
        for name, data in zip(result["methods"], curves.values(), strict=True)
    ]
    return f"""<section>
<h2>Convergence</h2>
{"".join(parts)}
<p>Raw errors of every evaluation, not the best so far, of every body; bold, their median. A search
that has ended keeps its last error in the median. A forward sweep, one with its reverse sweep, and
each tangent sweep count as one evaluation.</p>
</section>"""


def _seen_section(result: dict[str, Any], data: bytes) -> str:
    return f"""<section>
<h2>What the videos show</h2>
{wide(data, "target, start and what feels the mass, for each appearance")}
<p>Target and start at the same instants, and, dark, the pixels that feel the mass: the square root
of the size of each pixel's derivative by the logarithm of the mass at the truth, on one scale. The
first body: {html.escape(result["records"][0]["what"])}.</p>
</section>"""


def _why_section(result: dict[str, Any], data: bytes) -> str:
    rate = result["descent"]["learning_rate"]
    plain = "gradient-descent" in result["methods"] and not result["descent"]["momentum"]
    head = ["drawn with", "curvature at the truth", "felt inside the outline", "falls from start"]
    head += ["error after a step"] if plain else []
    lines = []
    for row in result["explained"]:
        line = [
            f"<b>{html.escape(row['kind'])}</b>",
            f"{row['curvature']:.3g}",
            f"{100.0 * row['inside']:.0f} %",
            f"{row['falling']} of {result['instances']}",
        ]
        line += [f"{abs(1.0 - rate * row['curvature']):.2f} times"] if plain else []
        lines.append(line)
    step = (
        f" One step of gradient descent with the rate {rate:g} multiplies a small error by "
        "|1 - rate x curvature|."
        if plain
        else ""
    )
    return f"""<section>
<h2>Why the curves differ</h2>
{wide(data, "the loss over the mass")}
<div class="scroll">{table(head, lines)}</div>
<p>Medians over the bodies; the curvature is that of the loss in the logarithm of the mass.{step}
With one learning rate gradient descent is the faster, the more the loss curves, until their product
passes 1. One colour tells of a motion at the outline alone; inside it a pixel changes only where
colour or shade vary. The steps of Adam do not depend on the size of the gradient, and those of
Gauss-Newton divide by the curvature: neither feels that factor. A loss that falls all the way from
the start to the truth has no wrong optimum between them.</p>
</section>"""


def _facts(result: dict[str, Any], manifest: dict[str, Any]) -> dict[str, str]:
    height, width = result["size"]
    shapes = dict.fromkeys(record["what"] for record in result["records"])
    return {
        "command": manifest["command"],
        "bodies": ", ".join(shapes),
        "video": f"frames of {height} x {width} pixels (height x width), RGBA",
        "loss": result["loss_function"],
        **run_facts(manifest),
    }


def _last_status(result: dict[str, Any], kind: str) -> str:
    """Return how the search ended whose end is certified: the last method's, of the first body."""
    own = [one["status"] for one in result["records"][0]["searches"] if one["kind"] == kind]
    return own[-1]


def _curves(result: dict[str, Any], method: str) -> bytes:
    found = {kind: searches(result["records"], kind, method) for kind in result["kinds"]}
    budget = result["evaluations"]
    medians = {
        kind: np.median([held(*one, budget) for one in many], axis=0)
        for kind, many in found.items()
    }
    return figures.convergence(found, medians)


def _felt(frames: dict[str, np.ndarray]) -> bytes:
    n = len(frames["times"])
    at = np.unique(np.rint(np.linspace(n / 2, n - 1, SHOWN)).astype(int)).tolist()
    return figures.felt(frames, frames["kinds"].tolist(), at)


def _landscape(result: dict[str, Any]) -> bytes:
    records = result["records"]
    looked = {kind: [record["kinds"][kind] for record in records] for kind in result["kinds"]}
    losses = {kind: np.array([one["landscape"] for one in many]) for kind, many in looked.items()}
    grid = np.array(looked[result["kinds"][0]][0]["grid"])
    return figures.landscapes(grid, losses, [one["start"] / one["mass"] for one in records])
