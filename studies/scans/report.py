"""The report of a scan: one self-contained HTML file, rebuilt from its folder."""

import html
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from studies import run_folder
from studies.errors import StudyError
from studies.report_parts import gallery, page, rows
from studies.run_folder import RunFolder
from studies.scans import figures
from studies.scans.dataset import FILE, read_dataset
from studies.scans.landscape import Slice, because, counted, named, slices, subset_losses
from studies.scans.points import POINTS
from studies.scans.spec import Scan, read_scan


MOST_REASONS = 6
MOST_SLICES = 6  # contours
MOST_ROWS = 40


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
            f"The scan {folder.path} has not ended. Go on with it: `adjsim scan {scan.name} "
            f"--out {folder.path} --resume`."
        )
    data, result = read_dataset(folder.file(FILE)), folder.read_json(run_folder.RESULT)
    drawn = draw(scan, data, result)
    for group in drawn.values():
        for name, png in group.items():
            with folder.replacing(f"{run_folder.FIGURES}/{name}.png") as part:
                part.write_bytes(png)
    sections = [
        _landscape(scan, result, drawn["landscape"]),
        _trust(result, data, drawn["trust"]),
        _black_box(scan, data, drawn["black_box"]),
        _failures(data),
        _set_up(folder, scan, data, result),
    ]
    text = page(scan.title, _verdicts(result), "\n".join(part for part in sections if part))
    folder.write_text(run_folder.REPORT, text)
    return folder.file(run_folder.REPORT)


def draw(scan: Scan, data: xr.Dataset, result: dict[str, Any]) -> dict[str, dict[str, bytes]]:
    """Return the figures by section and name."""
    parts = [own for own in slices(scan, data) if own.lowest() is not None]
    units = {axis.key: str(data[axis.key].attrs.get("units", "")) for axis in scan.axes}
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
            curves = {named(own.settings): own.loss for own in parts}
            return {"loss": figures.compared(axis, curves, units[axis.key], truth)}
        drawn = {"loss": figures.curve(first, units[axis.key])}
        if scan.subsets and "frame_loss" in first.data:
            losses = subset_losses(scan, first.data)
            drawn["frames"] = figures.compared(axis, losses, units[axis.key], truth)
        return drawn
    if len(first.axes) == 2:
        return {
            f"loss_{k + 1}": figures.contours(own, units, title=named(own.settings))
            for k, own in enumerate(parts[:MOST_SLICES])
        }
    return {}


def _plain(key: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in key)


def _verdicts(result: dict[str, Any]) -> list[tuple[bool | None, str]]:
    found: list[tuple[bool | None, str]] = []
    known = [part for part in result["slices"] if part.get("coincides") is not None]
    if known and all(part["truth_inside"] for part in known):
        hits = sum(part["coincides"] for part in known)
        where = "the lowest point is at the truth"
        if len(known) > 1:
            where = f"lowest point at the truth in {hits} of {len(known)}"
        elif not hits:
            where = "the lowest point is not at the truth"
        found.append((hits == len(known), where))
    for axis, own in result["trust"]["axes"].items():
        is_good = own["agree"] + own["jumps"] + own["crosses"] == own["compared"]
        found.append((is_good, f"{axis}: gradient agrees at {own['agree']}/{own['compared']}"))
    found.append((None, counted(result["points"], "point", "points")))
    if result["failed"]:
        found.append((None, f"{result['failed']} without a loss"))
    return found


def _section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{html.escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _p(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _landscape(scan: Scan, result: dict[str, Any], images: dict[str, bytes]) -> str:
    axes = len(scan.axes)
    says = {
        1: "Short lines are the adjoint's gradient, drawn as tangents. ",
        2: "Arrows point where the adjoint's gradient says down, in fractions of the axes. ",
    }
    text = says.get(axes, "A grid of this many axes is not drawn: see scan.nc. ")
    if len(result["slices"]) > 1:
        text = "Curves are scaled from 0 at their lowest point to 1 at their highest. "
    return _section(
        "Loss", gallery(images), f'<div class="scroll">{_table(result["slices"])}</div>',
        _p(text + "A local minimum is a point of the grid below all its neighbours, diagonal ones "
           "too; one at the border may go on falling outside."),
        _subsets(result),
    )  # fmt: skip


def _table(parts: list[dict[str, Any]]) -> str:
    """Return the minima of every slice as a table."""
    head = ["settings"] if any(part["settings"] for part in parts) else []
    known = any(part["truth"] for part in parts)
    head += ["lowest point", "loss there", *(["truth", "same"] if known else []), "local minima"]
    lines = ["<tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>"]
    for part in parts[:MOST_ROWS]:
        cells = [named(part["settings"])] if head[0] == "settings" else []
        if part["lowest"] is None:
            cells += ["no point has a loss"]
        else:
            border = ", at the border" if part["on_border"] else ""
            cells += [f"{named(part['lowest'])}{border}", f"{part['loss']:.2e}"]
            if known:
                truth = named(part["truth"]) if part["truth"] else "not known"
                same = "within a step" if part["coincides"] else "no"
                cells += [truth, same if part["truth_inside"] else "outside the grid"]
            edge = sum(one["on_border"] for one in part["local_minima"])
            inside = len(part["local_minima"]) - edge
            cells.append(f"{inside} inside" + (f", {edge} at the border" if edge else ""))
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def _subsets(result: dict[str, Any]) -> str:
    if not result.get("subsets"):
        return ""
    lines = ["<tr><th>frames compared</th><th>lowest point</th><th>local minima</th>"
             "<th>width of the valley</th></tr>"]  # fmt: skip
    for name, own in result["subsets"].items():
        lines.append(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(named(own['lowest']))}</td>"
            f"<td>{own['local_minima']}</td><td>{own['width']:.4g}</td></tr>"
        )
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>' + _p(
        "The width of the valley is the part of the axis on which the scaled loss is below "
        "a tenth: the smaller, the steeper."
    )


def _trust(result: dict[str, Any], data: xr.Dataset, images: dict[str, bytes]) -> str:
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
            total = int(data[name].sum())
            lines[text] = f"between {counted(total, 'pair', 'pairs')} of neighbours"
    if "kink" in data and np.isfinite(data.kink.values).any():
        lines["nearest kink"] = (
            f"{float(np.nanmin(data.kink.values)):.1e} away at the nearest point of the grid, to "
            "first order"
        )
    return _section(
        "How far the gradient can be trusted",
        gallery(images),
        rows(lines),
        _p(
            f"Gradient and central difference, taken in float64 with a step of a millionth of the "
            f"value, agree where they differ by less than {result['trust']['tolerance']:.0e} of "
            "the slope. A difference looks across the kinks and jumps within its step, the "
            "gradient does not: a touch that moves to another time step, or a pixel in which two "
            "soft faces swap their depth order. Events are those between neighbours of the grid."
        ),
    )


def _black_box(scan: Scan, data: xr.Dataset, images: dict[str, bytes]) -> str:
    box = scan.black_box
    if box is None or "black_box" not in data:
        return ""
    cosine = cosines(scan, data)
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


def cosines(scan: Scan, data: xr.Dataset) -> np.ndarray:
    """Return the cosine between estimate and gradient at every point, in fractions of the axes."""
    width = {axis.key: axis.stop - axis.start for axis in scan.axes}
    keys = [str(key) for key in data.axis.values]
    scale = np.array([width[key] for key in keys])
    estimate = data.black_box.sel(axis=keys).values * scale
    exact = data.gradient.sel(parameter=keys).values * scale
    length = np.linalg.norm(estimate, axis=-1) * np.linalg.norm(exact, axis=-1)
    out = np.full(length.shape, np.nan)
    np.divide((estimate * exact).sum(axis=-1), length, out=out, where=length > 0.0)
    return np.clip(out, -1.0, 1.0)


def _failures(data: xr.Dataset) -> str:
    reasons = Counter(str(reason) for reason in data.reason.values.ravel() if reason)
    if not reasons:
        return ""
    shown = reasons.most_common(MOST_REASONS)
    items = "".join(
        f"<tr><th>{counted(n, 'point', 'points')}</th><td>{html.escape(text)}</td></tr>"
        for text, n in shown
    )
    more = len(reasons) - len(shown)
    tail = _p(f"{more} more reasons are in scan.nc.") if more > 0 else ""
    return _section("Points without a loss", f'<table class="facts">{items}</table>', tail)


def _set_up(folder: RunFolder, scan: Scan, data: xr.Dataset, result: dict[str, Any]) -> str:
    manifest = folder.read_json(run_folder.MANIFEST)
    facts = {
        "study": scan.settings.kind,
        "axes": "; ".join(axis.text for axis in scan.axes),
        "held": _held(scan, data),
        "precision": f"{scan.options.dtype} on {scan.options.device}, seed {scan.options.seed}",
        "time": f"{result['seconds']:.1f} s for {result['evaluated']} points, in the last session",
        "command": manifest["command"],
        "files": f"{FILE} (NetCDF, xarray opens it), {POINTS}",
    }
    study = html.escape(folder.file(run_folder.STUDY).read_text(encoding="utf-8"))
    versions = rows({key: text or "not installed" for key, text in manifest["versions"].items()})
    return "\n".join(
        [
            _section("Set-up", rows(facts)),
            _folded("Study file", f"<pre>{study}</pre>"),
            _folded("Versions", versions),
        ]
    )


def _folded(title: str, body: str) -> str:
    return f"<section>\n<details><summary>{title}</summary>\n{body}</details></section>"


def _held(scan: Scan, data: xr.Dataset) -> str:
    """Return in words what is held, and where."""
    values = zip(data.parameter.values, data.held.values, strict=True)
    scanned = {axis.key for axis in scan.axes}
    others = {str(key): float(value) for key, value in values if str(key) not in scanned}
    at_truth = scan.at == "truth" and "truth" in data
    where = "the truth" if at_truth else "the start of the search"
    return f"{named(others)} (at {where})" if others else "nothing else is free"
