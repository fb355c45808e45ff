"""The axes of a scan: `KEY=START:STOP:NUM`, evenly spaced, or `:log` in their logarithm."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.runs.errors import StudyError


MOST = 1_000_000  # points of a scan
FORM = "KEY=START:STOP:NUM or KEY=START:STOP:NUM:log"
ROUNDING = 1e-9  # of a value that has to be a whole number


@dataclass(frozen=True)
class Axis:
    """Values of one key: the path of a value in the scene, or of a number of the scene file."""

    key: str
    start: float
    stop: float
    count: int
    is_log: bool = False

    @property
    def values(self) -> np.ndarray:
        """The values, (count,)."""
        space = np.geomspace if self.is_log else np.linspace
        values = space(self.start, self.stop, self.count)
        near = np.rint(values)
        is_whole = np.abs(values - near) <= ROUNDING * np.maximum(1.0, np.abs(near))
        return np.where(is_whole, near, values)  # 8 is 8, not 7.999999999999999

    @property
    def numbers(self) -> list[float] | list[int]:
        """The values, as whole numbers where all of them are."""
        values = self.values
        return [int(v) for v in values] if (values == np.rint(values)).all() else values.tolist()

    @property
    def text(self) -> str:
        """The axis as the command line takes it."""
        tail = ":log" if self.is_log else ""
        return f"{self.key}={self.start!r}:{self.stop!r}:{self.count}{tail}"

    def place(self, value: float) -> float:
        """Return where a value lies, counted in steps of the axis from its first value."""
        if self.count == 1:
            return 0.0
        ends = np.array([self.start, self.stop, value])
        if self.is_log:
            if value <= 0.0:
                return -np.inf
            ends = np.log(ends)
        return float((ends[2] - ends[0]) / (ends[1] - ends[0]) * (self.count - 1))

    def require_whole(self) -> None:
        """Raise if not all values are whole numbers."""
        off = self.values[self.values != np.rint(self.values)]
        if off.size:
            raise StudyError(
                f"`--over {self.text}`: `{self.key}` is a whole number, but one value would be "
                f"{off[0]:g}. Choose NUM so that all are whole, as in "
                f"{self.key}={self.start:g}:{self.stop:g}:{round(self.stop - self.start) + 1}."
            )


def parse_axis(text: str) -> Axis:
    """Return the axis of "KEY=START:STOP:NUM[:log]"; raise what is wrong with it."""
    key, _, given = text.partition("=")
    parts = given.split(":")
    is_log = len(parts) == 4 and parts[3].strip() == "log"
    if not key.strip() or len(parts) != (4 if is_log else 3):
        raise StudyError(f"`--over` must read {FORM}, got {text!r}. E.g. beam.E=1e5:4e5:31.")
    try:
        start, stop, count = float(parts[0]), float(parts[1]), int(parts[2])
    except ValueError as error:
        raise StudyError(
            f"`--over {text}`: START and STOP must be numbers and NUM a whole one. It reads {FORM}."
        ) from error
    if not 1 <= count <= MOST:
        raise StudyError(f"`--over {text}`: NUM must be from 1 to {MOST}, got {count}.")
    if not (np.isfinite(start) and np.isfinite(stop)) or (start >= stop and count > 1):
        raise StudyError(
            f"`--over {text}`: START must be less than STOP, both finite. For one value alone "
            "NUM is 1."
        )
    if is_log and start <= 0.0:
        raise StudyError(
            f"`--over {text}`: a logarithmic axis must have START > 0, got {start:g}. Leave "
            "`:log` out, or begin above 0."
        )
    return Axis(key.strip(), start, stop, count, is_log)


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes of a scan, each key once."""
    axes = tuple(parse_axis(text) for text in texts)
    keys = [axis.key for axis in axes]
    if twice := sorted(key for key in keys if keys.count(key) > 1):
        raise StudyError(f"`--over` must name each key once, got `{twice[0]}` twice.")
    if (total := math.prod(axis.count for axis in axes)) > MOST:
        raise StudyError(f"`--over` must give at most {MOST} points in all, got {total:.2g}.")
    return axes
