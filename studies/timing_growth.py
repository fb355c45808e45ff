r"""How the time of an image grows with what it shows.

    t = fixed + per pixel * covered pixels + per face * faces

with coefficients of at least 0, fitted to the least sum of squares of the relative errors; and
exponents, the slopes of log t by the logarithm of the size that grows.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from studies.timing_cells import pick
from studies.timing_laps import BOTH, FORWARD


LEAST_ROWS = 5  # a sum of three terms meets any three times
FAR_OFF = 2.0  # a sum that misses a time by more than this factor does not describe it


@dataclass(frozen=True)
class Growth:
    """Time as a sum, in ms, and the largest factor by which it misses a time."""

    fixed: float
    per_pixel: float
    per_face: float
    off: float


def fit_sum(covered: np.ndarray, faces: np.ndarray, ms: np.ndarray) -> Growth:
    """Return the sum that fits times of covered pixels and faces best, (n,) each."""
    columns = np.stack([np.ones(len(ms)), covered, faces], axis=1) / ms[:, None]
    scale = columns.max(axis=0)
    found, _ = nnls(columns / scale, np.ones(len(ms)))
    fixed, per_pixel, per_face = found / scale
    ratios = columns @ (found / scale)
    return Growth(
        float(fixed), float(per_pixel), float(per_face), float(max(ratios.max(), 1 / ratios.min()))
    )


def exponent(sizes: np.ndarray, ms: np.ndarray) -> float:
    """Return the slope of log time by log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(ms), 1)[0])


def growth_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return what the rows of the growth table say of the fewest threads, a sentence a line.

    Of one thread it is the time on a core, in which other processes matter less. Empty where one
    of the two sizes does not grow, or of runs of earlier versions.
    """
    mine = [row for row in rows if "covered" in row]
    mine = pick(mine, threads=min((row["threads"] for row in mine), default=1))
    lines, off = [], 0.0
    for what in (FORWARD, BOTH):
        here = pick(mine, **{"pass": what})
        by_pixels, by_faces = _sweep(here, "faces", "covered"), _sweep(here, "pixels", "faces")
        if min(len(by_pixels), len(by_faces)) < 2 or len(here) < LEAST_ROWS:
            return []
        found = fit_sum(_array(here, "covered"), _array(here, "faces"), _times(here))
        off = max(off, found.off)
        lines.append(
            f"{what}, {_kind(here)}: {found.fixed:.2f} ms + {1e6 * found.per_pixel:.0f} ns for "
            f"each covered pixel + {1e6 * found.per_face:.0f} ns for each face is within a "
            f"factor of {found.off:.2f} of all {len(here)} times. By covered pixels alone time "
            f"goes as the power {_exponents(by_pixels, 'covered', 'pixels', '²')}, by faces alone "
            f"{_exponents(by_faces, 'faces', 'faces', '')}."
        )
    verdict = "grows" if off <= FAR_OFF else "does not grow just"
    return [
        *lines,
        f"Where one of the two grows, time {verdict} with covered pixels plus faces: the sums are "
        f"off {off:.2f} x.",
    ]


def _sweep(rows: list[dict[str, Any]], fixed: str, size: str) -> list[dict[str, Any]]:
    """Return the rows of the value of `fixed` that most rows have, by `size`."""
    counts = Counter(row[fixed] for row in rows)
    value = max(counts, key=lambda key: counts[key], default=None)
    return sorted(pick(rows, **{fixed: value}), key=lambda row: row[size])


def _array(rows: list[dict[str, Any]], key: str) -> np.ndarray:
    return np.array([row[key] for row in rows], float)


def _times(rows: list[dict[str, Any]]) -> np.ndarray:
    """Return the times on a core where they are known, else the minima [ms]."""
    return _array(rows, "ms_on_core" if all(row["ms_on_core"] for row in rows) else "ms_min")


def _kind(rows: list[dict[str, Any]]) -> str:
    is_one = all(row["ms_on_core"] for row in rows)
    return "1 thread, on a core" if is_one else f"{rows[0]['threads']} threads"


def _exponents(rows: list[dict[str, Any]], size: str, shown: str, unit: str) -> str:
    sizes, ms = _array(rows, size), _times(rows)
    before, last = (f"{row[shown]}{unit}" for row in rows[-2:])
    return f"{exponent(sizes, ms):.2f}, from {before} to {last} {exponent(sizes[-2:], ms[-2:]):.2f}"
