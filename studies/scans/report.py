"""The report of a scan, from what is in its folder."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from studies.reports.content import (
    Facts,
    Headline,
    Item,
    Json,
    Links,
    Media,
    Report,
    Section,
    Text,
    Tone,
    Value,
    section,
    table,
)
from studies.reports.figures import FigureFiles
from studies.reports.numbers import count
from studies.reports.page import write_report as write_page
from studies.reports.scene_run import provenance
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, RESULT, RunFolder
from studies.scans import figures, landscape
from studies.scans.dataset import FILE, POINTS, read_dataset
from studies.scans.landscape import NEAR, Slice, named, slices, units_of
from studies.scans.spec import Scan, read_scan
from studies.scans.trust import STEP


Files = dict[str, str]  # of figures, by name
MOST_REASONS = 6
MOST_SLICES = 6  # contours
MOST_ROWS = 40
MOST_PLACES = 3
MINIMA = (
    "Dots were computed, the rest is interpolated. A local minimum is a point of the grid below "
    "all its neighbours, diagonal ones too. One at the border may go on falling outside, and a "
    "narrow valley askew to the grid has minima of the grid along it that are none of the loss."
)
EVENTS = {
    "contact_event": "which points touch changes",
    "touch_event": "a touch moves to another time step",
    "visibility_event": "which faces are visible changes",
}
SAYS = {
    1: "The curve is the cubic one through losses and slopes; short lines are the slopes, the "
    "adjoint's gradient. ",
    2: "The surface is the smooth one through losses and slopes. Arrows point where the adjoint's "
    "gradient says down, in fractions of the axes. ",
}


def write_report(folder: RunFolder, formats: tuple[str, ...] = ()) -> Path:
    """Draw the figures, also in these formats, and write the report; return the page's path."""
    scan = read_scan(folder)
    if not folder.has(FILE) or not folder.has(RESULT):
        raise StudyError(
            f"The scan {folder.path} has not ended. Go on with it: `{folder.how_to_go_on()}`."
        )
    data, result = read_dataset(folder), folder.read_json(RESULT)
    files = FigureFiles(folder, formats)
    drawn = {
        topic: {name: files.save(name, figure) for name, figure in group.items()}
        for topic, group in _figures(scan, data, result).items()
    }
    manifest = folder.read_json(MANIFEST)
    tone, text = _verdict(result)
    lowest, units = _lowest(result), units_of(data)
    chips = [count(result["points"], "point")]
    chips += [f"{result['failed']} without a loss"] if result["failed"] else []
    sections = (
        _landscape(scan, data, result, drawn["landscape"]),
        _trust(scan.options.dtype, result, data, drawn["trust"]),
        _black_box(scan, data, drawn["black_box"]),
        _failures(data),
        _set_up(scan, data, result, manifest),
        section("Files", Links({FILE: "NetCDF, which xarray opens", POINTS: "its points"})),
        provenance(folder, manifest),
    )
    report = Report(
        scan.title,
        Headline(
            text, tone, ". ".join(result["told"][: len(result["slices"])][:MOST_PLACES]) + "."
        ),
        {
            "run": folder.path.name,
            "scene": scan.name,
            "answer": "\n".join(named({key: value}, units) for key, value in lowest.items()),
            "started": manifest["started"],
        },
        tuple(page_section for page_section in sections if page_section is not None),
        tuple(chips),
        next(iter(drawn["landscape"].values()), ""),
        {key: Value(value, units[key]) for key, value in lowest.items()}
        | {"time": Value(result["seconds"], "s")},
    )
    return write_page(folder, report)


def _lowest(result: dict[str, Any]) -> dict[str, float]:
    """Return the minimum of a scan of a single slice, or its lowest point, by key."""
    first, *others = result["slices"]
    return {} if others else first.get("minimum") or first["lowest"] or {}


def _figures(scan: Scan, data: xr.Dataset, result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    parts = [
        scan_slice.to_draw() for scan_slice in slices(scan, data) if scan_slice.lowest() is not None
    ]
    units, tolerance = units_of(data), result["trust"]["tolerance"]
    drawn: dict[str, dict[str, Any]] = {"landscape": {}, "trust": {}, "black_box": {}}
    if parts:
        drawn["landscape"] = _landscapes(scan, parts, units)
    if len(parts) != 1:
        return drawn
    (scan_slice,) = parts
    n_axes = len(scan_slice.axes)
    if "relative" in data and n_axes == 1:
        unit = units[scan_slice.axes[0].key]
        drawn["trust"]["trust"] = figures.trust_curve(scan_slice, unit, tolerance)
    if "relative" in data and n_axes == 2:
        for axis in scan_slice.axes:
            name = "".join(c if c.isalnum() else "_" for c in axis.key)
            figure = figures.trust_map(scan_slice, axis.key, units, tolerance)
            drawn["trust"][f"trust_{name}"] = figure
    if "black_box" in data and n_axes == 2:
        drawn["black_box"]["black_box"] = figures.contours(scan_slice, units, black_box=True)
    return drawn


def _landscapes(scan: Scan, parts: list[Slice], units: dict[str, str]) -> dict[str, Any]:
    """Return the figures of the loss: curves over one axis, contours over two."""
    first = parts[0]
    if len(first.axes) == 1:
        (axis,) = first.axes
        unit = units[axis.key]
        truth = (first.truth_inside() or {}).get(axis.key)
        if len(parts) > 1:
            curves = {named(scan_slice.settings, units): scan_slice.curve() for scan_slice in parts}
            return {"slices": figures.compared(axis, curves, unit, truth)}
        drawn = {"loss": figures.curve(first, unit)}
        if scan.subsets and "frame_loss" in first.data:
            by_frame = first.data.frame_loss
            losses = {
                name: (axis.values, by_frame.sel(frame=list(frames)).mean("frame").values)
                for name, frames in scan.subsets.items()
            }
            drawn["frames"] = figures.compared(axis, losses, unit, truth)
        return drawn
    if len(first.axes) == 2:
        return {
            f"loss_{k + 1}": figures.contours(
                scan_slice, units, title=named(scan_slice.settings, units)
            )
            for k, scan_slice in enumerate(parts[:MOST_SLICES])
        }
    return {}


def _media(files: dict[str, str]) -> Media | None:
    items = tuple(Item(file, name.replace("_", " ")) for name, file in files.items())
    return Media(items) if items else None


def _verdict(result: dict[str, Any]) -> tuple[Tone, str]:
    """Return whether the lowest points are at the truth; neither where it is off the grid."""
    on_grid = [record for record in result["slices"] if record.get("truth_inside") is not None]
    if not on_grid or not all(record["truth_inside"] for record in on_grid):
        return "plain", "Scanned"
    beside = sum(record["beside"] for record in on_grid)
    is_near = all(max(record["steps_from_truth"]) <= 1.0 + NEAR for record in on_grid)
    tone: Tone = "bad" if beside < len(on_grid) else "good" if is_near else "plain"
    if len(on_grid) > 1:
        return tone, f"Lowest point at the truth or next to it in {beside} of {len(on_grid)}"
    return tone, f"The lowest point is {landscape.nearness(on_grid[0])} the truth"


def _landscape(scan: Scan, data: xr.Dataset, result: Json, files: Files) -> Section | None:
    axes, units = sum(axis.count > 1 for axis in scan.axes) or 1, units_of(data)
    text = SAYS.get(axes, f"A grid of this many axes is not drawn: see {FILE}. ")
    if len(result["slices"]) > 1:
        text = "Curves are scaled from 0 at their lowest point to 1 at their highest. "
    cells = [_slice_cells(record, units) for record in result["slices"][:MOST_ROWS]]
    head = list(dict.fromkeys(name for slice_cells in cells for name in slice_cells))
    rows = [[slice_cells.get(name, "") for name in head] for slice_cells in cells]
    listed = Facts(cells[0]) if len(cells) == 1 else table(head, rows)
    return section("Loss", _media(files), listed, Text(text + MINIMA))


def _slice_cells(record: dict[str, Any], units: dict[str, str]) -> dict[str, str]:
    """Return what is said of a slice, by name."""
    cells = {"settings": named(record["settings"], units)} if record["settings"] else {}
    if record["lowest"] is None:
        return {**cells, "lowest point": "No point has a loss"}
    border = ", at the border of the grid" if record["on_border"] else ""
    if record.get("minimum"):
        cells[f"minimum of {landscape.through(record)}"] = named(record["minimum"], units)
    cells["lowest point"] = f"{named(record['lowest'], units)}{border}"
    cells["loss there"] = f"{record['loss']:.2e}"
    if record["truth"]:
        cells["truth"] = f"{named(record['truth'], units)}, {landscape.where_truth_is(record)}"
    inside = [minimum["at"] for minimum in record["local_minima"] if not minimum["on_border"]]
    edge = len(record["local_minima"]) - len(inside)
    where = "; ".join(named(place, units) for place in inside[:MOST_PLACES])
    more = ", ..." if len(inside) > MOST_PLACES else ""
    cells["local minima"] = f"{len(inside)}: {where}{more}" if inside else "none"
    cells["local minima"] += f"; {edge} at the border" if edge else ""
    return cells


def _trust(dtype: str, result: Json, data: xr.Dataset, files: Files) -> Section | None:
    """Return the section on the gradients of a scan in float64 or float32."""
    if not result["trust"]["axes"]:
        return None
    lines = {
        axis: f"agrees at {counts['agree']} of {counts['compared']} points"
        f"{landscape.because(counts)}"
        for axis, counts in result["trust"]["axes"].items()
    }
    total = sum(data.loss.size - data.loss.size // n for n in data.loss.shape)
    for name, text in EVENTS.items():
        if name in data:
            lines[text] = f"in {int(data[name].sum())} of {total} steps from a point to the next"
    for axis in data.axis.values if "kink" in data else ():
        nearest = float(data.kink.sel(axis=axis).min())
        if np.isfinite(nearest):
            text = f"{nearest:.1e} {units_of(data)[axis]} from its point of the grid"
            lines[f"nearest kink along {axis}"] = f"{text}, to first order"
    step, tolerance = f"{STEP[dtype]:.0e}", f"{result['trust']['tolerance']:.0e}"
    return section(
        "How far the gradient can be trusted",
        _media(files),
        Facts(lines),
        Text(
            f"Gradient and central difference, taken in float64 with a step of {step} of the "
            f"value, agree where they differ by less than {tolerance} of the slope. A difference "
            "looks across the kinks and jumps within its step, the gradient does not: a touch "
            "that moves to another time step, or a pixel in which two soft faces swap their depth "
            "order."
        ),
    )


def _black_box(scan: Scan, data: xr.Dataset, files: dict[str, str]) -> Section | None:
    box = scan.black_box
    if box is None or "black_box" not in data:
        return None
    cosine = landscape.cosines(scan.axes, data)
    known = cosine[np.isfinite(cosine)]
    if not known.size:
        return None
    lines = {
        "samples": f"{box.samples} values of the loss for each point, drawn around it at "
        f"{box.sigma:g} of the value",
        "angle to the gradient": f"median {np.degrees(np.arccos(np.median(known))):.0f}°",
        "points uphill": f"{int((known < 0.0).sum())} of {known.size}",
    }
    return section(
        "A black box instead",
        _media(files),
        Facts(lines),
        Text(
            "An estimate from values of the loss alone (REINFORCE, with the mean of the samples "
            "for a baseline) stands beside the gradient of the adjoint, which takes one forward "
            "and one reverse sweep. Angles are measured in fractions of the axes."
        ),
    )


def _failures(data: xr.Dataset) -> Section | None:
    reasons = Counter(str(reason) for reason in data.reason.values.ravel() if reason)
    rows = [(count(n, "point"), reason) for reason, n in reasons.most_common(MOST_REASONS)]
    more = len(reasons) - len(rows)
    tail = Text(f"{count(more, 'more reason')} in {FILE}.") if more > 0 else None
    return section("Points without a loss", table(("", "reason"), rows), tail)


def _set_up(scan: Scan, data: xr.Dataset, result: Json, manifest: Json) -> Section | None:
    others = data.held.drop_sel(parameter=[x.key for x in scan.axes], errors="ignore")
    held = dict(zip(others.parameter.values, others.values, strict=True))
    where = "the truth" if scan.at == "truth" and "truth" in data else "the start of the search"
    facts = {
        "command": manifest["command"],
        "scene": str(data.attrs["scan"]),
        "axes": "; ".join(axis.text for axis in scan.axes),
        "held": f"{named(held, {})} (at {where})" if held else "nothing else is free",
        "time": f"{result['seconds']:.1f} s for {result['evaluated']} points, in the last session",
    }
    return section("Set-up", Facts(facts))
