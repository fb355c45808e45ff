"""Numbers in words: as many digits as their interval carries."""

import math
from typing import Any

from studies.answer.scales import NARROWEST


SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NARROW = "\u202f"  # between groups of three digits
MOST_DIGITS = 6
PLAIN = (-3, 6)  # powers of ten that are written out


def number(value: float, uncertainty: float | None = None, plain: tuple[int, int] = PLAIN) -> str:
    """Return a number with two digits of its uncertainty, or six significant ones without any."""
    if not math.isfinite(value):
        return "not finite"
    size = max(abs(value), uncertainty or 0.0)
    if size == 0.0:
        return "0"
    power = math.floor(math.log10(size))
    last = power - 5
    if uncertainty:
        last = max(math.floor(math.log10(uncertainty)) - 1, power - MOST_DIGITS + 1)
    if power < plain[0] or power >= plain[1]:
        mantissa = f"{value / 10.0**power:.{max(power - last, 0)}f}"
        mantissa = mantissa if uncertainty else _trimmed(mantissa)
        return f"{mantissa} × 10{str(power).translate(SUPERSCRIPT)}"
    text = f"{round(value, -last):,.{max(-last, 0)}f}".replace(",", NARROW)
    return text if uncertainty else _trimmed(text)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def estimate(row: dict[str, Any]) -> str:
    """Return the answer of a row of the result, with three significant digits or more."""
    value, half = row["estimate"], _half_width(row, "interval")
    if half and value and math.isfinite(value):
        half = min(half, 10.0 ** (math.floor(math.log10(abs(value))) - 1))
    return number(value, half)


def interval(row: dict[str, Any], key: str = "interval") -> str:
    """Return an interval of a row, "none" if it is wider than the bounds.

    `key` is "interval" or "pixel_interval".
    """
    half = _half_width(row, key)
    if half is None:
        return "none"
    relative = half / abs(row["estimate"]) if row["estimate"] else math.inf
    if relative < NARROWEST:
        return "within rounding"
    if relative < 1e-5:
        return f"± {relative:.0e} of it"
    low, high = (number(end, half) for end in row[key])
    largest = max(abs(end - row["estimate"]) for end in row[key])
    is_wide = largest >= abs(row["estimate"])  # of such a value percents say nothing
    share = "" if is_wide else f"\n± {100.0 * largest / abs(row['estimate']):.2g} %"
    return f"{low} to {high}{share}"


def truth_error(row: dict[str, Any]) -> tuple[str, str]:
    """Return how far a row's answer is off the truth: what kind of error, and its size.

    A relative error above 1 says nothing of a truth near 0: then it is in the row's unit.
    """
    if row["count"] > 1:
        text = f"{row['relative_error']:.1e}, largest {row['largest_error']:.1e}"
        return "mean relative error", text
    if row["relative_error"] > 1.0:
        off = abs(row["estimate"] - row["truth"])
        return "error", f"{off:.2g} {row['unit'].strip('-')}".rstrip()
    return "relative error", f"{row['relative_error']:.1e}"


def _half_width(row: dict[str, Any], key: str) -> float | None:
    if not row.get(key):
        return None
    low, high = row[key]
    least, most = row.get("bounds") or (-math.inf, math.inf)
    return (high - low) / 2.0 if high - low <= most - least else None


def count(number_of: int, what: str) -> str:
    """Return a number and what it counts: "1 frame", "2 frames"."""
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"
