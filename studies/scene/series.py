"""What varies in time: series from CSV files, and policies.

A CSV file has a column `time` [s], and one column for each value.
"""

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from adjsim.courses import Policy, Signal, TimeCourse
from studies.runs.errors import StudyError
from studies.scene.maps import Arrays


METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}


@dataclass(frozen=True, eq=False)
class Series:
    """Values (n,) or (n, k) at times (n,) [s], linear between them."""

    times: np.ndarray
    values: np.ndarray

    def course(self, dt: float, values: np.ndarray | None = None) -> Signal:
        """Return it over the steps of dt [s], whatever `values` the system has."""
        del values
        return Signal(self.times / dt, self.values)


class FreeSeries(Series):
    """A series whose values a scene may change."""

    def course(self, dt: float, values: np.ndarray | None = None) -> Signal:
        """Return it over the steps of dt [s], with the values that the system has."""
        return Signal(self.times / dt, self.values if values is None else values)


@dataclass(frozen=True, eq=False)
class Sines:
    """A policy: its frequency [rad/s] and the bound of its output."""

    frequency: float
    scale: float

    def course(self, dt: float, values: np.ndarray | None) -> Policy:
        """Return it over the steps of dt [s] with the weights that the system has."""
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
    return {path: one.course(dt, values.get(path)) for path, one in varying.items()}


def read_series(
    key: str, file: str, n_values: Collection[int], named: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,) [s] and values (n,), or (n, k) where there are several columns.

    `n_values` are the numbers of columns of values that there may be. Where the file has all
    columns that are `named`, these are the values, whatever other columns there are.

    Raises
    ------
    StudyError
        The file cannot be read, or has other columns, or times that do not increase.
    """
    path = Path(file)
    names, numbers = read_columns(path, key, {"time"})
    if named and set(named) <= set(names):
        numbers = numbers[:, [names.index(name) for name in ("time", *named)]]
        names = ["time", *named]
    if len(names) - 1 not in n_values:
        rest = f", or more with `{'`, `'.join(named)}` among them" if named else ""
        raise StudyError(
            f"`{key}`: {path} must have {' or '.join(map(str, sorted(n_values)))} column(s) beside "
            f"`time`{rest}, got {len(names) - 1}: {', '.join(n for n in names if n != 'time')}."
        )
    if not len(numbers) or not np.isfinite(numbers).all():
        raise StudyError(f"`{key}`: {path} must have {len(names)} finite numbers in every row.")
    at = names.index("time")
    times, values = numbers[:, at], np.delete(numbers, at, axis=1)
    if not (np.diff(times) > 0.0).all():
        raise StudyError(f"`{key}`: the times in {path} must increase from row to row.")
    return times, values[:, 0] if values.shape[1] == 1 else values


def read_columns(path: Path, key: str, needed: Collection[str]) -> tuple[list[str], np.ndarray]:
    """Return the k columns' names in the first line of a CSV file, and its numbers, (n, k).

    Raises
    ------
    StudyError
        The file cannot be read, lacks a column of those `needed`, or has rows of
        another length or of something else than numbers.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            names = [name.strip() for name in next(filter(None, csv.reader(stream)), [])]
            lines = [line for line in stream if line.strip()]
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise StudyError(f"`{key}`: {path} cannot be read as a CSV file: {error}.") from error
    if missing := [name for name in needed if name not in names]:
        raise StudyError(
            f"`{key}`: {path} must have a column `{missing[0]}`, got the columns "
            f"{', '.join(names) or 'none'}. The first line names the columns."
        )
    if not lines:
        return names, np.zeros((0, len(names)))
    try:
        numbers = np.loadtxt(lines, delimiter=",", comments=None, quotechar='"', ndmin=2)
    except ValueError as error:
        raise StudyError(f"`{key}`: {path} must hold numbers: {error}.") from error
    if numbers.shape[1] != len(names):
        raise StudyError(
            f"`{key}`: {path} must have {len(names)} numbers in every row, one for each of its "
            f"columns {', '.join(names)}, got {numbers.shape[1]}."
        )
    return names, numbers
