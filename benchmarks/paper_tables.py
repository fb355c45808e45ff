"""Publish what `studies.paper.tables`, `model_errors` and `appearance` left in folders.

    python -m studies.paper.tables 1 --out runs/table-1
    python -m studies.paper.tables 1 --paper-sizes --out runs/paper-table-1
    python -m studies.paper.model_errors --out runs/errors
    python -m studies.paper.appearance --out runs/looks
    python -m benchmarks.paper_tables runs/table-1 runs/paper-table-1 runs/errors runs/looks \
        --data docs/data

A folder of table N is written as `table-N.json`, of the paper's sizes as `paper-table-N.json`, of
model errors as `paper-model-errors.json`, or `paper-path-traced.json` where these are the only
ones, and of looks as `paper-appearance.json`. Of a table of the paper's sizes that is still being
made, given its `--number`, it is what each method has done so far.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.publish import record
from studies.paper.appearance import BARS, KINDS
from studies.paper.model_errors import PUBLISHED
from studies.paper.tables import Method, TableCase, record_name, scenes_of, summed_up
from studies.runs.folder import RESULT, RunFolder


HEAD = ["number", "method", "instances", "mean", "median", "worst", "paper's mean"]
IN_WORDS = {Method.FILM: "ours, from film", Method.STATES: "3-D supervision"}
Rows = list[dict[str, Any]]


def finished(
    folder: RunFolder, number: int, seed: int, *, paper_sizes: bool
) -> dict[tuple[str, Method], list[TableCase]]:
    """Return the instances that are done, by scene and method."""
    out = {}
    for scene, more in scenes_of(number, paper_sizes=paper_sizes).items():
        for method in Method:
            k, cases = 0, []
            while folder.has(record_name(case := TableCase(scene, more, seed, k), method)):
                cases.append(case)
                k += 1
            if cases:
                out[scene, method] = cases
    return out


def table_rows(rows: Rows) -> list[list[str]]:
    """Return a table of texts with its header."""
    lines = [HEAD]
    for row in rows:
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        numbers = [f"{row[key]:.2g}" for key in ("mean", "median", "worst")]
        paper = "" if row["published"] is None else f"{row['published']:.2g}"
        method = IN_WORDS.get(Method(row["method"]), row["method"])
        name = f"`{row['scene']}`: `{row['path']}`"
        lines.append([name, str(method), f"{row['instances']}{failed}", *numbers, paper])
    return lines


def model_errors(kinds: Rows) -> dict[str, str]:
    """Return by kind the cells of its row in docs/tables.md."""
    out = {}
    for row in kinds:
        n = len(row["bodies"])
        numbers = [f"{row[key]:.2g}" for key in ("mean", "median", "worst", "scan_mean")]
        published = PUBLISHED.get(row["kind"])
        cells = ["" if published is None else f"{published:.2g}", *numbers]
        out[row["kind"]] = " | ".join(
            [*cells, f"{row['too_heavy']} of {n}", str(row["at_a_bound"])]
        )
    return out


def evaluations_by_look(searches: Rows) -> list[list[str]]:
    """Return after how many evaluations errors stay below each bar, by method and look."""
    table = [["method, and relative error", *KINDS]]
    for method in dict.fromkeys(row["method"] for row in searches):
        rows = {row["kind"]: row for row in searches if row["method"] == method}
        for bar in (f"{bar:.0e}" for bar in BARS):
            counts = [rows[kind][bar] for kind in KINDS]
            if any(counts):
                cells = ["never" if count is None else str(count) for count in counts]
                table.append([f"{method}: {bar}", *cells])
    return table


def main(
    folders: Annotated[list[Path], typer.Argument(help="Of tables, model errors and looks.")],
    *,
    data: Annotated[Path, typer.Option(help="Where the data files are.")],
    number: Annotated[int | None, typer.Option(help="Of the table, if it is not ready.")] = None,
    seed: Annotated[int, typer.Option(help="Of a table that is not ready.")] = 0,
) -> None:
    """Write data files."""
    for place in folders:
        folder = RunFolder(place)
        result = folder.read_json(RESULT) if folder.has(RESULT) else {}
        if "kinds" in result:
            kinds = [row["kind"] for row in result["kinds"]]
            command = f"python -m studies.paper.model_errors {' '.join(kinds)}"
            name = "paper-path-traced" if kinds == ["path-traced"] else "paper-model-errors"
            typer.echo(record(data, name, model_errors(result["kinds"]), command))
            continue
        if "searches" in result:
            table = {"table": evaluations_by_look(result["searches"])}
            typer.echo(
                record(data, "paper-appearance", table, "python -m studies.paper.appearance")
            )
            continue
        which = result.get("table", number)
        paper_sizes = result.get("paper_sizes", True)
        done = finished(folder, which, result.get("seed", seed), paper_sizes=paper_sizes)
        rows = [
            row for (_, method), cases in done.items() for row in summed_up(cases, method, folder)
        ]
        count = max(len(cases) for cases in done.values())
        sizes, prefix = (" --paper-sizes", "paper-") if paper_sizes else ("", "")
        command = f"python -m studies.paper.tables {which}{sizes} --count {count}"
        typer.echo(record(data, f"{prefix}table-{which}", {"table": table_rows(rows)}, command))


if __name__ == "__main__":
    typer.run(main)
