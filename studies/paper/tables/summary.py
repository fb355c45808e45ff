"""The errors of all instances of a table, summed up: JSON, CSV, and lines for the terminal."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.instances import FAILED
from studies.paper.tables.table import Column, Scene, Settings, Statistic, Table


VIDEO = "video"  # the row that bars are for
Records = Sequence[dict[str, Any]]


def summed_up(
    table: Table, settings: Settings, records: Records, facts: dict[str, Any]
) -> dict[str, Any]:
    """Return mean, median and worst of every column and row, beside what is published.

    Parameters
    ----------
    table : Table
    settings : dict
    records : sequence of dict
        What `studies.paper.tables.tasks.run_task` returned, of all tasks.
    facts : dict
        What else the result says.
    """
    rows = [table.estimator(name) for name in settings["methods"]]
    columns = [
        _column(scene, column, records) for scene in table.scenes for column in scene.columns
    ]
    return {
        "title": table.title,
        "differs": table.differs,
        "count": settings["count"],
        "rows": [
            {"name": row.name, "label": row.label, "about": row.about(settings)} for row in rows
        ],
        "labels": {**table.names, **{row.name: row.label for row in table.estimators}},
        "columns": columns,
        "cells": [make_cell(column, row.name, records) for column in columns for row in rows],
        **facts,
        "records": list(records),
    }


def _column(scene: Scene, column: Column, records: Records) -> dict[str, Any]:
    return {
        "scene": scene.name,
        "study": scene.study,
        "path": column.path,
        "label": column.label,
        "bar": column.bar,
        "by": str(column.by),
        "published": dict(column.published),
        "whats": sorted({one["what"] for one in _ended(records, scene.name)}),
    }


def make_cell(column: dict[str, Any], row: str, records: Records) -> dict[str, Any]:
    """Return what the records of a row say of a column, as `summed_up` has it."""
    scene, path = column["scene"], column["path"]
    own = [one for one in records if (one["scene"], one["estimator"]) == (scene, row)]
    ended = _ended(own, scene)
    cell: dict[str, Any] = {
        "scene": scene,
        "path": path,
        "row": row,
        "ended": len(ended),
        "failed": len(own) - len(ended),
        "published": column["published"].get(row),
    }
    if not ended:
        return {**cell, "mean": None, "median": None, "worst": None, "expected": None, "met": None}
    errors = np.array([one["errors"][path]["mean"] for one in ended])
    expected = [one["expected"].get(path) for one in ended]
    statistics = {Statistic.MEAN: float(errors.mean()), Statistic.MEDIAN: float(np.median(errors))}
    is_met = None if column["bar"] is None else statistics[column["by"]] <= column["bar"]
    return {
        **cell,
        "mean": statistics[Statistic.MEAN],
        "median": statistics[Statistic.MEDIAN],
        "worst": float(errors.max()),
        "worst_instance": ended[int(errors.argmax())]["instance"],
        "expected": None if None in expected else float(np.mean(expected)),
        "met": is_met if row == VIDEO else None,
    }


def _ended(records: Records, scene: str) -> list[dict[str, Any]]:
    return [one for one in records if one["scene"] == scene and one["status"] != FAILED]


def from_video(scene: str, records: Records) -> list[dict[str, Any]]:
    """Return the records of a scene's estimates from video that ended."""
    return [one for one in _ended(records, scene) if one["estimator"] == VIDEO]


def find_cell(result: dict[str, Any], column: dict[str, Any], row: str) -> dict[str, Any]:
    """Return the cell of a column and a row."""
    asked = (column["scene"], column["path"], row)
    return next(one for one in result["cells"] if (one["scene"], one["path"], one["row"]) == asked)


def above_the_bar(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records from video of which some error is above its bar."""
    bars = {(one["scene"], one["path"]): one["bar"] for one in result["columns"]}
    return [
        one
        for one in result["records"]
        if one["estimator"] == VIDEO
        and one["status"] != FAILED
        and any(
            (bar := bars.get((one["scene"], path))) is not None and error["mean"] > bar
            for path, error in one["errors"].items()
        )
    ]


def as_csv(records: Records) -> str:
    """Return one line for each instance and row; of one that failed, the reason."""
    head = ["scene", "method", "instance", "status", "loss", "evaluations", "starts", "condition"]
    columns: dict[tuple[str, str], None] = {}
    for one in records:
        for path, error in one.get("errors", {}).items():
            columns |= dict.fromkeys((path, key) for key in error)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*head, *(f"{path} {_named(key)}" for path, key in columns), "reason"])
    for one in records:
        own = [one["scene"], one["estimator"], one["instance"], one["status"]]
        own += [one.get("loss"), one.get("evaluations"), one.get("starts")]
        own.append((one.get("spectrum") or {}).get("condition"))
        errors = one.get("errors", {})
        own += [errors.get(path, {}).get(key) for path, key in columns]
        writer.writerow(["" if cell is None else cell for cell in [*own, one.get("reason")]])
    return out.getvalue()


def _named(key: str) -> str:
    return {"mean": "relative error", "max": "largest relative error"}.get(key, key)


def told(result: dict[str, Any]) -> list[str]:
    """Return the table in a few lines for the terminal."""
    lines = [f"relative errors over {result['count']} instances:"]
    for column in result["columns"]:
        bar = "" if column["bar"] is None else f", aim: {column['by']} below {column['bar']:.0e}"
        lines.append(f"{column['label']}{bar}")
        for row in result["rows"]:
            cell = find_cell(result, column, row["name"])
            if cell["mean"] is None:
                lines.append(f"  {row['label']}: all {cell['failed']} instances failed")
                continue
            line = (
                f"  {row['label']}: mean {cell['mean']:.1e}  median {cell['median']:.1e}  "
                f"worst {cell['worst']:.1e} (instance {cell['worst_instance']})"
            )
            if cell["expected"] is not None:
                line += f"  expected {cell['expected']:.3g}"
            if cell["published"] is not None:
                line += f"  published {cell['published']:.2g}"
            lines.append(line + (f"  {cell['failed']} failed" if cell["failed"] else ""))
    return lines
