"""Rows of a table that are not its own: estimates that another program made of its instances.

A row is `rows/NAME.json`: what it is called, what it does, and a record for each instance of a
scene, like those of the table's own methods. Beside it `rows/NAME.csv` has the records in the
columns of `records.csv`. The report of a run shows every row that is there.

Tests: `tests/studies/paper/tables/test_more_rows.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from studies.errors import StudyError
from studies.paper.tables.summary import as_csv, make_cell
from studies.paper.tables.table import Case
from studies.run_folder import RunFolder


ROWS = "rows"
GUESSED = "GUESSED"  # the status of an estimate that no search made


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes
    ----------
    name : str
        What columns may have a published figure of.
    label : str
        What heads it.
    about : str
        What it does, and what it has seen.
    """

    name: str
    label: str
    about: str


KEYS = tuple(field.name for field in fields(Row))


def guess_record(case: Case, row: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of values by path that were guessed of an instance.

    Of the same keys as `studies.paper.tables.tasks.run_task` returns: no rollout is spent.
    """
    theta = case.problem.parameters.theta(case.flat(values))
    return {
        "scene": case.scene.name,
        "estimator": row,
        "instance": case.k,
        "status": GUESSED,
        "loss": None,
        "evaluations": 0,
        "starts": 0,
        "what": case.fit.what,
        "theta": np.asarray(theta).tolist(),
        "errors": case.fit.errors(theta),
        "expected": {},
        "spectrum": None,
    }


def write_row(folder: RunFolder, row: Row, records: Sequence[dict[str, Any]]) -> str:
    """Write a row into the folder of a table's run, over one of its name; return its CSV.

    Raises
    ------
    StudyError
        If the table has a method of this name itself.
    """
    own = {path.name for path in folder.file("records").glob("*/*")}
    if row.name in own:
        raise StudyError(f"{folder.path} has a row `{row.name}` of its own. Give it another name.")
    folder.write_json(f"{ROWS}/{row.name}.json", {**asdict(row), "records": list(records)})
    text = as_csv(records)
    folder.write_text(f"{ROWS}/{row.name}.csv", text)
    return text


def with_rows(folder: RunFolder, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a table with the rows that were added to its folder, by name.

    Raises
    ------
    StudyError
        If what is there is no row.
    """
    result = dict(result)
    for path in sorted(folder.file(ROWS).glob("*.json")):
        added = folder.read_json(f"{ROWS}/{path.name}")
        if missing := [key for key in (*KEYS, "records") if key not in added]:
            raise StudyError(
                f"{path} must hold {', '.join((*KEYS, 'records'))}, got no {', '.join(missing)}. "
                "`studies.paper.tables.more_rows.write_row` writes one; or take the file away."
            )
        name, records = added["name"], added["records"]
        row = {key: added[key] for key in KEYS}
        result |= {
            "rows": [*result["rows"], row],
            "labels": {**result["labels"], name: added["label"]},
            "cells": [
                *result["cells"],
                *(make_cell(column, name, records) for column in result["columns"]),
            ],
            "records": [*result["records"], *records],
        }
    return result
