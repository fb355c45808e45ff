"""Tracked points in files of other programs: c3d of motion capture, text of Tracker.

Tracker (Open Source Physics) exports one or several masses side by side:

    mass_A              mass_B
    t      x      y     t      x      y
    0.0    0.1    0.2   0.0    0.3    0.4
"""

import math
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from adjsim.extras import how_to_install
from studies.runs.errors import StudyError
from studies.scene.series import METRES, name_and_unit


Rows = dict[str, dict[float, tuple[float, ...]]]  # places by time [s], by name of the point
SHOWN = 40  # characters of a cell in a message
COLUMN = re.compile(r"[a-z]+")  # the name at the start of "x" or "x (m)"


@dataclass(frozen=True, eq=False)
class PointData:
    """Where points are at times."""

    names: tuple[str, ...]  # in the order of the file
    times: np.ndarray  # from small to large [s], (n_times,)
    # (n_times, n_points, 3) [m], or (n_times, n_points, 2) [pixels] of the whole film, column
    # and row, without distortion; NaN where a point is missing
    values: np.ndarray
    units: str | None = "m"  # of the places in a file; None where it does not say

    @property
    def is_in_picture(self) -> bool:
        """Whether the values are pixels."""
        return self.values.shape[2] == 2


def add_row(rows: Rows, name: str, time: float, place: tuple[float, ...], *, where: str) -> None:
    """Add the place of a point at a time; raise if the point has that or a later one already."""
    track = rows.setdefault(name, {})
    last = next(reversed(track), -math.inf)
    if time <= last:
        raise StudyError(
            f"{where} has point {name!r} at time {time:g} after time {last:g}. The times of a "
            "point must increase from row to row: sort the rows, and leave out what is twice."
        )
    track[time] = place


def table_of(rows: Rows, columns: int) -> PointData:
    """Return a table of places (columns,)."""
    times = np.unique([time for track in rows.values() for time in track])
    values = np.full((len(times), len(rows), columns), np.nan)
    for k, track in enumerate(rows.values()):
        values[np.searchsorted(times, list(track)), k] = list(track.values())
    return PointData(tuple(rows), times, values)


def read_c3d(path: Path, key: str) -> PointData:
    """Read a c3d file; samples that the file marks as invalid are missing."""
    try:
        import c3d
    except ImportError as error:
        raise StudyError(
            f"`{key}.file`: c3d files need the package c3d, which is missing: "
            f"{how_to_install('tracks')}."
        ) from error
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are no analog channels, for instance
            reader: Any = c3d.Reader(file)
            frames = [points[:, :4] for _, points, _ in reader.read_frames()]
            labels = [str(label).strip() for label in reader.point_labels]
            said = reader.get("POINT:UNITS")
            units = "" if said is None else str(said.string_value).strip(" \0").lower()
            rate, n_frames = float(reader.point_rate), int(reader.frame_count)
    except Exception as error:  # of many kinds, where bytes are not what they should be
        raise StudyError(f"`{key}.file`: {path} cannot be read as a c3d file: {error}.") from error
    if not rate > 0.0:
        raise StudyError(f"`{key}.file`: {path} does not say its frames per second (POINT:RATE).")
    if not frames:
        raise StudyError(f"`{key}.file`: {path} has no frames.")
    if len(frames) < n_frames:
        raise StudyError(
            f"`{key}.file`: {path} is cut: it has {len(frames)} of the {n_frames} frames that its "
            "header counts. Copy or export it again."
        )
    samples = np.array(frames, np.float64).reshape(len(frames), -1, 4)
    values = np.where(samples[..., 3:] < 0.0, np.nan, samples[..., :3])
    names = [label or str(k + 1) for k, label in enumerate(labels[: values.shape[1]])]
    names += [str(k + 1) for k in range(len(names), values.shape[1])]
    _require_different(names, path, key)
    times = np.arange(len(values)) / rate
    return PointData(tuple(names), times, values, units if units in METRES else None)


def is_tracker(header: str) -> bool:
    """Return whether the second line of a file is one of Tracker."""
    return {"t", "x", "y"} <= set(_columns(header))


def read_tracker(text: str, path: Path, key: str) -> PointData:
    """Read what Tracker exported; the points are in the plane z = 0."""
    first, header, *lines = text.splitlines()
    cut = cut_at(header)
    where_named = f"`{key}.file`: line 2 of {path}"
    unit = unit_of(re.split(cut, header), ("x", "y"), tuple(METRES), where_named)
    columns, marks = _columns(header), [cell.strip() for cell in re.split(cut, first)]
    names = [mark for mark in marks if mark]
    starts = [k for k, column in enumerate(columns) if column == "t"]
    if len(starts) == 1:  # one time for all masses
        starts = [k for k, column in enumerate(columns) if column == "x"]
    if len(names) != len(starts):
        raise StudyError(
            f"`{key}.file`: line 1 of {path} must name the {len(starts)} masses of line 2, got "
            f"{', '.join(names) or 'nothing'}."
        )
    _require_different(names, path, key)
    where: list[tuple[str, list[int]]] = []
    for name, (start, end) in zip(names, pairwise([*starts, len(columns)]), strict=True):
        headings = columns[start:end]
        missing = [column for column in ("x", "y") if column not in headings]
        if missing:
            raise StudyError(
                f"`{key}.file`: line 2 of {path} has no column {missing[0]} for {name!r}."
            )
        time = start + headings.index("t") if "t" in headings else columns.index("t")
        where.append((name, [time, start + headings.index("x"), start + headings.index("y")]))
    rows: Rows = {}
    for number, line in enumerate(lines, start=3):
        cells = [cell.strip() for cell in re.split(cut, line)]
        for name, places in where:
            texts = [cells[k] if k < len(cells) else "" for k in places]
            if not texts[0]:
                continue
            at = f"`{key}.file`: line {number} of {path}"
            time, x, y = (number_of(text, at, mark=cut) for text in texts)
            if not math.isfinite(time):
                raise StudyError(f"{at} must have a time, got {texts[0]!r}.")
            add_row(rows, name, time, (x, y, math.nan if math.isnan(x + y) else 0.0), where=at)
    if not rows:
        raise StudyError(f"`{key}.file`: {path} has no points.")
    return replace(table_of(rows, 3), units=unit)


def _require_different(names: list[str], path: Path, key: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StudyError(f"`{key}.file`: {path} has two points named {twice!r}. Rename one.")


def _columns(header: str) -> list[str]:
    matches = [COLUMN.match(cell.strip().lower()) for cell in re.split(cut_at(header), header)]
    return [match[0] if match else "" for match in matches]


def unit_of(heads: Sequence[str], places: Collection[str], units: Sequence[str], where: str) -> str:
    """Return the unit of all columns of `places`: the first of `units` where they have none."""
    named = [name_and_unit(head) for head in heads]
    unit, *others = {unit for name, unit in named if name in places} or {""}
    times = {unit for name, unit in named if name in ("t", "time")}
    if others or unit not in ("", *units) or not times <= {"", "s"}:
        raise StudyError(
            f"{where} must have the time in s, and all of {', '.join(places)} in one of "
            f"{', '.join(units)}, each with its unit or none of them, got {', '.join(heads)}."
        )
    return unit or units[0]


def cut_at(header: str) -> str:
    """Return the pattern that separates the cells of a file with this header."""
    return next((mark for mark in ("\t", ";", ",") if mark in header), r"\s+")


def number_of(text: str, where: str, *, mark: str, needed: bool = False) -> float:
    """Return a number with a point, or a comma if no `mark` between cells; NaN of an empty cell."""
    try:
        number = (
            float(text if mark == "," else text.replace(",", ".")) if text or needed else math.nan
        )
    except ValueError:
        number = math.inf
    if math.isinf(number) or (needed and math.isnan(number)):
        raise StudyError(f"{where} must have finite numbers, got {text[:SHOWN]!r}.")
    return number
