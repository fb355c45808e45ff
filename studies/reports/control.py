"""The part of a report that is about a control: how near it ends to its goal."""

from collections.abc import Sequence

from studies.reports import figures
from studies.reports.content import Json, Section, charts, section, table
from studies.reports.figures import FigureFiles, named
from studies.reports.numbers import number
from studies.runs.evaluations import Evaluation


GOALS = {
    "cover": ("of the last picture and the goal's, intersection over union", "", "at least"),
    "distance": ("of the centre of mass from that of the goal", " m", "at most"),
    "gain": ("how much nearer that is than at the beginning", " m", "at least"),
}


def control_section(result: Json, log: Sequence[Evaluation], files: FigureFiles) -> Section | None:
    """Return the measures of a control beside their bars; None where nothing is controlled."""
    measured = result.get("control")
    if not measured:
        return None
    bars = result["verdict"]["numbers"].get("thresholds", {})
    rows, drawn = [], {}
    for name, value in measured.items():
        what, unit, limit = GOALS.get(name, ("", "", "at least"))
        bar = bars.get(name)
        held = "" if bar is None else f"{limit} {number(bar)}{unit}"
        rows.append([f"{name}\n{what}", f"{number(value, 0.01 * abs(value))}{unit}", held])
        curve = [
            (evaluation.spent, evaluation.values[name])
            for evaluation in log
            if name in evaluation.values
        ]
        if curve:
            figure = figures.curve(curve, named(name, unit.strip()), bar=bar)
            drawn[f"{name} over evaluations"] = files.save(f"control_{name}", figure)
    return section(
        "How near the goal",
        table(["measure", "at the end", "to count as reached"], rows, strong=(1,)),
        charts(drawn, "Every evaluation, not the best so far. Dashed: what counts as reached."),
    )
