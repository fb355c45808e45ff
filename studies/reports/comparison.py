"""The part of a report that compares controls under several kinds of supervision."""

from typing import Any

from studies.control.results import (
    COMPARISON,
    CURVES,
    MEASURES,
    chosen,
    measures_of,
)
from studies.reports import control_figures
from studies.reports.content import Block, Section, Text, charts, section, table
from studies.reports.figures import FigureFiles
from studies.reports.instances import failed_note, failed_table
from studies.reports.numbers import count
from studies.runs.folder import RunFolder


TOLD = {
    "picture": "was told the picture alone",
    "states": "was told where the centre of mass shall be",
    "random": "was drawn at random as many times as the others evaluate, the best by the picture",
}
MEANINGS = (
    "The distance is that of the centre of mass at the end from the goal's, the gain how much "
    "nearer that is than where it begins, the cover the intersection over union of the last "
    "picture and the target. A search returns its evaluation of the lowest loss; last is the mean "
    "distance of its last evaluation, nearest that of the best one, which no search knows; seconds "
    "are those of the median evaluation."
)


def comparison_sections(folder: RunFolder, files: FigureFiles) -> list[Section | None]:
    """Return table, curves and last pictures of all instances; nothing of a single search."""
    if not folder.has(COMPARISON):
        return []
    found = folder.read_json(COMPARISON)
    kinds, records = found["kinds"], found["records"]
    drawn = control_figures.curves(records, kinds, found["bars"])
    curves = {"distance and cover over evaluations": files.save("control-curves", drawn)}
    names = [one["pictures"] for one in records]
    ends = {}
    if all(names):
        pictures = [folder.read_npz(name) for name in names]
        drawn = control_figures.ends(pictures, kinds, [_titles(one) for one in records])
        ends = {"last pictures of every instance": files.save("control-ends", drawn)}
    bars = ", ".join(f"{name} {bar:.2g}" for name, bar in found["bars"].items())
    told = "; ".join(f"{kind} {TOLD[kind]}" for kind in kinds)
    return [
        section(
            f"{count(found['instances'], 'random instance')}, each by {', '.join(kinds)}",
            failed_note(found["failed"], found["instances"]),
            failed_table(found["failed"]),
            _table(found),
            Text(f"{MEANINGS} {told[0].upper()}{told[1:]}."),
            charts(
                curves,
                "Every evaluation of every instance, not the best so far; bold, their median while "
                f"all run; dotted, what is asked for: {bars}.",
            ),
            charts(ends, "Last pictures, with the outline of the target."),
            Text(
                f"The rest of this page shows the instance that ends worst by {kinds[0]}, number "
                f"{found['shown']}."
            ),
        )
    ]


def _table(found: dict[str, Any]) -> Block | None:
    names = measures_of(found["records"])
    head = ["supervision", "reached"]
    for name in names:
        unit = f" [{MEASURES[name].unit}]" if MEASURES[name].unit else ""
        head += [f"mean {name}{unit}", "median", "worst"]
        head += ["last", "nearest"] if name == CURVES[0] else []
    lines = []
    for row in found["table"]:
        cells = [row["kind"], f"{row['reached']} of {len(found['records'])}"]
        for name in names:
            keys = ["mean", "median", "worst"]
            keys += ["last", "nearest"] if name == CURVES[0] else []
            digits = ".2g" if MEASURES[name].is_length else ".3f"
            cells += [f"{row[name][key]:{digits}}" for key in keys]
        lines.append([*cells, f"{row['seconds']:.2f}"])
    return table([*head, "seconds"], lines, strong=(2,))


def _titles(record: dict[str, Any]) -> dict[str, str]:
    """Return what stands above the last picture of each kind."""
    names = [name for name in CURVES if name in measures_of([record])]
    return {
        kind: f"{kind}: {', '.join(_short(chosen(one, name), name) for name in names)}"
        for kind, one in record["searches"].items()
    }


def _short(value: float, name: str) -> str:
    return f"{value:.3g} m" if MEASURES[name].is_length else f"{value:.2f}"
