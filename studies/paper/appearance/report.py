"""The report of `appearance`: curves side by side, what the videos show, and why they differ."""

from pathlib import Path
from typing import Any

import numpy as np

from studies.certificate import told, verdict_of
from studies.paper.appearance import figures
from studies.paper.appearance.results import held, searches
from studies.reports import certificate
from studies.reports.content import (
    Facts,
    Item,
    Media,
    Report,
    Section,
    Text,
    Verdict,
    section,
    table,
)
from studies.reports.figures import FigureFiles
from studies.reports.instances import failed_note, failed_table
from studies.reports.numbers import count
from studies.reports.page import write_report as write_page
from studies.reports.scene_run import provenance
from studies.runs.folder import FRAMES, RunFolder


SHOWN = 2  # instants


def write_report(folder: RunFolder, formats: tuple[str, ...] = ()) -> Path:
    """Draw the figures, also in these formats, and write the report; return the page's path.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    result, certified, manifest = folder.finished()
    files = FigureFiles(folder, formats)
    failed = result.get("failed", [])
    total = result["instances"] + len(failed)
    sections = (
        _table_section(result),
        _curves_section(result, files),
        _seen_section(result, files.save("felt", _felt(folder.read_npz(FRAMES)))),
        _why_section(result, files.save("landscape", _landscape(result))),
        _set_up(result, manifest, certified, files),
        provenance(folder, manifest),
    )
    report = Report(
        result["title"],
        Verdict("compared", "plain"),
        {"run": folder.path.name, "of": manifest["study"], "started": manifest["started"]},
        tuple(one for one in sections if one is not None),
        (
            f"gradient certificates: {told(verdict_of(certified))}",
            count(total, "instance") + (f", {len(failed)} failed" if failed else ""),
            f"{result['evaluations']} evaluations each",
        ),
    )
    return write_page(folder, report)


def _table_section(result: dict[str, Any]) -> Section | None:
    bars = [one["error"] for one in result["table"][0]["reached"]]
    head = ["method", "drawn with", *(f"to {bar:.0e}" for bar in bars), "error at the end", "worst"]
    lines = []
    for row in result["table"]:
        reached = [_reached(one, result["instances"]) for one in row["reached"]]
        ends = [f"{row['median_error']:.1e}", f"{row['worst_error']:.1e}"]
        lines.append([row["method"], row["kind"], *reached, *ends])
    failed = result.get("failed", [])
    return section(
        "How fast the mass is found",
        failed_note(failed, result["instances"] + len(failed)),
        failed_table(failed),
        table(head, lines, strong=(1,)),
        Text(
            "Evaluations until the relative error of the mass stays below a bar, and that error "
            f"after {result['evaluations']} evaluations: medians over {result['instances']} "
            "bodies. Body, impulse, start and settings of a method are the same in a row of kinds; "
            "target and fit are drawn alike."
        ),
    )


def _reached(one: dict[str, Any], total: int) -> str:
    few = "" if one["count"] == total else f" ({one['count']} of {total})"
    return f"{'not reached' if one['median'] is None else one['median']}{few}"


def _curves_section(result: dict[str, Any], files: FigureFiles) -> Section | None:
    items = [
        Item(
            files.save(f"convergence_{name}", _curves(result, name)),
            f"errors over evaluations, {name}",
            name,
            wide=True,
        )
        for name in result["methods"]
    ]
    text = (
        "Errors of every evaluation, not the best so far, of every body; bold, their median. A "
        "search that has ended keeps its last error in the median. A forward sweep, one with its "
        "reverse sweep, and each tangent sweep count as one evaluation."
    )
    return section("Convergence", Media(tuple(items), text))


def _seen_section(result: dict[str, Any], file: str) -> Section | None:
    alt = "target, start and what feels the mass, for each appearance"
    text = (
        "Target and start at the same instants, and, dark, the pixels that feel the mass: the "
        "square root of the size of each pixel's derivative by the logarithm of the mass at the "
        f"truth, on one scale. The first body: {result['records'][0]['what']}."
    )
    return section("What the videos show", Media((Item(file, alt, wide=True),), text))


def _why_section(result: dict[str, Any], file: str) -> Section | None:
    rate = result["descent"]["learning_rate"]
    plain = "gradient-descent" in result["methods"] and not result["descent"]["momentum"]
    head = ["drawn with", "curvature at the truth", "felt inside the outline", "falls from start"]
    head += ["error after a step"] if plain else []
    lines = []
    for row in result["explained"]:
        line = [row["kind"], f"{row['curvature']:.3g}", f"{100.0 * row['inside']:.0f} %"]
        line.append(f"{row['falling']} of {result['instances']}")
        line += [f"{abs(1.0 - rate * row['curvature']):.2f} times"] if plain else []
        lines.append(line)
    step = (
        f" One step of gradient descent with the rate {rate:g} multiplies a small error by "
        "|1 - rate x curvature|."
        if plain
        else ""
    )
    return section(
        "Why the curves differ",
        Media((Item(file, "the loss over the mass", wide=True),)),
        table(head, lines, strong=(0,)),
        Text(
            "Medians over the bodies; the curvature is that of the loss in the logarithm of the "
            f"mass.{step} With one learning rate gradient descent is the faster, the more the loss "
            "curves, until their product passes 1. One colour shows a motion at the outline alone; "
            "inside it a pixel changes only where colour or shade vary. The steps of Adam do not "
            "depend on the size of the gradient, and those of Gauss-Newton divide by the "
            "curvature: neither feels that factor. A loss that falls all the way from the start to "
            "the truth has no wrong optimum between them."
        ),
    )


def _set_up(
    result: dict[str, Any],
    manifest: dict[str, Any],
    certified: dict[str, Any],
    files: FigureFiles,
) -> Section | None:
    height, width = result["size"]
    shapes = dict.fromkeys(record["what"] for record in result["records"])
    facts = {
        "command": manifest["command"],
        "bodies": ", ".join(shapes),
        "video": f"frames of {height} x {width} pixels (height x width), RGBA",
        "loss": result["loss_function"],
    }
    folded = [
        certificate.folded(one, _last_status(result, kind), files, kind)
        for kind, one in certified["kinds"].items()
    ]
    return section("Set-up", Facts(facts), *folded)


def _last_status(result: dict[str, Any], kind: str) -> str:
    """Return how the search ended whose end is certified: the last method's, of the first body."""
    own = [one["status"] for one in result["records"][0]["searches"] if one["kind"] == kind]
    return own[-1]


def _curves(result: dict[str, Any], method: str) -> Any:
    found = {kind: searches(result["records"], kind, method) for kind in result["kinds"]}
    budget = result["evaluations"]
    medians = {
        kind: np.median([held(*one, budget) for one in many], axis=0)
        for kind, many in found.items()
    }
    return figures.convergence(found, medians)


def _felt(frames: dict[str, np.ndarray]) -> Any:
    n = len(frames["times"])
    at = np.unique(np.rint(np.linspace(n / 2, n - 1, SHOWN)).astype(int)).tolist()
    return figures.felt(frames, frames["kinds"].tolist(), at)


def _landscape(result: dict[str, Any]) -> Any:
    records = result["records"]
    looked = {kind: [record["kinds"][kind] for record in records] for kind in result["kinds"]}
    losses = {kind: np.array([one["landscape"] for one in many]) for kind, many in looked.items()}
    grid = np.array(looked[result["kinds"][0]][0]["grid"])
    return figures.landscapes(grid, losses, [one["start"] / one["mass"] for one in records])
