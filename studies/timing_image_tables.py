"""The tables of the soft rasterizer in a timing run: by size, by look, and how time grows."""

from typing import Any

from studies.timing_cells import Table, cell, pick, threads_of
from studies.timing_growth import growth_lines
from studies.timing_laps import BOTH, FORWARD


# By faces and edge of the image [pixels]: ms that Over may take in float64 on one thread.
AIMS = {
    (1280, 128): {FORWARD: 1.5, BOTH: 4.0},
    (1280, 256): {FORWARD: 5.0, BOTH: 12.0},
    (5120, 256): {FORWARD: 7.0, BOTH: 16.0},
}
AIM_NOTE = f"aim: {FORWARD} / {BOTH} by Over in float64"


def images(result: dict[str, Any]) -> Table:
    """Return the table by faces, pixels and blend, and whether the aims are met."""
    return _image_table(
        "Soft rasterizer, a ball that fills half of the image: ms",
        result["images"],
        f"minimum (median) over the rounds; all gradients; {AIM_NOTE}",
        aim_lines(result["images"]),
    )


def looks(result: dict[str, Any]) -> Table:
    """Return the table of shadings, beside flat faces."""
    mine = result.get("looks", [])  # runs of earlier versions have none
    threads = {row["threads"]: threads_of(row) for row in mine}
    columns = [(what, n) for what in (FORWARD, BOTH) for n in threads]
    table = Table(
        "Soft rasterizer, the ball by how it is shaded: ms, and how many times flat faces",
        [
            *("faces", "pixels", "look", *(f"{what}, {threads[n]}" for what, n in columns)),
            *(f"{what}, {threads[n]} x" for what, n in columns),
        ],
        note="minimum (median) over the rounds, and of the ratios; all gradients; phong: smooth "
        "normals and a highlight",
    )
    keys = ("faces", "pixels", "look")
    for kind in dict.fromkeys(tuple(row[key] for key in keys) for row in mine):
        here = pick(mine, **dict(zip(keys, kind, strict=True)))
        by = [pick(here, **{"pass": what}, threads=n) for what, n in columns]
        ratios = [rows[0]["ratio"] if rows else None for rows in by]
        table.rows.append(
            [
                *(str(kind[0]), f"{kind[1]}²", kind[2]),
                *(cell(rows, "ms", 2) for rows in by),
                *(f"{each['min']:.2f} ({each['median']:.2f})" if each else "-" for each in ratios),
            ]
        )
    return table


def growth(result: dict[str, Any]) -> Table:
    """Return the table where pixels or faces grow, and how time grows with them."""
    return _image_table(
        "Soft rasterizer, cost over pixels and over faces: ms",
        result.get("growth", []),
        "minimum (median) over every third round; all gradients; 12 faces are a cube, which "
        "covers less; the softness of an edge is fixed on the screen, so that it takes more "
        f"pixels of a larger image; {AIM_NOTE}",
        growth_lines(result.get("growth", [])),
    )


def aim_of(row: dict[str, Any]) -> dict[str, float]:
    """Return the aims at what a row times, by pass [ms]; none of other blends and dtypes."""
    is_meant = row["blend"] == "over" and row["dtype"] == "float64"
    return AIMS.get((row["faces"], row["pixels"]), {}) if is_meant else {}


def aim_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return how many aims the minima on one thread meet, and which they miss."""
    timed = [row for row in pick(rows, threads=1) if row["pass"] in aim_of(row)]
    missed = [row for row in timed if row["ms_min"] > aim_of(row)[row["pass"]]]
    if not timed:
        return []
    met = f"{len(timed) - len(missed)} of {len(timed)} aims are met by the minimum on one thread"
    said = [
        f"{row['faces']} faces at {row['pixels']}², {row['pass']}: {row['ms_min']:.2f} ms "
        f"({row['ms_on_core']:.2f} on a core), aim {aim_of(row)[row['pass']]:g}"
        for row in missed
    ]
    return [f"{met}{': missed ' if said else ''}{'; '.join(said)}."]


def _image_table(title: str, mine: list[dict[str, Any]], note: str, conclusion: list[str]) -> Table:
    threads = list(dict.fromkeys(row["threads"] for row in mine))
    columns = [(what, n) for what in (FORWARD, BOTH) for n in threads]
    speedups = [what for what in (FORWARD, BOTH) if len(threads) > 1]
    most = max(threads, default=1)
    header = ["faces", "pixels", "blend", *(f"{what}, {n} thr" for what, n in columns)]
    header += [f"{what}, {most} thr x" for what in speedups]
    has_aims = 1 in threads and any(aim_of(row) for row in mine)
    header += ["aim, 1 thr"] if has_aims else []
    table = Table(title, header, note=note, conclusion=conclusion)
    for faces, pixels, blend in dict.fromkeys((r["faces"], r["pixels"], r["blend"]) for r in mine):
        here = pick(mine, faces=faces, pixels=pixels, blend=blend)
        cells = [cell(pick(here, **{"pass": what}, threads=n), "ms", 2) for what, n in columns]
        cells += [_speedup(pick(here, **{"pass": what}), most) for what in speedups]
        aims = " / ".join(f"{aim:g}" for aim in aim_of(here[0]).values())
        cells += [aims or "-"] if has_aims else []
        table.rows.append([str(faces), f"{pixels}²", blend, *cells])
    return table


def _speedup(rows: list[dict[str, Any]], threads: int) -> str:
    """How many times the rate of one thread that of `threads` is."""
    one, many = pick(rows, threads=1), pick(rows, threads=threads)
    return f"{one[0]['ms_min'] / many[0]['ms_min']:.2f}" if one and many else "-"
