"""Each number of an answer as a bar: where in its range the search began and ended, how sure."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from studies.reports.content import Bar, Bars
from studies.reports.numbers import PLAIN, interval, number


MOST = 8  # bars of one answer
WIDE = 10.0  # the ends of a range of positive numbers are so many times apart: a log scale
ROOM = 0.15  # of a range without bounds, beyond what is marked, on either side
NOTATIONS = PLAIN, (-5, 10), (0, 0)  # powers of ten that the ends of a bar write out: none at last
THIN = 0.4  # percent of the bar: the least width of an interval


def answer_bars(rows: Sequence[Mapping[str, Any]]) -> Bars | None:
    """Return the bars of the single numbers of an answer; None without any."""
    numbers = [row for row in rows if row["count"] == 1 and math.isfinite(row["estimate"])]
    return Bars(tuple(map(_bar, numbers[:MOST]))) if numbers else None


def _bar(row: Mapping[str, Any]) -> Bar:
    low, high = row.get("bounds") or _range(row)
    at = _scale(low, high)
    ends = row.get("interval") or (row["estimate"], row["estimate"])
    first, last = at(ends[0]), at(ends[1])
    middle, width = 0.5 * (first + last), max(last - first, THIN)
    unit = row["unit"].strip("-")
    truth = row.get("truth")
    return Bar(
        label=f"{row['name']} [{unit}]" if unit else row["name"],
        ends=_ends(low, high),
        interval=(max(middle - 0.5 * width, 0.0), width),
        answer=at(row["estimate"]),
        start=at(row["start"]),
        truth=None if truth is None else at(truth),
        alt=f"{row['name']}: {number(row['estimate'])} {unit}, {interval(dict(row))}".replace(
            "\n", ", "
        ),
    )


def _ends(low: float, high: float) -> tuple[str, str]:
    """Return the ends of a bar in words, both in the same notation."""
    texts = "", ""
    for plain in NOTATIONS:
        texts = number(low, plain=plain), number(high, plain=plain)
        if len({"×" in text for text in texts if text != "0"}) < 2:
            break
    return texts


def _range(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return ends that hold what is marked of a number without bounds."""
    marked = [row["start"], row["estimate"], *(row.get("interval") or ())]
    marked += [row["truth"]] if row.get("truth") is not None else []
    low, high = min(marked), max(marked)
    room = ROOM * (high - low) or abs(high) or 1.0
    return low - room, high + room


def _scale(low: float, high: float) -> Callable[[float], float]:
    """Return where between the ends a number lies [percent]."""
    is_log = low > 0.0 and high > WIDE * low

    def at(value: float) -> float:
        if is_log:
            share = math.log(max(value, low) / low) / math.log(high / low)
        else:
            share = (value - low) / (high - low)
        return round(100.0 * min(max(share, 0.0), 1.0), 2)

    return at
