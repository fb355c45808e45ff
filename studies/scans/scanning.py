"""Start a scan in a new folder, or go on with one that was stopped.

`points.jsonl` has a line for each point, in the order in which they come, at the end of the grid. A
line holds what was computed there and nothing of when or where, so that a scan that was stopped and
resumed leaves the same file to the bit.
"""

import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.fitting.inspecting import growth_warnings
from studies.runs.contents import PointRecord
from studies.runs.errors import StudyError
from studies.runs.files import append_record, line_of, read_records
from studies.runs.folder import RESULT, SCAN, RunFolder
from studies.runs.pool import HERE, Pool
from studies.runs.progress import PointProgress
from studies.runs.starting import Recipe, recalled, start_or_resume, warn
from studies.scans import spec
from studies.scans.dataset import FILE, POINTS, make_dataset
from studies.scans.landscape import summary
from studies.scans.report import write_report
from studies.scans.survey import Index, Survey
from studies.scans.terrain import ScanPoints
from studies.scene.files import SCENE
from studies.scene.own_code import sources
from studies.scene.reading import scene_from_dict


@dataclass(frozen=True, eq=False)
class ScanJob:
    """A scan whose settings are checked, ready to run; `spread` evaluates its points."""

    survey: Survey
    grid: ScanPoints
    spread: Pool

    def run(self, folder: RunFolder) -> str:
        """Evaluate the points that are not written yet; write data set, figures and report."""
        path, order = folder.file(POINTS), self.grid.order()
        records = read_points(path, order)
        if records:
            print(f"{len(records)} points are read from {POINTS} and not computed again")
        began = time.perf_counter()
        left = [index for index in order if index not in records]
        pieces = self.survey.pieces(left, self.spread.width)
        with PointProgress(len(order), len(records)) as progress:
            for piece, new_records in self.spread(self.survey, pieces):
                write_points(path, new_records)
                records |= zip(piece, new_records, strict=True)
                progress(new_records)
        seconds = time.perf_counter() - began
        points = [records[index] for index in order]
        text = "".join(line_of(record) + "\n" for record in points)
        if path.read_text(encoding="utf-8") != text:
            folder.write_text(POINTS, text)
        data = make_dataset(self.grid, points)
        folder.write_dataset(FILE, data)
        conclusions = summary(self.grid.scan, data)
        folder.write_json(RESULT, {**conclusions, "evaluated": len(left), "seconds": seconds})
        report = write_report(folder)
        return "\n".join([*conclusions["told"], f"report: {report}"])


def read_points(path: Path, order: Sequence[Index]) -> dict[Index, dict[str, Any]]:
    """Return the points written so far, by index; a line cut short by a kill is cut off."""
    records = read_records(path, PointRecord, cut=True)
    by_index = {tuple(record["index"]): record for record in records}
    if len(by_index) < len(records) or not by_index.keys() <= set(order):
        raise StudyError(f"`{path}` holds the points of another grid. Scan into a new folder.")
    return by_index


def write_points(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Append points to the file, each with one write."""
    for record in records:
        append_record(path, record)


def start(
    given: Mapping[str, Any], out: Path | None, spread: Pool = HERE, *, resume: bool = False
) -> tuple[RunFolder, ScanJob]:
    """Check what `spec.resolve` takes, then make the folder, or open the one to resume."""
    given = recalled(out, given, resume=resume)
    scan = spec.resolve(given)
    settings = {"scene": tomllib.loads(scan.scene), **scan.to_json()}
    del settings["options"]
    if code := sources(scene_from_dict(tomllib.loads(scan.scene))):
        settings["own_code"] = code
    recipe = Recipe("scan", scan.name, SCENE, settings, scan.scene, scan.options, given)

    def make() -> ScanJob:
        survey = Survey(scan)
        return ScanJob(survey, survey.grid, spread)

    folder, job = start_or_resume(recipe, out, make, resume=resume)
    folder.write_json(SCAN, scan.to_json())
    if not resume:
        first = job.grid.first
        theta = job.grid.natural(first, job.grid.order()[0])
        advice = "Trust its signs only where neighbours agree, or scan a shorter `world.duration`."
        warn([] if first.why_not(theta) else growth_warnings(first.problem, theta, advice))
    return folder, job
