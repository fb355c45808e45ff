"""The points of a scan as lines of JSON, in the order in which they come; at the end, of the grid.

A line holds what was computed at a point and nothing of when or where, so that a scan that was
stopped and resumed leaves the same file to the bit. What is not finite is null.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from studies.problem.worlds import Failure, Sample
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.lines import append_record, line_of, read_records
from studies.scans.events import events
from studies.scans.terrain import Grid, Terrain
from studies.scans.trust import compare, estimates


POINTS = "points.jsonl"
MOST_SHOWN = 16  # natural values whose gradient is kept, where none of the others is scanned


def shown(grid: Grid) -> list[int]:
    """Return which natural values have their gradient kept: all, or of many the scanned ones."""
    n = len(grid.first.labels)
    return list(range(n)) if n <= MOST_SHOWN else grid.scanned


def read_points(path: Path, order: np.ndarray) -> dict[tuple[int, ...], dict[str, Any]]:
    """Return the points written so far, by index; a line cut short by a kill is cut off.

    Raises
    ------
    StudyError
        If the file is damaged, or holds a point that is not of this order, or one twice.
    """
    found = read_records(path, cut=True)
    indices = [tuple(one["index"]) for one in found]
    by_index = dict(zip(indices, found, strict=True))
    if len(by_index) < len(indices) or not by_index.keys() <= set(map(tuple, order.tolist())):
        raise StudyError(f"`{path}` holds the points of another grid. Scan into a new folder.")
    return by_index


def write_points(path: Path, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Append points to the file, each with one write; return them."""
    for record in records:
        append_record(path, record)
    return list(records)


def sort_points(folder: RunFolder, records: Sequence[dict[str, Any]]) -> None:
    """Bring the lines into the order of the grid, if they came in another."""
    text = "".join(line_of(record) + "\n" for record in records)
    if folder.file(POINTS).read_text(encoding="utf-8") != text:
        folder.write_text(POINTS, text)


def make_points(
    grid: Grid, terrain: Terrain, indices: Sequence[tuple[int, ...]]
) -> list[dict[str, Any]]:
    """Return what a scan keeps of points that share their settings."""
    points = [grid.natural(terrain, index) for index in indices]
    samples = terrain.samples(points)
    records: list[dict[str, Any]] = [{"index": list(index)} for index in indices]
    found: dict[int, Sample] = {}
    for k, sample in enumerate(samples):
        if isinstance(sample, Failure):
            records[k]["reason"] = sample.reason
        else:
            found[k] = sample
            records[k] |= {
                "reason": None,
                "loss": sample.loss,
                "gradient": _plain(sample.gradient[shown(grid)]),
                "frame_loss": _plain(sample.frame_loss),
            }
    own = [points[k] for k in found]
    steps = [terrain.problem.with_rounded_steps(point).steps for point in own]
    if grid.scan.trust and own and grid.on_problem:
        compared = compare(grid, terrain, own, list(found.values()), steps=steps)
        for k, one in zip(found, compared, strict=True):
            records[k] |= {name: _plain(value) for name, value in vars(one).items()}
    if grid.scan.trust:
        for k, point, step in zip(found, own, steps, strict=True):
            records[k] |= vars(events(replace(terrain.problem, steps=step), point))
    if grid.scan.black_box is not None and own and grid.on_problem:
        numbers = [int(np.ravel_multi_index(indices[k], grid.shape)) for k in found]
        drawn = estimates(grid, terrain, own, numbers, steps=steps)
        for k, one in zip(found, drawn, strict=True):
            records[k]["black_box"] = _plain(one)
    return records


def _plain(values: np.ndarray) -> list[Any]:
    """Return numbers ready for JSON; null where they are not finite."""
    if values.dtype == bool:
        return values.tolist()
    return [float(value) if np.isfinite(value) else None for value in values]
