"""The report of a run: one self-contained HTML file, rebuilt from the run folder."""

import html
import math
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from studies import (
    certificate_report,
    convergence_report,
    figures,
    instances_report,
    video_report,
)
from studies.answer.verdict import Kind
from studies.certificate import told, verdict_of
from studies.fit_warnings import fit_warnings
from studies.outcome import LARGEST_LIST, interval_text
from studies.report_parts import (
    breakable,
    gallery,
    provenance,
    rows,
    run_facts,
    table,
    wide,
    write_page,
)
from studies.run_folder import RunFolder
from studies.search.local import read_search


COARSE_FIGURE = "figures/coarse.png"
TEMPLATE = Path(__file__).resolve().parent / "assets" / "report.html"


def write_report(folder: RunFolder, kind: Any = None) -> Path:
    """Draw the figures and write `report.html`; return its path.

    `kind` is the module that shows what was observed and fitted; by default that of videos.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    result, certified, manifest = folder.finished()
    log = read_search(folder, result["logs"][result["start"]])
    convergence = convergence_report.drawn(folder, result, log)
    if kind is None:
        kind = video_report
    seen, shown = kind.seen(folder, result)
    points = certificate_report.named_points(result["status"], certified)
    taylor = certificate_report.drawn(points, certified)
    many = instances_report.read(folder)
    drawn = {} if many is None else {"instances": figures.instances(many)}
    folder.write_figures({**shown, **convergence, **taylor, **drawn})
    parts = {
        "instances": "" if many is None else instances_report.section(many, gallery(drawn)),
        "verdict": verdict_section(result),
        "parameters_table": parameters_table(result["parameters"]),
        "nuisances": _nuisances(result),
        "basins": basins_section(folder, result),
        "notes": _notes(result),
        "seen": seen,
        "convergence_images": gallery(convergence),
        "stages": convergence_report.told(log),
        "certificate": certificate_report.section(
            points, taylor, kind.jumps(folder), schedule=certified.get("schedule")
        ),
        "setup_table": _setup_table(
            result,
            manifest,
            kind.facts(result),
            seconds=log[-1].seconds if log else 0.0,
            certificate=told(verdict_of(certified)),
        ),
        "provenance": provenance(folder, manifest),
    }
    body = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(parts)
    return write_page(folder, result["title"], chips(result), body)


def chips(result: dict[str, Any]) -> list[tuple[bool | None, str]]:
    """Return what the page says first, and whether it is good: the verdict, loss, evaluations."""
    kind = result["verdict"]["kind"]
    return [
        (kind == Kind.FOUND, kind),
        (None, f"loss {result['loss']:.2e}"),
        (None, f"{result['evaluations']} evaluations"),
    ]


def verdict_section(result: dict[str, Any]) -> str:
    """Return the section that begins the page: the reason of the verdict, and warnings."""
    verdict = result["verdict"]
    kind = "found" if verdict["kind"] == Kind.FOUND else "not-found"
    warnings = "".join(
        f"<p><strong>Warning:</strong> {html.escape(text)}</p>" for text in fit_warnings(result)
    )
    return (
        f'<section class="verdict {kind}">\n<h2>Verdict: {html.escape(verdict["kind"])}</h2>\n'
        f"<p>{html.escape(verdict['reason'])}</p>{warnings}\n</section>"
    )


def parameters_table(found: Sequence[dict[str, Any]]) -> str:
    """Return the table of what was identified."""
    has_truth = any("truth" in row for row in found)
    head = ["parameter", "start", "estimate", "<b>95 % interval with model error</b>"]
    head += ["pixel noise only"]
    head += ["truth", "relative error"] if has_truth else []
    lines = [f"<tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"]
    for row in found:
        unit = f' <span class="unit">{html.escape(row["unit"])}</span>'
        unit = unit if row["unit"].strip("-") else ""
        mean = "mean " if row["count"] > 1 else ""
        count = f", {row['count']} values" if row["count"] > 1 else ""
        cells = [
            f"<b>{breakable(row['name'])}</b>{unit}{count}",
            f"{mean}{row['start']:.4g}{_root(row, 'start')}",
            f"<b>{_digits(row)}</b>{_root(row, 'estimate')}",
            f"<b>{html.escape(interval_text(row))}</b>",
            html.escape(interval_text(row, "pixel_interval")),
        ]
        if has_truth:
            worst = f", at most {row['largest_error']:.1e}" if "largest_error" in row else ""
            cells += [f"{row['truth']:.8g}", f"{row['relative_error']:.1e}{worst}"]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _nuisances(result: dict[str, Any]) -> str:
    """Return a folded table of what was fitted beside the answers, such as a camera."""
    if not (found := result.get("nuisances")):
        return ""
    return (
        f"<details><summary>Also fitted: cameras, lights and looks</summary>\n"
        f'<div class="scroll">{parameters_table(found)}</div></details>'
    )


def basins_section(folder: RunFolder, result: dict[str, Any]) -> str:
    """Return the section of the coarse set and of all optima; nothing where neither is there."""
    figure, basins = folder.file(COARSE_FIGURE), result["basins"]
    parts = []
    if figure.is_file():
        parts.append(wide(figure.read_bytes(), "losses of the coarse set"))
    if len(basins) > 1:
        parts.append(f'<div class="scroll">{_basins_table(basins)}</div>')
    if not parts:
        return ""
    body = "\n".join(parts)
    return f"<section>\n<h2>Where the search looked</h2>\n{body}\n</section>"


def _basins_table(basins: Sequence[dict[str, Any]]) -> str:
    """Return the optima with their losses, the lowest first."""
    names = list(basins[0]["values"])
    lines = [
        [
            "answer" if one["is_answer"] else "",
            *(f"{one['values'][name]:.4g}" for name in names),
            "not finite" if one["loss"] is None else f"{one['loss']:.3e}",
            one["status"].lower().replace("_", " "),
        ]
        for one in sorted(basins, key=lambda one: math.inf if one["loss"] is None else one["loss"])
    ]
    return table(["", *map(breakable, names), "loss", "its search"], lines)


def _root(row: dict[str, Any], of: str) -> str:
    """Return the root mean square beside the mean of many values, where the run has it."""
    root = row.get(f"{of}_rms")
    return "" if root is None else f", root mean square {root:.4g}"


def _digits(row: dict[str, Any]) -> str:
    """Return the estimate with two digits beyond the first uncertain one, at most ten."""
    if not row["pixel_interval"]:
        return f"{row['estimate']:.6g}"
    low, high = row["pixel_interval"]
    width = (high - low) / 2.0 / max(abs(row["estimate"]), 1e-300)
    return f"{row['estimate']:.{int(min(10, max(6, 3 - math.log10(max(width, 1e-9)))))}g}"


def _notes(result: dict[str, Any]) -> str:
    """Return what the intervals rest on, as paragraphs."""
    spread = result["uncertainty"]
    notes = [*map(html.escape, result["findings"])]
    if spread["reason"]:
        notes.append(f"No intervals: {html.escape(spread['reason'])}.")
    else:
        notes.append(
            "The interval with model error allows for residuals that last from frame to frame, and "
            "for what changes when a part of the frames is left out. The other one counts pixel "
            f"noise only ({spread['noise']:.2e}, estimated from the residuals), as if mesh, camera "
            "and laws of material were exact."
        )
    notes += _spectrum(result)
    if covered := result["coverage"]:
        parts = ", ".join(
            f"{html.escape(name)} in {count} (largest relative error "
            f"{covered['largest_relative_error'][name]:.1e})"
            for name, count in covered["covered"].items()
        )
        notes.append(
            f"Refitted under {covered['repeats']} other noise seeds, the pixel-noise intervals "
            f"held the truth of {parts}; of all together in {covered['covered_jointly']}."
        )
    return "".join(f"<p>{note}</p>" for note in notes)


def _spectrum(result: dict[str, Any]) -> list[str]:
    """Return what the Jacobian's singular values say, in sentences."""
    spread = result["uncertainty"]
    values = spread["singular_values"]
    if not values:
        return []
    condition = spread["condition"]
    ratio = "" if condition is None else f"; condition {condition:.3g}"
    if not spread["worst_direction"]:
        ends = f"from {values[0]:.3g} down to {values[-1]:.3g}"
        if len(values) == result["n_parameters"]:
            return [f"Singular values of the Jacobian of the residuals: {ends}{ratio}."]
        return [
            f"The {len(values)} largest singular values of the Jacobian of the residuals: {ends}. "
            "With so many parameters the smaller ones are not computed: what the images determine "
            "worst stays unknown."
        ]
    few = len(values) <= LARGEST_LIST
    listed = ", ".join(f"{value:.3g}" for value in values)
    told = listed if few else f"from {values[0]:.3g} down to {values[-1]:.3g}"
    labels = f" in ({', '.join(map(html.escape, result['theta_labels']))})" if few else ""
    sentences = [f"Singular values of the Jacobian of the residuals{labels}: {told}{ratio}."]
    if len(values) > 1:
        worst = ", ".join(
            f"{weight:.2f} {html.escape(name)}"
            for name, weight in spread["worst_direction"].items()
        )
        sentences.append(f"The images determine this combination worst: {worst}.")
    return sentences


def _setup_table(
    result: dict[str, Any],
    manifest: dict[str, Any],
    facts: dict[str, str],
    *,
    seconds: float,
    certificate: str,
) -> str:
    return rows(
        {
            "command": manifest["command"],
            **facts,
            "method": f"{result['method']}, {result['loss_function']}",
            "search ended": f"{result['status'].lower().replace('_', ' ')}: {result['message']}",
            "gradient certificate": certificate,
            "search took": f"{seconds:.1f} s",
            **run_facts(manifest),
        }
    )
