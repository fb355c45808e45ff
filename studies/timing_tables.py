"""The tables of a timing run: built once, shown in the terminal and in the report."""

import os
from typing import Any

from studies.timing_cells import Table, cell, fastest, pick, threads_of
from studies.timing_image_tables import growth, images, looks
from studies.timing_laps import BOTH, BOTH_MASS, BUDGETED, FORWARD, STORED


HIGH_LOAD = 0.5  # processes that run besides, per core
HIGH_OFF_CORE = 0.05  # share of the time that a lap waited for a core
# Steps/s that 2048 triangles with hinges must reach, on one core in float64.
SMOKE_SIZE, SMOKE_BAR = (110, 100), 500.0  # cells along an edge and steps; ms for both passes
CLOTH_SIZE, CLOTH_BAR = 2048, {FORWARD: 12_000, BOTH: 4_500}


def tables(result: dict[str, Any]) -> list[Table]:
    """Return every table that the result has rows for."""
    dtypes = list(dict.fromkeys(row["dtype"] for row in result["tets"]))
    found = [_tets(result, dtype, viscous=viscous) for dtype in dtypes for viscous in (False, True)]
    found += [_on_core(result), _rates(result), _cloth(result), _smoke(result), _worlds(result)]
    found += [_checkpoint(result), images(result), looks(result), growth(result)]
    found += [_peers(result), _absent(result)]
    return [table for table in found if table.rows]


def warnings(result: dict[str, Any]) -> list[str]:
    """Return what makes the numbers doubtful."""
    cores = result["machine"]["cores"] or os.cpu_count() or 1
    found = []
    if (load := result["load"]["before"][0]) > HIGH_LOAD * cores:
        found.append(f"The machine was busy before the run: load {load:.1f} on {cores} cores.")
    if (off := result["off_core"]) > HIGH_OFF_CORE:
        found.append(
            f"Single-threaded laps waited for a core during {100.0 * off:.0f} % of their time."
        )
    if found:
        found.append("Trust the minima more than the medians, and repeat on a quiet machine.")
    doubtful = [
        f"{row['name']} does not compute what adjsim does, {_problem(row)}: difference "
        f"{row['difference']:.1e}. Its times compare nothing."
        for row in result["peers"]
        if not row["agrees"]
    ]
    return [*found, *dict.fromkeys(doubtful)]


def machine_line(result: dict[str, Any]) -> str:
    """Return the machine and its load in one line."""
    machine, load = result["machine"], result["load"]
    gpu = f", {machine['gpu']}" if machine["gpu"] else ""
    return (
        f"{machine['processor']}, {machine['cores']} cores{gpu}; load {load['before'][0]:.2f} "
        f"before, {load['after'][0]:.2f} after; {result['rounds']} rounds"
    )


def sizes(result: dict[str, Any]) -> list[int]:
    """Return the numbers of tetrahedra as asked for."""
    return list(dict.fromkeys(row["size"] for row in result["tets"]))


def _tets(result: dict[str, Any], dtype: str, *, viscous: bool) -> Table:
    mine = pick(result["tets"], dtype=dtype, viscosity=viscous)
    threads = {row["threads"]: threads_of(row) for row in mine}
    passes = {FORWARD: "forward", BOTH: "+ reverse", BOTH_MASS: "+ mass"}
    columns = [(what, n) for what in passes for n in threads]
    header = ["tets", *(f"{passes[what]}, {threads[n]}" for what, n in columns)]
    rows = []
    for size in sizes(result) if mine else []:
        here = pick(mine, size=size)
        cells = [cell(pick(here, **{"pass": what}, threads=n)) for what, n in columns]
        rows.append([str(here[0]["tets"]), *cells, f"{here[0]['tape_bytes']:,}"])
    return Table(
        f"Tetrahedra on a floor with friction, {'viscosity, ' if viscous else ''}{dtype}: "
        "ns per tetrahedron and step",
        [*header, "tape B/step"],
        rows,
        "minimum (median) over the rounds; + reverse: forward storing every state, and the "
        "gradient of everything but mass; + mass: with it",
    )


def _on_core(result: dict[str, Any]) -> Table:
    """Time on a core only: shown where a busy machine hides what one thread can do."""
    names = {FORWARD: "forward", BOTH: "+ reverse", BOTH_MASS: "+ mass"}
    mine = [row for row in result["tets"] if row["threads"] == 1]
    kinds = dict.fromkeys((row["dtype"], row["viscosity"], row["pass"]) for row in mine)
    table = Table(
        "One thread, its time on a core only: ns per tetrahedron and step",
        ["tets", *(f"{d[0]}{d[5:]}{' visc' if v else ''} {names[p]}" for d, v, p in kinds)],
        note="minimum over the rounds, what other processes took left out",
    )
    for size in sizes(result) if result["off_core"] > HIGH_OFF_CORE else []:
        here = pick(mine, size=size)
        rows = [fastest(pick(here, dtype=d, viscosity=v, **{"pass": p})) for d, v, p in kinds]
        cells = [f"{row['ns_on_core']:.1f}" if row else "-" for row in rows]
        table.rows.append([str(here[0]["tets"]) if here else str(size), *cells])
    return table


def _rates(result: dict[str, Any]) -> Table:
    header = ["tets"]
    dtypes = list(dict.fromkeys(row["dtype"] for row in result["tets"]))
    for dtype in dtypes:
        header += [f"forward, {dtype}", f"forward + reverse, {dtype}"]
    header += ["paper forward", "paper backward", "ratio forward", "ratio reverse"]
    paper = result["paper"]
    rows = []
    for size in sizes(result):
        here = pick(result["tets"], size=size, viscosity=result["tets"][0]["viscosity"])
        row, best = [str(here[0]["tets"])], {FORWARD: 0.0, BOTH: 0.0}
        for dtype in dtypes:
            for what in (FORWARD, BOTH):
                found = fastest(pick(here, **{"pass": what}, dtype=dtype))
                rate = found["steps_per_s"] if found else 0.0
                best[what] = max(best[what], rate)
                row.append(f"{rate:,.0f}")
        rates = [paper[what].get(str(size)) for what in ("forward", "backward")]
        row += [f"{rate:,}" if rate else "-" for rate in rates]
        pairs = zip(best.values(), rates, strict=True)
        rows.append([*row, *(f"{mine / rate:.0f} x" if rate else "-" for mine, rate in pairs)])
    return Table(
        "Steps per second, best number of threads, beside the paper",
        header,
        rows,
        f"paper: {paper['hardware']}; another machine, no contact. Its backward is compared "
        "with our forward + reverse",
    )


def _cloth(result: dict[str, Any]) -> Table:
    threads = {row["threads"]: threads_of(row) for row in result["cloth"]}
    table = Table(
        "A hanging sheet with hinges: us per step, and steps per second",
        [
            *("triangles", "hinges", "dtype", "pass", *(f"{n}, us" for n in threads.values())),
            *(f"{n}, steps/s" for n in threads.values()),
            *("1 thr on a core, steps/s", "bar, 1 thr"),
        ],
        note="minimum (median) over the rounds; on a core: what other processes took left out; "
        f"bar: of {CLOTH_SIZE} triangles in float64",
    )
    keys = ("triangles", "hinges", "dtype", "pass")
    for kind in dict.fromkeys(tuple(row[key] for key in keys) for row in result["cloth"]):
        here = pick(result["cloth"], **dict(zip(keys, kind, strict=True)))
        by = [pick(here, threads=n) for n in threads]
        alone = [row["us_on_core"] for row in here if row["us_on_core"]]
        has_bar = kind[0] == CLOTH_SIZE and kind[2] == "float64" and kind[3] in CLOTH_BAR
        table.rows.append(
            [
                *map(str, kind),
                *(cell(rows, "us") for rows in by),
                *(f"{rows[0]['steps_per_s']:,.0f}" if rows else "-" for rows in by),
                f"{1e6 / alone[0]:,.0f}" if alone else "-",
                f"{CLOTH_BAR[kind[3]]:,}" if has_bar else "-",
            ]
        )
    return table


def _smoke(result: dict[str, Any]) -> Table:
    mine = result.get("smoke", [])  # runs of earlier versions have none
    threads = {row["threads"]: threads_of(row) for row in mine}
    table = Table(
        "Smoke on a square grid, the whole rollout: ms",
        ["grid", "steps", "dtype", "pass", *threads.values(), "1 thr on a core", "bar"],
        note="minimum (median) over the rounds, through the public calls; reverse: the gradient "
        "of the first velocity; on a core: what other processes took left out; bar: the fastest "
        "on two cores in float64",
    )
    keys = ("cells", "steps", "dtype", "pass")
    for kind in dict.fromkeys(tuple(row[key] for key in keys) for row in mine):
        here = pick(mine, **dict(zip(keys, kind, strict=True)))
        alone = [row["ms_on_core"] for row in here if row["ms_on_core"]]
        has_bar = kind == (*SMOKE_SIZE, "float64", BOTH)
        table.rows.append(
            [
                f"{kind[0]}²",
                *map(str, kind[1:]),
                *(cell(pick(here, threads=n), "ms") for n in threads),
                f"{alone[0]:.1f}" if alone else "-",
                f"{SMOKE_BAR:.0f}" if has_bar else "-",
            ]
        )
    return table


def _worlds(result: dict[str, Any]) -> Table:
    table = Table(
        "Worlds of one batch beside one large block, float64: ns per tetrahedron and step",
        [
            *("worlds", "tets each", "contacts", "pass", "threads", "batch", "block of"),
            *("contacts of it", "block"),
            *("ratio", "on a core"),
        ],
        note="minimum (median) over the rounds; ratio of the minima (median of the ratios); on a "
        "core: what other processes took left out; contacts: nodes that may touch the floor, per "
        "tetrahedron, of which the skins of small blocks have more",
    )
    for row in result.get("worlds", []):  # runs of earlier versions have none
        ratio = f"{row['ratio']['min']:.2f} ({row['ratio']['median']:.2f})"
        contacts, whole = (
            f"{row[key]:.2f}" if key in row else "-" for key in ("contacts", "whole_contacts")
        )
        head = [str(row["worlds"]), str(row["each"]), contacts, row["pass"], threads_of(row)]
        cells = [cell([row]), str(row["whole"]), whole, cell([row], "whole_ns")]
        alone = row["ratio_on_core"]
        table.rows.append([*head, *cells, ratio, f"{alone:.2f}" if alone else "-"])
    return table


def _checkpoint(result: dict[str, Any]) -> Table:
    table = Table(
        "A gradient within a memory budget, through the public calls, float64",
        ["tets", "steps", "store-all", "in budget", "forward steps", "ratio"],
        note="ratio of the minima (median of the ratios)",
    )
    if (found := result["checkpoint"]) is not None:
        megabytes = {name: n / 1e6 for name, n in found["bytes"].items()}
        cells = [
            f"{found['seconds'][name]:.3f} s, {megabytes[name]:.1f} MB"
            for name in (STORED, BUDGETED)
        ]
        extra = found["forward_steps"][BUDGETED] / found["steps"]
        ratio = f"{found['ratio']['min']:.2f} ({found['ratio']['median']:.2f})"
        table.rows.append(
            [str(found["tets"]), str(found["steps"]), *cells, f"{extra:.2f} x", ratio]
        )
    return table


def _peers(result: dict[str, Any]) -> Table:
    table = Table(
        "Other packages in the same rounds, and how many times our time they take",
        ["package", "version", "problem", "pass", "time", "ratio", "difference", "of gradient"],
        note="all cores; tetrahedra in float32; ratio of the minima (median of the ratios) to "
        "our fastest; difference: of the last positions over the largest displacement, or the "
        "share of pixels covered in one image only; of the gradient by mu",
    )
    versions = {package["name"]: package["version"] or "" for package in result["packages"]}
    for row in result["peers"]:
        is_tets = "tets" in row
        ratio = row["ratio"]
        table.rows.append(
            [
                row["name"],
                versions.get(row["name"], ""),
                _problem(row),
                row["pass"],
                f"{cell([row])} ns" if is_tets else f"{cell([row], 'ms', 2)} ms",
                f"{ratio['min']:.1f} ({ratio['median']:.1f})" if ratio else "-",
                _small(row["difference"]),
                _small(row["grad_difference"]),
            ]
        )
    return table


def _problem(row: dict[str, Any]) -> str:
    if "tets" in row:
        return f"{row['tets']} tetrahedra"
    return f"{row['faces']} faces, {row['pixels']}²"


def _small(value: float | None) -> str:
    return "-" if value is None else f"{value:.0e}"


def _absent(result: dict[str, Any]) -> Table:
    rows = [
        [package["name"], package["missing"], package["note"]]
        for package in result["packages"]
        if package["missing"]
    ]
    return Table("Packages not timed", ["package", "why", "what would be timed"], rows)
