"""The results as tables, in the terminal and for pages."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

from benchmarks.timing.laps import BOTH, FORWARD, GPU


UNITS = {
    "tets": (1e9, "ns per tetrahedron and step"),
    "cloth": (1e6, "us per step"),
    "worlds": (1e9, "ns per tetrahedron and step"),
    "peers: tetrahedra": (1e9, "ns per tetrahedron and step, float32, all cores"),
}
MILLISECONDS = (1e3, "ms")
Row = dict[str, Any]


def show(rows: Sequence[Row], console: Console) -> None:
    """Print a table for each part."""
    for name in dict.fromkeys(row["part"] for row in rows):
        header, *cells = part_table([row for row in rows if row["part"] == name])
        table = Table(title=f"{name}: minimum over the rounds", title_justify="left")
        for column in header:
            table.add_column(column, justify="left" if column in header[:2] else "right")
        for texts in cells:
            table.add_row(*texts)
        console.print(table)


def part_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return the minima of a part over the rounds by number of threads, as a table of texts.

    "ratio" is the median over the rounds, on each number of threads; "CPU/GPU" is the time on the
    best number of threads over that on the GPU.
    """
    scale, unit = UNITS.get(rows[0]["part"], MILLISECONDS)
    threads = list(dict.fromkeys(row["threads"] for row in rows))
    has_gain, has_ratios = GPU in threads and len(threads) > 1, any(row["ratio"] for row in rows)
    columns = [{0: "GPU", 1: "1 thread"}.get(n, f"{n} threads") for n in threads]
    more = ["ratio"] * has_ratios + ["CPU/GPU"] * has_gain
    table = [[unit, "pass", *columns, *more]]
    for case, kind in dict.fromkeys((row["case"], row["kind"]) for row in rows):
        here = {r["threads"]: r for r in rows if (r["case"], r["kind"]) == (case, kind)}
        cells = [_digits(scale * here[n]["min"]) if n in here else "" for n in threads]
        if has_ratios:
            ratios = [row["ratio"]["median"] for row in here.values() if row["ratio"]]
            cells.append(", ".join(f"{ratio:.2f}" for ratio in ratios))
        table.append([case, kind, *cells, *([_gain(here)] if has_gain else [])])
    return table


def _digits(number: float) -> str:
    """Return a positive number with three digits, never as a power of ten."""
    return np.format_float_positional(number, 3, fractional=False, trim="-")


def _gain(rows: dict[int, Row]) -> str:
    cpu = [row["min"] for threads, row in rows.items() if threads != GPU]
    return f"{min(cpu) / rows[GPU]['min']:.2g}" if cpu and GPU in rows else ""


def contact_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return what contact costs on one thread, as a table of texts: ms a step, and ratios."""
    table = [["scene", "forward [ms]", "to no contact", "with reverse [ms]", "to no contact"]]
    alone = [row for row in rows if row["ratio"] and row["threads"] == 1]
    by_case = {(row["case"], row["kind"]): row for row in alone}
    for case in dict.fromkeys(case for case, _ in by_case):
        cells = [case]
        for kind in (FORWARD, BOTH):
            row = by_case[case, kind]
            cells += [f"{1e3 * row['min']:.2g}", f"{row['ratio']['median']:.1f}"]
        table.append(cells)
    return table


def tets_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return what a step takes on one thread, as a table of texts: by tetrahedron, and by second.

    The part `tets` has cases such as "1000 tetrahedra", of which those with viscosity are left out.
    """
    table = [["tetrahedra", "forward", "forward + reverse", "steps/s forward", "both"]]
    alone = [row for row in rows if row["part"] == "tets" and row["threads"] == 1]
    by_case = {(row["case"], row["kind"]): row["min"] for row in alone}
    for case in dict.fromkeys(case for case, _ in by_case if case.endswith(" tetrahedra")):
        count = int(case.split()[0])
        seconds = [by_case[case, kind] for kind in (FORWARD, BOTH)]  # a tetrahedron and step
        table.append([
            f"{count:_}".replace("_", " "), *(f"{1e9 * each:.1f} ns" for each in seconds),
            *(f"{float(f'{1.0 / (count * each):.3g}'):_.0f}".replace("_", " ") for each in seconds),
        ])  # fmt: skip
    return table


def growth_lines(rows: Sequence[Row]) -> list[str]:
    """Return how the time of an image on one thread grows with covered pixels and with faces.

    A sum with coefficients of at least 0 is fitted to the least sum of squares of the relative
    errors; "within a factor" is the largest error.
    """
    lines = []
    mine = [row for row in rows if row["part"] == "images" and row["threads"] == 1]
    mine = [row for row in mine if not row["look"] and row["blend"] == "over"]
    for kind in dict.fromkeys(row["kind"] for row in mine):
        here = [row for row in mine if row["kind"] == kind]
        seconds = np.array([row["on_core"] for row in here])
        terms = [[1.0, row["covered"], row["faces"]] for row in here] / seconds[:, None]
        scale = terms.max(axis=0)
        sums = nnls(terms / scale, np.ones(len(here)))[0] / scale
        ratios = terms @ sums
        fixed, per_pixel, per_face = sums
        lines.append(
            f"images, {kind}, over {len(here)} sizes: {1e3 * fixed:.2f} ms + {1e9 * per_pixel:.0f} "
            f"ns for each covered pixel + {1e9 * per_face:.0f} ns for each face, within a factor "
            f"of {max(ratios.max(), 1 / ratios.min()):.2f}"
        )
    return lines


def rate_lines(rows: Sequence[Row]) -> list[str]:
    """Return steps per second of tetrahedra and cloth on the best number of threads."""
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["part"] in ("tets", "cloth"):
            each = row["min"] * (int(row["case"].split()[0]) if row["part"] == "tets" else 1)
            key = (row["case"], row["kind"])
            best[key] = max(best.get(key, 0.0), 1.0 / each)
    return [
        f"{case}, {kind}: {rate:,.0f} steps/s"
        for (case, kind), rate in best.items()
        if kind == FORWARD or "mass" not in kind
    ]
