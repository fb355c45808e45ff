"""The parts of a report that are about controls: one beside its goal, or kinds of supervision."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.control.results import COMPARISON, CURVES, MEASURES, Records, chosen, measures_of
from studies.reports import figures
from studies.reports.content import Block, Json, Section, Text, charts, section, table
from studies.reports.figures import BLUE, GREEN, INK, ORANGE, SOFT, FigureFiles, make_axes, named
from studies.reports.instances import failed_blocks
from studies.reports.numbers import count, number
from studies.runs.evaluations import Evaluation


GOALS = {
    "cover": ("of the last picture and the goal's, intersection over union", "", "at least"),
    "distance": ("of the centre of mass from that of the goal", " m", "at most"),
    "gain": ("how much nearer that is than at the beginning", " m", "at least"),
}
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
COLORS = (BLUE, ORANGE, GREEN)
LEAST_DISTANCE = 1e-6  # metres; what is less is drawn here


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


def comparison_section(files: FigureFiles) -> Section | None:
    """Return table, curves and last pictures of all instances; None of a single search."""
    folder = files.folder
    if not folder.has(COMPARISON):
        return None
    comparison = folder.read_json(COMPARISON)
    kinds, records, bars = comparison["kinds"], comparison["records"], comparison["bars"]
    figure = _curves(records, kinds, bars)
    curves = {"distance and cover over evaluations": files.save("control-curves", figure)}
    names = [record["pictures"] for record in records]
    ends = {}
    if all(names):
        pictures = [folder.read_npz(name) for name in names]
        figure = _ends(pictures, kinds, [_titles(record) for record in records])
        ends = {"last pictures of every instance": files.save("control-ends", figure)}
    asked = ", ".join(f"{name} {bar:.2g}" for name, bar in bars.items())
    meanings = "; ".join(f"{kind} {TOLD[kind]}" for kind in kinds)
    return section(
        f"{count(comparison['instances'], 'random instance')}, each by {', '.join(kinds)}",
        *failed_blocks(comparison["failed"], comparison["instances"]),
        _table(comparison),
        Text(f"{MEANINGS} {meanings[0].upper()}{meanings[1:]}."),
        charts(
            curves,
            "Every evaluation of every instance, not the best so far; bold, their median while "
            f"all run; dotted, what is asked for: {asked}.",
        ),
        charts(ends, "Last pictures, with the outline of the target."),
        Text(
            f"The rest of this page shows the instance that ends worst by {kinds[0]}, number "
            f"{comparison['shown']}."
        ),
    )


def _table(comparison: dict[str, Any]) -> Block | None:
    names = measures_of(comparison["records"])
    head = ["supervision", "reached"]
    for name in names:
        head += [named(f"mean {name}", MEASURES[name].unit), *_statistics(name)[1:]]
    lines = []
    for row in comparison["table"]:
        cells = [row["kind"], f"{row['reached']} of {len(comparison['records'])}"]
        for name in names:
            digits = ".2g" if MEASURES[name].is_length else ".3f"
            cells += [f"{row[name][key]:{digits}}" for key in _statistics(name)]
        lines.append([*cells, f"{row['seconds']:.2f}"])
    return table([*head, "seconds"], lines, strong=(2,))


def _statistics(name: str) -> list[str]:
    more = ["last", "nearest"] if name == CURVES[0] else []
    return ["mean", "median", "worst", *more]


def _titles(record: dict[str, Any]) -> dict[str, str]:
    """Return what stands above the last picture of each kind."""
    names = [name for name in CURVES if name in measures_of([record])]
    forms = {name: "{:.3g} m" if MEASURES[name].is_length else "{:.2f}" for name in names}
    return {
        kind: f"{kind}: "
        + ", ".join(form.format(chosen(search, name)) for name, form in forms.items())
        for kind, search in record["searches"].items()
    }


def _curves(records: Records, kinds: Sequence[str], bars: Mapping[str, float]) -> Any:
    """Draw the measures of every evaluation: a column for each kind; bold, the medians."""
    names = [name for name in CURVES if name in measures_of(records)]
    figure, axes = make_axes(len(names), len(kinds), (3.1 * len(kinds) + 0.4, 2.4 * len(names)))
    most = max(record["searches"][kind]["spent"][-1] for record in records for kind in kinds)
    for (down, across), ax in np.ndenumerate(axes.reshape(len(names), len(kinds))):
        name, kind = names[down], kinds[across]
        _column(ax, [record["searches"][kind] for record in records], name, COLORS[across % 3])
        if name in bars:
            ax.axhline(bars[name], color=INK, lw=0.9, ls=":")
        ax.set(xlim=(0.0, 1.03 * most), ylim=(0.0, 1.02))
        if name != "cover":  # distances are drawn by their logarithm
            curves = [record["searches"][kind][name] for record in records for kind in kinds]
            values = [value for curve in curves for value in curve if value is not None]
            ax.set(yscale="log", ylim=(max(0.5 * min(values), LEAST_DISTANCE), 2.0 * max(values)))
        ax.tick_params(labelleft=across == 0)
        if down == 0:
            ax.set_title(kind, fontsize=10, color=INK)
        if down == len(names) - 1:
            ax.set_xlabel("evaluations")
        if across == 0:
            label = f"{name} [{MEASURES[name].unit}]"
            ax.set_ylabel("cover (IoU)" if name == "cover" else label)
    return figure


def _column(ax: Any, searches: Sequence[dict[str, Any]], name: str, color: str) -> None:
    """Draw a measure over evaluations, a line for each search and their median while all run."""
    tables = [np.array(search[name], float) for search in searches]  # NaN in place of None
    for search, values in zip(searches, tables, strict=True):
        ax.plot(search["spent"], values, color=color, lw=0.9, alpha=0.45)
    shortest = min(len(values) for values in tables)
    if len(tables) > 1:
        middle = np.median([values[:shortest] for values in tables], axis=0)
        ax.plot(searches[0]["spent"][:shortest], middle, color=color, lw=1.9)


def _ends(
    pictures: Sequence[Mapping[str, np.ndarray]],
    kinds: Sequence[str],
    titles: Sequence[Mapping[str, str]],
) -> Any:
    """Draw the last picture of every instance, a row of kinds, with the target's outline."""
    from matplotlib.patheffects import withStroke

    on_any_colour = withStroke(linewidth=2.2, foreground="black")
    height, width = pictures[0]["outline"].shape
    across = 2.9 * len(kinds)
    down = (2.75 * height / width + 0.25) * len(pictures)
    figure, axes = make_axes(len(pictures), len(kinds), (across, down))
    for (row, column), ax in np.ndenumerate(axes.reshape(len(pictures), len(kinds))):
        kind = kinds[column]
        shown, wanted = pictures[row][f"picture.{kind}"], pictures[row]["outline"]
        ax.imshow(np.clip(shown[..., :3], 0.0, 1.0), interpolation="nearest")
        line = ax.contour(wanted, levels=[0.5], colors="white", linewidths=0.9)
        line.set_path_effects([on_any_colour])
        figures.bare(ax)
        ax.set_title(titles[row][kind], fontsize=8.5, color=INK)
        if column == 0:
            ax.set_ylabel(f"instance {row}", fontsize=8.5, color=SOFT)
    return figure
