"""The report of a table: what was found beside what is published, and every instance."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.certificate import Verdict as Certified, told, verdict_of, worst
from studies.instances import FAILED
from studies.paper.tables import figures
from studies.paper.tables.summary import VIDEO, above_the_bar, find_cell
from studies.paper.tables.tasks import all_seconds
from studies.reports import certificate
from studies.reports.content import (
    Block,
    Code,
    Details,
    Facts,
    Item,
    Media,
    Report,
    Section,
    Text,
    Tone,
    Verdict,
    details,
    section,
    table,
)
from studies.reports.figures import FigureFiles
from studies.reports.numbers import count
from studies.reports.page import write_report as write_page
from studies.reports.scene_run import provenance
from studies.runs.folder import FIGURES, LOOKS, RunFolder


LISTED = 12  # parameters of one instance whose errors are listed
ABOUT = (
    "Relative errors; of a parameter with many values their mean over the values, and a velocity's "
    "are relative to the mean speed. Below them in the table are the means that the gradSim paper "
    "prints. A bar is the error that this project aims to stay below from video. Expected is the "
    "analytic mean error of an estimator that knows nothing but the range of the hidden values. "
    "Points are instances, black lines their medians, grey ones published, orange ones bars."
)
DOUBTS = (
    "A loss far above rounding says that all starts ended in another optimum; one at rounding, "
    "with a large condition of the Jacobian, that the video hardly determines the combination in "
    "the last column."
)


def scene_file(scene: str) -> str:
    """Return where in the run folder the settings of a scene are."""
    return f"scenes/{scene}.toml"


def write_report(folder: RunFolder, formats: tuple[str, ...] = ()) -> Path:
    """Draw the figures, also in these formats, and write the report; return the page's path.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    found, certified, manifest = folder.finished()
    result, files = found, FigureFiles(folder, formats)
    tone, text = _verdict(result)
    settings = [
        Details(
            f"Settings of the scene {scene}",
            (Code(folder.file(scene_file(scene)).read_text(encoding="utf-8")),),
        )
        for scene in dict.fromkeys(column["scene"] for column in result["columns"])
    ]
    sections = (
        _errors_section(result, files),
        *_looks(folder),
        _doubts_section(result),
        _failed_section(result),
        section("The methods", Facts({row["label"]: row["about"] for row in result["rows"]})),
        _set_up(folder, result, manifest, certified, files=files),
        section("Every instance", details("Show them", _every(result))),
        provenance(folder, manifest, settings),
    )
    report = Report(
        result["title"],
        Verdict(text, tone),
        {
            "run": folder.path.name,
            "of": manifest["study"],
            "answer": _answer(result),
            "started": manifest["started"],
        },
        tuple(one for one in sections if one is not None),
        (count(result["count"], "instance"), f"gradient certificates: {_certified(certified)}"),
    )
    return write_page(folder, report)


def _verdict(result: dict[str, Any]) -> tuple[Tone, str]:
    """Return whether the errors from video are below their bars."""
    held = [one["met"] for one in result["cells"] if one["met"] is not None]
    if not held:
        return "plain", "no bars"
    return ("good" if all(held) else "bad"), f"{sum(held)} of {count(len(held), 'bar')} kept"


def _answer(result: dict[str, Any]) -> str:
    """Return the errors from video in one line."""
    parts = []
    for column in result["columns"]:
        cell = next((k for k in result["cells"] if _is(k, column, VIDEO)), None)
        if cell is not None and cell["mean"] is not None:
            parts.append(f"{column['label']} {cell[column['by']]:.1e}")
    return ", ".join(parts)


def _is(cell: Mapping[str, Any], column: Mapping[str, Any], row: str) -> bool:
    own = cell["scene"], cell["path"], cell["row"]
    return own == (column["scene"], column["path"], row)


def _certified(certified: Mapping[str, Any]) -> str:
    made = [verdict_of(one["certificate"]) for one in certified.values()]
    return told(worst(made) if made else Certified.SKIPPED)


def _errors_section(result: dict[str, Any], files: FigureFiles) -> Section | None:
    each = [
        block
        for column in result["columns"]
        for block in (Text(_bar(column)), _column(result, column))
        if block is not None
    ]
    several = len(result["columns"]) > 1
    item = Item(files.save("errors", figures.errors(result)), "errors of every instance", wide=True)
    return section(
        "Relative errors",
        *([_overview(result)] if several else each),
        Media((item,), ABOUT),
        Text(result["differs"]),
        *([Details("Mean, median and worst of each", tuple(each))] if several else []),
    )


def _overview(result: dict[str, Any]) -> Block | None:
    """Return one line for each row, and one number of each column, above the published one."""
    head = ["", *(f"{one['label']}\n{one['by']}" for one in result["columns"])]
    lines = []
    for row in result["rows"]:
        line = [row["label"]]
        for column in result["columns"]:
            cell = find_cell(result, column, row["name"])
            found = _none(cell) if cell["mean"] is None else f"{cell[column['by']]:.1e}"
            published = cell["published"]
            line.append(found + ("" if published is None else f"\npublished {published:.1e}"))
        lines.append(line)
    bars = ("" if one["bar"] is None else f"{one['bar']:.0e}" for one in result["columns"])
    return table(head, [*lines, ["bar", *bars]], strong=range(1, len(head)))


def _bar(column: dict[str, Any]) -> str:
    bar = "" if column["bar"] is None else f", aim: {column['by']} below {column['bar']:.0e}"
    return f"{column['label']}{bar}"


def _column(result: dict[str, Any], column: dict[str, Any]) -> Block | None:
    head = ["", "mean", "median", "worst", "in instance", "expected", "published"]
    lines = [
        _line(result, find_cell(result, column, row["name"]), row["label"])
        for row in result["rows"]
    ]
    shown = {row["name"] for row in result["rows"]}
    lines += [
        [f"{result['labels'][name]}, not run", *[""] * 5, f"{value:.1e}"]
        for name, value in column["published"].items()
        if name not in shown
    ]
    return table(head, lines)


def _line(result: dict[str, Any], cell: dict[str, Any], label: str) -> list[str]:
    published = "" if cell["published"] is None else f"{cell['published']:.1e}"
    if cell["mean"] is None:
        return [label, _none(cell), "", "", "", "", published]
    few = f"\n{cell['failed']} of {result['count']} failed" if cell["failed"] else ""
    expected = "" if cell["expected"] is None else f"{cell['expected']:.2e}"
    values = [f"{cell[key]:.1e}" for key in ("mean", "median", "worst")]
    return [label + few, *values, str(cell["worst_instance"]), expected, published]


def _none(cell: dict[str, Any]) -> str:
    """Return what stands where a row has no estimate: it failed, or it is not of this scene."""
    return "failed" if cell["failed"] else "-"


def _looks(folder: RunFolder) -> list[Section | None]:
    """Return what scenes have drawn of their instance of the median error."""
    if not folder.has(LOOKS):
        return []
    return [
        section(
            one["title"],
            Media((Item(f"{FIGURES}/{one['name']}.png", one["title"], wide=True),), one["caption"]),
        )
        for one in folder.read_json(LOOKS)["looks"]
    ]


def _doubts_section(result: dict[str, Any]) -> Section | None:
    """Return what the video and the search say of instances that are above a bar."""
    head = ["scene", "instance", "errors", "loss", "starts", "condition", "determined worst"]
    lines = []
    for one in above_the_bar(result):
        spectrum = one["spectrum"] or {}
        named = (spectrum.get("worst_direction") or {}).items()
        condition = spectrum.get("condition")
        lines.append(
            [
                one["scene"],
                f"{one['instance']}: {one['what']}",
                _errors(one),
                _loss(one),
                one["starts"],
                "-" if condition is None else f"{condition:.1e}",
                "\n".join(f"{weight:.2f} {name}" for name, weight in named),
            ]
        )
    found = table(head, lines)
    return section("Instances above a bar", found, Text(DOUBTS)) if found else None


def _failed_section(result: dict[str, Any]) -> Section | None:
    failed = [one for one in result["records"] if one["status"] == FAILED]
    keys = ("scene", "estimator", "instance", "reason")
    found = table(
        ["scene", "method", "instance", "why it failed"],
        [[one[key] for key in keys] for one in failed],
    )
    return (
        section("What failed", found, Text("These are in no mean, median or worst."))
        if found
        else None
    )


def _every(result: dict[str, Any]) -> Block | None:
    head = ["scene", "method", "instance", "what", "status", "loss", "evaluations", "errors"]
    lines = [
        [
            *(one[key] for key in ("scene", "estimator", "instance", "what")),
            one["status"].lower().replace("_", " "),
            _loss(one),
            one["evaluations"],
            _errors(one),
        ]
        for one in result["records"]
        if one["status"] != FAILED
    ]
    return table(head, lines)


def _loss(one: dict[str, Any]) -> str:
    return "-" if one["loss"] is None else f"{one['loss']:.1e}"


def _errors(one: dict[str, Any]) -> str:
    shown = list(one["errors"].items())[:LISTED]
    return "\n".join(f"{path} {error['mean']:.1e}" for path, error in shown)


def _set_up(
    folder: RunFolder,
    result: dict[str, Any],
    manifest: dict[str, Any],
    certified: dict[str, Any],
    *,
    files: FigureFiles,
) -> Section | None:
    scenes = {column["scene"]: column["study"] for column in result["columns"]}
    whats = {column["scene"]: "; ".join(column["whats"]) for column in result["columns"]}
    spent = [
        one["evaluations"]
        for one in result["records"]
        if one["estimator"] == VIDEO and one["status"] != FAILED
    ]
    folded = [
        certificate.folded(
            one["certificate"], one["status"], files, f"instance {one['instance']} of {scene}"
        )
        for scene, one in certified.items()
    ]
    return section(
        "Set-up",
        Facts(
            {
                "command": manifest["command"],
                **{f"scene {name}": f"{study}: {whats[name]}" for name, study in scenes.items()},
                "evaluations from video": f"{sum(spent)} in all",
                "search took": f"{all_seconds(folder):.1f} s",
            }
        ),
        *folded,
    )
