"""The report of a run: one self-contained HTML file, rebuilt from the run folder."""

import html
import math
from pathlib import Path
from string import Template
from typing import Any

from studies import (
    certificate_report,
    convergence_report,
    figures,
    instances_report,
    pictures_report,
    run_folder,
    video_report,
)
from studies.certificate import verdict_of
from studies.doubts import doubts
from studies.outcome import LARGEST_LIST, interval_text
from studies.report_parts import breakable, gallery, page, provenance, rows, run_facts
from studies.run_folder import RunFolder
from studies.search.local import read_search


TEMPLATE = Path(__file__).resolve().parent / "assets" / "report.html"


def write_report(folder: RunFolder) -> Path:
    """Draw the figures and write `report.html`; return its path.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    result, certified, manifest = folder.finished()
    log = read_search(folder, result["logs"][result["start"]])
    convergence = convergence_report.drawn(folder, result, log)
    kind = pictures_report if folder.has(run_folder.PICTURES) else video_report
    seen, shown = kind.seen(folder, result)
    points = certificate_report.named_points(result["status"], certified)
    taylor = certificate_report.drawn(points, certified)
    many = instances_report.read(folder)
    drawn = {} if many is None else {"instances": figures.instances(many)}
    folder.write_figures({**shown, **convergence, **taylor, **drawn})
    parts = {
        "instances": "" if many is None else instances_report.section(many, gallery(drawn)),
        "parameters_table": _parameters_table(result),
        "notes": _notes(result),
        "seen": seen,
        "convergence_images": gallery(convergence),
        "stages": convergence_report.told(log),
        "certificate": certificate_report.section(
            points, taylor, kind.jumps(folder), schedule=certified.get("schedule")
        ),
        "setup_table": _setup_table(
            result, manifest, kind.facts(result), log[-1].seconds if log else 0.0
        ),
        "provenance": provenance(folder, manifest),
    }
    body = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(parts)
    verdicts = _verdicts(result, certified)
    folder.write_text(run_folder.REPORT, page(result["title"], verdicts, body))
    return folder.file(run_folder.REPORT)


def _verdicts(result: dict[str, Any], certified: dict[str, Any]) -> list[tuple[bool | None, str]]:
    """Return what is said first: whether it is good or not, or neither."""
    return [
        (result["status"] == "CONVERGED", result["status"].lower().replace("_", " ")),
        certificate_report.verdict(verdict_of(certified)),
        (None, f"{result['evaluations']} evaluations"),
        (None, f"loss {result['loss']:.2e}"),
    ]


def _parameters_table(result: dict[str, Any]) -> str:
    known = any("truth" in row for row in result["parameters"])
    head = ["parameter", "start", "estimate", "95 % interval"]
    head += ["truth", "relative error"] if known else []
    lines = [f"<tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"]
    for row in result["parameters"]:
        unit = f' <span class="unit">{html.escape(row["unit"])}</span>'
        unit = unit if row["unit"].strip("-") else ""
        mean = "mean " if row["count"] > 1 else ""
        count = f", {row['count']} values" if row["count"] > 1 else ""
        cells = [
            f"<b>{breakable(row['name'])}</b>{unit}{count}",
            f"{mean}{row['start']:.4g}{_root(row, 'start')}",
            f"<b>{_digits(row)}</b>{_root(row, 'estimate')}",
            html.escape(interval_text(row)),
        ]
        if known:
            worst = f", at most {row['largest_error']:.1e}" if "largest_error" in row else ""
            cells += [f"{row['truth']:.8g}", f"{row['relative_error']:.1e}{worst}"]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _root(row: dict[str, Any], of: str) -> str:
    """Return the root mean square beside the mean of many values, where the run has it."""
    root = row.get(f"{of}_rms")
    return "" if root is None else f", root mean square {root:.4g}"


def _digits(row: dict[str, Any]) -> str:
    """Return the estimate with two digits beyond the first uncertain one, at most ten."""
    if not row["interval"]:
        return f"{row['estimate']:.6g}"
    low, high = row["interval"]
    width = (high - low) / 2.0 / max(abs(row["estimate"]), 1e-300)
    return f"{row['estimate']:.{int(min(10, max(6, 3 - math.log10(max(width, 1e-9)))))}g}"


def _notes(result: dict[str, Any]) -> str:
    """Return what the intervals rest on, as paragraphs."""
    spread = result["uncertainty"]
    notes = [f"<strong>{html.escape(doubt)}</strong>" for doubt in doubts(result)]
    notes += [html.escape(result["message"]), *map(html.escape, result["findings"])]
    if len(result["starts"]) > 1:
        ends = ", ".join(
            "not finite" if one["loss"] is None else f"{one['loss']:.1e}"
            for one in result["starts"]
        )
        notes.append(
            f"Searched from {len(result['starts'])} starts, which ended with the losses {ends}; "
            f"shown is start {result['start'] + 1}."
        )
    if spread["reason"]:
        notes.append(f"No intervals: {html.escape(spread['reason'])}.")
    else:
        notes.append(
            f"Intervals: Student's, from the Gauss-Newton Hessian and a pixel noise of "
            f"{spread['noise']:.2e} estimated from the residuals. "
            "The intervals count pixel noise, not what mesh, camera or fixed material get wrong."
        )
    notes += _spectrum(result)
    if covered := result["coverage"]:
        parts = ", ".join(
            f"{html.escape(name)} in {count} (largest relative error "
            f"{covered['largest_relative_error'][name]:.1e})"
            for name, count in covered["covered"].items()
        )
        notes.append(
            f"Refitted under {covered['repeats']} other noise seeds, the intervals held the "
            f"truth of {parts}; of all together in {covered['covered_jointly']}."
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
    result: dict[str, Any], manifest: dict[str, Any], facts: dict[str, str], seconds: float
) -> str:
    return rows(
        {
            "command": manifest["command"],
            **facts,
            "method": f"{result['method']}, {result['loss_function']}",
            "search took": f"{seconds:.1f} s",
            **run_facts(manifest),
        }
    )
