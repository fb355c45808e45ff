"""The results as a table in the terminal."""

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
    """Print a table for each part: minimum (median) over the rounds by number of threads.

    "CPU/GPU" is the time on the best number of threads over that on the GPU.
    """
    for group in dict.fromkeys(row["part"] for row in rows):
        mine = [row for row in rows if row["part"] == group]
        scale, unit = UNITS.get(group, MILLISECONDS)
        threads = list(dict.fromkeys(row["threads"] for row in mine))
        gain = ["CPU/GPU"] if GPU in threads and len(threads) > 1 else []
        table = Table(title=f"{group}: {unit}, minimum (median)", title_justify="left")
        for name in (
            "what",
            "pass",
            *(f"{n} thr" if n else "GPU" for n in threads),
            "ratio",
            *gain,
        ):
            table.add_column(name, justify="left" if name in ("what", "pass") else "right")
        for case, kind in dict.fromkeys((row["case"], row["kind"]) for row in mine):
            here = {r["threads"]: r for r in mine if (r["case"], r["kind"]) == (case, kind)}
            times = [_time(here.get(n), scale) for n in threads]
            ratios = [row["ratio"] for row in here.values() if row["ratio"]]
            both = " / ".join(f"{each['min']:.2f} ({each['median']:.2f})" for each in ratios)
            table.add_row(case, kind, *times, both, *([_gain(here)] if gain else []))
        console.print(table)


def _gain(rows: dict[int, Row]) -> str:
    cpu = [row["min"] for threads, row in rows.items() if threads != GPU]
    return f"{min(cpu) / rows[GPU]['min']:.2g}" if cpu and GPU in rows else ""


def _time(row: Row | None, scale: float) -> str:
    return "" if row is None else f"{scale * row['min']:.4g} ({scale * row['median']:.4g})"


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
