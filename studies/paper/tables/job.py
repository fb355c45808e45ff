"""Run a table: every instance of every row that has no record yet, then the report."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from studies.certificate import Say, Verdict, certificate, told, verdict_of, worst
from studies.errors import StudyError
from studies.instances import FAILED, FAILURES
from studies.looks import Look, write_looks
from studies.paper.tables import summary
from studies.paper.tables.report import scene_file, write_report
from studies.paper.tables.table import Case, Scene, Settings, Table
from studies.paper.tables.tasks import Task, note_seconds, timed_task
from studies.registry import Job, RunOptions
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.runs.pool import HERE, Pool
from studies.scans.progress import PointProgress
from studies.settings import require_chosen


RECORDS_CSV = "records.csv"


@dataclass(frozen=True, eq=False)
class TableJob:
    """A `studies.registry.Job`: all instances of all rows of a table.

    Attributes
    ----------
    table : Table
    settings : dict
    options : RunOptions
    spread : Pool
        Where tasks are run.
    """

    table: Table
    settings: Settings
    options: RunOptions
    spread: Pool = HERE

    @property
    def tasks(self) -> list[Task]:
        """What there is to do: all rows of an instance, then the next instance."""
        return [
            Task(self.table.name, scene.name, name, k)
            for scene in self.table.scenes
            for k in range(self.settings["count"])
            for name in self.settings["methods"]
        ]

    def run(self, folder: RunFolder) -> str:
        """Run what has no record; write table, CSV, certificates and the report."""
        for scene in self.table.scenes:
            folder.write_text(scene_file(scene.name), scene.resolved(self.settings).to_toml())
        tasks = self.tasks
        left = [task for task in tasks if not folder.has(task.record_name)]
        run = partial(timed_task, settings=self.settings, options=self.options)
        with PointProgress(len(tasks), len(tasks) - len(left), what="estimate") as progress:
            for task, (record, seconds) in self.spread(run, left):
                folder.write_json(task.record_name, record)
                note_seconds(folder, task, seconds)
                if record["status"] == FAILED:
                    where = f"instance {task.k} of {task.scene} by {task.estimator}"
                    progress.say(f"{where} failed: {record['reason']}")
                progress([{"reason": record.get("reason")}])
        records = [folder.read_json(task.record_name) for task in tasks]
        folder.write_text(RECORDS_CSV, summary.as_csv(records))
        progress.say("instances ended; certifying the gradient of the first of each scene")
        certified = {
            scene.name: self._certified(scene, records, progress.say) for scene in self.table.scenes
        }
        known = {name: one for name, one in certified.items() if one is not None}
        folder.write_json(run_folder.CERTIFICATE, known)
        verdict = worst(verdict_of(one["certificate"]) for one in known.values())
        passed = verdict is Verdict.PASSED if known else None
        result = summary.summed_up(self.table, self.settings, records, {"certified": passed})
        folder.write_json(run_folder.RESULT, result)
        drawn = [self._look(scene, records) for scene in self.table.scenes]
        write_looks(folder, [look for look in drawn if look is not None])
        report = write_report(folder)
        lines = [
            *summary.told(result),
            f"gradient certificates: {told(verdict) if known else 'none made'}",
        ]
        return "\n".join([*lines, f"report: {report}"])

    def _certified(self, scene: Scene, records: summary.Records, say: Say) -> dict[str, Any] | None:
        """Return the certificate of the first instance that ended from video, if there is one."""
        ended = summary.from_video(scene.name, records)
        if not ended:
            return None
        first = ended[0]
        case = Case(self.settings, scene, self.options, first["instance"])
        made = certificate(case.problem, np.array(first["theta"]), self.options, say)
        return {"instance": first["instance"], "status": first["status"], "certificate": made}

    def _look(self, scene: Scene, records: summary.Records) -> Look | None:
        """Return what the scene has to show of the instance of the median error from video."""
        path = scene.columns[0].path
        ended = summary.from_video(scene.name, records)
        if not ended:
            return None
        median = sorted(ended, key=lambda one: one["errors"][path]["mean"])[len(ended) // 2]
        case = Case(self.settings, scene, self.options, median["instance"])
        return scene.look(case, np.array(median["theta"]))


def prepare_table(table: Table, settings: Settings, options: RunOptions) -> Job:
    """Check the settings of a table and of its scenes, and return what runs it.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    checks.positive("count", settings["count"])
    require_chosen("methods", settings["methods"], [one.name for one in table.estimators])
    for name in settings["methods"]:
        table.estimator(name).check(settings)
    for scene in table.scenes:
        case = Case(settings, scene, options, 0)
        try:
            scene.check(settings, case.values)
            _ = case.fit  # complains of settings before anything is run
        except FAILURES:
            continue  # of this instance: the others may end
        except ValueError as error:
            raise StudyError(f"`{scene.name}`: {error}") from error
    return TableJob(table, settings, options)
