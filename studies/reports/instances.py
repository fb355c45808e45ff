"""The part of a report that is about many random instances: a table, a figure, one line each."""

from typing import Any

from studies.reports import figures
from studies.reports.content import Item, Media, Section, Text, details, section, table
from studies.reports.figures import FigureFiles
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder


def instances_section(folder: RunFolder, files: FigureFiles) -> Section | None:
    """Return what became of all instances; None where there is one only."""
    if not folder.has(run_folder.INSTANCES):
        return None
    told = folder.read_json(run_folder.INSTANCES)
    figure = files.save("instances", figures.instances(told))
    has_published = any(row["published"] is not None for row in told["parameters"])
    summed_up = table(
        ["", "median", "worst", "in instance", *(["published"] if has_published else [])],
        [
            [
                row["name"],
                f"{row['median']:.1e}",
                f"{row['worst']:.1e}",
                row["worst_instance"],
                *([_or_none(row["published"])] if has_published else []),
            ]
            for row in told["parameters"]
        ],
    )
    failed = table(
        ["instance", "why it failed"],
        [[one["instance"], one["reason"]] for one in told["failed"]],
    )
    published = " Published is what the gradSim paper reports." if has_published else ""
    return section(
        f"{told['count']} random instances",
        failed,
        summed_up,
        Media((Item(figure, "errors of all instances", chart=True),)),
        Text(
            f"{(told['errors_are'] or 'measure').capitalize()}s; of a parameter with many values, "
            f"their mean over the values.{published} The rest of this page shows the worst "
            f"instance, number {told['worst']}."
        ),
        details("Every instance", _every(told)),
    )


def _every(told: dict[str, Any]) -> Any:
    names = [row["name"] for row in told["parameters"]]
    return table(
        ["", "verdict", "loss", "evaluations", *names],
        [
            [
                one["instance"],
                one.get("verdict", one["status"].lower().replace("_", " ")),
                f"{one['loss']:.1e}",
                one["evaluations"],
                *(f"{one['errors'][name]['mean']:.1e}" for name in names),
            ]
            for one in told["records"]
        ],
    )


def _or_none(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"
