"""One instance of one row of a table: a pure function of names, numbers and settings.

What it is given and what it returns can be pickled and written as JSON, and it looks at nothing
else: it may be run here, in another process or on another machine, with the same record.
"""

import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from studies.errors import StudyError
from studies.instances import FAILED, FAILURES
from studies.paper.tables.table import Case, Settings, Table
from studies.registry import RunOptions, find_study
from studies.runs.folder import RunFolder
from studies.runs.lines import append_record, read_records


SECONDS = "seconds.jsonl"  # apart from records, which are the same each time


@dataclass(frozen=True)
class Task:
    """Which instance, of which scene, by which estimator."""

    table: str
    scene: str
    estimator: str
    k: int

    @property
    def family(self) -> tuple[str, str]:
        """What tasks share that need the same kernels."""
        return self.scene, self.estimator

    @property
    def record_name(self) -> str:
        """Where in the run folder its record is."""
        return f"records/{self.scene}/{self.estimator}/{self.k:03d}.json"


def find_table(name: str) -> Table:
    """Return a table by the name of its study."""
    return import_module(find_study(name).module).TABLE


def run_task(task: Task, settings: Settings, options: RunOptions) -> dict[str, Any]:
    """Estimate the values of one instance; return its record, or why it failed.

    Parameters
    ----------
    task : Task
    settings : dict
        Of the table.
    options : RunOptions

    Returns
    -------
    dict
        Of plain numbers and texts: scene, estimator, instance, status, and `errors` by path as
        `ImageFit.errors` gives them, or `reason`.

    Raises
    ------
    StudyError
        If a setting is wrong; anything else that is not `studies.instances.FAILURES` too.
    """
    table = find_table(task.table)
    case = Case(settings, table.scene(task.scene), options, task.k)
    record = {"scene": task.scene, "estimator": task.estimator, "instance": task.k}
    try:
        found = table.estimator(task.estimator).estimate(case)
        errors = case.fit.errors(found.theta)
    except FAILURES as error:
        return {**record, "status": FAILED, "reason": str(error) or type(error).__name__}
    except StudyError as error:
        raise StudyError(f"Instance {task.k} of `{task.scene}`: {error}") from error
    return {
        **record,
        "status": found.status,
        "loss": None if found.loss is None or not np.isfinite(found.loss) else found.loss,
        "evaluations": found.evaluations,
        "starts": found.starts,
        "what": case.fit.what,
        "theta": found.theta.tolist(),
        "errors": errors,
        "expected": dict(found.expected),
        "spectrum": found.spectrum,
    }


def timed_task(task: Task, settings: Settings, options: RunOptions) -> tuple[dict[str, Any], float]:
    """Return the record of a task, and how many seconds it took."""
    began = time.perf_counter()
    return run_task(task, settings, options), time.perf_counter() - began


def note_seconds(folder: RunFolder, task: Task, seconds: float) -> None:
    """Append how long a task took to the folder's list."""
    path = folder.file(SECONDS)
    read_records(path, cut=True)
    append_record(path, {"record": task.record_name, "seconds": seconds})


def all_seconds(folder: RunFolder) -> float:
    """Return how long all tasks took together, wherever they were run."""
    return sum(one["seconds"] for one in read_records(folder.file(SECONDS)))
