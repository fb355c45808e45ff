"""What varies in time: series from CSV files, and policies.

A CSV file has a column `time` [s], and one column for each value.
"""

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from adjsim.courses import Policy, Signal, TimeCourse
from studies.runs.errors import StudyError
from studies.scene.maps import Arrays


METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
WITH_UNIT = re.compile(r"(.*?)\s*(?:\((.*)\)|\[(.*)\])")  # a column's name: Time (s)


@dataclass(frozen=True, eq=False)
class Series:
    """Values (n,) or (n, k) at times (n,) [s], linear between them."""

    times: np.ndarray
    values: np.ndarray

    def course(self, dt: float, values: np.ndarray | None = None) -> Signal:
        """Return it over the steps of dt [s], whatever `values` the system has."""
        return Signal(self.times / dt, self.values)


class FreeSeries(Series):
    """A series whose values a scene may change."""

    def course(self, dt: float, values: np.ndarray | None = None) -> Signal:
        return Signal(self.times / dt, self.values if values is None else values)


@dataclass(frozen=True, eq=False)
class Sines:
    """A policy: its frequency [rad/s] and the bound of its output."""

    frequency: float
    scale: float

    def course(self, dt: float, values: np.ndarray | None) -> Policy:
        return Policy(values, self.frequency * dt, self.scale)


@dataclass(frozen=True, eq=False)
class Window:
    """A constant force from the first to the last of two times [s], in one step at least."""

    seconds: tuple[float, float]

    def course(self, dt: float, values: np.ndarray | None) -> Signal:
        """Return it over the steps of dt [s]; `values` are those at the knots."""
        first, last = (round(second / dt) for second in self.seconds)
        last = max(last, first + 1)
        knots = np.array([first - 0.75, first - 0.25, last - 0.75, last - 0.25])
        return Signal(knots, values)


class Varying(Protocol):
    """A parameter of a system over time."""

    def course(self, dt: float, values: np.ndarray | None) -> TimeCourse:
        """Return it over the steps of dt [s], of the `values` that the system has."""
        ...


def in_steps(varying: Mapping[str, Varying], values: Arrays, dt: float) -> dict[str, TimeCourse]:
    """Return what varies over the steps of dt [s], by path, from what the system has."""
    return {path: series.course(dt, values.get(path)) for path, series in varying.items()}


def read_series(
    key: str, file: str, n_values: Collection[int], named: Mapping[str, str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,) [s] and values (n,), or (n, k) where there are several columns.

    `n_values` are the numbers of columns of values that there may be. Where the file has all
    columns that are `named`, with their units, these are the values, whatever others there are.

    Raise a StudyError if the file cannot be read, or has other columns, or times that do not
    increase.
    """
    path, named = Path(file), named or {}
    names, numbers = read_columns(path, key, {"time"}, {"time": "s", **named})
    if named and set(named) <= set(names):
        numbers = numbers[:, [names.index(name) for name in ("time", *named)]]
        names = ["time", *named]
    if len(names) - 1 not in n_values:
        rest = f", or more with `{'`, `'.join(named)}` among them" if named else ""
        noun = "column" if set(n_values) == {1} else "columns"
        raise StudyError(
            f"`{key}`: {path} must have {' or '.join(map(str, sorted(n_values)))} {noun} beside "
            f"`time`{rest}, got {len(names) - 1}: {', '.join(n for n in names if n != 'time')}."
        )
    if not len(numbers) or not np.isfinite(numbers).all():
        raise StudyError(f"`{key}`: {path} must have {len(names)} finite numbers in every row.")
    at = names.index("time")
    times, values = numbers[:, at], np.delete(numbers, at, axis=1)
    if not (np.diff(times) > 0.0).all():
        raise StudyError(f"`{key}`: the times in {path} must increase from row to row.")
    return times, values[:, 0] if values.shape[1] == 1 else values


def read_columns(
    path: Path, key: str, needed: Collection[str], units: Mapping[str, str] | None = None
) -> tuple[list[str], np.ndarray]:
    """Return the k columns' names in the first line of a CSV file, and its numbers, (n, k).

    A column that `units` have may be written with capitals, and with its unit: Time (s), time [s].

    Raise a StudyError if the file cannot be read, lacks a column of those `needed`, or has one in
    another unit, or has rows of another length or of something else than numbers.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            lines = {n: line for n, line in enumerate(stream, 1) if line.strip()}
        header = lines.pop(min(lines)) if lines else ""
        names = [name.strip() for name in next(csv.reader([header]), [])]
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise StudyError(f"`{key}`: {path} cannot be read as a CSV file: {error}.") from error
    for wanted, unit in (units or {}).items():
        if wanted not in names:
            _rename(names, wanted, unit, f"`{key}`: {path}")
    if missing := [name for name in needed if name not in names]:
        advice = "The first line names the columns."
        if ";" in header or "\t" in header:
            advice = "Separate columns by commas, and write decimals with points."
        elif any(letter.isalpha() for letter in header):
            advice += f" Rename the one that is meant to `{missing[0]}`."
        raise StudyError(
            f"`{key}`: {path} must have a column `{missing[0]}`, got the columns "
            f"{', '.join(names) or 'none'}. {advice}"
        )
    if not lines:
        return names, np.zeros((0, len(names)))
    try:
        numbers = np.loadtxt(
            list(lines.values()), delimiter=",", comments=None, quotechar='"', ndmin=2
        )
    except ValueError as error:
        _check_rows(lines, names, f"of {path}", key)
        raise StudyError(f"`{key}`: {path} must hold numbers: {error}") from error
    if numbers.shape[1] != len(names):
        _check_rows(lines, names, f"of {path}", key)
    return names, numbers


def name_and_unit(head: str) -> tuple[str, str]:
    """Return the name of a column in small letters, and its unit, "" without one: Time (s)."""
    parts = WITH_UNIT.fullmatch(head.strip())
    name, *units = parts.groups(default="") if parts else (head.strip(), "")
    return name.lower(), "".join(units).strip()


def _rename(names: list[str], wanted: str, unit: str, where: str) -> None:
    """Give the first column that is called `wanted` but for capitals and its unit this name."""
    for k, name in enumerate(names):
        bare, unit_of_file = name_and_unit(name)
        if bare != wanted:
            continue
        if unit_of_file not in ("", unit):
            way = (
                f'write `units = "{unit_of_file}"`'
                if {unit_of_file, unit} <= METRES.keys()
                else "convert it"
            )
            raise StudyError(
                f"{where} has the column `{name}`, which must be in {unit}: {way}, or rename it "
                f"to `{wanted}` if it is in {unit}."
            )
        names[k] = wanted
        return


def _check_rows(lines: Mapping[int, str], names: Sequence[str], of: str, key: str) -> None:
    """Raise on the first line, by its number, that lacks a number for one of the columns."""
    for n, line in lines.items():
        cells = next(csv.reader([line]))
        if len(cells) != len(names):
            raise StudyError(
                f"`{key}`: line {n} {of} must have {len(names)} numbers, one for each of its "
                f"columns {', '.join(names)}, got {len(cells)}."
            )
        for name, cell in zip(names, cells, strict=True):
            try:
                float(cell)
            except ValueError:
                what = repr(cell.strip()) if cell.strip() else "an empty cell"
                raise StudyError(
                    f"`{key}`: line {n} {of} must have a number in the column `{name}`, got {what}."
                ) from None
