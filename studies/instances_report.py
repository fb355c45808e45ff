"""The part of a report that is about many instances: a table, a figure, one line each."""

import html
from typing import Any

from studies import run_folder
from studies.report_parts import breakable
from studies.run_folder import RunFolder


HELD = {
    "bar": "A bar is the error that this project aims to stay below. ",
    "published": "Published is what the gradSim paper reports. ",
}


def read(folder: RunFolder) -> dict[str, Any] | None:
    """Return the table of a run's instances; None if it is a single one."""
    if not folder.has(run_folder.INSTANCES):
        return None
    return folder.read_json(run_folder.INSTANCES)


def section(table: dict[str, Any], figure: str) -> str:
    """Return the section of the report."""
    return f"""<section>
<h2>{table["count"]} random instances</h2>
{failed_table(table["failed"], table["count"])}<div class="scroll">{_summed_up(table)}</div>
{figure}
<p>Relative errors, or the measures that a study has in their place; of a parameter with many
values, their mean over the values.
{"".join(HELD[key] for key in _held(table))}The rest of this page shows the worst instance, number
{table["worst"]}.</p>
<details><summary>Every instance</summary>
<div class="scroll">{_every(table)}</div></details>
</section>"""


def _held(table: dict[str, Any]) -> list[str]:
    """Return what the errors of some parameter are held against."""
    return [key for key in HELD if any(row[key] is not None for row in table["parameters"])]


def failed_table(failed: list[dict[str, Any]], count: int) -> str:
    """Return what became of instances that did not end, if there are any."""
    if not failed:
        return ""
    lines = [_row(("instance", "why it failed"), "th")]
    lines += [_row((one["instance"], html.escape(one["reason"]))) for one in failed]
    return f"""<p><b>{len(failed)} of {count} instances failed.</b> All numbers are those of the
other {count - len(failed)}.</p>
<div class="scroll"><table>{"".join(lines)}</table></div>
"""


def _summed_up(table: dict[str, Any]) -> str:
    held = _held(table)
    lines = [_row(("parameter", "median", "worst", "in instance", *held), "th")]
    for row in table["parameters"]:
        known = ["" if row[key] is None else f"{row[key]:.1e}" for key in held]
        cells = [
            f"<b>{breakable(row['name'])}</b>",
            f"<b>{row['median']:.1e}</b>",
            f"{row['worst']:.1e}",
            row["worst_instance"],
            *known,
        ]
        lines.append(_row(cells))
    return f"<table>{''.join(lines)}</table>"


def _every(table: dict[str, Any]) -> str:
    names = [row["name"] for row in table["parameters"]]
    head = ["", "status", "loss", "evaluations", "starts", "condition", *map(breakable, names)]
    lines = [_row(head, "th")]
    for one in table["records"]:
        condition = one["spectrum"]["condition"]
        cells = [
            one["instance"],
            one["status"].lower().replace("_", " "),
            f"{one['loss']:.1e}",
            one["evaluations"],
            one["starts"],
            "-" if condition is None else f"{condition:.1e}",
            *(f"{one['errors'][name]['mean']:.1e}" for name in names),
        ]
        lines.append(_row(cells))
    return f"<table>{''.join(lines)}</table>"


def _row(cells: Any, tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"
