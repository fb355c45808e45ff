"""Start a scan in a new folder, or go on with one that was stopped."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from studies import config
from studies.distribution import HERE, Spread
from studies.errors import StudyError
from studies.manifest import manifest, now
from studies.run_folder import MANIFEST, RESULT, SCAN, STUDY, RunFolder, new_folder
from studies.running import CHECKPOINT, check_device, with_budget
from studies.scans import spec
from studies.scans.dataset import make_dataset, write_dataset
from studies.scans.landscape import summary
from studies.scans.points import POINTS, read_points, sort_points, write_points
from studies.scans.progress import PointProgress
from studies.scans.report import write_report
from studies.scans.spec import Asked, Scan, read_scan
from studies.scans.survey import Survey
from studies.scans.terrain import Grid


@dataclass(frozen=True, eq=False)
class ScanJob:
    """A scan whose settings are checked, ready to run.

    Attributes
    ----------
    survey : Survey
    grid : Grid
        That of the survey.
    spread : Spread
        Where the points are evaluated.
    """

    survey: Survey
    grid: Grid
    spread: Spread = HERE

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


def _make_job(scan: Scan, spread: Spread) -> ScanJob:
    survey = Survey(scan)
    return ScanJob(survey, survey.grid, spread)


def start(asked: Asked, out: Path | None, spread: Spread = HERE) -> tuple[RunFolder, ScanJob]:
    """Check what is asked for, then make its folder; `spread` says where points are evaluated.

    Raises
    ------
    StudyError, ValueError
        If something is wrong, or the folder holds something already. Nothing was written.
    """
    scan = spec.resolve(asked)
    check_device(scan.options.device)
    RunFolder.require_free(out)  # what follows may compile, which takes minutes
    job = _make_job(scan, spread)
    name = Path(scan.name).stem
    folder = RunFolder.create(out or new_folder(f"scan-{name}"))
    command = " ".join(["adjsim", *sys.argv[1:]])
    folder.write_json(MANIFEST, manifest(scan.settings.kind, vars(scan.options), command))
    folder.write_json(SCAN, scan.to_json())
    folder.write_text(STUDY, scan.settings.to_toml())  # last: with it the scan has begun
    return folder, job


def resume(asked: Asked, out: Path | None, spread: Spread = HERE) -> tuple[RunFolder, ScanJob]:
    """Open a scan's folder and go on with it, or start where none has begun.

    What is given again must be as it was; the rest is as the folder has it.

    Raises
    ------
    StudyError
        If there is no scan, or something given differs from it.
    """
    if out is None:
        raise StudyError("`--resume` needs the scan's folder: add `--out DIR`.")
    if RunFolder.clear_unbegun(out, "scan"):
        return start(asked, out, spread)
    folder = RunFolder.reopen(out)
    stored = read_scan(folder)
    if asked.scan != stored.name:
        raise StudyError(f"{out} holds the scan `{stored.name}`, not `{asked.scan}`.")
    over = asked.over or [axis.text for axis in stored.axes]
    again = spec.resolve(replace(asked, over=over))
    given, kept = again.to_json(), stored.to_json()
    given["options"] = {**kept["options"], **_given(asked.options)}
    for record in (given, kept):
        record["options"] = {k: v for k, v in record["options"].items() if k != CHECKPOINT}
    unasked = {"at": asked.at is None, "trust": asked.trust is None}
    for key, value in given.items():
        if not unasked.get(key) and value != kept[key]:
            _differs(out, key, kept[key], value)
    for key, value in again.settings.explicit.items():
        own = config.get(stored.settings.values, key)
        if own != value:
            _differs(out, key, own, value)
    check_device(stored.options.device)
    options = with_budget(stored.options, asked.options.get(CHECKPOINT))
    job = _make_job(replace(stored, options=options), spread)
    folder.clear_parts()
    old = folder.read_json(MANIFEST)
    resumed = {CHECKPOINT: options.checkpoint, "resumed": [*old["resumed"], now()]}
    folder.write_json(MANIFEST, {**old, **resumed})
    return folder, job


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _differs(out: Path, key: str, stored: Any, asked: Any) -> None:
    raise StudyError(
        f"{out} was scanned with `{key}` = {stored!r}, not {asked!r}. A scan resumes as it was "
        "started: leave it out, or scan into a new folder."
    )
