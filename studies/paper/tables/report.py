"""The report of a table: what was found beside what is published, and every instance."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies import certificate_report
from studies.certificate import verdict_of, worst
from studies.instances import FAILED
from studies.paper.tables import figures
from studies.paper.tables.more_rows import with_rows
from studies.paper.tables.summary import VIDEO, above_the_bar, find_cell
from studies.paper.tables.tasks import all_seconds
from studies.report_parts import (
    FACES_SWAP,
    counted,
    looks,
    provenance,
    rows,
    run_facts,
    table,
    wide,
    write_page,
)
from studies.run_folder import RunFolder


LISTED = 12  # parameters of one instance whose errors are listed


def scene_file(scene: str) -> str:
    """Return where in the run folder the settings of a scene are."""
    return f"scenes/{scene}.toml"


def write_report(folder: RunFolder) -> Path:
    """Draw the figures and write `report.html`; return its path.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    found, certified, manifest = folder.finished()
    result = with_rows(folder, found)
    drawn = {"errors": figures.errors(result)}
    sections = []
    for scene, one in certified.items():
        points = certificate_report.named_points(one["status"], one["certificate"])
        own = certificate_report.drawn(points, one["certificate"])
        images = {f"{name}_{scene}": data for name, data in own.items()}
        of = f"instance {one['instance']} of {scene}"
        kept = one["certificate"].get("schedule")
        section = certificate_report.section(points, images, FACES_SWAP, schedule=kept, of=of)
        sections.append(section)
        drawn |= images
    folder.write_figures(drawn)
    body = [
        _table_section(result, drawn["errors"]),
        looks(folder),
        _doubts_section(result),
        _failed_section(result),
        _rows_section(result),
        *sections,
        f"<section>\n<h2>Set-up</h2>\n{rows(_facts(folder, result, manifest))}\n</section>",
        _every_section(result),
        provenance(folder, manifest),
        _scenes_section(folder, result),
    ]
    sections = "\n\n".join(filter(None, body))
    return write_page(folder, result["title"], _verdicts(result, certified), sections)


def _verdicts(
    result: dict[str, Any], certified: Mapping[str, Any]
) -> list[tuple[bool | None, str]]:
    """Return what is said first."""
    held = [one["met"] for one in result["cells"] if one["met"] is not None]
    said: list[tuple[bool | None, str]] = [(None, counted(result["count"], "instance"))]
    if held:
        said.insert(0, (all(held), f"{sum(held)} of {counted(len(held), 'bar')} kept"))
    if certified:
        found = worst(verdict_of(one["certificate"]) for one in certified.values())
        said.append(certificate_report.verdict(found))
    return said


def _table_section(result: dict[str, Any], figure: bytes) -> str:
    parts = [_column(result, column) for column in result["columns"]]
    overview = _overview(result) if len(parts) > 1 else "".join(parts)
    each = "".join(parts) if len(parts) > 1 else ""
    return f"""<section>
<h2>Relative errors</h2>
{overview}
{wide(figure, "errors of every instance")}
<p>Relative errors of {counted(result["count"], "instance")}; of a parameter with many values their
mean over the values, and a velocity's are relative to the mean speed. Published, or in brackets,
are the means that the gradSim paper prints. A bar is the error that this project aims to stay
below from video. Expected is the analytic mean error of an estimator that knows nothing but the
range of the hidden values. Points are instances, black lines their medians, grey ones published,
orange ones bars.</p>
<p>{html.escape(result["differs"])}</p>
{each}
</section>"""


def _overview(result: dict[str, Any]) -> str:
    """Return one line for each row, and one number of each column, above the published one."""
    head = ["", *(html.escape(one["label"]) + _small(one["by"]) for one in result["columns"])]
    lines = []
    for row in result["rows"]:
        line = [f"<b>{html.escape(row['label'])}</b>"]
        for column in result["columns"]:
            cell = find_cell(result, column, row["name"])
            found = _none(cell) if cell["mean"] is None else f"<b>{cell[column['by']]:.1e}</b>"
            published = cell["published"]
            line.append(found + ("" if published is None else _small(f"({published:.1e})")))
        lines.append(line)
    lines.append(["bar", *("" if one["bar"] is None else f"{one['bar']:.0e}"
                           for one in result["columns"])])  # fmt: skip
    return f'<div class="scroll">{table(head, lines)}</div>'


def _small(text: str) -> str:
    return f'<br><span class="unit">{text}</span>'


def _column(result: dict[str, Any], column: dict[str, Any]) -> str:
    head = ["", "mean", "median", "worst", "in instance", "expected", "published"]
    lines = [
        _line(result, column, find_cell(result, column, row["name"]), row["label"])
        for row in result["rows"]
    ]
    shown = {row["name"] for row in result["rows"]}
    for name, value in column["published"].items():
        if name not in shown:
            label = html.escape(result["labels"][name])
            lines.append([f"{label}, not run", *[""] * 5, f"{value:.1e}"])
    bar = "" if column["bar"] is None else f", aim: {column['by']} below {column['bar']:.0e}"
    return f"""<p><b>{html.escape(column["label"])}</b>{bar}</p>
<div class="scroll">{table(head, lines)}</div>
"""


def _line(
    result: dict[str, Any], column: dict[str, Any], cell: dict[str, Any], label: str
) -> list[str]:
    name = f"<b>{html.escape(label)}</b>"
    published = "" if cell["published"] is None else f"{cell['published']:.1e}"
    if cell["mean"] is None:
        return [name, _none(cell), "", "", "", "", published]
    values = {key: f"{cell[key]:.1e}" for key in ("mean", "median", "worst")}
    if cell["met"] is not None:
        values[column["by"]] = f"<b>{values[column['by']]}</b>"
    few = f" ({cell['failed']} of {result['count']} failed)" if cell["failed"] else ""
    expected = "" if cell["expected"] is None else f"{cell['expected']:.2e}"
    return [name + few, *values.values(), str(cell["worst_instance"]), expected, published]


def _none(cell: dict[str, Any]) -> str:
    """Return what stands where a row has no estimate: it failed, or it is not of this scene."""
    return "failed" if cell["failed"] else "-"


def _doubts_section(result: dict[str, Any]) -> str:
    """Return what the video and the search say of instances that are above a bar."""
    above = above_the_bar(result)
    if not above:
        return ""
    head = ["scene", "instance", "errors", "loss", "starts", "condition", "determined worst"]
    lines = []
    for one in above:
        spectrum = one["spectrum"] or {}
        worst = spectrum.get("worst_direction") or {}
        named = "<br>".join(f"{weight:.2f} {html.escape(name)}" for name, weight in worst.items())
        condition = spectrum.get("condition")
        what = f"{one['instance']}: {html.escape(one['what'])}"
        cells = [html.escape(one["scene"]), what, _errors(one), _loss(one), str(one["starts"])]
        lines.append([*cells, "-" if condition is None else f"{condition:.1e}", named])
    return f"""<section>
<h2>Instances above a bar</h2>
<div class="scroll">{table(head, lines)}</div>
<p>A loss far above rounding says that all starts ended in another optimum; one at rounding, with a
large condition of the Jacobian, that the video hardly determines the combination in the last
column.</p>
</section>"""


def _failed_section(result: dict[str, Any]) -> str:
    failed = [one for one in result["records"] if one["status"] == FAILED]
    if not failed:
        return ""
    head = ["scene", "method", "instance", "why it failed"]
    lines = [
        [html.escape(str(one[key])) for key in ("scene", "estimator", "instance", "reason")]
        for one in failed
    ]
    return f"""<section>
<h2>What failed</h2>
<div class="scroll">{table(head, lines)}</div>
<p>These are in no mean, median or worst.</p>
</section>"""


def _rows_section(result: dict[str, Any]) -> str:
    about = {row["label"]: row["about"] for row in result["rows"]}
    return f"""<section>
<h2>The methods</h2>
{rows(about)}
</section>"""


def _every_section(result: dict[str, Any]) -> str:
    head = ["scene", "method", "instance", "what", "status", "loss", "evaluations", "errors"]
    lines = []
    for one in result["records"]:
        if one["status"] == FAILED:
            continue
        cells = [one["scene"], one["estimator"], str(one["instance"]), one["what"]]
        cells.append(one["status"].lower().replace("_", " "))
        end = [_loss(one), str(one["evaluations"]), _errors(one)]
        lines.append([*map(html.escape, cells), *end])
    return f"""<section>
<details><summary>Every instance</summary>
<div class="scroll">{table(head, lines)}</div></details>
</section>"""


def _scenes_section(folder: RunFolder, result: dict[str, Any]) -> str:
    """Return the settings of every scene, those of its study that the table changes included."""
    parts = []
    for scene in dict.fromkeys(column["scene"] for column in result["columns"]):
        text = folder.file(scene_file(scene)).read_text(encoding="utf-8")
        parts.append(f"""<details><summary>Settings of the scene {html.escape(scene)}</summary>
<pre>{html.escape(text)}</pre></details>""")
    return f"<section>\n{''.join(parts)}\n</section>"


def _loss(one: dict[str, Any]) -> str:
    return "-" if one["loss"] is None else f"{one['loss']:.1e}"


def _errors(one: dict[str, Any]) -> str:
    shown = list(one["errors"].items())[:LISTED]
    return "<br>".join(f"{html.escape(path)} {error['mean']:.1e}" for path, error in shown)


def _facts(folder: RunFolder, result: dict[str, Any], manifest: dict[str, Any]) -> dict[str, str]:
    scenes = {column["scene"]: column["study"] for column in result["columns"]}
    whats = {column["scene"]: "; ".join(column["whats"]) for column in result["columns"]}
    spent = [one["evaluations"] for one in result["records"] if one["estimator"] == VIDEO
             and one["status"] != FAILED]  # fmt: skip
    return {
        "command": manifest["command"],
        **{f"scene {name}": f"{study}: {whats[name]}" for name, study in scenes.items()},
        "evaluations from video": f"{sum(spent)} in all",
        "search took": f"{all_seconds(folder):.1f} s",
        **run_facts(manifest),
    }
