"""The report of a scan: one self-contained HTML file, rebuilt from its folder."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from studies import run_folder
from studies.errors import StudyError
from studies.report_parts import gallery, provenance, rows, run_facts, write_page
from studies.run_folder import RunFolder
from studies.scans import figures
from studies.scans.dataset import FILE, read_dataset
from studies.scans.landscape import (
    Slice,
    because,
    cosines,
    counted,
    from_truth,
    is_at_truth,
    named,
    slices,
    subset_losses,
    units_of,
)
from studies.scans.points import POINTS
from studies.scans.spec import Scan, read_scan
from studies.scans.trust import STEP


MOST_REASONS = 6
MOST_SLICES = 6  # contours
MOST_ROWS = 40
MOST_PLACES = 3


def write_report(folder: RunFolder) -> Path:
    """Draw the figures and write `report.html`; return its path.

    Raises
    ------
    StudyError
        If the scan has not ended.
    """
    scan = read_scan(folder)
    if not folder.has(FILE) or not folder.has(run_folder.RESULT):
        raise StudyError(
            f"The scan {folder.path} has not ended. Go on with it: `{folder.how_to_go_on()}`."
        )
    data, result = read_dataset(folder.file(FILE)), folder.read_json(run_folder.RESULT)
    drawn = draw(scan, data, result)
    for group in drawn.values():
        folder.write_figures(group)
    sections = [
        _landscape(scan, data, result, drawn["landscape"]),
        _trust(scan.options.dtype, result, data, drawn["trust"]),
        _black_box(scan, data, drawn["black_box"]),
        _failures(data),
        _set_up(folder, scan, data, result),
    ]
    return write_page(folder, scan.title, _verdicts(result), "\n".join(filter(None, sections)))


def draw(scan: Scan, data: xr.Dataset, result: dict[str, Any]) -> dict[str, dict[str, bytes]]:
    """Return the figures by section and name."""
    parts = [own.to_draw() for own in slices(scan, data) if own.lowest() is not None]
    units = units_of(data)
    tolerance = result["trust"]["tolerance"]
    drawn: dict[str, dict[str, bytes]] = {"landscape": {}, "trust": {}, "black_box": {}}
    if not parts:
        return drawn
    drawn["landscape"] = _landscapes(scan, parts, units)
    if len(parts) == 1:
        own = parts[0]
        if "relative" in data and len(own.axes) == 1:
            unit = units[own.axes[0].key]
            drawn["trust"]["trust"] = figures.trust_curve(own, unit, tolerance)
        elif "relative" in data and len(own.axes) == 2:
            for axis in own.axes:
                png = figures.trust_map(own, axis.key, units, tolerance)
                drawn["trust"][f"trust_{_plain(axis.key)}"] = png
        if "black_box" in data and len(own.axes) == 2:
            drawn["black_box"]["black_box"] = figures.contours(own, units, black_box=True)
    return drawn


def _landscapes(scan: Scan, parts: list[Slice], units: dict[str, str]) -> dict[str, bytes]:
    """Return the figures of the loss: curves over one axis, contours over two."""
    first = parts[0]
    if len(first.axes) == 1:
        (axis,) = first.axes
        truth = first.truth[axis.key] if first.truth and first.holds_truth() else None
        if len(parts) > 1:
            curves = {named(own.settings, units): own.loss for own in parts}
            return {"slices": figures.compared(axis, curves, units[axis.key], truth)}
        unit = units[axis.key]
        drawn = {"loss": figures.curve(first, unit), "log_loss": figures.log_curve(first, unit)}
        if scan.subsets and "frame_loss" in first.data:
            losses = subset_losses(scan, first.data)
            drawn["frames"] = figures.compared(axis, losses, units[axis.key], truth)
        return drawn
    if len(first.axes) == 2:
        return {
            f"loss_{k + 1}": figures.contours(own, units, title=named(own.settings, units))
            for k, own in enumerate(parts[:MOST_SLICES])
        }
    return {}


def _plain(key: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in key)


def _verdicts(result: dict[str, Any]) -> list[tuple[bool | None, str]]:
    found: list[tuple[bool | None, str]] = []
    known = [part for part in result["slices"] if part.get("coincides") is not None]
    if known and all(part["truth_inside"] for part in known):
        found.append(_at_truth(known))
    for axis, own in result["trust"]["axes"].items():
        is_good = own["agree"] + own["jumps"] + own["crosses"] == own["compared"]
        others = ", jumps at the others" if is_good and own["agree"] < own["compared"] else ""
        text = f"{axis}: gradient agrees at {own['agree']}/{own['compared']}{others}"
        found.append((is_good, text))
    found.append((None, counted(result["points"], "point", "points")))
    if result["failed"]:
        found.append((None, f"{result['failed']} without a loss"))
    return found


def _at_truth(known: list[dict[str, Any]]) -> tuple[bool | None, str]:
    """Return whether the lowest points are at the truth; neither where it is off the grid."""
    hits = sum(part["coincides"] for part in known)
    beside = sum(part["coincides"] or part.get("beside", False) for part in known)
    is_good = (True if hits == len(known) else None) if beside == len(known) else False
    if len(known) > 1:
        return is_good, f"lowest point at the truth or next to it in {hits} of {len(known)}"
    (part,) = known
    if not hits:
        between = "within two steps of the truth, which is between values of the grid"
        return is_good, f"the lowest point is {between if beside else 'not at the truth'}"
    near = "at" if is_at_truth(part) else "within a step of"
    return is_good, f"the lowest point is {near} the truth"


def _section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{html.escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _p(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _landscape(
    scan: Scan, data: xr.Dataset, result: dict[str, Any], images: dict[str, bytes]
) -> str:
    axes, units = sum(axis.count > 1 for axis in scan.axes) or 1, units_of(data)
    says = {
        1: "Short lines are the adjoint's gradient, drawn as tangents. ",
        2: "Arrows point where the adjoint's gradient says down, in fractions of the axes. ",
    }
    text = says.get(axes, "A grid of this many axes is not drawn: see scan.nc. ")
    if len(result["slices"]) > 1:
        text = "Curves are scaled from 0 at their lowest point to 1 at their highest. "
    return _section(
        "Loss", gallery(images), _minima(result["slices"], units),
        _p(text + "A local minimum is a point of the grid below all its neighbours, diagonal ones "
           "too; one at the border may go on falling outside, and a narrow valley askew to the "
            "grid has minima of the grid along it that are none of the loss."),
        _subsets(result, units),
    )  # fmt: skip


def _minima(parts: list[dict[str, Any]], units: dict[str, str]) -> str:
    """Return minima and truth of a landscape, or of every slice in a table."""
    told = [_slice_cells(part, units) for part in parts[:MOST_ROWS]]
    if len(told) == 1:
        return rows(told[0])
    head = list(dict.fromkeys(name for cells in told for name in cells))
    lines = ["<tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
    for cells in told:
        shown = (html.escape(cells.get(name, "")) for name in head)
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in shown) + "</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _slice_cells(part: dict[str, Any], units: dict[str, str]) -> dict[str, str]:
    """Return what is told of a slice, by name."""
    cells = {"settings": named(part["settings"], units)} if part["settings"] else {}
    if part["lowest"] is None:
        return {**cells, "lowest point": "no point has a loss"}
    border = ", at the border of the grid" if part["on_border"] else ""
    cells["lowest point"] = f"{named(part['lowest'], units)}{border}"
    cells["loss there"] = f"{part['loss']:.2e}"
    if part["truth"]:
        where = from_truth(part) if part["truth_inside"] else "outside the grid"
        cells["truth"] = f"{named(part['truth'], units)}, {where}"
    inside = [one["at"] for one in part["local_minima"] if not one["on_border"]]
    edge = len(part["local_minima"]) - len(inside)
    cells["local minima"] = _places(inside, units) + (f"; {edge} at the border" if edge else "")
    return cells


def _subsets(result: dict[str, Any], units: dict[str, str]) -> str:
    if not result.get("subsets"):
        return ""
    lines = ["<tr><th>frames compared</th><th>lowest point</th><th>local minima</th>"
             "<th>width of the valley</th></tr>"]  # fmt: skip
    for name, own in result["subsets"].items():
        cells = [name, named(own["lowest"], units), _places(own["local_minima"], units)]
        cells.append(f"{100.0 * own['width']:.0f} %")
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>' + _p(
        "The width of the valley is the part of the axis on which the scaled loss is below "
        "a tenth: the smaller, the steeper."
    )


def _places(places: list[dict[str, float]], units: dict[str, str]) -> str:
    """Return how many places there are, and where."""
    where = "; ".join(named(place, units) for place in places[:MOST_PLACES])
    more = ", ..." if len(places) > MOST_PLACES else ""
    return f"{len(places)}: {where}{more}" if places else "none"


def _trust(dtype: str, result: dict[str, Any], data: xr.Dataset, images: dict[str, bytes]) -> str:
    """Return the section on the gradients of a scan in float64 or float32."""
    if not result["trust"]["axes"]:
        return ""
    lines = {}
    for axis, own in result["trust"]["axes"].items():
        median = "" if own["median"] is None else f"; median difference {own['median']:.1e}"
        agree = f"agrees at {own['agree']} of {own['compared']} points"
        lines[axis] = f"{agree}{median}{because(own)}"
    events = {
        "contact_event": "other points touch",
        "touch_event": "a touch moves to another step",
        "visibility_event": "other faces are seen",
    }
    for name, text in events.items():
        if name in data:
            total = sum(data.loss.size - data.loss.size // n for n in data.loss.shape)
            lines[text] = f"between {int(data[name].sum())} of {total} pairs of neighbours"
    for axis in data.axis.values if "kink" in data else ():
        nearest = float(np.nan_to_num(data.kink.sel(axis=axis).values, nan=np.inf).min())
        if np.isfinite(nearest):
            unit = units_of(data)[str(axis)]
            lines[f"nearest kink along {axis}"] = (
                f"{nearest:.1e} {unit} from its point of the grid, to first order"
            )
    step, tolerance = f"{STEP[dtype]:.0e}", f"{result['trust']['tolerance']:.0e}"
    return _section(
        "How far the gradient can be trusted",
        gallery(images),
        rows(lines),
        _p(
            f"Gradient and central difference, taken in float64 with a step of {step} of the "
            f"value, agree where they differ by less than {tolerance} of the slope. A difference "
            "looks across the kinks and jumps within its step, the gradient does not: a touch "
            "that moves to another time step, or a pixel in which two soft faces swap their depth "
            "order. Events are those between neighbours of the grid."
        ),
    )


def _black_box(scan: Scan, data: xr.Dataset, images: dict[str, bytes]) -> str:
    box = scan.black_box
    if box is None or "black_box" not in data:
        return ""
    cosine = cosines(scan.axes, data)
    known = cosine[np.isfinite(cosine)]
    if not known.size:
        return ""
    lines = {
        "samples": f"{box.samples} values of the loss for each point, drawn around it at "
        f"{box.sigma:g} of the value",
        "angle to the gradient": f"median {np.degrees(np.arccos(np.median(known))):.0f}°",
        "points uphill": f"{int((known < 0.0).sum())} of {known.size}",
    }
    return _section(
        "A black box instead", gallery(images), rows(lines),
        _p("An estimate from values of the loss alone (REINFORCE, with the mean of the samples for "
           "a baseline) stands beside the gradient of the adjoint, which takes one forward and "
           "one reverse sweep. Angles are measured in fractions of the axes."),
    )  # fmt: skip


def _failures(data: xr.Dataset) -> str:
    alike: dict[str, list[str]] = {}  # reasons that differ in their numbers only
    for reason in data.reason.values.ravel():
        if reason:
            alike.setdefault(re.sub(r"\d[\d.e+-]*", "0", str(reason)), []).append(str(reason))
    if not alike:
        return ""
    shown = sorted(alike.values(), key=len, reverse=True)[:MOST_REASONS]
    items = "".join(
        f"<tr><th>{counted(len(own), 'point', 'points')}</th><td>"
        f"{'such as: ' if len(set(own)) > 1 else ''}{html.escape(own[0])}</td></tr>"
        for own in shown
    )
    more = len(alike) - len(shown)
    tail = _p(f"{more} more kinds of reasons are in scan.nc.") if more > 0 else ""
    return _section("Points without a loss", f'<table class="facts">{items}</table>', tail)


def _set_up(folder: RunFolder, scan: Scan, data: xr.Dataset, result: dict[str, Any]) -> str:
    manifest = folder.read_json(run_folder.MANIFEST)
    facts = {
        "study": scan.settings.kind,
        "axes": "; ".join(axis.text for axis in scan.axes),
        "held": _held(scan, data),
        "time": f"{result['seconds']:.1f} s for {result['evaluated']} points, in the last session",
        **run_facts(manifest),
        "command": manifest["command"],
        "files": f"{FILE} (NetCDF, xarray opens it), {POINTS}",
    }
    return f"{_section('Set-up', rows(facts))}\n{provenance(folder, manifest)}"


def _held(scan: Scan, data: xr.Dataset) -> str:
    """Return in words what is held, and where."""
    values = zip(data.parameter.values, data.held.values, strict=True)
    scanned = {axis.key for axis in scan.axes}
    others = {str(key): float(value) for key, value in values if str(key) not in scanned}
    at_truth = scan.at == "truth" and "truth" in data
    where = "the truth" if at_truth else "the start of the search"
    return f"{named(others, {})} (at {where})" if others else "nothing else is free"
