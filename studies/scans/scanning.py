"""Start a scan in a new folder, or go on with one that was stopped."""

import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from studies.runs.folder import RESULT, SCAN, RunFolder
from studies.runs.pool import HERE, Pool
from studies.runs.starting import Recipe, recalled, start_or_resume
from studies.scans import spec
from studies.scans.dataset import make_dataset, write_dataset
from studies.scans.landscape import summary
from studies.scans.points import POINTS, read_points, sort_points, write_points
from studies.scans.progress import PointProgress
from studies.scans.report import write_report
from studies.scans.spec import Asked, Scan
from studies.scans.survey import Survey
from studies.scans.terrain import Grid
from studies.scene.files import SCENE


@dataclass(frozen=True, eq=False)
class ScanJob:
    """A scan whose settings are checked, ready to run.

    Attributes
    ----------
    survey : Survey
    grid : Grid
        That of the survey.
    spread : Pool
        Where the points are evaluated.
    """

    survey: Survey
    grid: Grid
    spread: Pool = HERE

    def run(self, folder: RunFolder) -> str:
        """Evaluate the points that are not written yet; write data set, figures and report."""
        path, order = folder.file(POINTS), [tuple(index) for index in self.grid.order().tolist()]
        records = read_points(path, self.grid.order())
        if records:
            print(f"{len(records)} points are read from {POINTS} and not computed again")
        began = time.perf_counter()
        left = [index for index in order if index not in records]
        pieces = self.survey.pieces(left, self.spread.width)
        with PointProgress(len(order), len(records)) as progress:
            for piece, made in self.spread(self.survey, pieces):
                records |= zip(piece, write_points(path, made), strict=True)
                progress(made)
        seconds = time.perf_counter() - began
        points = [records[index] for index in order]
        sort_points(folder, points)
        data = make_dataset(self.grid, points)
        write_dataset(folder, data)
        found = summary(self.grid.scan, data)
        folder.write_json(RESULT, {**found, "evaluated": len(left), "seconds": seconds})
        report = write_report(folder)
        return "\n".join([*found["told"], f"report: {report}"])


def _make_job(scan: Scan, spread: Pool) -> ScanJob:
    survey = Survey(scan)
    return ScanJob(survey, survey.grid, spread)


def start(
    asked: Asked, out: Path | None, spread: Pool = HERE, *, resume: bool = False
) -> tuple[RunFolder, ScanJob]:
    """Check what is asked for, then make its folder, or open the one to resume.

    `spread` says where points are evaluated. What is left out of a scan that is resumed is as the
    folder has it.

    Raises
    ------
    StudyError, ValueError
        If something is wrong, and nothing was written; or if the scan to resume is another one.
    """
    given = recalled(out, asked.to_json(), resume=resume)
    scan = spec.resolve(Asked.from_json(given))
    settings = {"scene": tomllib.loads(scan.scene), **scan.to_json()}
    del settings["options"]
    recipe = Recipe("scan", scan.name, SCENE, settings, scan.scene, scan.options, given)
    folder, job = start_or_resume(recipe, out, lambda: _make_job(scan, spread), resume=resume)
    folder.write_json(SCAN, scan.to_json())
    return folder, job


def resume(asked: Asked, out: Path | None, spread: Pool = HERE) -> tuple[RunFolder, ScanJob]:
    """Go on with a scan; as `start` otherwise."""
    return start(asked, out, spread, resume=True)
