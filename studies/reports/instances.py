"""The part of a report that is about many instances: a table, a figure, one line each."""

from typing import Any

from studies.reports import figures
from studies.reports.content import Block, Section, Table, Text, charts, details, section, table
from studies.reports.figures import FigureFiles
from studies.reports.numbers import number
from studies.runs.folder import INSTANCES, INSTANCES_CSV


ERROR, MEASURE = "relative error", "measure"  # what a table is of: the second of a control
FORMS = {ERROR: "{:.1e}", MEASURE: "{:.3g}"}


def instances_section(files: FigureFiles) -> Section | None:
    """Return what a run found in all of its instances; None of a single one."""
    if not files.folder.has(INSTANCES):
        return None
    instances = files.folder.read_json(INSTANCES)
    rows = instances["parameters"]
    is_published = any(row["published"] is not None for row in rows)
    kind = instances["errors_are"]
    names = ["measure", "median"] if kind == MEASURE else ["parameter", "median error"]
    head = [*names, "worst", "in instance"] + is_published * ["published"]
    lines = []
    for row in rows:
        bar = "" if row["published"] is None else f"{row['published']:.1e}"
        errors = [FORMS[kind].format(row[key]) for key in ("median", "worst")]
        lines.append([row["name"], *errors, row["worst_instance"], *is_published * [bar]])
    if kind == MEASURE:
        ended, drawn = len(instances["records"]), {}
        what = f"{instances['reached']} of {ended} searches reach the goal."
    else:
        drawn = {"errors of every instance": files.save("instances", figures.instances(instances))}
        what = "Relative errors, or the measures that a study has in their place; of a parameter "
        what += "with many values, their mean."
        what += " Published is what the gradSim paper reports." * is_published
    return section(
        f"{instances['count']} random instances",
        *_failed_blocks(instances["failed"], instances["count"]),
        table(head, lines, strong=(1,)),
        charts(drawn),
        Text(
            f"{what} The rest of this page shows the worst instance, number {instances['worst']}. "
            f"All of them are in {INSTANCES_CSV}."
        ),
        details("Every instance", _every(instances)),
    )


def _failed_blocks(failed: list[dict[str, Any]], count: int) -> list[Block | None]:
    """Return how many instances did not end, and why."""
    text = f"{len(failed)} of {count} instances failed. All numbers are those of the others."
    rows = [[record["instance"], record["reason"]] for record in failed]
    return [Text(text, "bad"), table(["instance", "why it failed"], rows)] if failed else []


def _every(instances: dict[str, Any]) -> Table | None:
    names = [row["name"] for row in instances["parameters"]]
    lines = []
    for record in instances["records"]:
        ended = record.get("verdict", record["status"].lower().replace("_", " "))
        form = FORMS[instances["errors_are"]]
        errors = [form.format(record["errors"][name]["mean"]) for name in names]
        condition = record["spectrum"]["condition"]
        spectrum = "-" if condition is None else number(condition, 0.05 * condition)
        search = [f"{record['loss']:.1e}", record["evaluations"], record["starts"]]
        lines.append([record["instance"], ended, *errors, *search, spectrum])
    return table(["", "ended", *names, "loss", "evaluations", "starts", "condition"], lines)
